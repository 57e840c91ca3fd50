//! A DaemonSet's last turn: it is not in its source any more, and is deleted. Under its lock, and
//! only as the plan that was agreed to says.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::agree::{Asked, not_refused, planned, still_agreed};
use super::flags::CommonFlags;
use super::session::{Session, unlock};
use super::told::Teller;
use super::turns::InTurn;
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cluster::{Lock, Scope, WriteError};
use crate::model::{Cascade, DaemonSetKey, Snapshot};
use crate::plan::{
    Action, Binding, Change, DaemonSetPlan, Difference, Plan, Prune, SourceInfo, Stale,
};

/// How often a delete is tried again that somebody's write came before: the controller writes the
/// status whenever a pod changes.
const ATTEMPTS: u32 = 5;

/// One DaemonSet that is deleted.
pub(super) struct Removal<'a> {
    /// How.
    pub args: &'a CommonFlags,
    /// The plan that was agreed to.
    pub agreed: &'a Plan,
    /// How much of it binds.
    pub binding: Binding,
    /// Which one.
    pub key: DaemonSetKey,
    /// Which source does not contain it any more.
    pub prune: Prune<'a>,
}

impl InTurn for Removal<'_> {
    async fn carry_out(&self, session: &mut Session) -> Result<Exit, Error> {
        let lock = session.lock(&self.key, &self.args.pace, self.args.output).await?;
        let done = self.under(&lock, session).await;
        unlock(lock).await;
        done
    }
}

impl Removal<'_> {
    async fn under(&self, lock: &Arc<Lock>, session: &mut Session) -> Result<Exit, Error> {
        let teller = Teller::new(&self.key, self.args.output, &session.shell);
        for left in (0..ATTEMPTS).rev() {
            let snapshot = session.snapshot(&self.key).await?;
            let Some(live) = snapshot.daemon_set(&self.key).filter(|live| !live.terminating) else {
                teller.say(snapshot.observed_at, "gone", "is gone already");
                return Ok(Exit::Done);
            };
            let plan = self.planned(&snapshot, session);
            let one = self.still_to_go(&plan)?;
            teller.say(snapshot.observed_at, "deletingDaemonSet", &words(one));
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

    /// This DaemonSet's plan, on what is live now. What is about the source as a whole was judged
    /// with all of it in sight ([`check_source`]).
    fn planned(&self, snapshot: &Snapshot, session: &Session) -> Plan {
        let wanted =
            Asked { prune: Some(self.prune), ..Asked::only(&[], self.agreed.source.clone()) };
        let mut plan = planned(snapshot, wanted, self.args, session.shell.now);
        plan.daemon_sets.retain(|one| one.key() == self.key);
        let name = self.key.to_string();
        plan.guards.retain(|guard| guard.daemon_set.as_ref() == Some(&name));
        plan
    }

    /// It is to be deleted still, just as it was agreed to.
    fn still_to_go<'p>(&self, plan: &'p Plan) -> Result<&'p DaemonSetPlan, Error> {
        let Some(one) = plan.daemon_sets.first() else {
            let what = Difference::NotMarked;
            return Err(Error::Stale(vec![Stale { daemon_set: self.key.clone(), what }]));
        };
        let mut agreed = self.agreed.clone();
        agreed.daemon_sets.retain(|one| one.key() == self.key);
        still_agreed(&agreed, plan, self.binding, self.args.allow)?;
        Ok(one)
    }
}

/// What is about a source as a whole is judged with all of it in sight, right before something is
/// deleted: a rollout before it may have lasted hours.
///
/// # Errors
/// A guard refuses it.
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
    let wanted = Asked { prune: Some(prune), ..Asked::only(&[], source.clone()) };
    let mut plan = planned(&snapshot, wanted, args, session.shell.now);
    plan.guards.retain(|guard| guard.daemon_set.is_none());
    not_refused(&plan, args.allow)
}

/// What a plan deletes, in its order.
pub(super) fn keys(plan: &Plan) -> BTreeSet<DaemonSetKey> {
    let gone = plan.daemon_sets.iter().filter(|one| one.change == Change::Delete);
    gone.map(DaemonSetPlan::key).collect()
}

fn words(plan: &DaemonSetPlan) -> String {
    match plan.cascade {
        Some(Cascade::Orphan) => "deleting the DaemonSet; its pods stay".to_owned(),
        Some(Cascade::Background) | None => {
            let pods = plan.nodes.iter().filter(|node| node.action == Action::Delete);
            let pods: usize = pods.map(|node| node.pods.len()).sum();
            format!("deleting the DaemonSet; its {pods} pods go with it")
        }
    }
}
