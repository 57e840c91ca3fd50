//! How much a reviewer has to look at a DaemonSet of a plan.

use planner::plan::{ActionTotals, Change, DaemonSetPlan, PauseState, Strategy};

/// The most severe thing that happens to a DaemonSet, and the number of its nodes. The most severe
/// one is first; of equal ones, that with the most nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Risk(Severity, std::cmp::Reverse<u32>);

/// What happens to a DaemonSet or its pods, the most severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Severity {
    /// It would have to be deleted, or it is, or pods are deleted and not replaced.
    Deleted,
    /// Nodes wait: the rollout does not reach them.
    Waiting,
    /// Its last rollout failed.
    Failed,
    Replaced,
    Surged,
    Created,
    /// Only the object changes.
    Object,
    Nothing,
}

impl Risk {
    pub(super) fn of(plan: &DaemonSetPlan) -> Self {
        let ActionTotals { create, delete, replace, surge, wait, keep: _ } = plan.totals;
        let aborted = plan.pause.as_ref().is_some_and(|pause| pause.state == PauseState::Aborted);
        let goes = matches!(plan.change, Change::Delete | Change::Recreate);
        // With OnDelete, nodes wait for a person, as they always do.
        let waits = if plan.strategy == Strategy::OnDelete { 0 } else { wait };
        let severities = [
            (Severity::Deleted, goes || delete > 0, delete),
            (Severity::Waiting, waits > 0, waits),
            (Severity::Failed, aborted, replace),
            (Severity::Replaced, replace > 0, replace),
            (Severity::Surged, surge > 0, surge),
            (Severity::Created, create > 0, create),
            (Severity::Object, plan.change != Change::None, 0),
        ];
        let most_severe = severities.into_iter().find(|(_, happens, _)| *happens);
        most_severe
            .map_or(Self(Severity::Nothing, std::cmp::Reverse(wait)), |(severity, _, nodes)| {
                Self(severity, std::cmp::Reverse(nodes))
            })
    }
}
