//! What a process has used, as Linux counts it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

/// The clock ticks of a second, in which Linux reports the time of processes.
const TICKS: u64 = 100;

/// How often the memory of a running process is read.
const OFTEN: Duration = Duration::from_millis(2);

/// User and system time of a process; `None` when it has ended.
pub(crate) fn cpu(process: &Path) -> Option<Duration> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    // The name, in parentheses, may contain spaces.
    let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().ok()? + fields[12].parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 1_000 / TICKS))
}

/// What a program took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sampled {
    pub(crate) wall: Duration,
    /// The largest resident memory, in bytes.
    pub(crate) resident: u64,
    /// The largest of it that was seen without the files that the program maps, in bytes.
    pub(crate) anonymous: u64,
    pub(crate) cpu: Duration,
}

/// Runs a program to its end, which has this exit code.
pub(crate) fn run(command: &mut Command, code: i32) -> Sampled {
    let start = Instant::now();
    let mut child = command.spawn().unwrap();
    let mut sampled = Sampled::default();
    let status = loop {
        sample(&child, &mut sampled);
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        thread::sleep(OFTEN);
    };
    assert_eq!(status.code(), Some(code), "{command:?}: {status}");
    Sampled { wall: start.elapsed(), ..sampled }
}

fn sample(child: &Child, sampled: &mut Sampled) {
    let process = PathBuf::from(format!("/proc/{}", child.id()));
    let status = fs::read_to_string(process.join("status")).unwrap_or_default();
    let bytes = |name: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(value.trim().strip_suffix("kB")?.trim().parse::<u64>().unwrap() << 10)
    };
    sampled.resident = bytes("VmHWM:").unwrap_or(sampled.resident);
    sampled.anonymous = sampled.anonymous.max(bytes("RssAnon:").unwrap_or_default());
    if let Some(used) = cpu(&process) {
        sampled.cpu = sampled.cpu.max(used);
    }
}
