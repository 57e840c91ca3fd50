//! A running program: signalled, killed, waited for.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Output, Stdio};

use super::program::Program;

/// A program that was started and has not been waited for; killed when dropped.
pub(crate) struct Running {
    child: Option<Child>,
    /// Keeps its folder while it runs.
    _program: Program,
}

impl Program {
    /// Starts it. Its output must fit into a pipe (64 KiB) until it is waited for.
    pub(crate) fn start(mut self) -> Running {
        let child = self
            .command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program was built and can be started");
        Running { child: Some(child), _program: self }
    }
}

impl Running {
    /// Sends it a signal by its name without `SIG`: `INT`, `TERM`, `STOP`, `CONT`.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.as_ref().expect("not yet waited for").id();
        let sent = Command::new("kill").args(["-s", name, &id.to_string()]).status();
        assert!(sent.expect("`kill` is installed").success(), "the program has ended already");
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        let child = self.child.as_mut().expect("not yet waited for");
        child.try_wait().expect("it is our own child").is_some()
    }

    /// Waits for its end; returns its result.
    pub(crate) fn wait(mut self) -> Output {
        let child = self.child.take().expect("not yet waited for");
        child.wait_with_output().expect("it is our own child")
    }

    /// Kills it with SIGKILL; returns its result if it had ended before.
    pub(crate) fn kill(mut self) -> Option<Output> {
        let mut child = self.child.take().expect("not yet waited for");
        child.kill().expect("it is our own child");
        let output = child.wait_with_output().expect("it is our own child");
        output.status.signal().is_none().then_some(output)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
