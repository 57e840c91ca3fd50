//! Runs the simulation with any number of seeds: `cargo run --release --example soak -- --seeds
//! 100000`.
//!
//! It prints the last seed tried; continue there with `--from`. The first seed that breaks a law
//! ends it, with the command that reproduces the failure, minimized.

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
    /// Print every request and every change of a failed seed, and the cluster at the end
    #[arg(long)]
    history: bool,
}

#[expect(clippy::disallowed_methods, reason = "it reports its speed")]
fn main() -> ExitCode {
    let args = Args::parse();
    let end = args.from.saturating_add(args.seeds);
    let began = Instant::now();
    let mut from = args.from;
    while from < end {
        let to = end.min(from.saturating_add(PORTION));
        if let Some(broken) = portion(from, to, &args) {
            println!("{broken}");
            if args.history {
                println!("{}\n{}", broken.outcome.history, broken.outcome.state);
            }
            return ExitCode::FAILURE;
        }
        from = to;
        let took = began.elapsed().as_secs().max(1);
        println!("tried up to seed {from}, {} per second", (from - args.from) / took);
    }
    ExitCode::SUCCESS
}

/// Tries these seeds on all cores; returns the first that breaks a law.
fn portion(from: u64, to: u64, args: &Args) -> Option<Shrunk> {
    let next = AtomicU64::new(from);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= to {
                return None;
            }
            if args.stories && Scenario::of(seed, args.checks).story.is_none() {
                continue;
            }
            if let Some(broken) = shrink::broken(seed, args.checks, &args.without) {
                next.store(to, Ordering::Relaxed);
                return Some(broken);
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let done = running.into_iter().filter_map(|one| one.join().unwrap());
        done.min_by_key(|broken| broken.scenario.seed)
    })
}
