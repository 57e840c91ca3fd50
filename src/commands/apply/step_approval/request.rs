//! A request to approve a step: what the source and the cluster say about it.

use jiff::Timestamp;

use super::args::Args;
use crate::commands::apply::command::default_namespace;
use crate::error::{ApprovalError, Error, Place};
use crate::flags::{GlobalFlags, NarrowFlags, SourceFlags};
use crate::input::{self, Desired, Reading, Selection};
use crate::shell::Shell;
use crate::warnings;
use cluster::{Approvals, Scope, WritableCluster};
use daemonset::model::{
    Approval, DaemonSetKey, DesiredDaemonSet, Snapshot, StepsNote, approvals_name,
};
use planner::approval::{ApprovalCheck, Evidence, StepToApprove, noted_steps};
use planner::plan::{self, DaemonSetPlan, Guard, GuardCode, Plan, RevisionKind};
use planner::rollback;

/// A DaemonSet of the source, its plan, and its approvals so far.
pub(super) struct Request {
    desired: DesiredDaemonSet,
    /// The plan, as apply would make it now.
    pub plan: Plan,
    snapshot: Snapshot,
    step: String,
    /// Whether the ConfigMap of its approvals is the record of another DaemonSet.
    is_record: bool,
    /// Whether a rollback is under way, which apply would resume.
    rolling_back: bool,
    now: Timestamp,
}

/// The step to approve, and the template that it is approved for.
pub(super) struct Target<'a> {
    /// The step.
    pub step: StepToApprove<'a>,
    /// The rule of its approvals.
    pub check: ApprovalCheck<'a>,
    /// The plan of the DaemonSet.
    pub plan: &'a DaemonSetPlan,
    /// What is noted about the steps of this rollout.
    pub noted: Option<&'a StepsNote>,
    /// Which nodes run the template.
    pub evidence: Evidence,
}

impl Request {
    /// Reads the source and the cluster.
    ///
    /// # Errors
    /// They cannot be read, or the DaemonSet is not in the source.
    pub(super) async fn read(
        args: &Args,
        key: &DaemonSetKey,
        global: &GlobalFlags,
        shell: &Shell,
        cluster: &WritableCluster,
    ) -> Result<Self, Error> {
        let Args { name, step, yes: _, dry_run: _, source, require_ref, ownership, output: _ } =
            args;
        let flags = SourceFlags { require_ref: require_ref.clone(), ..source.clone() };
        let narrow = NarrowFlags { names: vec![name.clone()], selector: None };
        let default = default_namespace(global, cluster);
        let namespace = global.namespace.as_ref();
        let selection = Selection::of(&narrow, namespace, &default, Place::Manifests)?;
        let reading =
            Reading { flags: &flags, base: None, every_file: false, default_namespace: default };
        let Desired { mut daemon_sets, source, warnings, assignment, .. } =
            input::desired(reading, &selection, shell)?;
        warnings::print(&warnings, shell.printer);
        let live = cluster.live();
        let scope = Scope::Namespaces([key.namespace.clone()].into());
        let mut snapshot = live.snapshot_for(&daemon_sets, &scope, shell.now).await?;
        assignment.apply(&mut daemon_sets, &[], Some(&snapshot))?;
        step_of(&daemon_sets[0], step)?;
        let Approvals { by_step, unreadable, is_record } = live.approvals_of(key).await?;
        snapshot.unreadable.extend(unreadable);
        snapshot.approvals.insert(key.clone(), by_step);
        let force_conflicts = &ownership.names();
        let input = plan::Input::of(&snapshot, &daemon_sets);
        let plan = plan::plan(plan::Input { force_conflicts, source, ..input });
        let desired = daemon_sets.swap_remove(0);
        let unreadable = plan.warnings.iter().filter(|it| it.code == plan::UNREADABLE).cloned();
        warnings::print(&unreadable.collect::<Vec<_>>(), shell.printer);
        // On the way back, no step is approved.
        let rolling_back = plan.warnings.iter().any(|it| it.code == plan::WAY_BACK)
            || rollback::unfinished(&snapshot, &desired, force_conflicts).is_some();
        // Every server sends its time. Without one, a wrong time can only make the approval void.
        let now = live.server_time().unwrap_or(snapshot.observed_at);
        let step = step.clone();
        Ok(Self { desired, plan, snapshot, step, is_record, rolling_back, now })
    }

