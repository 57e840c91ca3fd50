//! Whether the DaemonSets that come before another one (`after` of its policy) are done.
//!
//! One that this run applies is done if it ended so. One of the source that this run does not apply
//! is done if its plan is empty; one outside of the source, if its rollout is complete.

use std::fmt;
use std::slice;

use super::flags::CommonFlags;
use super::planning::{ApprovalRequest, planned};
use super::session::Session;
use crate::error::Error;
use crate::exit::Exit;
use daemonset::model::{DaemonSetKey, DesiredDaemonSet, Snapshot};
use manifest::Precedence;
use planner::plan::{Completion, DaemonSetPlan, PauseState, SourceInfo, status};
use planner::rollout::Outcome;

/// The DaemonSets that come before others.
#[derive(Debug)]
pub(super) struct Predecessors {
    /// Their order.
    pub precedence: Precedence,
    /// DaemonSets of the source that this run does not apply.
    pub others: Vec<DesiredDaemonSet>,
}

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

impl Predecessors {
    /// No DaemonSet comes before another one.
    pub(super) const NONE: Self = Self { precedence: Precedence::NONE, others: Vec::new() };

    /// The first predecessor of a DaemonSet that is not done. Those that this run has not applied
    /// are read once.
    ///
    /// # Errors
    /// A predecessor cannot be read.
    pub(super) async fn not_done(
        &self,
        key: &DaemonSetKey,
        args: &CommonFlags,
        source: &SourceInfo,
        session: &mut Session,
    ) -> Result<Option<UnmetPredecessor>, Error> {
        for predecessor in self.precedence.before(key) {
            let state = match session.state(&predecessor) {
                Some(state) => state,
                None => self.seen(&predecessor, args, source, session).await?,
            };
            session.set_state(&predecessor, state);
            if let Err(why) = state {
                return Ok(Some(UnmetPredecessor { predecessor, why }));
            }
        }
        Ok(None)
    }

    /// As [`not_done`](Self::not_done), among those that this run has applied.
    pub(super) fn not_done_by_run(
        &self,
        key: &DaemonSetKey,
        session: &Session,
    ) -> Option<UnmetPredecessor> {
        self.precedence.before(key).into_iter().find_map(|predecessor| {
            let why = session.state(&predecessor)?.err()?;
            Some(UnmetPredecessor { predecessor, why })
        })
    }

    /// The state of a DaemonSet that this run does not apply.
    async fn seen(
        &self,
        key: &DaemonSetKey,
        args: &CommonFlags,
        source: &SourceInfo,
        session: &mut Session,
    ) -> Result<Result<(), NotDone>, Error> {
        let Some(desired) = self.others.iter().find(|one| one.key == *key) else {
            return Ok(rolled_out(key, &session.snapshot_for(key, &[]).await?));
        };
        let desired = slice::from_ref(desired);
        let snapshot = session.snapshot_for(key, desired).await?;
        let wanted = ApprovalRequest::only(desired, source.clone());
        let plan = planned(&snapshot, wanted, args, session.shell.now);
        let open = plan.daemon_sets.iter().find(|one| one.has_changes());
        Ok(open.map_or(Ok(()), |one| Err(NotDone::by_plan(one))))
    }
}

/// Whether the live rollout of a DaemonSet outside of the source is complete.
fn rolled_out(key: &DaemonSetKey, snapshot: &Snapshot) -> Result<(), NotDone> {
    let report = status(snapshot, |one| one == key);
    let Some(status) = report.daemon_sets.first() else { return Err(NotDone::Missing) };
    match Completion::of(status) {
        Completion::Complete { updated: _, unready: _ } => Ok(()),
        Completion::Paused => Err(NotDone::Paused),
        Completion::Waiting { for_approval: false } => Err(NotDone::Waits),
        Completion::Waiting { for_approval: true } => Err(NotDone::WaitsForApproval),
        Completion::Aborted => Err(NotDone::Aborted),
        Completion::InProgress { .. } | Completion::OnDelete { .. } => Err(NotDone::NotRolledOut),
    }
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
    fn by_plan(plan: &DaemonSetPlan) -> Self {
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
