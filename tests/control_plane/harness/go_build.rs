//! Builds the programs that the tests need with Go, once per machine.
//!
//! Each set of versions has its own folder, named by a hash of all inputs of the build. A program
//! is moved into it only when it is complete, so an interrupted build is never used; a file lock
//! lets one process build while the others wait.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use sha2::{Digest as _, Sha256};

use super::binaries::Program;
use super::cache;
use super::watchdog::{Watched, log_tail};

/// A Go module below `tools/`, which pins the versions of its programs.
pub(crate) struct Tool {
    pub(crate) folder: &'static str,
    /// Each program's file name and its package; one that begins with `./` is our own.
    pub(crate) programs: &'static [(&'static str, &'static str)],
    /// Build tags, separated by commas.
    pub(crate) tags: &'static str,
    /// The expected time on two cores if Go's own cache is empty.
    pub(crate) cold: &'static str,
}

const ETCD: Tool = Tool {
    folder: "etcd",
    programs: &[(Program::Etcd.file_name(), "go.etcd.io/etcd/server/v3")],
    tags: "",
    cold: "half a minute",
};

/// Of the newest version; its folder is the only difference between the versions.
const KUBERNETES: Tool = Tool {
    folder: "kubernetes",
    programs: &[
        (Program::KubeApiserver.file_name(), "k8s.io/kubernetes/cmd/kube-apiserver"),
        (
            Program::KubeControllerManager.file_name(),
            "k8s.io/kubernetes/cmd/kube-controller-manager",
        ),
        (Program::KubeScheduler.file_name(), "k8s.io/kubernetes/cmd/kube-scheduler"),
        (Program::Kubectl.file_name(), "k8s.io/kubernetes/cmd/kubectl"),
    ],
    tags: "",
    cold: "5 minutes",
};

const KWOK: Tool = Tool {
    folder: "kwok",
    programs: &[(Program::Kwok.file_name(), "sigs.k8s.io/kwok/cmd/kwok")],
    tags: "",
    cold: "a minute",
};

/// The modules of the control plane, with Kubernetes from the module in `kubernetes`.
pub(crate) const fn control_plane(kubernetes: &'static str) -> [Tool; 3] {
    [ETCD, Tool { folder: kubernetes, ..KUBERNETES }, KWOK]
}

/// The build flags; part of the folder's name.
const FLAGS: [&str; 3] = ["-mod=readonly", "-buildvcs=false", "-trimpath"];

/// The folder that contains all of `programs`, after building the missing ones of `tools`.
pub(crate) fn folder_with(tools: &[Tool], programs: &[&str]) -> PathBuf {
    let cache = cache::folder();
    let folder = cache.join(key(tools));
    if complete(&folder, programs) {
        return folder;
    }
    let _lock = locked(&cache);
    // Protected by the lock; leftover files belong to interrupted builds.
    let scratch = cache.join("building");
    let _ = fs::remove_dir_all(&scratch);
    cache::make(&folder);
    for tool in tools {
        build(tool, programs, &scratch, &folder);
    }
    let _ = fs::remove_dir_all(&scratch);
    folder
}

/// Whether every one of `programs` exists.
fn complete(folder: &Path, programs: &[&str]) -> bool {
    programs.iter().all(|program| folder.join(program).is_file())
}

/// Builds those of `programs` that come from `tool` and are missing.
fn build(tool: &Tool, programs: &[&str], scratch: &Path, folder: &Path) {
    let missing: Vec<(&str, &str)> = tool
        .programs
        .iter()
        .copied()
        .filter(|(program, _)| programs.contains(program))
        .filter(|(program, _)| !folder.join(program).is_file())
        .collect();
    if missing.is_empty() {
        return;
    }
    cache::make(scratch);
    let names: Vec<_> = missing.iter().map(|(program, _)| *program).collect();
    let names = names.join(", ");
    progress(&format!("building {names}: about {} the first time, on two cores", tool.cold));
    let start = Instant::now();
    let log = scratch.join(format!("{}.log", tool.folder.replace('/', "-")));
    let mut go = Watched::spawn(&go_build(tool, &missing, scratch), &log);
    let status = go.wait();
    assert!(status.success(), "building {names} with Go failed\n{}", log_tail(&log));
    for (program, _) in &missing {
        fs::rename(scratch.join(program), folder.join(program))
            .expect("both are in the cache folder");
    }
    progress(&format!("built {names} in {} s", start.elapsed().as_secs()));
}

