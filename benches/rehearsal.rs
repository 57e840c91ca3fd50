//! The time and memory that the rehearsal of a rollout takes: `cargo bench --bench rehearsal`.
//!
//! One DaemonSet of a recorded cluster with twenty gets a new image on every node, within a budget
//! of 10 %: the recording is read, the embedded cluster begins, and the real `ds-apply` does the
//! rollout on it. The numbers of nodes can be given. The time is that of the release build of
//! `ds-apply --rehearse`, from start to end, with the plan afterwards; the heap is counted by the
//! allocator in a second run, because counting takes time. The seconds depend on the machine; the
//! next column is how often the recording could have been parsed in that time, with the result
//! discarded.

#![allow(clippy::unwrap_used, reason = "a bench without input has to stop")]
#![allow(clippy::disallowed_methods, reason = "a bench has a clock of its own")]
#![allow(clippy::print_stdout, reason = "what it measures goes to standard output")]

#[expect(dead_code, reason = "other benches also use it")]
mod fleet;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cluster::read_recorded;
use ds_plan::{Exit, ds_apply_at};
use embedded::{Rehearsal, Timings, World, on_virtual_time};
use peak_alloc::PeakAlloc;
use serde::de::IgnoredAny;

/// The arguments of `ds-apply`, in addition to the DaemonSet.
const ARGUMENTS: [&str; 5] = ["--yes", "--force-conflicts", "helm", "-f", "agent.json"];

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

fn main() {
    println!("| nodes | pods | cluster's time | wall | parses of the recording | heap, MiB |");
    println!("|---|---|---|---|---|---|");
    for nodes in fleet::sizes() {
        println!("{}", row(nodes));
    }
}

fn row(nodes: usize) -> String {
    let file = fleet::recording(nodes);
    let (folder, name) = manifest();
    let parse = parse(&file);
    let start = Instant::now();
    run(&file, &folder, &name);
    let wall = start.elapsed();
    let before = HEAP.current_usage();
    HEAP.reset_peak_usage();
    let rollout = rehearse(&file, &folder, &name);
    let heap = (HEAP.peak_usage() - before) >> 20;
    let ratio = wall.as_secs_f64() / parse.as_secs_f64();
    let pods = nodes * 6;
    let (rollout, wall) = (rollout.as_secs(), wall.as_secs_f64());
    format!("| {nodes} | {pods} | {rollout} s | {wall:.1} s | {ratio:.1} | {heap} |")
}

/// The manifest of a DaemonSet that runs on every node, in a new folder; and its name.
fn manifest() -> (PathBuf, String) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rehearsal");
    fs::create_dir_all(&folder).unwrap();
    let manifest = fleet::manifests().swap_remove(0);
    fs::write(folder.join("agent.json"), &manifest.bytes).unwrap();
    let desired = fleet::desired(&[manifest]);
    (folder, desired[0].key.to_string())
}

fn parse(file: &Path) -> Duration {
    let bytes = fs::read(file).unwrap();
    let start = Instant::now();
    serde_json::from_slice::<IgnoredAny>(&bytes).unwrap();
    start.elapsed()
}

/// Runs the program as its users do.
fn run(file: &Path, folder: &Path, name: &str) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_ds-apply"));
    let line = program.arg("--rehearse").arg("--snapshot").arg(file).args(ARGUMENTS).arg(name);
    let status = line.current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.unwrap().success(), "cannot rehearse {}", file.display());
}

/// Reads the recording and rolls out on it; returns the duration by the cluster's clock.
fn rehearse(file: &Path, folder: &Path, name: &str) -> Duration {
    let snapshot = read_recorded(file).unwrap();
    let timings = Timings::seen_in(&snapshot);
    on_virtual_time(async {
        let rehearsal = Rehearsal { timings, ..Rehearsal::default() };
        let world = World::begin(&snapshot, rehearsal).unwrap();
        drop(snapshot);
        let (_interrupt, interrupts) = tokio::sync::mpsc::channel(1);
        let line = [&ARGUMENTS[..], &[name]].concat();
        let ended = ds_apply_at(&world, "bench", folder, interrupts, &line).await;
        assert_eq!(ended.exit, Exit::Done, "{:?}", ended.errors);
        world.clock().elapsed()
    })
    .unwrap()
}
