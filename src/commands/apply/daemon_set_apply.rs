//! The apply of one DaemonSet: lock, plan again on the live object, compare with the approved plan,
//! dry run, force conflicts, roll out, check that a new plan is empty.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::flags::CommonFlags;
use super::in_sequence::InSequence;
use super::planning::{ApprovalRequest, check_not_stale, planned, resumed};
use super::predecessors::Predecessors;
use super::progress::ProgressReporter;
use super::rehearsed_approvals::Rehearsed;
use super::session::{Session, unlock};
use super::unmet_predecessor::UnmetPredecessor;
use super::{identity, progress};
use crate::error::Error;
use crate::exit::Exit;
use cluster::{Lock, LockError, WritableCluster, WriteError};
use daemonset::controller::Owner;
use daemonset::model::{
    CHANGE_CAUSE_ANNOTATION, DaemonSet, DaemonSetKey, DesiredDaemonSet,
    FAILED_TEMPLATES_ANNOTATION, ManagedBy, PodTemplate, STEPS_ANNOTATION, Snapshot, StepsNote,
    short_commit,
};
use executor::{PreflightError, Trial};
use planner::digest::template_digest;
use planner::plan::{
    Binding, Change, DaemonSetPlan, Guard, NAMESPACE_MISSING, Plan, SourceInfo, after_apply, sent,
};
use planner::rollout::{
    self, Declared, Ending, Goal, ObservedCluster, Outcome, Provenance, Purpose, Target, Task,
    Write,
};
use source::FilesVersion;

/// One DaemonSet to apply.
pub(super) struct DaemonSetApply<'a> {
    /// The flags of the command.
    pub args: &'a CommonFlags,
    /// The approved plan.
    pub approved: &'a Plan,
    /// The version of the manifests if they are plain files.
    pub version: Option<&'a FilesVersion>,
    /// The parts of the approved plan that must not change.
    pub binding: Binding,
    /// The DaemonSets that come before others.
    pub predecessors: &'a Predecessors,
    /// The DaemonSet.
    pub desired: &'a DesiredDaemonSet,
}

/// What is to be done under the lock.
pub(super) enum Prepared {
    /// Nothing more.
    Ended(Exit),
    /// A rollout.
    Rollout(Box<Task>),
}

impl InSequence for DaemonSetApply<'_> {
    fn key(&self) -> &DaemonSetKey {
        &self.desired.key
    }

    /// Applies the DaemonSet under its lock, if those that come before it are done.
    async fn run(&self, session: &mut Session) -> Result<Exit, Error> {
        if let Some(unmet) = self.unmet_predecessor(session).await? {
            self.note_waiting(session).await?;
            self.does_not_begin(&unmet, session);
            return Ok(Exit::Waiting);
        }
        let lock = session.lock(&self.desired.key, &self.args.pace, self.args.output).await;
        let lock = lock.map_err(|error| self.without_namespace(error))?;
        let done = self.under(&lock, session).await;
        unlock(lock).await;
        done
    }

    fn report_left_out(&self, session: &Session) {
        let key = &self.desired.key;
        let mut approved = self.approved.daemon_sets.iter();
        let changes = approved.any(|one| one.key() == *key && one.has_changes());
        let unmet = self.predecessors.not_done_by_run(key, session);
        if let Some(unmet) = unmet.filter(|_| changes) {
            self.does_not_begin(&unmet, session);
        }
    }
}

