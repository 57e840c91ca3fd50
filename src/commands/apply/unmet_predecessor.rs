//! A DaemonSet that does not begin, because one that comes before it is not done.

use std::fmt;

use crate::exit::Exit;
use daemonset::model::DaemonSetKey;
use planner::plan::{DaemonSetPlan, PauseState};
use planner::rollout::Outcome;

/// The reason why a DaemonSet is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotDone {
    /// Its rollout failed, and the last good template is live again.
    Aborted,
    /// Its rollout is paused.
    Paused,
    /// Its rollout waits, for time or for another DaemonSet.
    Waits,
    /// Its rollout waits for an approval.
    WaitsForApproval,
    /// Its apply failed.
    Failed,
    /// A guard blocks its plan.
    Blocked,
    /// Another run holds its lock.
    Locked,
    /// It has changed since its plan was made.
    Stale,
    /// It differs from the source, or its rollout is in progress.
    NotRolledOut,
    /// It exists neither in the source nor in the cluster.
    Missing,
}

/// A DaemonSet that does not begin.
pub(super) struct UnmetPredecessor {
    /// The first of its predecessors that is not done.
    pub predecessor: DaemonSetKey,
    /// Why it is not done.
    pub why: NotDone,
}

impl NotDone {
    /// Whether a DaemonSet is done after its apply ended this way; `outcome` is that of its
    /// rollout, if there was one.
    pub(super) fn after(exit: Exit, outcome: Option<&Outcome>) -> Result<(), Self> {
        Err(match exit {
            Exit::Done => return Ok(()),
            Exit::Paused if matches!(outcome, Some(Outcome::Aborted { .. })) => Self::Aborted,
            Exit::Paused | Exit::Interrupted | Exit::Terminated => Self::Paused,
            Exit::Waiting => Self::Waits,
            Exit::ApprovalNeeded => Self::WaitsForApproval,
            Exit::Stale => Self::Stale,
            Exit::Blocked => Self::Blocked,
            Exit::Locked => Self::Locked,
            Exit::Failed | Exit::Usage => Self::Failed,
            Exit::Changes | Exit::Drift => Self::NotRolledOut,
        })
    }

    /// The reason why a DaemonSet with this plan is not done.
    pub(super) fn by_plan(plan: &DaemonSetPlan) -> Self {
        match plan.pause.as_ref().map(|pause| pause.state) {
            Some(PauseState::Aborted) => Self::Aborted,
            Some(PauseState::Paused) => Self::Paused,
            Some(PauseState::Waiting) => {
                let pause = plan.pause.iter();
                let mut waits_for = pause.flat_map(|pause| &pause.waits_for);
                if waits_for.any(|wait| wait.kind.needs_person()) {
                    Self::WaitsForApproval
                } else {
                    Self::Waits
                }
            }
            None => Self::NotRolledOut,
        }
    }
}

/// `it comes after kube-system/cni, which was aborted`.
impl fmt::Display for UnmetPredecessor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { predecessor, why } = self;
        write!(f, "it comes after {predecessor}, which {why}")
    }
}

impl fmt::Display for NotDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Aborted => "was aborted",
            Self::Paused => "is paused",
            Self::Waits => "waits",
            Self::WaitsForApproval => "waits for an approval",
            Self::Failed => "failed",
            Self::Blocked => "is blocked by a guard",
            Self::Locked => "is locked by another run",
            Self::Stale => "has changed since the plan was made",
            Self::NotRolledOut => "is not rolled out",
            Self::Missing => "is waited for: it exists neither in the source nor in the cluster",
        })
    }
}
