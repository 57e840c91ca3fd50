//! The files of a release, made by the scripts of `.github/workflows/release.yml` from the programs
//! of this build: the same bytes each time, and a first plan on a machine that has nothing.
//!
//! That two compilations are equal takes the time of two builds to see, so `compile` is ignored unless
//! it is asked for.

mod compile;
mod image;
mod krew;
mod licences;
mod workflow;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use testkit::sandbox::{Run, Sandbox};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const VERSION: &str = env!("CARGO_PKG_VERSION");
const REPOSITORY: &str = "https://github.com/YOUR-ORG/ds-plan";

/// The programs of the first target are those of this build; those of others only stand for some.
const TARGETS: [&str; 3] =
    ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl", "aarch64-apple-darwin"];

/// Runs a program with these arguments and nothing but `PATH` in its environment.
#[expect(clippy::disallowed_methods, reason = "bash, tar and jq are found on the PATH")]
fn script(program: &Path, arguments: &[&Path]) -> Command {
    let mut script = Command::new(program);
    script.args(arguments).env_clear();
    // cargo finds its registry there.
    for name in ["PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"] {
        script.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    script
}

/// `release/NAME`, ready to run.
fn release(name: &str, arguments: &[&Path]) -> Command {
    script(&Path::new(ROOT).join("release").join(name), arguments)
}

/// What the jobs of the workflow that compile hand over, in the folder `compiled`.
fn compiled(sandbox: &Sandbox) -> PathBuf {
    for target in TARGETS {
        for program in ["ds-plan", "ds-apply"] {
            let first = sandbox.path(&format!("compiled/{target}.first/{program}"));
            let second = format!("compiled/{target}.second/{program}");
            if target == native() {
                fs::create_dir_all(first.parent().unwrap()).unwrap();
                // Without the debug information of a test's build, which is most of it.
                let mut strip = Command::new("strip");
                strip.arg("-o").arg(&first).arg(cargo_bin(program));
                assert!(strip.status().unwrap().success(), "`strip` comes with the C compiler");
                // As after a download from a workflow, which is not executable.
                fs::set_permissions(&first, fs::Permissions::from_mode(0o644)).unwrap();
                sandbox.write(&second, fs::read(&first).unwrap());
            } else {
                let stand_in = format!("{program} for {target}");
                sandbox.write(&format!("compiled/{target}.first/{program}"), &stand_in);
                sandbox.write(&second, &stand_in);
            }
        }
    }
    sandbox.path("compiled")
}

/// The target that runs here.
fn native() -> &'static str {
    let here = |target: &&str| target.starts_with(std::env::consts::ARCH);
    TARGETS.into_iter().find(here).expect("a release has programs for this processor")
}

/// Makes the files of a release; returns what was printed.
fn made(sandbox: &Sandbox, out: &Path) -> Run {
    let compiled = sandbox.path("compiled");
    sandbox.run(release("all", &[&compiled, REPOSITORY.as_ref(), out]))
}

/// A finished release, and what `release/all` printed; made once for all tests.
struct Release {
    sandbox: Sandbox,
    printed: String,
}

impl Release {
    fn path(&self, name: &str) -> PathBuf {
        self.sandbox.path("out").join(name)
    }

    fn archive(&self) -> PathBuf {
        self.path(&format!("ds-plan-{VERSION}-{}.tar.gz", native()))
    }
}

fn finished() -> &'static Release {
    static RELEASE: OnceLock<Release> = OnceLock::new();
    RELEASE.get_or_init(|| {
        let sandbox = Sandbox::new();
        compiled(&sandbox);
        let run = made(&sandbox, &sandbox.path("out"));
        assert_eq!(run.code, Some(0), "{run}");
        Release { sandbox, printed: run.stdout }
    })
}

