//! Whether the DaemonSets that come before another one (`after` of its policy) are done.
//!
//! One that this run applies is done if it ended so. One of the source that this run does not apply
//! is done if its plan is empty; one outside of the source, if its rollout is complete.

use std::slice;

use super::flags::CommonFlags;
use super::planning::{ApprovalRequest, planned};
use super::session::Session;
use super::unmet_predecessor::{NotDone, UnmetPredecessor};
use crate::error::Error;
use daemonset::model::{DaemonSetKey, DesiredDaemonSet, Snapshot};
use manifest::Precedence;
use planner::plan::{Completion, SourceInfo, status};

/// The DaemonSets that come before others.
#[derive(Debug)]
pub(super) struct Predecessors {
    /// Their order.
    pub precedence: Precedence,
    /// DaemonSets of the source that this run does not apply.
    pub others: Vec<DesiredDaemonSet>,
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