impl DaemonSetApply<'_> {
    /// The predecessor for which it does not begin yet; `None` if it has nothing to begin, or only
    /// restores the last good template.
    pub(super) async fn unmet_predecessor(
        &self,
        session: &mut Session,
    ) -> Result<Option<UnmetPredecessor>, Error> {
        let (key, source) = (&self.desired.key, &self.approved.source);
        let Some(unmet) = self.predecessors.not_done(key, self.args, source, session).await? else {
            return Ok(None);
        };
        let snapshot = self.snapshot(session).await?;
        let plan = self.planned(&snapshot);
        let Some(one) = plan.daemon_sets.first().filter(|one| one.has_changes()) else {
            return Ok(None);
        };
        let task = self.task(one, &snapshot, session)?;
        let now = snapshot.observed_at;
        let first = rollout::first_write(&task, &ObservedCluster::of(&snapshot, key, true), now);
        let aborts = first.is_some_and(|write| write.purpose == Purpose::Abort);
        let rolls_back = aborts || matches!(task.goal, Goal::RollBack);
        Ok((!rolls_back).then_some(unmet))
    }

    /// Notes on the lock that the rollout waits, for runs with `--resume`. While another run has the
    /// lock, that one knows better.
    pub(super) async fn note_waiting(&self, session: &mut Session) -> Result<(), Error> {
        let lock = match session.lock(&self.desired.key, &self.args.pace, self.args.output).await {
            Ok(lock) => lock,
            Err(error) if error.exit() == Exit::Locked => return Ok(()),
            Err(error) => return Err(self.without_namespace(error)),
        };
        let snapshot = self.snapshot(session).await?;
        let plan = self.planned(&snapshot);
        let before = lock.note(STEPS_ANNOTATION).await.as_deref().and_then(StepsNote::read);
        let no_approvals = BTreeMap::new();
        let approvals = snapshot.approvals.get(&self.desired.key).unwrap_or(&no_approvals);
        let now = snapshot.observed_at;
        if let Some(one) = plan.daemon_sets.first() {
            let template = &one.target_template;
            let live = snapshot.daemon_set(&self.desired.key);
            let waiting = rollout::waiting_note(before.as_ref(), live, template, approvals, now);
            if before.as_ref() != Some(&waiting) {
                let written = lock.set_note(STEPS_ANNOTATION, Some(&waiting.text())).await;
                written.map_err(|source| LockError::Write {
                    daemon_set: self.desired.key.clone(),
                    source: Box::new(source),
                })?;
            }
        }
        unlock(lock).await;
        Ok(())
    }

    /// Reports that it does not begin, as the end of its part of the run.
    pub(super) fn does_not_begin(&self, unmet: &UnmetPredecessor, session: &Session) {
        let (key, output) = (&self.desired.key, self.args.output);
        let reporter = ProgressReporter::plain(key, output, &session.shell);
        reporter.does_not_begin(unmet, session.server_time());
    }

    /// Replaces the error of the lock if the namespace does not exist, as the plan has warned.
    pub(super) fn without_namespace(&self, error: Error) -> Error {
        let name = self.desired.key.to_string();
        let missing = self.approved.warnings.iter().find(|warning| {
            warning.code == NAMESPACE_MISSING && warning.daemon_set.as_ref() == Some(&name)
        });
        match (missing, error) {
            (Some(warning), Error::Lock(LockError::Write { .. })) => Error::NamespaceMissing {
                daemon_set: self.desired.key.clone(),
                message: warning.message.clone(),
            },
            (_, error) => error,
        }
    }

    async fn under(&self, lock: &Arc<Lock>, session: &mut Session) -> Result<Exit, Error> {
        let task = match self.prepared(lock, session).await? {
            Prepared::Ended(exit) => return Ok(exit),
            Prepared::Rollout(task) => *task,
        };
        let ending = session.run_rollout(&self.owner(), lock, task, self.args.output).await?;
        self.look_again(&ending, session).await
    }

    /// Plans it again under its lock, and prepares its rollout if there is anything to do.
    pub(super) async fn prepared(
        &self,
        lock: &Arc<Lock>,
        session: &mut Session,
    ) -> Result<Prepared, Error> {
        let mut snapshot = self.snapshot(session).await?;
        // The lock has the current value, even if the user may not list Leases.
        let failed = lock.note(FAILED_TEMPLATES_ANNOTATION).await.unwrap_or_default();
        let steps = lock.note(STEPS_ANNOTATION).await.as_deref().and_then(StepsNote::read);
        snapshot.set_notes(&self.desired.key, &failed, steps);
        let merged = self.merged(&snapshot);
        let template = template_digest(merged.spec.template.raw());
        let policy = &merged.policy_spec();
        let of_rehearsal = Rehearsed { key: &self.desired.key, policy, template: &template };
        of_rehearsal.write(&mut snapshot, session).await?;
        let plan = self.planned(&snapshot);
        check_not_stale(&self.approved_part(), &plan, self.binding, self.args.allow)?;
        let Some(one) = plan.daemon_sets.first().filter(|_| plan.has_changes()) else {
            let ended = self.reconcile(lock, session).await?;
            let task = self.removal_of_pullers(&plan, &snapshot, session)?;
            return Ok(task.map_or(Prepared::Ended(ended), |it| Prepared::Rollout(Box::new(it))));
        };
        match self.resume((&plan, one), &snapshot, lock, session).await {
            Err(error) if one.pause.is_some() && error.is_forbidden() => {
                let (daemon_set, source) = (self.desired.key.clone(), Box::new(error));
                Err(Error::StaysPaused { daemon_set, source })
            }
            done => done.map(|task| Prepared::Rollout(Box::new(task))),
        }
    }

    /// The owner of its pods.
    pub(super) fn owner(&self) -> Owner<'_> {
        owner(self.desired, None)
    }

    /// The task that applies the plan.
    async fn resume(
        &self,
        (whole, plan): (&Plan, &DaemonSetPlan),
        snapshot: &Snapshot,
        lock: &Arc<Lock>,
        session: &mut Session,
    ) -> Result<Task, Error> {
        let node_seconds = whole.node_seconds(&plan.key());
        let task = Task { node_seconds, ..self.task(plan, snapshot, session)? };
        session
            .unless_interrupted(async |_, cluster| {
                self.prepare(task, plan, snapshot, cluster, lock).await
            })
            .await
    }

    /// The task that removes what a run has left that was killed while it pulled images, if there is
    /// nothing else to do.
    fn removal_of_pullers(
        &self,
        plan: &Plan,
        snapshot: &Snapshot,
        session: &Session,
    ) -> Result<Option<Task>, Error> {
        let one = plan.daemon_sets.first().filter(|_| snapshot.has_pullers(&self.desired.key));
        let Some(one) = one else { return Ok(None) };
        let task = self.task(one, snapshot, session)?;
        Ok(Some(Task { goal: Goal::RemovePullers, ..task }))
    }

    /// Reconciles the pods of an empty plan, if `ds-apply` is the controller.
    async fn reconcile(&self, lock: &Arc<Lock>, session: &mut Session) -> Result<Exit, Error> {
        match self.desired.managed_by {
            ManagedBy::DaemonSetController => {}
            ManagedBy::DsApply => session.reconcile(&owner(self.desired, None), lock).await?,
        }
        Ok(Exit::Done)
    }

    async fn snapshot(&self, session: &mut Session) -> Result<Snapshot, Error> {
        session.snapshot_for(&self.desired.key, std::slice::from_ref(self.desired)).await
    }

    /// The task of the rollout, with the planned template.
    fn task(
        &self,
        plan: &DaemonSetPlan,
        snapshot: &Snapshot,
        session: &Session,
    ) -> Result<Task, Error> {
        let live = snapshot.daemon_set(&self.desired.key);
        let merged = self.merged(snapshot);
        let target = Target {
            uid: live.map(|live| live.uid.clone()),
            template: merged.spec.template.clone(),
            declared: self.declared()?,
            written: Arc::new(sent(self.desired)),
            changes: plan.change != Change::None,
        };
        let goal = match resumed(snapshot, self.desired, self.args) {
            Some(_) => Goal::RollBack,
            None => Goal::Apply(target),
        };
        Ok(Task {
            goal,
            policy: merged.policy_spec().into_owned(),
            waves: plan.waves.clone(),
            provenance: self.provenance(&self.approved.source, identity::by(&session.holder)),
            deadline: session.ends(&self.args.pace, snapshot.observed_at),
            allow_mass_eviction: self.args.allow.allow_mass_eviction,
            failed_templates: snapshot.failed_templates(&self.desired.key),
            note: snapshot.steps_note(&self.desired.key).cloned(),
            approvals: snapshot.approvals.get(&self.desired.key).cloned().unwrap_or_default(),
            node_seconds: None,
            has_pullers: snapshot.has_pullers(&self.desired.key),
            cluster_checks: session.checks.of_cluster(),
            wait_until: session.waits_until(&self.args.pace, snapshot.observed_at),
        })
    }

    /// Prepares the first step: dry run, then forcing conflicts. The template of the task becomes
    /// the one that the server will store.
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
        let observed = ObservedCluster::of(snapshot, key, true);
        let first = rollout::first_write(&task, &observed, now);
        let writes = first.is_some() || task.wait_until.is_some();
        let waits = first.as_ref().is_none_or(|write| write.purpose == Purpose::Wait);
        // What has to wait is tried, too: the write of the target, not that of the last good template.
        let first = if waits {
            let begun = Task { policy: task.policy.budgets(), ..task.clone() };
            rollout::first_write(&begun, &observed, now)
        } else {
            first
        };
        let asking = Preflight { apply: self, cluster, plan, now };
        let template = match (first, live) {
            // Nothing is written.
            (None, None)
            // A pod failed while no run was active: the last good template is written, which the
            // server has accepted before, and not the planned one.
            | (Some(Write { purpose: Purpose::Abort, .. }), _) => return Ok(task),
            (Some(first), Some(before)) if !plan.forced_conflicts.is_empty() => {
                let merged =
                    Write { written: self.merged(snapshot).raw, live: None, ..first.clone() };
                let template = asking.template(live, Trial::Outcome(&merged.object())).await?;
                if writes {
                    let taken =
                        executor::force_conflicts(cluster, &lock.writer(), before, &plan.forced_conflicts, now)
                            .await?;
                    // The request depends on the fields that are ours now.
                    let first = Write { live: Some(Arc::clone(&taken.raw)), ..first };
                    asking.template(Some(&taken), Trial::Apply(&first.object())).await?
                } else {
                    // This run writes nothing that could conflict.
                    template
                }
            }
            (Some(first), live) => asking.template(live, Trial::Apply(&first.object())).await?,
            // The live object was accepted already; its pods have to be accepted, too.
            (None, Some(live)) => {
                executor::try_pod(cluster, &Owner::from(live)).await?;
                live.spec.template.clone()
            }
        };
        if let Goal::Apply(target) = &mut task.goal {
            target.template = template;
        }
        Ok(task)
    }

    /// The DaemonSet as the plan expects it after the apply.
    fn merged(&self, snapshot: &Snapshot) -> DesiredDaemonSet {
        after_apply(snapshot, self.desired, &self.args.ownership.names())
    }

    /// The plan of this DaemonSet, on the current cluster.
    fn planned(&self, snapshot: &Snapshot) -> Plan {
        let desired = std::slice::from_ref(self.desired);
        let Plan { source, created_at, .. } = self.approved;
        planned(snapshot, ApprovalRequest::only(desired, source.clone()), self.args, *created_at)
    }

    /// The part of the approved plan about this DaemonSet.
    fn approved_part(&self) -> Plan {
        let mut approved = self.approved.clone();
        approved.daemon_sets.retain(|one| one.key() == self.desired.key);
        approved
    }

    fn declared(&self) -> Result<Declared, Error> {
        let value = self.desired.raw["spec"]["updateStrategy"].clone();
        Declared::from_json(value).map_err(Error::Declared)
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
            plan_digest: self.approved.digest.clone(),
            change_cause: written.or(of_commit),
            by: Some(by),
        }
    }

    /// Checks that a new plan is empty, if the rollout is done.
    pub(super) async fn look_again(
        &self,
        ending: &Ending,
        session: &mut Session,
    ) -> Result<Exit, Error> {
        let exit = progress::exit(&ending.outcome);
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
                Err(Error::StillDiffers { daemon_set: one.key(), paths })
            }
        }
    }
}