/// The names of a folder's files.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_release_has_the_same_bytes_each_time() {
    let release = finished();
    let again = release.sandbox.path("again/deeper");
    let run = made(&release.sandbox, &again);
    assert_eq!(run.stdout, release.printed, "{run}");
    let files = names(&again);
    let of_targets = TARGETS.iter().flat_map(|target| {
        ["tar.gz", "cdx.json"].map(|end| format!("ds-plan-{VERSION}-{target}.{end}"))
    });
    let mut wanted: BTreeSet<String> = of_targets.collect();
    wanted.insert(format!("ds-plan-{VERSION}-image.tar"));
    for name in ["SHA256SUMS", "ds-plan.yaml", "ds-apply.yaml", "notes.md", "released"] {
        wanted.insert(name.to_owned());
    }
    assert_eq!(files, wanted);
    for name in &files {
        let (one, other) = (fs::read(release.path(name)), fs::read(again.join(name)));
        assert!(one.unwrap() == other.unwrap(), "{name} differs");
    }
    let mut check = Command::new("sha256sum");
    check.args(["--check", "SHA256SUMS"]).current_dir(&again);
    let run = release.sandbox.run(check);
    assert_eq!(run.code, Some(0), "{run}");
    let checked = run.stdout.lines().map(|line| line.strip_suffix(": OK").unwrap().to_owned());
    let mut checked: BTreeSet<String> = checked.collect();
    // The text of the release is on the forge only.
    checked.extend(["SHA256SUMS", "notes.md"].map(str::to_owned));
    assert_eq!(checked, files);
}

#[test]
fn programs_that_differ_when_compiled_twice_are_not_released() {
    let sandbox = Sandbox::new();
    for copy in ["first", "second"] {
        for program in ["ds-plan", "ds-apply"] {
            let stand_in = format!("#!/bin/sh\n# the {copy} {program}\n");
            sandbox.write(&format!("compiled/{}.{copy}/{program}", native()), stand_in);
        }
    }
    let run = made(&sandbox, &sandbox.path("out"));
    assert_eq!(run.code, Some(1), "{run}");
    let message = format!("compiled twice, ds-plan for {} is not the same", native());
    assert!(run.stderr.contains(&message), "{run}");
    assert_eq!(names(&sandbox.path("out")), BTreeSet::new());
}

