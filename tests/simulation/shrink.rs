//! Shrinks a scenario that breaks a law: leaves out parts one by one, as long as a law still
//! breaks.

use crate::scenario::Scenario;
use crate::trial::{self, Outcome};

/// A minimized failure, and the command that reproduces it.
pub(crate) struct Shrunk {
    pub(crate) scenario: Scenario,
    pub(crate) outcome: Outcome,
    /// The command that reproduces it.
    pub(crate) line: String,
}

/// Runs a seed without these parts, its stories with checks or without; returns the minimized failure
/// if a law breaks.
pub(crate) fn broken(seed: u64, has_checks: bool, left_out: &[usize]) -> Option<Shrunk> {
    let whole = Scenario::of(seed, has_checks);
    let attempt = |left_out: &[usize]| {
        let scenario = whole.without(left_out)?;
        let outcome = trial::run(&scenario);
        (!outcome.broken.is_empty()).then_some((scenario, outcome))
    };
    let mut smallest = attempt(left_out)?;
    let mut left_out = left_out.to_vec();
    let parts = (0..whole.parts()).filter(|part| !left_out.contains(part)).collect::<Vec<_>>();
    for part in parts {
        left_out.push(part);
        match attempt(&left_out) {
            Some(smaller) => smallest = smaller,
            None => drop(left_out.pop()),
        }
    }
    let (scenario, outcome) = smallest;
    let mut line = format!("cargo run --release --example soak -- --from {seed} --seeds 1");
    if has_checks {
        line.push_str(" --checks");
    }
    if !left_out.is_empty() {
        let parts: Vec<String> = left_out.iter().map(ToString::to_string).collect();
        line = format!("{line} --without {}", parts.join(","));
    }
    Some(Shrunk { scenario, outcome, line })
}

impl std::fmt::Display for Shrunk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { scenario, outcome, line } = self;
        let broken = outcome.broken.join("\n  ");
        let Outcome { ended, requests, requests_of_runs, pause, .. } = outcome;
        write!(f, "{line}\n{scenario}ended with {ended:?}; {requests} requests of the first run")?;
        if scenario.story.is_some() {
            write!(f, "\nrequests of each run {requests_of_runs:?}, {pause:?}")?;
        }
        write!(f, "\n  {broken}")
    }
}
