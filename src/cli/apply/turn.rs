//! One DaemonSet's turn, in the order of the protocol: lock, plan again on what is live now, compare
//! with what was agreed to, ask the server, take ownership over, roll out, look whether it is done.

use std::sync::Arc;

use jiff::Timestamp;

use super::agree::{Asked, planned, still_agreed};
use super::flags::CommonFlags;
use super::session::{Session, unlock};
use super::turns::InTurn;
use super::{identity, told, way_back};
use crate::apply::{self, PreflightError, Trial};
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cluster::{Lock, WritableCluster, WriteError};
use crate::controller::Owner;
use crate::model::{
    CHANGE_CAUSE_ANNOTATION, DaemonSet, DesiredDaemonSet, FAILED_TEMPLATES_ANNOTATION, ManagedBy,
    PodTemplate, PolicySpec, Snapshot, short_commit,
};
use crate::plan::{
    Binding, Change, DaemonSetPlan, Guard, Plan, SourceInfo, after_apply, sent, template_digest,
};
use crate::rollout::{
    self, Declared, Ending, Goal, Outcome, Provenance, Purpose, Target, Task, World, Write,
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
        let lock = session.lock(&self.desired.key, &self.args.pace, self.args.output).await?;
        let done = self.under(&lock, session).await;
        unlock(lock).await;
        done
    }

    fn order(&self) -> i32 {
        self.desired.policy.as_ref().map_or(0, |policy| policy.spec.order)
    }
}

impl Turn<'_> {
    async fn under(&self, lock: &Arc<Lock>, session: &mut Session) -> Result<Exit, Error> {
        let mut snapshot = self.snapshot(session).await?;
        // The lock knows even where leases may not be listed, and knows it as of now.
        let failed = lock.note(FAILED_TEMPLATES_ANNOTATION).await.unwrap_or_default();
        snapshot.remember_failed(&self.desired.key, &failed);
        let plan = self.planned(&snapshot);
        still_agreed(&self.agreed_part(), &plan, self.binding, self.args.allow)?;
        let Some(one) = plan.daemon_sets.first().filter(|_| plan.has_changes()) else {
            return self.tend(lock, session).await;
        };
        match self.go_on(one, &snapshot, lock, session).await {
            Err(error) if one.hold.is_some() && error.is_forbidden() => {
                let (daemon_set, source) = (self.desired.key.clone(), Box::new(error));
                Err(Error::StaysHeld { daemon_set, source })
            }
            done => done,
        }
    }

    /// Carries the plan out.
    async fn go_on(
        &self,
        plan: &DaemonSetPlan,
        snapshot: &Snapshot,
        lock: &Arc<Lock>,
        session: &mut Session,
    ) -> Result<Exit, Error> {
        let task = self.task(plan, snapshot, session)?;
        let task = session
            .unless_interrupted(async |_, cluster| {
                self.prepare(task, plan, snapshot, cluster, lock).await
            })
            .await?;
        let owner = owner(self.desired, None);
        let ending = session.carry_out(&owner, lock, task, self.args.output).await?;
        self.look_again(&ending, session).await
    }

    /// What a controller does beside an empty plan: where there is one, it has done so.
    async fn tend(&self, lock: &Arc<Lock>, session: &mut Session) -> Result<Exit, Error> {
        match self.desired.managed_by {
            ManagedBy::DaemonSetController => {}
            ManagedBy::DsApply => session.tend(&owner(self.desired, None), lock).await?,
        }
        Ok(Exit::Done)
    }

    async fn snapshot(&self, session: &mut Session) -> Result<Snapshot, Error> {
        session.snapshot_for(&self.desired.key, std::slice::from_ref(self.desired)).await
    }

    /// What is to be done, with the template as it was planned.
    fn task(
        &self,
        plan: &DaemonSetPlan,
        snapshot: &Snapshot,
        session: &Session,
    ) -> Result<Task, Error> {
        let live = snapshot.daemon_set(&self.desired.key);
        let target = Target {
            uid: live.map(|live| live.uid.clone()),
            template: self.merged(snapshot).spec.template,
            declared: self.declared()?,
            written: Arc::new(sent(self.desired)),
            changes: plan.change != Change::None,
        };
        let goal = match way_back::unfinished(snapshot, self.desired, self.args) {
            Some(_) => Goal::GoBack,
            None => Goal::Apply(target),
        };
        Ok(Task {
            goal,
            pace: self.pace(),
            waves: plan.waves.clone(),
            provenance: self.provenance(&self.agreed.source, identity::by(&session.holder)),
            deadline: session.ends(&self.args.pace, snapshot.observed_at),
            allow_mass_eviction: self.args.allow.allow_mass_eviction,
            failed_before: snapshot.has_failed(&self.desired.key, &plan.target_template),
        })
    }

    /// Everything before the first step: the server is asked, then ownership is taken over. The
    /// template of the task becomes the one that the server will serve.
    async fn prepare(
        &self,
        mut task: Task,
        plan: &DaemonSetPlan,
        snapshot: &Snapshot,
        cluster: &WritableCluster,
        lock: &Lock,
    ) -> Result<Task, Error> {
        let (key, now) = (&self.desired.key, snapshot.observed_at);
        let live = snapshot.daemon_set(key);
        let first = rollout::first_write(&task, &World::of(snapshot, key, true), now);
        let asking = Preflight { turn: self, cluster, plan, now };
        let template = match (first, live) {
            // There is nothing to write.
            (None, None)
            // A pod failed while nobody watched: what is written is the last good template, which
            // the server has accepted before, and not the planned one.
            | (Some(Write { purpose: Purpose::Park, .. }), _) => return Ok(task),
            (Some(first), Some(before)) if !plan.taken_over.is_empty() => {
                let merged =
                    Write { written: self.merged(snapshot).raw, live: None, ..first.clone() };
                asking.template(live, Trial::Outcome(&merged.object())).await?;
                let taken =
                    apply::take_over(cluster, &lock.writer(), before, &plan.taken_over, now)
                        .await?;
                // What has to be sent depends on what is ours by now.
                let first = Write { live: Some(Arc::clone(&taken.raw)), ..first };
                asking.template(Some(&taken), Trial::Apply(&first.object())).await?
            }
            (Some(first), live) => asking.template(live, Trial::Apply(&first.object())).await?,
            // Everything is in place: what is live was accepted, and its pods have to be.
            (None, Some(live)) => {
                apply::try_pod(cluster, &Owner::from(live)).await?;
                live.spec.template.clone()
            }
        };
        if let Goal::Apply(target) = &mut task.goal {
            target.template = template;
        }
        Ok(task)
    }

    /// The DaemonSet as it was planned to become.
    fn merged(&self, snapshot: &Snapshot) -> DesiredDaemonSet {
        after_apply(snapshot, self.desired, &self.args.ownership.names())
    }

    /// This DaemonSet's plan, on what is live now.
    fn planned(&self, snapshot: &Snapshot) -> Plan {
        let desired = std::slice::from_ref(self.desired);
        let Plan { source, created_at, .. } = self.agreed;
        planned(snapshot, Asked::only(desired, source.clone()), self.args, *created_at)
    }

    /// What was agreed to about this DaemonSet.
    fn agreed_part(&self) -> Plan {
        let mut agreed = self.agreed.clone();
        agreed.daemon_sets.retain(|one| one.key() == self.desired.key);
        agreed
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
        let snapshot = self.snapshot(session).await?;
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

/// The server is asked before anything is written.
struct Preflight<'a> {
    turn: &'a Turn<'a>,
    cluster: &'a WritableCluster,
    plan: &'a DaemonSetPlan,
    now: Timestamp,
}

