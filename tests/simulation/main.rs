//! The real `ds-apply` on hundreds of small clusters with random faults, on virtual time; the laws
//! are checked after every request. `soak.rs` does the same for any number of seeds.
//!
//! The laws (invariants) keep their own counts: which nodes are down, how many may be, who holds
//! the lock, what a run can have observed. They judge a request when it is sent; only the holder of
//! the lock is also checked when it arrives. One seed in four has no controller: a record is judged
//! as the DaemonSet that it stands for. If nothing interferes, and a controller makes no difference
//! (`trial::has_twin`), the run has to end as one with a controller does. Deletes of the in-process
//! controller (`upkeep`) need a reason of a controller; all others are held to the laws of a
//! rollout. Nothing resumes after such a run, so work that is left undone by a request that failed
//! permanently is not counted against it.
//!
//! One seed in four is a story (`story`): commits of one DaemonSet under a random policy, and the
//! runs that roll them out one after the other, as by a schedule. People approve steps, or something
//! else, edit the policy and lose notes; runs are killed. The laws of steps (`step_laws`) judge the
//! beginning of each node: budgets of zones and steps, zones at once, steps in their order after
//! their soaks, approvals of this template and this step that no rollout has used up, windows and
//! exclusions, no node twice; and what is live while nobody runs. Where the policy leaves a choice,
//! any choice is right that keeps the number. Nodes may be chosen by what another one was a moment
//! ago: for some seconds after any node has changed, the order of steps is not judged.
//!
//! One story in two has checks, and one in four pulls images first (`prePull`). The world decides what
//! each check answers at which time (`checks`), and runs ask it by the executor's own trait
//! (`asking`); conditions of nodes change in the cluster. The laws judge by the world's truth, and by
//! the questions that a run has asked: a node begins only after a fresh pass of all checks that
//! apply, and none after a gate has failed; a step is done only after a pass of each gate with samples
//! up to the end of its soak; no run waits for a check that is unknown for too long (`step_laws`);
//! and no pod goes before its node has the image (`pulls`). Where the program has a choice of the step
//! to which a node belongs, the delay of a gate counts from the last new pod.
//!
//! Exceptions: Where requests may fail, a run has 30 s to observe a change (2 s where none does).
//! For the same time after another client's write, the laws about the part that it wrote (the
//! template; the strategy and pause) are off. The laws know the time since which a node has no pod
//! only from one request to the next. Deletes that arrive after their sender has stopped waiting do not
//! happen here, nor does a stopped process, nor a watch that lags without being cut.
//!
//! The faults in `tests/faults` show that the laws can fail: `.ci/faults` applies each patch to a
//! copy of the tree, builds the simulation there, and prints the seed that finds it.

// Clippy's exception for tests (clippy.toml) covers only functions marked as tests, not helpers.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test panics")]

mod asking;
mod bounded;
mod budget;
mod careful;
mod changes;
mod checks;
mod clocks;
mod cluster;
mod crash;
mod day;
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
mod policies;
mod pulls;
mod reasons;
mod rolled;
mod rules;
mod scenario;
mod shared;
mod shrink;
mod step_laws;
mod story;
mod trial;
mod upkeep;

use std::ops::Range;
use std::thread;

use scenario::Scenario;

/// The default number of seeds: a debug build takes some minutes, most of them for stories. `.ci/run`
/// tries those after them, too.
const SEEDS: u64 = 500;

/// The stories of the seeds before this one have checks and pulls. More of them are tried by
/// `cargo run --release --example soak -- --checks --stories`.
const CHECKED: u64 = 2_000;

/// A number in the environment, or the default.
#[expect(clippy::disallowed_methods, reason = "a setting of the tests, not of the program")]
fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(number) => number.parse().unwrap_or_else(|error| panic!("{name}={number}: {error}")),
        Err(_) => default,
    }
}

/// The seeds to try: `SIMULATION_SEEDS` of them, from `SIMULATION_FROM` on.
fn seeds() -> Range<u64> {
    let first = setting("SIMULATION_FROM", 0);
    first..first + setting("SIMULATION_SEEDS", SEEDS)
}

#[test]
fn the_laws_hold_for_every_seed() {
    let seeds = seeds();
    let threads = thread::available_parallelism().map_or(1, |it| it.get() as u64);
    let of_thread = |thread| {
        (seeds.start + thread..seeds.end)
            .step_by(usize::try_from(threads).unwrap())
            .find_map(|seed| shrink::broken(seed, seed < CHECKED, &[]))
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
        let history = || trial::run(&Scenario::of(seed, true)).history;
        assert_eq!(history(), history(), "{seed}");
    }
}
