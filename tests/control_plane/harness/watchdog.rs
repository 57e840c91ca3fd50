//! Runs a program so that it cannot outlive the test process, however that one ends.
//!
//! `unsafe` is forbidden here, so the program cannot be made to die with its parent. Instead a
//! shell runs in between. It reads a pipe whose other end only the test process has: the pipe
//! closes when that process ends, by a return, a panic or SIGKILL, and the shell then kills the
//! program. A line on the pipe is the name of a signal to send.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};

/// Reads signals from stdin for the program in its arguments; kills that program at end of file.
///
/// The shell leads its own process group, so Ctrl-C in a terminal does not reach it, and processes
/// that the program has started itself (compilers, for example) can be killed with it. It ends only
/// after it has reaped the program: when the shell is gone, so are the program and its ports.
const SCRIPT: &str = r#"
exec 3<&0
"$@" 3<&- </dev/null &
program=$!
(
    while read -r signal <&3; do kill -s "$signal" "$program"; done
    kill -s KILL "$program"
) &
reader=$!
wait "$program"
status=$?
echo "watchdog: the program ended with status $status" >&2
if [ "$status" -ge 128 ]; then kill -s KILL -- "-$$"; fi
kill -s KILL "$reader"
exit "$status"
"#;

/// A running program that ends with the test process; dropping it kills it and waits.
pub(crate) struct Watched {
    shell: Child,
    /// The pipe's only write end; `None` once it is closed to kill the program.
    pipe: Option<ChildStdin>,
}

impl Watched {
    /// Starts `command`, with its output appended to the file `log`.
    ///
    /// Arguments, environment and directory of `command` are used; its stdio is not.
    pub(crate) fn spawn(command: &Command, log: &Path) -> Self {
        let out = File::options()
            .create(true)
            .append(true)
            .open(log)
            .unwrap_or_else(|err| panic!("cannot write the log {}: {err}", log.display()));
        let mut shell = Command::new("sh");
        shell.args(["-c", SCRIPT, "watchdog"]);
        shell.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        if let Some(directory) = command.get_current_dir() {
            shell.current_dir(directory);
        }
        let mut shell = shell
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(out.try_clone().expect("a file handle can be cloned"))
            .stderr(out)
            .spawn()
            .unwrap_or_else(|err| panic!("cannot start `sh`, the watchdog's shell: {err}"));
        let pipe = shell.stdin.take();
        Self { shell, pipe }
    }

    /// Sends the program a signal by its name without `SIG`: `TERM`, `STOP`, `CONT`.
    pub(crate) fn signal(&mut self, name: &str) {
        let pipe = self.pipe.as_mut().expect("the pipe is open until drop");
        // If the program has ended, there is no reader and nothing to signal.
        let _ = writeln!(pipe, "{name}").and_then(|()| pipe.flush());
    }

    /// The exit status of the program; `None` while it runs.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.shell.try_wait().expect("the shell is our own child")
    }

    /// Waits until the program ends by itself.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        // `Child::wait` closes stdin, but `pipe` was taken out of it: the watchdog stays.
        self.shell.wait().expect("the shell is our own child")
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        drop(self.pipe.take());
        let _ = self.shell.wait();
    }
}

/// The last lines of a log, for a failure's message.
pub(crate) fn log_tail(log: &Path) -> String {
    const LINES: usize = 40;
    let bytes = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let tail = lines[lines.len().saturating_sub(LINES)..].join("\n");
    format!("end of the log {}:\n{tail}", log.display())
}
