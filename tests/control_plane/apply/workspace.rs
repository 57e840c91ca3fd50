//! A user's workspace: a repository, and the programs to run in it.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::Command;

use assert_cmd::cargo::cargo_bin;
use tempfile::TempDir;

use super::{at_most, manifest};
use crate::harness::{AT_ONCE, ControlPlane, Program, kubectl_path, stdout};

/// The repository, and the commands that are run in it.
pub(super) struct Workspace<'p> {
    plane: &'p ControlPlane,
    folder: TempDir,
    /// The first entry of `PATH`: the programs, kubectl, and stand-ins for other tools.
    programs: TempDir,
    /// Whether `ds-apply` uses its default pace, which is slow.
    is_careful: bool,
}

impl<'p> Workspace<'p> {
    /// An empty workspace with access to a cluster, where `ds-apply` uses the whole budget at once.
    pub(super) fn at(plane: &'p ControlPlane) -> Self {
        Self { is_careful: false, ..Self::careful(plane) }
    }

    /// The same with the default pace.
    pub(super) fn careful(plane: &'p ControlPlane) -> Self {
        let programs = tempfile::tempdir().unwrap();
        for (name, path) in [
            ("ds-plan", cargo_bin!("ds-plan").to_path_buf()),
            ("ds-apply", cargo_bin!("ds-apply").to_path_buf()),
            ("kubectl", kubectl_path().to_path_buf()),
        ] {
            symlink(path, programs.path().join(name)).unwrap();
        }
        // GitHub is not available: only the files to be sent are checked.
        let gh = programs.path().join("gh");
        fs::write(
            &gh,
            "#!/bin/sh\ntest \"$1 $2 $3\" = 'pr comment 17' && grep -q ds-plan: comment.md\n",
        )
        .unwrap();
        fs::set_permissions(&gh, fs::Permissions::from_mode(0o755)).unwrap();
        Self { plane, folder: tempfile::tempdir().unwrap(), programs, is_careful: true }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Creates the repository.
    pub(super) fn init(&self) {
        self.git(&["init", "-q", "-b", "main"]);
    }

    pub(super) fn git(&self, arguments: &[&str]) {
        let run = self.command("git").args(arguments).output().unwrap();
        assert!(run.status.success(), "{run:?}");
    }

    /// Commits the DaemonSet `logging/agent` with that image.
    pub(super) fn commit(&self, image: &str, message: &str) {
        fs::write(self.path("agent.yaml"), agent(image)).unwrap();
        self.git(&["add", "."]);
        self.git(&["commit", "-q", "-m", message]);
    }

    /// Runs a command line; returns its unmodified output.
    pub(super) fn run(&self, line: &str) -> String {
        let mut words = line.split(' ');
        let run = self.command(words.next().unwrap()).args(words).output().unwrap();
        format!("{}{}", stdout(&run), String::from_utf8_lossy(&run.stderr))
    }

    /// Runs a bash command line on a terminal, where `yes` is typed; returns its exit code and what
    /// was drawn.
    pub(super) fn on_a_terminal(&self, line: &str) -> (Option<i32>, String) {
        let mut bash = self.command("bash");
        bash.args(["-c", line]);
        let (status, drawn) = Program::of(bash).run_on_a_terminal("dumb", "yes\n");
        (status.code(), drawn)
    }

    fn command(&self, program: &str) -> Command {
        let path = std::env::var("PATH").unwrap();
        let own = self.programs.path().join(program);
        let mut command = Command::new(if own.exists() { own } else { program.into() });
        command
            .current_dir(self.folder.path())
            .env("PATH", format!("{}:{path}", self.programs.path().display()))
            .env("KUBECONFIG", self.plane.kubeconfig_of("admin"))
            .env("HOSTNAME", "laptop")
            .env("USER", "alice")
            .env("PR", "17")
            .env("TOKEN", "secret")
            .env("GITHUB_STEP_SUMMARY", self.path("summary.md"))
            .envs(AT_ONCE.into_iter().filter(|_| !self.is_careful))
            .env_remove("GITHUB_RUN_ID")
            .env("GIT_CONFIG_GLOBAL", "/dev/null");
        for who in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{who}_NAME"), "alice")
                .env(format!("GIT_{who}_EMAIL"), "alice@example.com")
                .env(format!("GIT_{who}_DATE"), "2026-08-01T12:00:00Z");
        }
        command
    }
}

/// The manifest of the DaemonSet.
pub(super) fn agent(image: &str) -> String {
    manifest("logging", image, &at_most("1"))
}