    /// The approval of the step so far, which may be void.
    pub(super) fn approval(&self) -> Option<&Approval> {
        self.snapshot.approvals.get(&self.desired.key)?.get(&self.step)
    }

    /// What is to be approved.
    ///
    /// # Errors
    /// The DaemonSet does not exist, the step needs no approval, or none is possible.
    pub(super) fn target(&self) -> Result<Target<'_>, Error> {
        let Self { desired, plan, snapshot, step, is_record, rolling_back, now } = self;
        let key = &desired.key;
        let step = step_of(desired, step)?;
        let found = plan.daemon_sets.first().and_then(|plan| Some((plan, plan.uid.as_ref()?)));
        let Some((daemon_set, uid)) = found else {
            let known = snapshot.daemon_sets.iter().map(|one| one.key.clone()).collect();
            return Err(Error::NotFound {
                missing: vec![key.clone()],
                place: Place::Cluster,
                known,
            });
        };
        let is_about_it = |guard: &&Guard| guard.code == GuardCode::ManagedBy;
        let guards: Vec<Guard> = plan.guards.iter().filter(is_about_it).cloned().collect();
        if !guards.is_empty() {
            return Err(Error::Blocked(guards));
        }
        if *is_record {
            let (daemon_set, name) = (key.clone(), approvals_name(&key.name));
            return Err(ApprovalError::NameTaken { daemon_set, name }.into());
        }
        if *rolling_back {
            return Err(ApprovalError::RollingBack(key.clone()).into());
        }
        // With `OnDelete`, outdated nodes wait for `roll`.
        if !daemon_set.has_changes() && daemon_set.totals.wait == 0 {
            return Err(ApprovalError::RolledOut(key.clone()).into());
        }
        if !step.earlier.is_empty() && !snapshot.coverage.leases {
            return Err(ApprovalError::ProgressUnknown(key.clone()).into());
        }
        let (note, template) = (snapshot.steps_note(key), daemon_set.target_template.as_str());
        let noted = noted_steps(snapshot, daemon_set);
        let was_rolled_out = daemon_set.revision.kind != RevisionKind::New;
        let is_note_lost = note.is_none() && was_rolled_out && snapshot.coverage.leases;
        Ok(Target {
            step,
            check: ApprovalCheck { uid, template, step: step.step, note, is_note_lost, now: *now },
            plan: daemon_set,
            noted,
            evidence: Evidence::of(snapshot, daemon_set, step.earlier, noted),
        })
    }
}

/// The step of this name, if it needs an approval.
fn step_of<'a>(
    desired: &'a DesiredDaemonSet,
    step: &str,
) -> Result<StepToApprove<'a>, ApprovalError> {
    StepToApprove::of(desired, step).map_err(|why| ApprovalError::NotToApprove {
        daemon_set: desired.key.clone(),
        step: step.to_owned(),
        why,
    })
}

impl Target<'_> {
    /// Checks that the step before it is done.
    ///
    /// # Errors
    /// It is not.
    pub(super) fn check_turn(&self, key: &DaemonSetKey) -> Result<(), ApprovalError> {
        match self.step.waits_for(self.check.template, self.noted) {
            None if self.check.is_note_lost => Err(ApprovalError::NoteLost(key.clone())),
            None => Ok(()),
            Some((before, why)) => Err(ApprovalError::NotDone {
                daemon_set: key.clone(),
                step: self.step.step.name.clone(),
                before: before.name.clone(),
                why,
            }),
        }
    }
}