/// The entries of an archive, as `tar` lists them.
fn entries(archive: &Path) -> Vec<String> {
    let listed = Command::new("tar").arg("-tvzf").arg(archive).output().unwrap();
    String::from_utf8(listed.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn an_archive_has_what_a_person_needs() {
    let entries = entries(&finished().archive());
    let folder = format!("ds-plan-{VERSION}-{}", native());
    for line in &entries {
        assert!(line.contains(" 0/0 ") && line.contains(&format!(" {folder}/")), "{line}");
        let mode = line.split(' ').next().unwrap();
        let is_program = line.ends_with("/ds-plan") || line.ends_with("/ds-apply");
        let wanted = if is_program || mode.starts_with('d') { "rwxr-xr-x" } else { "rw-r--r--" };
        assert_eq!(&mode[1..], wanted, "{line}");
    }
    for name in [
        "ds-plan",
        "ds-apply",
        "README.md",
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "LICENSE-THIRD-PARTY",
        "completions/ds-plan.bash",
        "completions/_ds-apply",
        "completions/ds-apply.fish",
        "man/man1/ds-plan.1",
        "man/man1/ds-apply-undo.1",
        "examples/fleet/cluster.json",
        "examples/fleet/manifests/overlay-agent.yaml",
    ] {
        let end = format!(" {folder}/{name}");
        assert_eq!(entries.iter().filter(|line| line.ends_with(&end)).count(), 1, "{name}");
    }
}

/// A machine that has a shell, curl and tar: no Rust, no git, an empty home.
fn fresh(sandbox: &Sandbox, line: &str) -> Run {
    let bin = sandbox.path("bin");
    fs::create_dir_all(&bin).unwrap();
    for name in ["bash", "curl", "tar", "gzip"] {
        let found = Command::new("which").arg(name).output().unwrap();
        let found = String::from_utf8(found.stdout).unwrap();
        if !bin.join(name).exists() {
            symlink(found.trim(), bin.join(name)).unwrap();
        }
    }
    let mut bash = Command::new(bin.join("bash"));
    bash.args(["-eo", "pipefail", "-c", line]).current_dir(sandbox.path("home")).env_clear();
    bash.env("PATH", &bin).env("HOME", sandbox.path("home"));
    sandbox.run(bash)
}

#[test]
fn a_fresh_machine_has_its_first_plan_after_two_commands() {
    let readme = fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap();
    let (_, block) = readme.split_once("<!-- run by it::release -->\n```sh\n").unwrap();
    let (commands, _) = block.split_once("```").unwrap();
    assert_eq!(commands.lines().count(), 2, "{commands}");
    let download = format!("{REPOSITORY}/releases/download/v{VERSION}/");
    assert!(commands.contains(&download), "{commands}");
    // Published nowhere yet: the archive comes from this folder, under its own name.
    let here = format!("file://{}", finished().path("").display());
    let commands = commands.replace(&download, &here);
    let commands = commands.replace(TARGETS[0], native());
    let sandbox = Sandbox::new();
    let run = fresh(&sandbox, &commands);
    assert_eq!(run.code, Some(0), "{run}");
    assert!(run.stdout.starts_with("ds-plan  6 DaemonSets in examples/fleet/manifests;"), "{run}");
    assert!(run.stdout.contains("\nPlan: 38 to create, "), "{run}");

    let folder = format!("cd ds-plan-{VERSION}-{}", native());
    let rehearsal = "./ds-apply --rehearse -f examples/fleet/manifests --snapshot \
                     examples/fleet/cluster.json --keep-going";
    let run = fresh(&sandbox, &format!("{folder} && {rehearsal}"));
    assert_eq!(run.code, Some(0), "{run}");
    let run = fresh(&sandbox, &format!("{folder} && source completions/ds-plan.bash && complete"));
    assert!(run.stdout.contains(" ds-plan"), "{run}");
}

#[test]
fn a_list_of_components_made_by_hand_is_that_of_the_release() {
    let finished = finished();
    let run = finished.sandbox.run(release("sbom", &[native().as_ref()]));
    assert_eq!(run.code, Some(0), "{run}");
    let file = finished.path(&format!("ds-plan-{VERSION}-{}.cdx.json", native()));
    assert_eq!(run.stdout, fs::read_to_string(file).unwrap());
}

#[test]
fn the_list_of_components_has_every_package_with_its_digest() {
    let file = finished().path(&format!("ds-plan-{VERSION}-{}.cdx.json", native()));
    let list: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(list["bomFormat"], "CycloneDX");
    assert_eq!(list["metadata"]["component"]["purl"], format!("pkg:cargo/ds-plan@{VERSION}"));
    let components = list["components"].as_array().unwrap();
    let (mut ours, mut others) = (0, 0);
    for component in components {
        let name = component["name"].as_str().unwrap();
        assert!(component["licenses"][0]["expression"].is_string(), "{component}");
        if name.starts_with("ds-plan-") {
            ours += 1;
        } else {
            others += 1;
            let digest = component["hashes"][0]["content"].as_str().unwrap_or_default();
            assert_eq!(digest.len(), 64, "{component}");
        }
    }
    assert!(ours == 11 && others > 100, "{ours} of ours, {others} of others");
    let has = |name: &str| components.iter().any(|it| it["name"] == name);
    assert!(has("libgit2-sys") && has("ring") && !has("proptest"), "only what is compiled in");

    // Each package is reached from the program.
    let edges = |of: &Value| {
        let all = list["dependencies"].as_array().unwrap();
        let found = all.iter().find(|it| it["ref"] == *of).unwrap();
        found["dependsOn"].as_array().unwrap().clone()
    };
    let mut open = vec![list["metadata"]["component"]["bom-ref"].clone()];
    let mut reached = BTreeSet::new();
    while let Some(next) = open.pop() {
        if reached.insert(next.as_str().unwrap().to_owned()) {
            open.extend(edges(&next));
        }
    }
    assert_eq!(reached.len(), components.len() + 1);
}
