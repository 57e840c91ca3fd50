//! The memory that reading a recorded cluster and planning on it take, counted by the allocator:
//! `cargo bench --bench memory`. The numbers of nodes can be given, as with `speed`; it is separate
//! because counting takes time.

#![allow(clippy::unwrap_used, reason = "a bench without input has to stop")]
#![allow(clippy::print_stdout, reason = "what it measures goes to standard output")]

mod fleet;

use std::fs;

use cluster::read_recorded;
use peak_alloc::PeakAlloc;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

fn main() {
    println!("The heap at its peak, in MiB.\n");
    println!("| nodes | pods | recording | the plan itself | above it |");
    println!("|---|---|---|---|---|");
    for nodes in fleet::sizes() {
        println!("{}", row(nodes));
    }
}

fn row(nodes: usize) -> String {
    let file = fleet::recording(nodes);
    let size = fs::metadata(&file).unwrap().len() >> 20;
    let manifests = fleet::manifests();
    let before = HEAP.current_usage();
    HEAP.reset_peak_usage();
    let snapshot = read_recorded(&file).unwrap();
    let plan = fleet::planned(&snapshot, &fleet::desired(&manifests));
    let peak = HEAP.peak_usage() - before;
    drop(snapshot);
    let own = HEAP.current_usage() - before;
    drop(plan);
    format!("| {nodes} | {} | {size} | {} | {} |", nodes * 6, mib(own), mib(peak - own))
}

fn mib(bytes: usize) -> String {
    let tenths = (bytes * 10) >> 20;
    format!("{}.{}", tenths / 10, tenths % 10)
}
