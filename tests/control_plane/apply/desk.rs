//! A person's desk: a repository that is committed to, and the programs beside it.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::Command;

use assert_cmd::cargo::cargo_bin;
use tempfile::TempDir;

use super::{at_most, manifest};
use crate::harness::{AT_ONCE, ControlPlane, Program, kubectl_path, stdout};

/// The repository that is committed to, and the commands that are run in it.
pub(super) struct Desk<'p> {
    plane: &'p ControlPlane,
    folder: TempDir,
    /// What `PATH` has first: the programs, kubectl, and stand-ins for what is not tried here.
    programs: TempDir,
    /// Whether `ds-apply` goes by its default pace, which takes its time.
    is_careful: bool,
}

impl<'p> Desk<'p> {
    /// An empty desk in front of a cluster, where `ds-apply` does all at once.
    pub(super) fn at(plane: &'p ControlPlane) -> Self {
        Self { is_careful: false, ..Self::careful(plane) }
    }

    /// The same, where it goes by its default pace.
    pub(super) fn careful(plane: &'p ControlPlane) -> Self {
        let programs = tempfile::tempdir().unwrap();
        for (name, path) in [
            ("ds-plan", cargo_bin!("ds-plan").to_path_buf()),
            ("ds-apply", cargo_bin!("ds-apply").to_path_buf()),
            ("kubectl", kubectl_path().to_path_buf()),
        ] {
            symlink(path, programs.path().join(name)).unwrap();
        }
        // There is no GitHub to speak to: what it would be sent has to be there.
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

    /// Makes the repository.
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

    /// What a line prints, its words as they are.
    pub(super) fn run(&self, line: &str) -> String {
        let mut words = line.split(' ');
        let run = self.command(words.next().unwrap()).args(words).output().unwrap();
        format!("{}{}", stdout(&run), String::from_utf8_lossy(&run.stderr))
    }

    /// A line of bash on a terminal, where `yes` is typed; how it came out, and what was drawn.
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

/// The DaemonSet that is worked on.
pub(super) fn agent(image: &str) -> String {
    manifest("logging", image, &at_most("1"))
}
