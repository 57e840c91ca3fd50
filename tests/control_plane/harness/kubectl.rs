//! kubectl on a control plane, as its administrator.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::binaries::{Binaries, Program};
use super::control_plane::ControlPlane;

/// The path of kubectl, for tests that need no control plane.
pub(crate) fn kubectl_path() -> &'static Path {
    Binaries::get().path(Program::Kubectl)
}

impl ControlPlane {
    /// The output of kubectl; panics with its error if it fails.
    #[track_caller]
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        succeeded(arguments, self.try_kubectl(arguments))
    }

    /// The result of kubectl.
    pub(crate) fn try_kubectl(&self, arguments: &[&str]) -> Output {
        let output = self.kubectl_command(arguments).stdin(Stdio::null()).output();
        output.expect("kubectl was built and can be started")
    }

    /// The output of kubectl after reading `input`; panics with its error if it fails.
    #[track_caller]
    pub(crate) fn kubectl_stdin(&self, arguments: &[&str], input: &str) -> String {
        succeeded(arguments, self.try_kubectl_stdin(arguments, input))
    }

    /// The result of kubectl after reading `input`.
    pub(crate) fn try_kubectl_stdin(&self, arguments: &[&str], input: &str) -> Output {
        let mut kubectl = self
            .kubectl_command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kubectl was built and can be started");
        let mut stdin = kubectl.stdin.take().expect("stdin is a pipe");
        // kubectl may end without reading all input; its output then has the reason.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        kubectl.wait_with_output().expect("kubectl is our own child")
    }

    /// Applies documents with client-side apply, as most pipelines do.
    #[track_caller]
    pub(crate) fn apply_yaml(&self, yaml: &str) {
        self.kubectl_stdin(&["apply", "--filename=-"], yaml);
    }

    /// kubectl as the administrator; `--kubeconfig` among the arguments selects another user.
    pub(crate) fn kubectl_command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(Binaries::get().path(Program::Kubectl));
        command
            .args(arguments)
            .env("KUBECONFIG", self.kubeconfig_path())
            .env("KUBECACHEDIR", self.folder().join("kubectl-cache"))
            .env("HOME", self.folder());
        command
    }
}

#[track_caller]
fn succeeded(arguments: &[&str], output: Output) -> String {
    assert!(
        output.status.success(),
        "`kubectl {}` failed, {}: {}",
        arguments.join(" "),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("kubectl prints UTF-8")
}
