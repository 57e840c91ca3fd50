//! How the action gets the programs: the released archive with the digest that its commit names, and
//! a build from source only if there is none.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use sha2::{Digest as _, Sha256};
use testkit::sandbox::{Run, Sandbox};

use super::runner::{PIPEFAIL, ROOT, bash};

const ARCHIVE: &str = "ds-plan-1.2.0-x86_64-unknown-linux-musl.tar.gz";

/// A checkout of the action with little source; the files of its repository are in `server`.
struct Action {
    sandbox: Sandbox,
    path: String,
}

impl Action {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        for name in ["find.sh", "download.sh", "build.sh", "source.sh", "sha256.sh"] {
            let script = fs::read(Path::new(ROOT).join("action").join(name)).unwrap();
            let copy = format!("action/action/{name}");
            sandbox.write(&copy, script);
            fs::set_permissions(sandbox.path(&copy), fs::Permissions::from_mode(0o755)).unwrap();
        }
        for name in ["Cargo.toml", "Cargo.lock", "build/main.rs", "crates/a/lib.rs", "src/lib.rs"] {
            sandbox.write(&format!("action/{name}"), name);
        }
        fs::create_dir_all(sandbox.path("temp")).unwrap();
        Self { sandbox, path: "/usr/local/bin:/usr/bin:/bin".to_owned() }
    }

    /// On a machine without `sha256sum`. Its `shasum` takes nothing else than what it is asked for.
    fn without_sha256sum() -> Self {
        let action = Self::new();
        let which = |name: &str| {
            let found = Command::new("which").arg(name).output().unwrap();
            String::from_utf8(found.stdout).unwrap().trim().to_owned()
        };
        let bin = action.sandbox.path("bin");
        fs::create_dir_all(&bin).unwrap();
        for name in [
            "bash", "curl", "cut", "dirname", "find", "grep", "gzip", "mkdir", "sort", "tar",
            "xargs",
        ] {
            symlink(which(name), bin.join(name)).unwrap();
        }
        let sums = which("sha256sum");
        let shasum =
            format!("#!/bin/sh\n[ \"$1 $2\" = '-a 256' ] && shift 2 && exec {sums} \"$@\"\n");
        action.sandbox.write("bin/shasum", shasum);
        fs::set_permissions(bin.join("shasum"), fs::Permissions::from_mode(0o755)).unwrap();
        Self { path: bin.display().to_string(), ..action }
    }

    /// Runs a script of the action; returns its outputs too.
    fn run(&self, name: &str, variables: &[(&str, &str)]) -> (Run, BTreeMap<String, String>) {
        let output = self.sandbox.path("output");
        fs::write(&output, "").unwrap();
        let script = "\"$GITHUB_ACTION_PATH/action/$NAME\"";
        let mut bash = bash(&self.sandbox.path("temp"), PIPEFAIL, script);
        bash.env("NAME", name).env("PATH", &self.path);
        bash.env("GITHUB_ACTION_PATH", self.sandbox.path("action"));
        bash.env("GITHUB_OUTPUT", &output).env("GITHUB_PATH", self.sandbox.path("path"));
        let server = format!("file://{}", self.sandbox.path("server").display());
        bash.env("GITHUB_SERVER_URL", server).env("RUNNER_TEMP", self.sandbox.path("temp"));
        bash.env("RUNNER_OS", "Linux").env("RUNNER_ARCH", "X64");
        bash.env("ACTION_REPOSITORY", "octo/ds-plan").envs(variables.iter().copied());
        let run = self.sandbox.run(bash);
        let outputs = fs::read_to_string(output).unwrap();
        let outputs = outputs.lines().filter_map(|line| line.split_once('='));
        (run, outputs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// Names a release of this source, or of another one, with this digest.
    fn release(&self, source: &str, digest: &str) {
        let text = format!("# a comment\nsource {source}\n{digest}  {ARCHIVE}\n");
        self.sandbox.write("action/action/released", text);
    }

    fn source(&self) -> String {
        self.sandbox.write("action/action/released", "");
        self.run("find.sh", &[]).1["version"].clone()
    }

    /// Downloads what `find.sh` found.
    fn download(&self) -> (Run, BTreeMap<String, String>) {
        let (_, found) = self.run("find.sh", &[]);
        let of = |name: &str| found[name].as_str();
        self.run(
            "download.sh",
            &[
                ("ACTION_ARCHIVE", of("archive")),
                ("ACTION_SHA256", of("sha256")),
                ("ACTION_TARGET", of("target")),
            ],
        )
    }
}

/// An archive with a program that prints a word, and its digest.
fn archive(sandbox: &Sandbox) -> (Vec<u8>, String) {
    sandbox.write("release/ds-plan-1.2.0/ds-plan", "#!/bin/sh\necho released\n");
    let program = sandbox.path("release/ds-plan-1.2.0/ds-plan");
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(sandbox.path("release")).args(["-cz", "ds-plan-1.2.0"]);
    let bytes = tar.output().unwrap().stdout;
    let digest = Sha256::digest(&bytes);
    let digest = digest.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    (bytes, digest)
}

#[test]
fn the_released_programs_are_installed_by_digest() {
    is_installed_by_digest(&Action::new());
}

/// macOS has `shasum`; not each version of it has `sha256sum`, too.
#[test]
fn the_released_programs_are_installed_where_sha256sum_is_missing() {
    let action = Action::without_sha256sum();
    assert_eq!(action.source(), Action::new().source());
    is_installed_by_digest(&action);
}

fn is_installed_by_digest(action: &Action) {
    let (bytes, digest) = archive(&action.sandbox);
    action.sandbox.write(&format!("server/octo/ds-plan/releases/download/v1.2.0/{ARCHIVE}"), bytes);
    action.release(&action.source(), &digest);
    let (run, outputs) = action.download();
    assert_eq!((run.code, outputs["installed"].as_str()), (Some(0), "true"), "{run}");
    let path = fs::read_to_string(action.sandbox.path("path")).unwrap();
    let program = Command::new(Path::new(path.trim()).join("ds-plan")).output().unwrap();
    assert_eq!(program.stdout, b"released\n");

    // Another file was put there under the same name.
    action.release(&action.source(), &"0".repeat(64));
    let (run, outputs) = action.download();
    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stdout.contains(&format!("has the digest {digest}, not 000")), "{run}");
    assert!(outputs.is_empty(), "neither installed nor built");
}

