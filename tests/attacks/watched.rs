//! Runs a program as a process and measures its duration and its peak memory. The limits of time
//! are generous, because they distinguish seconds from hours.

use std::fmt;
use std::fs;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The polling interval.
const POLL: Duration = Duration::from_millis(5);

/// The result of a process.
pub(crate) struct Watched {
    /// `None` when it was killed after the limit.
    pub(crate) status: Option<ExitStatus>,
    /// Its approximate duration.
    pub(crate) took: Duration,
    /// The peak resident memory, in bytes.
    pub(crate) peak: usize,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Watched {
    /// Runs a command, and kills it after `limit`.
    pub(crate) fn run(mut command: Command, limit: Duration) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = drained(child.stdout.take().unwrap());
        let stderr = drained(child.stderr.take().unwrap());
        let (mut took, mut peak) = (Duration::ZERO, 0);
        let status = loop {
            peak = peak.max(resident_peak(&child));
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if took > limit {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            thread::sleep(POLL);
            took += POLL;
        };
        let (stdout, stderr) = (stdout.join().unwrap(), stderr.join().unwrap());
        Self { status, took, peak, stdout, stderr }
    }

    /// Asserts that it ended by itself with `code`, and used at most this many MiB.
    #[track_caller]
    pub(crate) fn expect(&self, code: i32, mebibytes: usize) {
        assert_eq!(self.status.and_then(|it| it.code()), Some(code), "{self}");
        assert!(self.peak <= mebibytes << 20, "{self}");
    }

    /// Asserts that its output is not too long for a log.
    #[track_caller]
    pub(crate) fn expect_few_words(&self) {
        let reported = self.stdout.len() + self.stderr.len();
        assert!(reported < 1 << 20, "{reported} bytes of output: {self}");
    }
}

/// The peak resident memory of a process so far; 0 when it is gone (`VmHWM` of proc(5)).
fn resident_peak(child: &Child) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kibibytes.map_or(0, |number| number.parse::<usize>().unwrap() << 10)
}

/// Reads everything from a pipe, so that its writer does not block.
fn drained(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, took, peak, stdout, stderr } = self;
        let ended = status.map_or("ended for it took too long".to_owned(), |it| it.to_string());
        writeln!(f, "{ended}, after {took:?} with {} MiB at most", peak >> 20)?;
        for (name, text) in [("stdout", stdout), ("stderr", stderr)] {
            let beginning: String = text.chars().take(500).collect();
            writeln!(f, "--- {name}, {} bytes\n{beginning}", text.len())?;
        }
        Ok(())
    }
}
