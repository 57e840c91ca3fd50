//! `ds-plan` on a control plane, as one of its users.

use std::process::{Command, Output};

use assert_cmd::cargo::cargo_bin;

use super::control_plane::ControlPlane;

impl ControlPlane {
    /// How `ds-plan` came out for the administrator; `files` are written first, and it runs beside
    /// them.
    pub(crate) fn ds_plan(&self, arguments: &[&str], files: &[(&str, &str)]) -> Output {
        self.ds_plan_as("admin", arguments, files)
    }

    /// How `ds-plan` came out for one of the users.
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

/// How `ds-plan` came out where it is told of no cluster but by its arguments.
pub(crate) fn ds_plan_offline(arguments: &[&str], files: &[(&str, &str)]) -> Output {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("the folder is ours");
    }
    Command::new(cargo_bin!("ds-plan"))
        .args(arguments)
        .current_dir(folder.path())
        .env_remove("KUBECONFIG")
        .output()
        .expect("ds-plan was built and can be started")
}

/// What a program printed.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("ds-plan prints UTF-8")
}