/// The dry run before anything is written.
struct Preflight<'a> {
    apply: &'a DaemonSetApply<'a>,
    cluster: &'a WritableCluster,
    plan: &'a DaemonSetPlan,
    now: Timestamp,
}

impl Preflight<'_> {
    /// The template that the server will store; it must be the planned one.
    async fn template(
        &self,
        live: Option<&DaemonSet>,
        trial: Trial<'_>,
    ) -> Result<PodTemplate, Error> {
        let Self { apply: DaemonSetApply { desired, args, .. }, cluster, plan, now } = *self;
        let answer =
            match executor::preflight(cluster, live, trial, &owner(desired, live), now).await {
                Err(PreflightError::DaemonSet(WriteError::Conflict { fields, .. })) => {
                    let owned = fields.iter().map(|it| (it.path.as_str(), it.manager.as_str()));
                    return Err(Error::Blocked(vec![Guard::force_conflicts(&desired.key, owned)]));
                }
                answer => answer?,
            };
        let template = answer.spec.template;
        if template_digest(template.raw()) == plan.target_template {
            return Ok(template);
        }
        // An approval is of the template in the source: only that can be shown to who approves it.
        let policy = desired.policy_spec();
        if let Some(step) = policy.steps.iter().find(|step| step.approve) {
            let (daemon_set, step) = (desired.key.clone(), step.name.clone());
            return Err(Error::MutatedUnderApprovals { daemon_set, step });
        }
        if args.allow.allow_mutation {
            return Ok(template);
        }
        Err(Error::Mutated(desired.key.clone()))
    }
}

/// The owner of the pod in the dry run.
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
