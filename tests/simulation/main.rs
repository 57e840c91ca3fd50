//! The real `ds-apply` on hundreds of small clusters with random faults, on virtual time; the laws
//! are checked after every request. `examples/soak.rs` does the same for any number of seeds.

// Clippy's exception for tests (clippy.toml) covers only functions marked as tests, not helpers.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test panics")]

mod bounded;
mod budget;
mod careful;
mod changes;
mod clocks;
mod cluster;
mod crash;
mod dice;
mod end;
mod external_actors;
mod flights;
mod found;
mod laws;
mod lock_loss;
mod locks;
mod objects;
mod observations;
mod permissions;
mod reasons;
mod scenario;
mod shrink;
mod trial;
mod upkeep;

use std::thread;

use scenario::Scenario;

/// The default number of seeds: a debug build takes a minute or two.
const SEEDS: u64 = 500;

/// The number of seeds: `SIMULATION_SEEDS`, or the default.
#[expect(clippy::disallowed_methods, reason = "a setting of the tests, not of the program")]
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
