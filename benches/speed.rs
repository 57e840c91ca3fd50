//! The time to read a recorded cluster and to plan on it, compared with a program that only parses
//! the same bytes with `serde_json`: `cargo bench --bench speed --bench memory`.
//!
//! Absolute times depend on the machine, so every number is a ratio of times that were taken
//! alternately. The numbers of nodes can be given: `cargo bench --bench speed -- 500 5000 50000`.

#![allow(clippy::unwrap_used, reason = "a bench without input has to stop")]
#![allow(clippy::disallowed_methods, reason = "a bench has a clock of its own")]
#![allow(clippy::print_stdout, reason = "what it measures goes to standard output")]

mod fleet;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use cluster::read_recorded;
use daemonset::model::ManifestFile;
use serde::de::IgnoredAny;

/// The allocator of the programs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The total number of nodes to read in all repetitions of one size, with at least three
/// repetitions.
const NODES_IN_ALL: usize = 75_000;

fn main() {
    println!("Times relative to parsing the same bytes: median (minimum) of all repetitions.\n");
    println!("| nodes | pods | MiB | read | plan | read and plan |");
    println!("|---|---|---|---|---|---|");
    for nodes in fleet::sizes() {
        println!("{}", row(nodes));
    }
}

/// One repetition.
struct Measured {
    parse: Duration,
    read: Duration,
    plan: Duration,
}

fn row(nodes: usize) -> String {
    let file = fleet::recording(nodes);
    let size = fs::metadata(&file).unwrap().len() >> 20;
    let manifests = fleet::manifests();
    let repetitions = (NODES_IN_ALL / nodes).clamp(3, 31);
    // In memory before the clock starts, which favours the parser over a mapped file.
    let bytes = fs::read(&file).unwrap();
    let measured = (0..repetitions).map(|_| measure(&bytes, &file, &manifests));
    let measured: Vec<Measured> = measured.collect();
    let ratio = |part: fn(&Measured) -> Duration| {
        let ratios = measured.iter().map(|one| part(one).as_secs_f64() / one.parse.as_secs_f64());
        let mut ratios: Vec<f64> = ratios.collect();
        ratios.sort_by(f64::total_cmp);
        format!("{:.2} ({:.2})", ratios[ratios.len() / 2], ratios[0])
    };
    let [read, plan] = [ratio(|one| one.read), ratio(|one| one.plan)];
    let both = ratio(|one| one.read + one.plan);
    format!("| {nodes} | {} | {size} | {read} | {plan} | {both} |", nodes * 6)
}

fn measure(bytes: &[u8], file: &Path, manifests: &[ManifestFile]) -> Measured {
    let start = Instant::now();
    serde_json::from_slice::<IgnoredAny>(bytes).unwrap();
    let parse = start.elapsed();
    let start = Instant::now();
    let snapshot = read_recorded(file).unwrap();
    let desired = fleet::desired(manifests);
    let read = start.elapsed();
    let start = Instant::now();
    let plan = fleet::planned(&snapshot, &desired);
    let planned = start.elapsed();
    drop(plan);
    Measured { parse, read, plan: planned }
}
