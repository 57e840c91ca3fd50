//! `release/compile` itself: a commit gives the same bytes in every folder, and static programs that
//! run on a machine that has nothing. It takes the time of two builds of a release, so it is run by
//! hand, and each week by a job of its own:
//! `cargo test --features web --test it release::compile -- --ignored`
//!
//! Not here: other targets, and a second machine. The release workflow compares these.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use assert_cmd::cargo::cargo_bin;
use testkit::sandbox::{Run, Sandbox};

use super::{ROOT, VERSION, native, script};

/// Where this cargo keeps what it has downloaded.
#[expect(clippy::disallowed_methods, reason = "variables name the folder of cargo")]
fn registry() -> PathBuf {
    let named = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let usual = || Path::new(&std::env::var_os("HOME").unwrap()).join(".cargo");
    named.unwrap_or_else(usual).join("registry")
}

/// Clones the last commit into a folder, and compiles it there with a cargo that has a folder of its
/// own; returns where the programs are.
///
/// Archives are copied, not linked: crates that ask for the real path of their source get another one
/// in each folder. Cargo downloads only what this machine has not compiled yet.
fn compiled(sandbox: &Sandbox, folder: &str) -> PathBuf {
    let [clone, cargo, programs] =
        ["clone", "cargo", "programs"].map(|name| sandbox.path(folder).join(name));
    sandbox.git(&["clone", "-q", ROOT, clone.to_str().unwrap()]);
    let copied = cargo.join("registry");
    fs::create_dir_all(&copied).unwrap();
    let mut copy = Command::new("cp");
    copy.arg("-R").args(["cache", "index"].map(|name| registry().join(name))).arg(&copied);
    assert!(copy.status().unwrap().success());

    let mut compile = script(&clone.join("release/compile"), &[native().as_ref(), &programs]);
    compile.env("CARGO_HOME", &cargo);
    let run = sandbox.run(compile);
    assert_eq!(run.code, Some(0), "{run}");
    programs
}

/// Whether the kernel needs another program to load this one, which then is not static.
fn has_interpreter(program: &Path) -> bool {
    let listed = script("readelf".as_ref(), &["--program-headers".as_ref(), program]).output();
    let listed = listed.expect("`readelf` comes with the C compiler");
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    String::from_utf8(listed.stdout).unwrap().contains(" INTERP ")
}

#[test]
#[ignore = "compiles a release twice; a job of its own runs it"]
fn a_commit_gives_the_same_static_programs_in_every_folder() {
    let sandbox = Sandbox::new();
    let first = compiled(&sandbox, "one");
    let second = compiled(&sandbox, "another/deeper");
    for program in ["ds-plan", "ds-apply"] {
        let [one, other] = [&first, &second].map(|it| fs::read(it.join(program)).unwrap());
        assert!(one == other, "{program} differs");
        assert!(!has_interpreter(&first.join(program)), "{program} is not static");
    }
    assert!(has_interpreter(&cargo_bin("ds-plan")), "those of this build are not static");
    is_packed_and_works(&sandbox, &first);
}

/// Packs the programs by the scripts of their commit, and runs them from the archive.
fn is_packed_and_works(sandbox: &Sandbox, programs: &Path) {
    let (clone, out) = (sandbox.path("one/clone"), sandbox.path("out"));
    let packed = script(&clone.join("release/package"), &[native().as_ref(), programs, &out]);
    let run = sandbox.run(packed);
    assert_eq!(run.code, Some(0), "{run}");
    let folder = format!("ds-plan-{VERSION}-{}", native());
    let mut unpack = Command::new("tar");
    unpack.arg("-xzf").arg(out.join(format!("{folder}.tar.gz"))).arg("-C").arg(&out);
    assert!(unpack.status().unwrap().success());
    let folder = out.join(folder);
    let ran = |program: &str, line: &str| -> Run {
        let mut command = Command::new(folder.join(program));
        command.args(line.split(' ')).current_dir(&folder).env_clear();
        let run = sandbox.run(command);
        assert_eq!(run.code, Some(0), "{run}");
        run
    };

    let commit = sandbox.git(&["-C", clone.to_str().unwrap(), "rev-parse", "HEAD"]);
    let run = ran("ds-plan", "--version");
    assert!(run.stdout.contains(&format!("{VERSION} ({})", &commit[..12])), "{run}");
    // The first plan of the README, and its rehearsal.
    let fleet = "-f examples/fleet/manifests --snapshot examples/fleet/cluster.json";
    let run = ran("ds-plan", fleet);
    assert!(run.stdout.contains("\nPlan: 38 to create, "), "{run}");
    let run = ran("ds-apply", &format!("--rehearse {fleet} --keep-going"));
    assert!(run.stdout.contains("\nPlan: 38 to create, "), "{run}");
}
