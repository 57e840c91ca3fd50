//! The rest between two evaluations of a cluster.

use std::time::Duration;

/// Number of nodes per millisecond of rest after a decision. Changes during the rest are evaluated
/// together; otherwise each change in a large cluster would cost an evaluation of all nodes.
const NODES_A_MILLISECOND: usize = 50;

/// The rest after an evaluation of this many nodes.
pub(super) fn rest(nodes: usize) -> Duration {
    Duration::from_millis(u64::try_from(nodes / NODES_A_MILLISECOND).unwrap_or(u64::MAX))
}