/// The `go build` command for some programs of one module.
fn go_build(tool: &Tool, programs: &[(&str, &str)], scratch: &Path) -> Command {
    let mut go = go(&module(tool));
    go.arg("build").args(FLAGS).args(["-tags", tool.tags]);
    go.args(["-ldflags", &linker_flags(tool), "-o"]);
    go.env("GOTMPDIR", scratch); // removed with the rest after an interrupted build
    match programs {
        // Go would name it after the last part of the package's path, which is `v3` for etcd.
        [(program, _)] => go.arg(scratch.join(program)),
        _ => go.arg(format!("{}/", scratch.display())),
    };
    go.args(programs.iter().map(|(_, package)| package));
    go
}

/// No symbols, which halves the files; and for Kubernetes the version to report.
fn linker_flags(tool: &Tool) -> String {
    let mut flags = vec!["-s -w".to_owned()];
    let go_mod = fs::read_to_string(module(tool).join("go.mod")).expect("every tool has a go.mod");
    if let Some(version) = version_of("k8s.io/kubernetes", &go_mod) {
        let mut parts = version.trim_start_matches('v').split('.');
        let values =
            [("gitVersion", Some(version)), ("gitMajor", parts.next()), ("gitMinor", parts.next())];
        flags.extend(values.map(|(variable, value)| {
            let value = value.unwrap_or_default();
            format!("-X k8s.io/component-base/version.{variable}={value}")
        }));
    }
    flags.join(" ")
}

/// The version at which a `go.mod` requires `module`.
fn version_of<'a>(module: &str, go_mod: &'a str) -> Option<&'a str> {
    go_mod.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some(module)).then(|| words.next())?
    })
}

/// A name for all inputs of the build: versions, checksums, our own sources, flags and the
/// compiler.
fn key(tools: &[Tool]) -> String {
    let mut hash = Sha256::new();
    for tool in tools {
        let own = tool.programs.iter().filter_map(|(_, package)| package.strip_prefix("./"));
        let own = own.map(|package| format!("{package}/main.go"));
        for file in ["go.mod".to_owned(), "go.sum".to_owned()].into_iter().chain(own) {
            let path = module(tool).join(file);
            let text = fs::read(&path)
                .unwrap_or_else(|err| panic!("cannot read {}: {err}", path.display()));
            hash.update(text);
        }
        hash.update(linker_flags(tool));
        hash.update(tool.tags);
    }
    hash.update(FLAGS.concat());
    hash.update(compiler(&tools[0]));
    let start = hash.finalize().first_chunk().copied();
    let start = start.expect("SHA-256 has 32 bytes");
    format!("{:016x}", u64::from_be_bytes(start))
}

/// The output of `go version`, for the toolchain that the modules request.
fn compiler(tool: &Tool) -> Vec<u8> {
    let output = go(&module(tool)).arg("version").output();
    let output = output.unwrap_or_else(|err| {
        panic!(
            "the tests on a real Kubernetes build it with Go, but `go` cannot be started ({err}).\n\
             Install Go 1.26 or newer (https://go.dev/dl/) and have `go` in PATH,\n\
             or set KUBEBUILDER_ASSETS to a folder with {}.",
            Program::ALL.map(Program::file_name).join(", ")
        )
    });
    assert!(
        output.status.success(),
        "`go version` failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// A `go` command in a module, without C and without the caller's workspace.
fn go(module: &Path) -> Command {
    let mut go = Command::new("go");
    go.current_dir(module);
    go.env("CGO_ENABLED", "0").env("GOWORK", "off");
    go
}

/// The path of a tool's `go.mod`.
fn module(tool: &Tool) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/control_plane/tools").join(tool.folder)
}

/// The folder of the sources of `dependency`, a module that a tool needs.
pub(crate) fn sources_of(tool: &Tool, dependency: &str) -> PathBuf {
    let output = go(&module(tool)).args(["list", "-m", "-f", "{{.Dir}}", dependency]).output();
    let output = output.expect("Go was there to build it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("a path in UTF-8").trim().into()
}

/// Locks the cache for building until drop.
fn locked(cache: &Path) -> File {
    let lock = cache::lock_file(&cache.join("build.lock"));
    if lock.try_lock().is_err() {
        progress("waiting for another test process, which is building");
        lock.lock().expect("the lock's file is open");
    }
    lock
}

/// Shows the progress to the user; written past the test harness, which would capture it.
fn progress(text: &str) {
    let _ = writeln!(io::stderr(), "control plane: {text}");
}

#[test]
fn the_version_is_read_from_the_module_that_requires_it() {
    let go_mod =
        "require (\n\tk8s.io/kube-openapi v0.1.0\n\tk8s.io/kubernetes v1.36.3 // indirect\n)";
    assert_eq!(version_of("k8s.io/kubernetes", go_mod), Some("v1.36.3"));
    assert_eq!(version_of("k8s.io/absent", go_mod), None);
}
