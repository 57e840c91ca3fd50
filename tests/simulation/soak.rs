//! Runs the simulation with any number of seeds: `cargo run --release --example soak -- --seeds
//! 100000`.
//!
//! It prints which build it is, and the last seed tried; continue there with `--from`. For a seed
//! that breaks a law, it prints the command that reproduces the failure, minimized. The first one
//! ends it, unless `--keep-going` is given.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test panics")]
#![allow(clippy::print_stdout, reason = "it reports on standard output")]

mod asking;
mod bounded;
mod budget;
mod changes;
mod checks;
mod cluster;
mod dice;
mod end;
mod external_actors;
mod flights;
mod laws;
mod locks;
mod objects;
mod observations;
mod pulls;
mod reasons;
mod rules;
mod scenario;
mod shared;
mod shrink;
mod step_laws;
mod story;
mod trial;
mod upkeep;

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use clap::Parser;
use scenario::Scenario;
use shrink::Shrunk;

/// The number of seeds between two lines of progress.
const PORTION: u64 = 1000;

/// Run the real ds-apply on small clusters with random faults
#[derive(Parser)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
struct Args {
    /// Number of seeds
    #[arg(long, default_value_t = 10_000)]
    seeds: u64,
    /// First seed
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Leave out these parts of the scenario, by number
    #[arg(long, value_delimiter = ',')]
    without: Vec<usize>,
    /// Try only the seeds with a story: commits under a policy with steps
    #[arg(long)]
    stories: bool,
    /// Half of the stories have checks, a quarter pulls images before
    #[arg(long)]
    checks: bool,
    /// Try the other seeds too after one that broke a law, and list those that did at the end
    #[arg(long)]
    keep_going: bool,
    /// Print every request and every change of a failed seed, and the cluster at the end
    #[arg(long)]
    history: bool,
}

#[expect(clippy::disallowed_methods, reason = "it reports its speed")]
fn main() -> ExitCode {
    let args = Args::parse();
    println!("build {}", env!("DS_PLAN_VERSION"));
    let end = args.from.saturating_add(args.seeds);
    let began = Instant::now();
    let mut from = args.from;
    let mut failed = Vec::new();
    while from < end {
        let to = end.min(from.saturating_add(PORTION));
        for broken in portion(from, to, &args) {
            println!("{broken}");
            if args.history {
                println!("{}\n{}", broken.outcome.history, broken.outcome.state);
            }
            failed.push(broken.scenario.seed);
        }
        if !failed.is_empty() && !args.keep_going {
            break;
        }
        from = to;
        let took = began.elapsed().as_secs().max(1);
        println!("tried up to seed {from}, {} per second", (from - args.from) / took);
    }
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("seeds that broke a law: {failed:?}");
    ExitCode::FAILURE
}

/// Tries these seeds on all cores; returns those that break a law, in order. Without `--keep-going`,
/// it ends with the first.
fn portion(from: u64, to: u64, args: &Args) -> Vec<Shrunk> {
    let next = AtomicU64::new(from);
    let work = || {
        let mut failed = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= to {
                return failed;
            }
            if args.stories && Scenario::of(seed, args.checks).story.is_none() {
                continue;
            }
            if let Some(broken) = shrink::broken(seed, args.checks, &args.without) {
                failed.push(broken);
                if !args.keep_going {
                    next.store(to, Ordering::Relaxed);
                }
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut failed: Vec<Shrunk> = thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running.into_iter().flat_map(|one| one.join().unwrap()).collect()
    });
    failed.sort_by_key(|broken| broken.scenario.seed);
    failed
}
