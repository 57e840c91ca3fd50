//! The pure modules decide by plain values alone: no client, runtime, file, environment or clock.

use std::fs;
use std::path::{Path, PathBuf};

const PURE_ROOMS: [&str; 7] =
    ["model", "manifest", "merge", "controller", "plan", "rollout", "render"];

/// Names that must not occur in a pure module, as written in a `use` line or a path.
const IMPURE: [&str; 16] = [
    "crate::cli",
    "crate::cluster",
    "crate::source",
    "kube::",
    "k8s_openapi::",
    "tokio::",
    "git2::",
    "std::fs",
    "std::env",
    "std::net::Tcp",
    "std::net::Udp",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "SystemTime",
    "Timestamp::now",
];

#[test]
fn pure_modules_use_no_io() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut looked_at = 0;
    for room in PURE_ROOMS {
        for file in rust_files(&source, room) {
            looked_at += 1;
            let code = fs::read_to_string(&file).unwrap();
            let found = impurities(&code);
            assert!(found.is_empty(), "{}: {found:#?}", file.display());
        }
    }
    assert!(looked_at > 40, "only {looked_at} files: have the modules moved?");
}

/// `room.rs` and everything in `room/`.
fn rust_files(source: &Path, room: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut open = vec![source.join(room), source.join(format!("{room}.rs"))];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|it| it == "rs") && path.exists() {
            files.push(path);
        }
    }
    files
}

/// The offending lines, except tests and comments.
fn impurities(code: &str) -> Vec<&str> {
    let (code, _tests) = code.split_once("#[cfg(test)]\nmod tests {").unwrap_or((code, ""));
    code.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .filter(|line| {
            let grouped = expanded(line);
            IMPURE.iter().any(|name| grouped.contains(name))
        })
        .collect()
}

/// `use std::{fs, io};` names `std::fs` too.
fn expanded(line: &str) -> String {
    let group = line.strip_prefix("use std::{").and_then(|rest| rest.split_once('}'));
    let names = group.map(|(names, _)| names.replace(' ', "").replace(',', " std::"));
    names.map_or_else(|| line.to_owned(), |names| format!("std::{names}"))
}

#[test]
fn impure_lines_are_found_and_others_are_not() {
    for (code, want) in [
        ("use std::fs;\n", 1),
        ("use std::{fmt, fs};\n", 1),
        ("use std::{fmt, io};\n", 0),
        ("use kube::Client;\nuse std::fmt;\n", 1),
        ("    let now = jiff::Timestamp::now();\n", 1),
        ("/// As `kube::Client` would.\n", 0),
        ("use std::fmt;\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n", 0),
    ] {
        assert_eq!(impurities(code).len(), want, "{code}");
    }
}
