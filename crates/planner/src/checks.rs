//! What the answer to a check of a policy means: it passes, it fails, or it is unknown, and why.
//!
//! Unknown is neither: a metric that is misspelt must not pass, and a Prometheus that is down must
//! not roll anything back. Pure: asking is I/O, and elsewhere. Not here: what a rollout does about
//! an answer (`rollout/checks`).

mod judge;
mod observed;
mod reason;
#[cfg(test)]
mod tests;

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use judge::{CheckAnswer, judge};
pub use observed::{CheckedCluster, CheckedNode, Found, gate, precondition};
pub use reason::{CheckReason, ConditionFinding, PodFinding, SampleValue};

/// A check that has not passed, since when, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckFinding {
    /// Name of the check in the policy.
    pub check: String,
    /// Time since which it has had this kind of answer.
    pub since: Timestamp,
    /// Why it has not passed.
    pub reason: CheckReason,
}

/// `check errors: 0.25 at 2026-01-01T00:00:00Z, at most 0.01 allowed`.
impl fmt::Display for CheckFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { check, since: _, reason } = self;
        write!(f, "check {check}: {reason}")
    }
}
