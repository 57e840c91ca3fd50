//! How long reading a recorded cluster and planning on it take, and how much memory, beside a
//! program that only parses the same bytes with `serde_json`: `cargo bench --bench speed`.
//!
//! Times of one machine say nothing on another, so every row is a ratio of times that were taken
//! in turns. Arguments are numbers of nodes: `cargo bench --bench speed -- 500 5000 50000`.

#![allow(clippy::unwrap_used, reason = "a bench that cannot set up its input has to stop")]
#![allow(clippy::disallowed_methods, reason = "a bench has a clock of its own")]
#![allow(clippy::print_stdout, reason = "what it measures goes to standard output")]

mod daemon_set;
mod fleet;
mod node;
mod pod;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ds_plan::cluster::read_recorded;
use ds_plan::manifest::{self, FieldValidation, Options};
use ds_plan::model::ManifestFile;
use ds_plan::plan::{Detail, Input, Plan, SourceInfo, plan};
use jiff::Timestamp;
use peak_alloc::PeakAlloc;
use serde::de::IgnoredAny;

/// Counts what is allocated. The counting itself takes time, which the ratios hold against us.
#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Nodes of the clusters that are measured when no numbers are given.
const SIZES: [usize; 2] = [500, 5_000];

/// So many nodes are measured in all repetitions of one size, at least three times each.
const NODES_IN_ALL: usize = 50_000;

fn main() {
    let sizes: Vec<usize> = std::env::args().filter_map(|arg| arg.parse().ok()).collect();
    let sizes = if sizes.is_empty() { SIZES.to_vec() } else { sizes };
    println!("Times as multiples of parsing the same bytes: median (least) of all repetitions.\n");
    println!(
        "| nodes | pods | MiB | read | plan | read and plan | heap above the plan, MiB | plan, MiB |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for nodes in sizes {
        println!("{}", row(nodes));
    }
}

/// One repetition: the times of each part, and the heap.
struct Measured {
    parse: Duration,
    read: Duration,
    plan: Duration,
    /// Bytes at the peak beyond those of the finished plan.
    above_plan: usize,
    /// Bytes of the finished plan.
    plan_size: usize,
}

fn row(nodes: usize) -> String {
    let file = recording(nodes);
    let bytes = fs::metadata(&file).unwrap().len();
    let manifests = fleet::manifests();
    let repetitions = (NODES_IN_ALL / nodes).clamp(3, 15);
    let measured: Vec<Measured> = (0..repetitions).map(|_| measure(&file, &manifests)).collect();
    let ratio = |part: fn(&Measured) -> Duration| {
        let mut ratios: Vec<f64> =
            measured.iter().map(|one| part(one).as_secs_f64() / one.parse.as_secs_f64()).collect();
        ratios.sort_by(f64::total_cmp);
        format!("{:.3} ({:.3})", ratios[ratios.len() / 2], ratios[0])
    };
    let largest = |part: fn(&Measured) -> usize| mib(measured.iter().map(part).max().unwrap());
    format!(
        "| {nodes} | {} | {} | {} | {} | {} | {} | {} |",
        nodes * 6,
        bytes >> 20,
        ratio(|one| one.read),
        ratio(|one| one.plan),
        ratio(|one| one.read + one.plan),
        largest(|one| one.above_plan),
        largest(|one| one.plan_size),
    )
}

/// The bytes are in memory before the clock starts, which is kinder to the parser than a mapping.
fn parse_only(file: &Path) -> Duration {
    let bytes = fs::read(file).unwrap();
    let start = Instant::now();
    serde_json::from_slice::<IgnoredAny>(&bytes).unwrap();
    start.elapsed()
}

fn measure(file: &Path, manifests: &[ManifestFile]) -> Measured {
    let parse = parse_only(file);
    let before = HEAP.current_usage();
    HEAP.reset_peak_usage();
    let start = Instant::now();
    let snapshot = read_recorded(file).unwrap();
    let read = start.elapsed();
    let plan = planned(&snapshot, manifests);
    let both = start.elapsed();
    let peak = HEAP.peak_usage();
    drop(snapshot);
    let after = HEAP.current_usage();
    assert_eq!(plan.daemon_sets.len(), fleet::DAEMON_SETS);
    Measured {
        parse,
        read,
        plan: both.saturating_sub(read),
        above_plan: peak - after,
        plan_size: after - before,
    }
}

fn planned(snapshot: &ds_plan::model::Snapshot, manifests: &[ManifestFile]) -> Plan {
    let options = Options {
        default_namespace: "default".into(),
        validate: FieldValidation::Strict,
        policies: None,
    };
    let desired = manifest::read(manifests, &options).unwrap();
    plan(Input {
        snapshot,
        desired: &desired.daemon_sets,
        base: None,
        source: SourceInfo::default(),
        warnings: Vec::new(),
        created_at: Timestamp::UNIX_EPOCH,
        detail: Detail::default(),
    })
}

fn mib(bytes: usize) -> String {
    let tenths = (bytes * 10) >> 20;
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// A recording of so many nodes, made anew so that it is what this code makes.
fn recording(nodes: usize) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("speed");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join(format!("{nodes}-nodes.json"));
    fleet::write(&file, nodes).unwrap();
    file
}