impl Preflight<'_> {
    /// The template that the server will serve, which must be the one that was planned.
    async fn template(
        &self,
        live: Option<&DaemonSet>,
        trial: Trial<'_>,
    ) -> Result<PodTemplate, Error> {
        let Self { turn: Turn { desired, args, .. }, cluster, plan, now } = *self;
        let answer = match apply::preflight(cluster, live, trial, &owner(desired, live), now).await
        {
            Err(PreflightError::DaemonSet(WriteError::Conflict { fields, .. })) => {
                let owned = fields.iter().map(|it| (it.path.as_str(), it.manager.as_str()));
                return Err(Error::Refused(vec![Guard::take_over(&desired.key, owned)]));
            }
            answer => answer?,
        };
        let template = answer.spec.template;
        let as_planned = template_digest(template.raw()) == plan.target_template;
        if as_planned || args.allow.allow_mutation {
            return Ok(template);
        }
        Err(Error::Mutated(desired.key.clone()))
    }
}

/// The DaemonSet as the preflight's pod has to know it.
fn owner<'a>(desired: &'a DesiredDaemonSet, live: Option<&'a DaemonSet>) -> Owner<'a> {
    Owner {
        key: &desired.key,
        managed_by: desired.managed_by,
        uid: live.map(|live| &live.uid),
        annotations: &desired.annotations,
        spec: &desired.spec,
        generation: 1,
        template_generation: None,
        status: live.map(|live| live.status).unwrap_or_default(),
        terminating: false,
    }
}
