//! The real `ds-apply` on thousands of small clusters where things go wrong, on virtual time, with
//! laws that are looked at after every request.

// Clippy's leave for tests (clippy.toml) ends at functions marked as such; the machinery is none.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

mod cluster;
mod dice;
mod laws;
mod scenario;
mod trial;

use scenario::Scenario;

/// How many seeds are tried.
fn seeds() -> u64 {
    std::env::var("SIMULATION_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(200)
}

#[test]
fn the_laws_hold_for_every_seed() {
    let mut ends = std::collections::BTreeMap::<String, u64>::new();
    let from = std::env::var("FROM").ok().and_then(|it| it.parse().ok()).unwrap_or(0);
    for seed in from..from + seeds() {
        let scenario = Scenario::of(seed);
        let outcome = trial::run(&scenario, None);
        let end = format!("{:?} {}", outcome.ended.as_ref().map(|it| it.exit), outcome.deletes > 0);
        *ends.entry(end).or_default() += 1;
        if !outcome.broken.is_empty() {
            std::fs::write(format!("/tmp/dst_history_{seed}"), &outcome.history).unwrap();
            println!("{scenario}{:?}\n{:#?}", outcome.ended, outcome.broken);
        }
    }
    println!("{ends:#?}");
}
