//! Runs a program on its own terminal: records its output and types the answers.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::process::ExitStatus;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::program::Program;

impl Program {
    /// Runs it to its end on a terminal with 100 columns, where `typed` is typed at once. Returns
    /// its result and everything that was drawn.
    pub(crate) fn run_on_a_terminal(mut self, term: &str, typed: &str) -> (ExitStatus, String) {
        let ours =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("terminals are supported");
        grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("the terminal is ours");
        let size = Winsize { ws_row: 40, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&ours, size).expect("a terminal has a size");
        let name = ptsname(&ours, Vec::new()).expect("the terminal has a name");
        let name = std::ffi::OsStr::from_bytes(name.as_bytes());
        let theirs =
            || File::options().read(true).write(true).open(name).expect("it can be opened");
        self.command.env("TERM", term).env_remove("NO_COLOR");
        self.command.stdin(theirs()).stdout(theirs()).stderr(theirs());
        let mut child = self.command.spawn().expect("the program was built and can be started");
        // The command still has its ends of the terminal open.
        drop(self.command);
        let mut ours = File::from(ours);
        ours.write_all(typed.as_bytes()).expect("the terminal accepts input");
        let mut drawn = Vec::new();
        let mut buffer = [0; 4096];
        // When the last one has closed it, reading fails (Linux) or reaches the end.
        while let Ok(count @ 1..) = ours.read(&mut buffer) {
            drawn.extend_from_slice(&buffer[..count]);
        }
        let status = child.wait().expect("it is our own child");
        (status, String::from_utf8_lossy(&drawn).into_owned())
    }
}
