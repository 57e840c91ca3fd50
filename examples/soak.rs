//! The simulation for as long as one likes: `cargo run --release --example soak -- --seeds 100000`.
//!
//! It tells which seed it has come to, so that `--from` goes on there. The first seed that breaks a
//! law ends it, with the one line that shows it again, as small as it gets.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]
#![allow(clippy::print_stdout, reason = "it is what it is for")]

#[path = "../tests/simulation/bounded.rs"]
mod bounded;
#[path = "../tests/simulation/budget.rs"]
mod budget;
#[path = "../tests/simulation/changes.rs"]
mod changes;
#[path = "../tests/simulation/cluster.rs"]
mod cluster;
#[path = "../tests/simulation/dice.rs"]
mod dice;
#[path = "../tests/simulation/end.rs"]
mod end;
#[path = "../tests/simulation/eyes.rs"]
mod eyes;
#[path = "../tests/simulation/flights.rs"]
mod flights;
#[path = "../tests/simulation/laws.rs"]
mod laws;
#[path = "../tests/simulation/locks.rs"]
mod locks;
#[path = "../tests/simulation/objects.rs"]
mod objects;
#[path = "../tests/simulation/people.rs"]
mod people;
#[path = "../tests/simulation/reasons.rs"]
mod reasons;
#[path = "../tests/simulation/scenario.rs"]
mod scenario;
#[path = "../tests/simulation/shrink.rs"]
mod shrink;
#[path = "../tests/simulation/trial.rs"]
mod trial;
#[path = "../tests/simulation/upkeep.rs"]
mod upkeep;

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use clap::Parser;
use shrink::Shrunk;

/// How many seeds between two words.
const PORTION: u64 = 1000;

/// Runs the real ds-apply on small clusters where things go wrong
#[derive(Parser)]
struct Args {
    /// How many seeds
    #[arg(long, default_value_t = 10_000)]
    seeds: u64,
    /// The first of them
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Parts of the scenario that are left out, by number
    #[arg(long, value_delimiter = ',')]
    without: Vec<usize>,
    /// Plant this fault, or `all` of them one after the other: each is to be found
    #[cfg(feature = "planted")]
    #[arg(long)]
    planted: Option<String>,
    /// Print every request and every change of what breaks, and the cluster at the end
    #[arg(long)]
    history: bool,
}

#[expect(clippy::disallowed_methods, reason = "it tells how fast it is")]
fn main() -> ExitCode {
    let args = Args::parse();
    #[cfg(feature = "planted")]
    if let Some(name) = &args.planted {
        return planted(name, args.from, args.seeds);
    }
    let end = args.from.saturating_add(args.seeds);
    let began = Instant::now();
    let mut from = args.from;
    while from < end {
        let to = end.min(from.saturating_add(PORTION));
        if let Some(broken) = portion(from, to, &args.without) {
            println!("{broken}");
            if args.history {
                println!("{}\n{}", broken.outcome.history, broken.outcome.state);
            }
            return ExitCode::FAILURE;
        }
        from = to;
        let took = began.elapsed().as_secs().max(1);
        println!("come to seed {from}, {} a second", (from - args.from) / took);
    }
    ExitCode::SUCCESS
}

/// Tries these seeds on all cores; the first that breaks a law.
fn portion(from: u64, to: u64, without: &[usize]) -> Option<Shrunk> {
    let next = AtomicU64::new(from);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= to {
                return None;
            }
            if let Some(broken) = shrink::broken(seed, without) {
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

/// Plants faults; those that no law finds are told, and make it fail.
#[cfg(feature = "planted")]
fn planted(name: &str, from: u64, seeds: u64) -> ExitCode {
    let mut survived = 0;
    for fault in ds_plan::planted::ALL.iter().filter(|fault| name == "all" || name == **fault) {
        // A seed that finds something anyhow shows nothing.
        let found = (from..from.saturating_add(seeds)).find_map(|seed| {
            let law = with_fault(fault, seed)?;
            with_fault("", seed).is_none().then_some((seed, law))
        });
        if let Some((seed, law)) = found {
            println!("{fault}: found by seed {seed}: {law}");
        } else {
            survived += 1;
            println!("{fault}: NOT FOUND within {seeds} seeds");
        }
    }
    println!("{survived} not found");
    if survived == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The law that a seed breaks while a fault is planted.
#[cfg(feature = "planted")]
fn with_fault(fault: &'static str, seed: u64) -> Option<String> {
    ds_plan::planted::plant(fault);
    let outcome = trial::run(&scenario::Scenario::of(seed));
    outcome.broken.into_iter().next()
}
