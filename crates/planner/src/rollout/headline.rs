//! The first line about the end of a run: its outcome, and how many more nodes than the failed ones
//! have no available pod. A run ends at the first failure, so other new pods may be about to fail.

use std::fmt;

use super::outcome::Ending;
use crate::plan::Reason;
use crate::words::count;
use daemonset::model::NodeName;

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { outcome, replaced: _, left: _ } = self;
        write!(f, "{outcome}")?;
        match self.more_unavailable() {
            0 => Ok(()),
            1 => f.write_str("; 1 more node has no available pod"),
            more => write!(f, "; {} have no available pod", count(more, "more node")),
        }
    }
}

impl Ending {
    /// Number of nodes without an available pod, besides those that failed, if any did. Skipped
    /// nodes do not count.
    fn more_unavailable(&self) -> usize {
        let Some(failed) = self.outcome.failed() else { return 0 };
        let lacks = |(node, reasons): &(&NodeName, &Vec<Reason>)| {
            !failed.contains_key(*node)
                && !reasons.iter().any(is_skipped)
                && reasons.iter().any(is_unavailable)
        };
        if failed.is_empty() { 0 } else { self.left.iter().filter(lacks).count() }
    }
}

/// Whether a node with this reason is skipped, because it is not Ready.
fn is_skipped(reason: &Reason) -> bool {
    matches!(reason, Reason::SkippedUnreadyNode(_) | Reason::NodeNotReady(_))
}

/// Whether a node with this reason has no available pod.
fn is_unavailable(reason: &Reason) -> bool {
    match reason {
        Reason::NoPod
        | Reason::NoLivePod
        | Reason::Failed
        | Reason::Succeeded
        | Reason::Terminating
        | Reason::PodNotReady(_)
        | Reason::NotAvailableYet { .. } => true,
        Reason::Outdated { .. }
        | Reason::UpToDate
        | Reason::MayBeDelayed
        | Reason::Surplus { .. }
        | Reason::Superseded { .. }
        | Reason::NotEligible { .. }
        | Reason::DeletedNotRecreated { .. }
        | Reason::NodeVanished
        | Reason::LeftToGarbageCollector
        | Reason::OnDelete
        | Reason::SkippedUnreadyNode(_)
        | Reason::UnreadyNodeCounts { .. }
        | Reason::MaxUnavailableReached { .. }
        | Reason::NodeNotReady(_)
        | Reason::Misscheduled { .. }
        | Reason::Adopted
        | Reason::Released
        | Reason::DaemonSetTerminating
        | Reason::MustBeRecreated
        | Reason::GoesWithOwner
        | Reason::Orphaned => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollout::{Outcome, PodFailure};

    #[test]
    fn nodes_that_are_not_available_are_counted_next_to_those_that_failed() {
        let not_ready = || Reason::NotAvailableYet { min_ready_seconds: 10 };
        let skipped = || Reason::SkippedUnreadyNode(Box::default());
        let lost = || Reason::NodeNotReady(Box::default());
        let failure = || PodFailure::NoPod { seconds: 600, message: None };
        let [a, b, c, d] = ["a", "b", "c", "d"].map(NodeName::from);
        for (failed, left, want) in [
            (1, vec![], ""),
            (1, vec![(a.clone(), vec![not_ready()])], ""),
            (1, vec![(b.clone(), vec![Reason::Outdated { revision: None }])], ""),
            (1, vec![(b.clone(), vec![skipped(), not_ready()])], ""),
            (1, vec![(b.clone(), vec![lost(), not_ready()])], ""),
            (1, vec![(b.clone(), vec![not_ready()])], "; 1 more node has no available pod"),
            (
                1,
                [b, c].map(|node| (node, vec![not_ready()])).into(),
                "; 2 more nodes have no available pod",
            ),
            (0, vec![(d, vec![not_ready()])], ""),
        ] {
            let failed = (0..failed).map(|_| (a.clone(), failure())).collect();
            let outcome =
                Outcome::Aborted { failed, to: "good".into(), rolled_back: None, cause: None };
            let headline = outcome.to_string();
            let left = left.into_iter().collect();
            let ending = Ending { outcome, replaced: Vec::new(), left };
            assert_eq!(ending.to_string(), headline + want);
        }
    }
}
