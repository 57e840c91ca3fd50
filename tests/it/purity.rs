//! The pure crates decide by plain values alone. That they use no client and no runtime shows in
//! their dependencies; the standard library is left to this test.

use std::fs;
use std::path::Path;

use crate::rust_files;

const PURE_CRATES: [&str; 5] = ["daemonset", "manifest", "planner", "render", "ssa"];

/// Names that must not occur in a pure crate, as written in a `use` line or a path.
const IMPURE: [&str; 9] = [
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

/// Packages that a pure crate must not depend on.
const IMPURE_PACKAGES: [&str; 6] = ["cluster", "git2", "host", "k8s-openapi", "kube", "tokio"];

#[test]
fn pure_crates_depend_on_no_io() {
    for name in PURE_CRATES {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates").join(name);
        let manifest = fs::read_to_string(manifest.join("Cargo.toml")).unwrap();
        let (_, rest) = manifest.split_once("[dependencies]").unwrap();
        let dependencies = rest.split("[dev-dependencies]").next().unwrap();
        let packages = dependencies.lines().filter_map(|line| line.split(['.', ' ']).next());
        let impure: Vec<&str> = packages.filter(|it| IMPURE_PACKAGES.contains(it)).collect();
        assert_eq!(impure, [""; 0], "{name}");
    }
}

#[test]
fn pure_crates_use_no_io() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates");
    let mut looked_at = 0;
    for name in PURE_CRATES {
        let src = crates.join(name).join("src");
        let files = rust_files::below([src.clone()]);
        for file in files.iter().filter(|it| !is_of_tests(it.strip_prefix(&src).unwrap())) {
            looked_at += 1;
            let code = fs::read_to_string(file).unwrap();
            let found = impurities(&code);
            assert!(found.is_empty(), "{}: {found:#?}", file.display());
        }
    }
    assert!(looked_at > 40, "only {looked_at} files: have the crates moved?");
}

/// Whether a file is one of tests, by its name or a folder's.
fn is_of_tests(file: &Path) -> bool {
    file.ancestors().any(|it| it.file_stem().is_some_and(|stem| stem == "tests"))
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
        ("use std::process::Command;\nuse std::fmt;\n", 1),
        ("    let now = jiff::Timestamp::now();\n", 1),
        ("/// As `std::fs::read` would.\n", 0),
        ("use std::fmt;\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n", 0),
    ] {
        assert_eq!(impurities(code).len(), want, "{code}");
    }
}
