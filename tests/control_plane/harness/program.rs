//! Runs the programs on a control plane, as one of its users.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use assert_cmd::cargo::cargo_bin;
use tempfile::TempDir;

use super::control_plane::ControlPlane;

impl ControlPlane {
    /// Runs `ds-plan` as the administrator, in a folder with `files`.
    pub(crate) fn ds_plan(&self, arguments: &[&str], files: &[(&str, &str)]) -> Output {
        self.ds_plan_as("admin", arguments, files)
    }

    /// Runs `ds-plan` as one of the users.
    pub(crate) fn ds_plan_as(
        &self,
        user: &str,
        arguments: &[&str],
        files: &[(&str, &str)],
    ) -> Output {
        let kubeconfig = self.kubeconfig_of(user).display().to_string();
        ds_plan_offline(&[arguments, &["--kubeconfig", &kubeconfig]].concat(), files)
    }
}

impl ControlPlane {
    /// `ds-apply`, ready to be started by the administrator in a folder with `files`.
    pub(crate) fn ds_apply(&self, arguments: &[&str], files: &[(&str, &str)]) -> Program {
        self.ds_apply_as("admin", arguments, files)
    }

    /// The same by one of the users.
    pub(crate) fn ds_apply_as(
        &self,
        user: &str,
        arguments: &[&str],
        files: &[(&str, &str)],
    ) -> Program {
        Self::ds_apply_by(&self.kubeconfig_of(user), arguments, files)
    }

    /// The same with another kubeconfig, for example that of a proxy.
    pub(crate) fn ds_apply_by(
        kubeconfig: &Path,
        arguments: &[&str],
        files: &[(&str, &str)],
    ) -> Program {
        let folder = folder_with(files);
        let mut command = Command::new(cargo_bin!("ds-apply"));
        command
            .args(arguments)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .current_dir(folder.path())
            .env_remove("KUBECONFIG")
            .envs(AT_ONCE)
            .stdin(Stdio::null());
        Program { command, _folder: Some(folder) }
    }
}

/// The pace of the built-in controller: the whole budget from the beginning, and Ready counts as
/// available. A test sets whether fake pods are Ready; waiting for pods to stay Ready is tested on
/// real nodes.
pub(crate) const AT_ONCE: [(&str, &str); 2] =
    [("DS_APPLY_MIN_READY_SECONDS", "0"), ("DS_APPLY_RAMP", "none")];

/// A program that can be started, and the folder that it runs in.
pub(crate) struct Program {
    pub(crate) command: Command,
    _folder: Option<TempDir>,
}

impl Program {
    /// A program that runs in the folder of the command.
    pub(crate) fn of(command: Command) -> Self {
        Self { command, _folder: None }
    }

    /// Runs it to its end.
    pub(crate) fn run(mut self) -> Output {
        self.command.output().expect("the program was built and can be started")
    }
}

fn folder_with(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("the folder is ours");
    }
    folder
}

/// Runs `ds-plan` without any kubeconfig.
pub(crate) fn ds_plan_offline(arguments: &[&str], files: &[(&str, &str)]) -> Output {
    let folder = folder_with(files);
    Command::new(cargo_bin!("ds-plan"))
        .args(arguments)
        .current_dir(folder.path())
        .env_remove("KUBECONFIG")
        .output()
        .expect("ds-plan was built and can be started")
}

/// The standard output of a program.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("ds-plan prints UTF-8")
}
