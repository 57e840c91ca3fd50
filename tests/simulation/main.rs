//! The real `ds-apply` on hundreds of small clusters where things go wrong, on virtual time, with
//! laws that are looked at after every request. `examples/soak.rs` does the same for as long as
//! one likes.

// Clippy's leave for tests (clippy.toml) ends at functions marked as such; the machinery is none.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

mod bounded;
mod budget;
mod careful;
mod changes;
mod clocks;
mod cluster;
mod crash;
mod dice;
mod end;
mod eyes;
mod flights;
mod found;
mod laws;
mod locks;
mod objects;
mod people;
mod permissions;
mod reasons;
mod robbed;
mod scenario;
mod shrink;
mod trial;
mod upkeep;

use std::thread;

use scenario::Scenario;

/// How many seeds are tried if nothing is said: what a debug build does in a minute or two.
const SEEDS: u64 = 500;

/// As many as `SIMULATION_SEEDS` says.
#[expect(clippy::disallowed_methods, reason = "a developer's wish, not the program's environment")]
fn seeds() -> u64 {
    match std::env::var("SIMULATION_SEEDS") {
        Ok(count) => count.parse().expect("SIMULATION_SEEDS is a number"),
        Err(_) => SEEDS,
    }
}

#[test]
fn the_laws_hold_for_every_seed() {
    let seeds = seeds();
    let threads = thread::available_parallelism().map_or(1, |it| it.get() as u64);
    let of_thread = |thread| {
        (thread..seeds)
            .step_by(usize::try_from(threads).unwrap())
            .find_map(|seed| shrink::broken(seed, &[]))
    };
    thread::scope(|scope| {
        let running: Vec<_> =
            (0..threads).map(|thread| scope.spawn(move || of_thread(thread))).collect();
        for one in running {
            if let Some(broken) = one.join().unwrap() {
                panic!("{broken}");
            }
        }
    });
}

#[test]
fn the_same_seed_gives_the_same_history() {
    for seed in 0..12 {
        let history = || trial::run(&Scenario::of(seed)).history;
        assert_eq!(history(), history(), "{seed}");
    }
}
