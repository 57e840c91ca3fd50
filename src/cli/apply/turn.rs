//! One DaemonSet's turn, in the order of the protocol: lock, plan again on what is live now, compare
//! with what was agreed to, take ownership over, ask the server, roll out, look whether it is done.

use std::sync::Arc;

use jiff::Timestamp;

use super::agree::{self, planned};
use super::flags::CommonFlags;
use super::session::{Session, unlock};
use super::turns::InTurn;
use super::{identity, told};
use crate::apply::{self, PreflightError};
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cluster::{Lock, WritableCluster, WriteError};
use crate::controller::Owner;
use crate::model::{
    CHANGE_CAUSE_ANNOTATION, DaemonSet, DesiredDaemonSet, FAILED_TEMPLATES_ANNOTATION, PodTemplate,
    PolicySpec, Snapshot, failed_templates, short_commit,
};
use crate::plan::{
    Binding, Change, DaemonSetPlan, Guard, GuardCode, Hold, HoldState, Plan, SourceInfo, Strategy,
    sent, stale, template_digest,
};
use crate::rollout::{
    Declared, Ending, Goal, Outcome, Precondition, Provenance, Purpose, Target, Task, Write,
};
use crate::source::FilesVersion;

/// One DaemonSet that is carried out.
pub(super) struct Turn<'a> {
    /// What was asked for.
    pub args: &'a CommonFlags,
    /// The plan that was agreed to.
    pub agreed: &'a Plan,
    /// Which version the manifests are when they are of no commit.
    pub version: Option<&'a FilesVersion>,
    /// How much of it binds.
    pub binding: Binding,
    /// The DaemonSet.
    pub desired: &'a DesiredDaemonSet,
}

impl InTurn for Turn<'_> {
    /// Carries it out under its lock.
    async fn carry_out(&self, session: &mut Session) -> Result<Exit, Error> {
        let lock = session.lock(&self.desired.key, self.args.pace.lock()).await?;
        let done = self.under(&lock, session).await;
        unlock(lock).await;
        done
    }
}

