//! A budget that several DaemonSets share: the locks on all of them, and their observers.
//!
//! A run that rolls out one of them locks all that exist, in the order of their names. So two runs
//! never share out the same slots, and never wait for each other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::flags::CommonFlags;
use super::session::{Beside, Session, unlock};
use crate::error::Error;
use cluster::{Lock, LockError, Observer};
use daemonset::controller::Owner;
use daemonset::model::{DaemonSet, DaemonSetKey, IntOrPercent, ManagedBy, PolicySpec};
use executor::{Member, SharedRun};
use planner::plan::SharedBudget;
use planner::shared::ShareCourse;

/// The DaemonSets of a shared budget, locked.
pub(super) struct Sharing {
    /// They, in the order in which they follow on each node.
    order: Vec<DaemonSetKey>,
    budget: IntOrPercent,
    policy: PolicySpec,
    /// Who manages those that do not exist: `--managed-by` overrides the policy.
    managed_by: ManagedBy,
    keep_going: bool,
    /// Those that exist.
    live: BTreeMap<DaemonSetKey, DaemonSet>,
    locks: BTreeMap<DaemonSetKey, Arc<Lock>>,
    /// Those that were to be rolled out, and cannot begin.
    stopped: BTreeSet<DaemonSetKey>,
}

impl Sharing {
    /// Locks the DaemonSets of a shared budget: those that this run may roll out, and the others
    /// that exist. `None` if the policy has no shared budget.
    ///
    /// # Errors
    /// One of them cannot be read or locked; then none is locked.
    pub(super) async fn lock(
        budget: &SharedBudget,
        (policy, managed_by): (&PolicySpec, ManagedBy),
        rolled: &[&DaemonSetKey],
        args: &CommonFlags,
        session: &mut Session,
    ) -> Result<Option<Self>, Error> {
        let Some(limit) = policy.shared_budget else { return Ok(None) };
        let SharedBudget { nodes: _, daemon_sets } = budget;
        // A plan has the names of valid keys only.
        let order: Vec<DaemonSetKey> =
            daemon_sets.iter().filter_map(|name| name.parse().ok()).collect();
        let mut sharing = Self {
            budget: limit,
            policy: policy.clone(),
            managed_by,
            keep_going: args.keep_going,
            live: BTreeMap::new(),
            locks: BTreeMap::new(),
            stopped: BTreeSet::new(),
            order,
        };
        match sharing.lock_each(rolled, args, session).await {
            Ok(()) => Ok(Some(sharing)),
            Err(error) => {
                sharing.release().await;
                Err(error)
            }
        }
    }

    async fn lock_each(
        &mut self,
        rolled: &[&DaemonSetKey],
        args: &CommonFlags,
        session: &mut Session,
    ) -> Result<(), Error> {
        let mut keys = self.order.clone();
        keys.sort_unstable();
        for key in keys {
            let found = session
                .unless_interrupted(async |_, cluster| {
                    Ok(cluster.live().daemon_set_listed(&key).await?)
                })
                .await?;
            // A record of ds-apply is no DaemonSet.
            let may_exist = self.managed_by == ManagedBy::DsApply;
            if found.is_some() || may_exist || rolled.contains(&&key) {
                // The other one may be held for long by a run that is still in progress.
                let lock = tokio::select! {
                    lock = session.lock(&key, &args.pace, args.output) => lock?,
                    lost = Lock::first_lost(&self.locks) => {
                        return Err(LockError::Lost { daemon_set: lost.clone() }.into());
                    }
                };
                self.locks.insert(key.clone(), lock);
            }
            self.live.extend(found.map(|live| (key, live)));
        }
        Ok(())
    }

    /// The lock on a DaemonSet.
    pub(super) fn lock_of(&self, key: &DaemonSetKey) -> Option<&Arc<Lock>> {
        self.locks.get(key)
    }

    /// Notes that a DaemonSet that was to be rolled out cannot begin.
    pub(super) fn stop(&mut self, key: &DaemonSetKey) {
        self.stopped.insert(key.clone());
    }

    /// Observes those that this run does not roll out; it has `observers` of the others.
    ///
    /// # Errors
    /// One of them cannot be watched.
    pub(super) async fn begin(
        &self,
        observers: &BTreeMap<DaemonSetKey, Observer>,
        session: &mut Session,
    ) -> Result<Arc<SharedRun>, Error> {
        let mut members = Vec::with_capacity(self.order.len());
        for key in &self.order {
            let lock = self.locks.get(key).cloned();
            let (observer, course) = match observers.get(key) {
                Some(observer) => (observer.clone(), ShareCourse::Starting),
                None => (self.observe(key, session).await?, self.course_of_others(key)),
            };
            members.push(Member { key: key.clone(), observer, lock, course });
        }
        Ok(SharedRun::of(self.budget, &self.policy, self.keep_going, members))
    }

    /// The course of a DaemonSet that is not rolled out.
    fn course_of_others(&self, key: &DaemonSetKey) -> ShareCourse {
        if self.stopped.contains(key) { ShareCourse::Stopped } else { ShareCourse::Counted }
    }

    async fn observe(&self, key: &DaemonSetKey, session: &mut Session) -> Result<Observer, Error> {
        match self.live.get(key) {
            Some(live) => session.observe(&Owner::from(live), Beside::default()).await,
            None => session.observe_unknown(key, self.managed_by).await,
        }
    }

    /// Releases all locks.
    pub(super) async fn release(self) {
        for lock in self.locks.into_values() {
            unlock(lock).await;
        }
    }
}