#[test]
fn without_a_release_of_this_source_the_programs_are_built() {
    let action = Action::new();
    let source = action.source();
    // Of other source; of this source, but for another processor; of this source, but gone.
    action.release("0123456789abcdef", &"1".repeat(64));
    let (run, outputs) = action.download();
    assert_eq!((run.code, outputs["installed"].as_str()), (Some(0), "false"), "{run}");
    assert!(run.stdout.contains("no release has this source"), "{run}");

    action.release(&source, &"1".repeat(64));
    let (_, found) = action.run("find.sh", &[("RUNNER_ARCH", "ARM64")]);
    assert_eq!((found["found"].as_str(), found["archive"].as_str()), ("false", ""));
    let (run, outputs) = action.download();
    assert_eq!((run.code, outputs["installed"].as_str()), (Some(0), "false"), "{run}");
    assert!(run.stdout.contains("cannot download "), "{run}");

    // Whatever is compiled belongs to the source.
    action.sandbox.write("action/crates/a/lib.rs", "changed");
    assert_ne!(action.source(), source);
}

/// The cache may be of a runner with another C library.
#[test]
fn a_cached_program_that_cannot_start_is_built_again() {
    for (cached, builds) in [("#!/bin/sh\n", 0), ("#!/no/such/loader\n", 1)] {
        let action = Action::new();
        let (called, bin) = (action.sandbox.path("called"), action.sandbox.path("bin"));
        let notes = format!("#!/bin/sh\necho \"$*\" >>{}\n", called.display());
        for (name, text) in
            [("built/bin/ds-plan", cached), ("bin/cargo", &*notes), ("bin/rustup", &*notes)]
        {
            action.sandbox.write(name, text);
            let program = action.sandbox.path(name);
            fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let path = format!("{}:{}", bin.display(), action.path);
        let action = Action { path, ..action };
        let built = action.sandbox.path("built");
        let (run, _) = action.run("build.sh", &[("ACTION_BUILT", built.to_str().unwrap())]);
        assert_eq!(run.code, Some(0), "{run}");
        let called = fs::read_to_string(called).unwrap_or_default();
        assert_eq!(called.matches(" install --locked ").count(), builds, "{cached}: {called}");
        let path = fs::read_to_string(action.sandbox.path("path")).unwrap();
        assert_eq!(Path::new(path.trim()), built.join("bin"));
    }
}

/// The file that a release replaces: nothing else may be in it before.
#[test]
fn the_pinned_release_is_of_one_form() {
    let text = fs::read_to_string(Path::new(ROOT).join("action/released")).unwrap();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (first, second) = line.split_once(' ').unwrap();
        let is_digest = first.len() == 64 && second.starts_with(" ds-plan-");
        assert!(is_digest || (first == "source" && second.len() == 16), "{line}");
    }
}