impl Turn<'_> {
    async fn under(&self, lock: &Arc<Lock>, session: &mut Session) -> Result<Exit, Error> {
        let snapshot = session.snapshot(&self.desired.key).await?;
        let by = identity::by(&session.holder);
        let begun = session
            .unless_interrupted(async |_, cluster| self.begin(&snapshot, lock, cluster, by).await);
        let Some(task) = begun.await? else { return Ok(Exit::Done) };
        let (key, selector) = (&self.desired.key, &self.desired.spec.selector);
        let ending = session.carry_out(key, selector, lock, task, self.args.output).await?;
        self.look_again(&ending, session).await
    }

    /// Everything before the first step; nothing when there is nothing to do.
    async fn begin(
        &self,
        snapshot: &Snapshot,
        lock: &Lock,
        cluster: &WritableCluster,
        by: String,
    ) -> Result<Option<Task>, Error> {
        let plan = self.planned(snapshot);
        let stale = stale(&self.agreed_part(), &plan, self.binding);
        if !stale.is_empty() {
            return Err(Error::Stale(stale));
        }
        self.refuse_guarded(&plan, lock).await?;
        let Some(one) = plan.daemon_sets.first().filter(|_| plan.has_changes()) else {
            return Ok(None);
        };
        let now = snapshot.observed_at;
        let mut live = snapshot.daemon_set(&self.desired.key).cloned();
        if let Some(before) = &live
            && !one.taken_over.is_empty()
        {
            let writer = lock.writer();
            live = Some(apply::take_over(&writer, before, &one.taken_over, now).await?);
        }
        let (declared, provenance) = (self.declared()?, self.provenance(&plan.source, by));
        let first = self.first_write(one, &declared, &provenance, now);
        let target = Target {
            uid: live.as_ref().map(|live| live.uid.clone()),
            template: self.preflight(cluster, live.as_ref(), &first, one).await?,
            declared,
            written: first.written,
            changes: one.change != Change::None,
        };
        Ok(Some(Task {
            goal: Goal::Apply(target),
            pace: self.pace(),
            waves: one.waves.clone(),
            provenance,
            deadline: self.args.pace.ends(now),
            allow_mass_eviction: self.args.allow.allow_mass_eviction,
        }))
    }

    /// This DaemonSet's plan, on what is live now.
    fn planned(&self, snapshot: &Snapshot) -> Plan {
        let desired = std::slice::from_ref(self.desired);
        let Plan { source, created_at, .. } = self.agreed;
        planned(snapshot, desired, source.clone(), Vec::new(), self.args, *created_at)
    }

    /// What was agreed to about this DaemonSet.
    fn agreed_part(&self) -> Plan {
        let mut agreed = self.agreed.clone();
        agreed.daemon_sets.retain(|one| one.key() == self.desired.key);
        agreed
    }

    /// Guards that have come up since, and what the lease remembers.
    async fn refuse_guarded(&self, plan: &Plan, lock: &Lock) -> Result<(), Error> {
        let mut refusals = agree::refusals(plan, self.args.allow);
        let failed = lock.note(FAILED_TEMPLATES_ANNOTATION).await.unwrap_or_default();
        let is_failed = |one: &DaemonSetPlan| {
            failed_templates(&failed).any(|digest| digest == one.target_template)
        };
        let known = refusals.iter().any(|guard| guard.code == GuardCode::FailedTemplate);
        if !self.args.allow.retry && !known && plan.daemon_sets.iter().any(is_failed) {
            refusals.push(Guard::failed_template(&self.desired.key));
        }
        if refusals.is_empty() { Ok(()) } else { Err(Error::Refused(refusals)) }
    }

    /// What is written first. Hold and provenance are in it: others may own those fields too.
    fn first_write(
        &self,
        plan: &DaemonSetPlan,
        declared: &Declared,
        provenance: &Provenance,
        now: Timestamp,
    ) -> Write {
        let paced = matches!(plan.strategy, Strategy::RollingUpdate { max_surge: 0, .. });
        let hold = (paced && !plan.waves.is_empty()).then(|| Hold {
            state: HoldState::Holding,
            declared: declared.value().clone(),
            plan_digest: provenance.plan_digest.clone(),
            from: None,
            since: now,
            commit: provenance.commit.clone(),
            by: provenance.by.clone(),
            failed: None,
        });
        Write {
            precondition: Precondition::Absent,
            purpose: Purpose::Apply,
            written: Arc::new(sent(self.desired)),
            template: None,
            strategy: match &hold {
                Some(_) => serde_json::json!({"type": "OnDelete"}),
                None => declared.value().clone(),
            },
            hold,
            provenance: Some(provenance.clone()),
        }
    }

    /// The template that the server will serve, which must be the one that was planned.
    async fn preflight(
        &self,
        cluster: &WritableCluster,
        live: Option<&DaemonSet>,
        first: &Write,
        plan: &DaemonSetPlan,
    ) -> Result<PodTemplate, Error> {
        let desired = owner(self.desired, live);
        let answer = match apply::preflight(cluster, live, &first.object(), &desired).await {
            Err(PreflightError::DaemonSet(WriteError::Conflict { fields, .. })) => {
                let owned = fields.iter().map(|it| (it.path.as_str(), it.manager.as_str()));
                let guard = Guard::take_over(&self.desired.key, owned);
                return Err(Error::Refused(vec![guard]));
            }
            answer => answer?,
        };
        let template = answer.spec.template;
        let as_planned = template_digest(template.raw()) == plan.target_template;
        if as_planned || self.args.allow.allow_mutation {
            return Ok(template);
        }
        Err(Error::Mutated(self.desired.key.clone()))
    }

    fn declared(&self) -> Result<Declared, Error> {
        let value = self.desired.raw["spec"]["updateStrategy"].clone();
        Declared::from_json(value).map_err(Error::Declared)
    }

    fn pace(&self) -> PolicySpec {
        self.desired.policy.as_ref().map(|policy| policy.spec.clone()).unwrap_or_default()
    }

    fn provenance(&self, source: &SourceInfo, by: String) -> Provenance {
        let (commit, subject) = match self.version {
            Some(FilesVersion { id, subject }) => (Some(id), subject.as_ref()),
            None => (source.commit.as_ref(), source.subject.as_ref()),
        };
        let written = self.desired.annotations.get(CHANGE_CAUSE_ANNOTATION).map(str::to_owned);
        let of_commit =
            commit.zip(subject).map(|(id, subject)| format!("{} {subject}", short_commit(id)));
        Provenance {
            commit: commit.cloned(),
            plan_digest: self.agreed.digest.clone(),
            change_cause: written.or(of_commit),
            by: Some(by),
        }
    }

    /// Whether a new plan is empty, if it should be.
    async fn look_again(&self, ending: &Ending, session: &mut Session) -> Result<Exit, Error> {
        let exit = told::exit(&ending.outcome);
        if ending.outcome != Outcome::Done {
            return Ok(exit);
        }
        let snapshot = session.snapshot(&self.desired.key).await?;
        let plan = self.planned(&snapshot);
        let changed = plan.daemon_sets.iter().find(|one| one.change != Change::None);
        match changed {
            None => Ok(exit),
            Some(one) => {
                let paths = one.changes.iter().map(|change| change.path.clone()).collect();
                Err(Error::NotSettled { daemon_set: one.key(), paths })
            }
        }
    }
}

/// The DaemonSet as the preflight's pod has to know it.
fn owner<'a>(desired: &'a DesiredDaemonSet, live: Option<&'a DaemonSet>) -> Owner<'a> {
    Owner {
        key: &desired.key,
        uid: live.map(|live| &live.uid),
        annotations: &desired.annotations,
        spec: &desired.spec,
        generation: 1,
        template_generation: None,
        status: live.map(|live| live.status).unwrap_or_default(),
        terminating: false,
    }
}
