//! Why a rollout has failed although no new pod has.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::checks::CheckFinding;
use crate::plan::Age;
use crate::words::count;
use daemonset::model::NodeName;

/// Number of nodes that a message names.
const NAMED: usize = 5;

/// Why a rollout has failed although no new pod has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureCause {
    /// It has taken too long.
    Overdue(Overdue),
    /// A gate of the policy has failed.
    Gate(Box<FailedGate>),
}

/// The rollout has taken longer than the policy's `maxDuration`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overdue {
    /// Seconds since its first delete.
    pub seconds: i64,
    /// Seconds that the policy allows.
    pub allowed: u32,
}

/// A gate of the policy that has failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailedGate {
    /// The check, and why it has failed.
    #[serde(flatten)]
    pub finding: CheckFinding,
    /// The nodes with an available new pod at that time.
    pub nodes: Vec<NodeName>,
}

impl FailureCause {
    /// The gate that has failed.
    pub fn gate(&self) -> Option<&FailedGate> {
        match self {
            Self::Gate(gate) => Some(gate),
            Self::Overdue(_) => None,
        }
    }
}

impl fmt::Display for FailureCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overdue(overdue) => overdue.fmt(f),
            Self::Gate(gate) => gate.fmt(f),
        }
    }
}

impl fmt::Display for Overdue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seconds, allowed } = self;
        write!(f, "the rollout has taken {}, ", Age(*seconds))?;
        write!(f, "at most {} allowed (`maxDuration`)", Age((*allowed).into()))
    }
}

/// `gate errors failed: 0.25 at …, at most 0.01 allowed, with new pods on 2 nodes (a, b)`.
impl fmt::Display for FailedGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { finding: CheckFinding { check, since: _, reason }, nodes } = self;
        write!(
            f,
            "gate {check} failed: {reason}, with new pods on {}",
            count(nodes.len(), "node")
        )?;
        let named: Vec<&str> = nodes.iter().take(NAMED).map(NodeName::as_str).collect();
        match nodes.len().checked_sub(NAMED) {
            Some(more @ 1..) => write!(f, " ({} and {more} more)", named.join(", ")),
            Some(0) | None => write!(f, " ({})", named.join(", ")),
        }
    }
}
