//! What a process has used, as Linux counts it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use super::control_plane::harness::ControlPlane;

/// The clock ticks of a second, in which Linux reports the time of processes.
const TICKS: u64 = 100;

/// How often the memory of a running process is read.
const OFTEN: Duration = Duration::from_millis(5);

/// The process of the API server.
pub(crate) struct Server(PathBuf);

impl Server {
    /// Finds the server of a control plane by the folder in its arguments.
    pub(crate) fn of(plane: &ControlPlane) -> Self {
        let folder = plane.folder().to_str().unwrap();
        let is_it = |process: &PathBuf| {
            let read = |file| fs::read_to_string(process.join(file)).unwrap_or_default();
            read("comm").trim() == "kube-apiserver" && read("cmdline").contains(folder)
        };
        let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
        Self(processes.into_iter().find(is_it).expect("the API server runs"))
    }

    /// The CPU time that it has used so far.
    pub(crate) fn cpu(&self) -> Duration {
        cpu(&self.0).unwrap()
    }
}

/// User and system time of a process; `None` when it has ended.
fn cpu(process: &Path) -> Option<Duration> {
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
    pub(crate) cpu: Duration,
}

/// Runs a program to its end.
pub(crate) fn run(command: &mut Command) -> Sampled {
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
    assert!(status.success(), "{command:?}: {status}");
    Sampled { wall: start.elapsed(), ..sampled }
}

fn sample(child: &Child, sampled: &mut Sampled) {
    let process = PathBuf::from(format!("/proc/{}", child.id()));
    let status = fs::read_to_string(process.join("status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    if let Some(kib) = peak.and_then(|it| it.trim().strip_suffix("kB")) {
        sampled.resident = kib.trim().parse::<u64>().unwrap() << 10;
    }
    if let Some(used) = cpu(&process) {
        sampled.cpu = sampled.cpu.max(used);
    }
}
