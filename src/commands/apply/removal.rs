//! Deletes a DaemonSet that is no longer in its source, under its lock and only if the approved
//! plan deletes it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::flags::CommonFlags;
use super::in_sequence::InSequence;
use super::planning::{ApprovalRequest, check_not_stale, not_blocked, planned};
use super::progress::ProgressReporter;
use super::session::{Session, unlock};
use crate::error::Error;
use crate::exit::Exit;
use cluster::{Lock, Scope, WriteError};
use daemonset::model::{Cascade, DaemonSetKey, Snapshot};
use planner::plan::{
    Action, Binding, Change, DaemonSetPlan, Difference, Plan, Prune, SourceInfo, Stale,
};
use planner::rollout::RunEventData;
use planner::words::count;

/// Number of attempts to delete. An attempt fails if another client writes the object first: the
/// controller writes the status whenever a pod changes.
const ATTEMPTS: u32 = 5;

/// One DaemonSet to delete.
pub(super) struct Removal<'a> {
    /// The flags of the command.
    pub args: &'a CommonFlags,
    /// The approved plan.
    pub approved: &'a Plan,
    /// The parts of the approved plan that must not change.
    pub binding: Binding,
    /// The DaemonSet.
    pub key: DaemonSetKey,
    /// The source that no longer contains it.
    pub prune: Prune<'a>,
}

impl InSequence for Removal<'_> {
    fn key(&self) -> &DaemonSetKey {
        &self.key
    }

    async fn run(&self, session: &mut Session) -> Result<Exit, Error> {
        let lock = session.lock(&self.key, &self.args.pace, self.args.output).await?;
        let done = self.under(&lock, session).await;
        unlock(lock).await;
        done
    }
}

impl Removal<'_> {
    async fn under(&self, lock: &Arc<Lock>, session: &mut Session) -> Result<Exit, Error> {
        let reporter = ProgressReporter::new(&self.key, self.args.output, &session.shell);
        for left in (0..ATTEMPTS).rev() {
            let snapshot = session.snapshot(&self.key).await?;
            let Some(live) = snapshot.daemon_set(&self.key).filter(|live| !live.terminating) else {
                reporter.event(snapshot.observed_at, RunEventData::Gone, "is already deleted");
                return Ok(Exit::Done);
            };
            let plan = self.planned(&snapshot, session);
            let one = self.still_to_go(&plan)?;
            let event = RunEventData::DeletingDaemonSet;
            reporter.event(snapshot.observed_at, event, &words(one));
            session.acts();
            let writer = lock.writer();
            match writer.delete_daemon_set(live, self.prune.cascade).await {
                Ok(()) => break,
                Err(WriteError::Stale { .. }) if left > 0 => {}
                Err(error) if error.is_gone() => break,
                Err(error) => {
                    let source = Box::new(error);
                    return Err(Error::Remove { daemon_set: self.key.clone(), source });
                }
            }
        }
        Ok(Exit::Done)
    }

    /// The plan of this DaemonSet, on the current cluster. Guards about the whole source were
    /// checked before ([`check_source`]).
    fn planned(&self, snapshot: &Snapshot, session: &Session) -> Plan {
        let wanted = ApprovalRequest {
            prune: Some(self.prune),
            ..ApprovalRequest::only(&[], self.approved.source.clone())
        };
        let mut plan = planned(snapshot, wanted, self.args, session.shell.now);
        plan.daemon_sets.retain(|one| one.key() == self.key);
        let name = self.key.to_string();
        plan.guards.retain(|guard| guard.daemon_set.as_ref() == Some(&name));
        plan
    }

    /// Checks that the DaemonSet is still to be deleted, as in the approved plan.
    fn still_to_go<'p>(&self, plan: &'p Plan) -> Result<&'p DaemonSetPlan, Error> {
        let Some(one) = plan.daemon_sets.first() else {
            let what = Difference::NotMarked;
            return Err(Error::Stale(vec![Stale { daemon_set: self.key.clone(), what }]));
        };
        let mut approved = self.approved.clone();
        approved.daemon_sets.retain(|one| one.key() == self.key);
        check_not_stale(&approved, plan, self.binding, self.args.allow)?;
        Ok(one)
    }
}

/// Checks the guards about the whole source, with all namespaces, right before something is
/// deleted: the rollouts before may have taken hours.
///
/// # Errors
/// A guard blocks it.
pub(super) async fn check_source(
    args: &CommonFlags,
    source: &SourceInfo,
    prune: Prune<'_>,
    session: &mut Session,
) -> Result<(), Error> {
    let snapshot = session
        .unless_interrupted(async |shell, cluster| {
            Ok(cluster.live().snapshot_for(&[], &Scope::All, shell.now).await?)
        })
        .await?;
    let wanted =
        ApprovalRequest { prune: Some(prune), ..ApprovalRequest::only(&[], source.clone()) };
    let mut plan = planned(&snapshot, wanted, args, session.shell.now);
    plan.guards.retain(|guard| guard.daemon_set.is_none());
    not_blocked(&plan, args.allow)
}

/// The DaemonSets that a plan deletes.
pub(super) fn keys(plan: &Plan) -> BTreeSet<DaemonSetKey> {
    let gone = plan.daemon_sets.iter().filter(|one| one.change == Change::Delete);
    gone.map(DaemonSetPlan::key).collect()
}

fn words(plan: &DaemonSetPlan) -> String {
    match plan.cascade {
        Some(Cascade::Orphan) => "deleting the DaemonSet; its pods are kept".to_owned(),
        Some(Cascade::Background) | None => {
            let pods = plan.nodes.iter().filter(|node| node.action == Action::Delete);
            let pods: usize = pods.map(|node| node.pods.len()).sum();
            format!("deleting the DaemonSet and its {}", count(pods, "pod"))
        }
    }
}
