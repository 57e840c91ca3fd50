//! The plan of one DaemonSet, step by step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::applied::Applied;
use super::daemon_set_view::DaemonSetView;
use super::digest;
use super::document::{
    Action, ActionTotals, Approved, BaseChange, Change, CheckPlan, Counters, DaemonSetPlan,
    FieldChange, Guard, NewPods, NodePlan, RevisionKind, Strategy, Warning,
};
use super::guards::{Judged, guards};
use super::input::Detail;
use super::nodes::{self, Described, PlannedNodes};
use super::pause::{LeftoverPause, PausedRollout, as_declared, noted_from};
use super::reason::Reason;
use super::secrets::ShownValues;
use super::shared::{self, Sharing};
use super::waves::{self, Schedule};
use super::{forecast, git_ops, object, pre_pull, warnings};
use crate::digest::{is_of_template, template_digest};
use crate::intermediate::Intermediate;
use crate::steps::{ApprovalRules, approved_steps};
use daemonset::controller::Owner;
use daemonset::controller::claims::Claims;
use daemonset::controller::history::hash_of;
use daemonset::controller::limits::Limits;
use daemonset::controller::manage::View;
use daemonset::controller::node_pods::Fleet;
use daemonset::controller::revision_data::{Matching, matches};
use daemonset::controller::start_times::StartTimes;
use daemonset::controller::status;
use daemonset::model::{
    Calendar, DaemonSet, DesiredDaemonSet, NamespaceName, NodeName, Place, PolicySpec, Revision,
    Snapshot,
};

/// A DaemonSet's plan with its guards and warnings.
pub(super) struct Planned {
    /// Plan of the DaemonSet.
    pub plan: DaemonSetPlan,
    /// Guards that block `ds-apply`.
    pub guards: Vec<Guard>,
    /// Warnings about the DaemonSet.
    pub warnings: Vec<Warning>,
    /// Input of the digest.
    pub decided: Value,
}

/// Options of a plan that apply to all DaemonSets.
#[derive(Clone, Copy)]
pub(super) struct PlanRequest<'a> {
    /// Field managers whose fields are overwritten or removed (`--force-conflicts`).
    pub force_conflicts: &'a BTreeSet<String>,
    /// Namespaces in the same source, and where.
    pub created: &'a BTreeMap<NamespaceName, Place>,
    /// Level of detail.
    pub detail: Detail<'a>,
    /// Start times of pods, if a policy has windows.
    pub starts: Option<&'a StartTimes>,
    /// The DaemonSets of the source.
    pub desired: &'a [&'a DesiredDaemonSet],
}

/// Plans one DaemonSet.
pub(super) fn plan<'a>(
    snapshot: &'a Snapshot,
    fleet: &'a Fleet<'a>,
    applied: &'a Applied,
    since: Option<BaseChange>,
    PlanRequest { force_conflicts, created, detail, starts, desired: all }: PlanRequest<'_>,
) -> Planned {
    let desired = &applied.desired;
    let live = snapshot.daemon_set(&desired.key);
    let (pause, unreadable) = pause_of(live);
    let changed = ObjectChange::of(live, pause, desired, detail.show_values);
    let owner = object::owner_after(live, desired, changed.change);
    let daemon_set_view = DaemonSetView::of(owner, live, snapshot, fleet);
    let now = live.map(|live| daemon_set_view.as_it_is(live, snapshot));
    let object = object_plan(applied, live, now.as_ref(), changed, &daemon_set_view);
    let Sharing { budget, siblings } = Sharing::of(desired, all, snapshot);
    let policy = &*desired.policy_spec();
    let measured = starts.and_then(|starts| forecast::node_seconds(policy, &desired.spec, starts));
    let request = RolloutRequest {
        strategy: object.strategy,
        policy,
        shared_budget: budget.as_ref().map(|budget| budget.nodes),
        siblings: &siblings,
        untouched: untouched(object.change, live),
        described: detail.into(),
        node_seconds: measured.unwrap_or(policy.progress_deadline.0),
        live,
        snapshot,
        now: snapshot.observed_at,
    };
    let Rollout { nodes, schedule, idle } = rollout(&daemon_set_view, request);
    let waves = &schedule.waves;
    let pre_pull = pre_pull::pre_pull(&daemon_set_view, waves, policy, object.strategy, snapshot);
    let plan = DaemonSetPlan {
        base: since,
        shared_budget: budget,
        pre_pull,
        steps: schedule.steps,
        next_waves: schedule.next_waves,
        waits_for: schedule.waits_for,
        waves: schedule.waves,
        totals: totals(&nodes, idle),
        nodes,
        ..object
    };
    let warnings = about(&plan, &daemon_set_view, applied, live, snapshot, created, unreadable);
    let guards = guards(&Judged {
        plan: &plan,
        applied,
        live,
        now: now.as_ref(),
        daemon_set_view: &daemon_set_view,
        blockers: &schedule.blockers,
        node_seconds: measured,
        rollouts: shared::rollouts_per_node(&siblings),
        force_conflicts,
        snapshot,
    });
    let plan = if detail.all_nodes { plan } else { without_kept_nodes(plan) };
    Planned { decided: digest::decided(&plan), plan, guards, warnings }
}

/// The plan of the object alone: without its rollout, its base, and what it shares with others.
fn object_plan(
    applied: &Applied,
    live: Option<&DaemonSet>,
    now: Option<&DaemonSetView<'_>>,
    ObjectChange { change, changes, pause }: ObjectChange,
    daemon_set_view: &DaemonSetView<'_>,
) -> DaemonSetPlan {
    let desired = &applied.desired;
    let policy = desired.policy_spec();
    let template = desired.spec.template.raw();
    DaemonSetPlan {
        namespace: desired.key.namespace.clone(),
        name: desired.key.name.clone(),
        uid: live.map(|live| live.uid.clone()),
        generation: live.map(|live| live.generation),
        change,
        cascade: None,
        managed_by: desired.managed_by,
        policy: desired.policy.as_ref().map(|policy| policy.metadata.name.clone()),
        after: policy.after.iter().map(ToString::to_string).collect(),
        shared_budget: None,
        checks: CheckPlan::all(&policy),
        pre_pull: None,
        strategy: strategy(&daemon_set_view.view()),
        pause,
        live_template: live.map(|live| template_digest(live.spec.template.raw())),
        target_template: template_digest(template),
        revision: daemon_set_view.target.plan.clone(),
        changes,
        base: None,
        leftovers: applied.leftovers.clone(),
        conflicts: applied.conflicts.clone(),
        forced_conflicts: applied.forced_conflicts.clone(),
        new_pods: (change == Change::Create).then(|| NewPods::of(template)),
        steps: Vec::new(),
        domain_key: policy.domains.as_ref().map(|domains| domains.key.clone()),
        next_waves: Vec::new(),
        waits_for: Vec::new(),
        waves: Vec::new(),
        totals: ActionTotals::default(),
        nodes: Vec::new(),
        status: now.map(|now| Counters::from(status::counters(&now.view()))),
    }
}

/// The plan without the nodes that do not change.
fn without_kept_nodes(mut plan: DaemonSetPlan) -> DaemonSetPlan {
    plan.nodes.retain(|node| node.action != Action::Keep);
    plan.nodes.shrink_to_fit();
    plan
}

/// What the apply changes of the object.
struct ObjectChange {
    /// The change as a whole.
    change: Change,
    /// The changed fields; a pause does not count.
    changes: Vec<FieldChange>,
    /// The live paused or aborted rollout.
    pause: Option<PausedRollout>,
}

impl ObjectChange {
    fn of(
        live: Option<&DaemonSet>,
        pause: Option<PausedRollout>,
        desired: &DesiredDaemonSet,
        show_values: ShownValues<'_>,
    ) -> Self {
        let declared = live.map(|live| as_declared(live, pause.as_ref()));
        let left = live.and_then(LeftoverPause::of);
        let declared = declared.as_deref();
        let changes = object::changes(declared, &desired.raw, left.as_ref(), show_values);
        Self { change: object::change(live, desired, &changes), changes, pause }
    }
}

/// All warnings about the plan of one DaemonSet.
fn about(
    plan: &DaemonSetPlan,
    daemon_set_view: &DaemonSetView<'_>,
    applied: &Applied,
    live: Option<&DaemonSet>,
    snapshot: &Snapshot,
    created: &BTreeMap<NamespaceName, Place>,
    unreadable: Option<Warning>,
) -> Vec<Warning> {
    let desired = &applied.desired;
    let mut warnings = warnings::about(daemon_set_view, live, snapshot, created);
    warnings.extend(applied.warnings.iter().cloned());
    warnings.extend(git_ops::warning(plan, applied.git_ops.as_ref()));
    warnings.extend(unreadable);
    warnings.extend(warnings::newer_fields::warning(desired, &snapshot.cluster));
    warnings.extend(warnings::creates_at_once(plan));
    warnings.extend(warnings::unused_budget(plan, &desired.policy_spec()));
    warnings.extend(warnings::gaps_before_surge(plan));
    warnings.extend(warnings::services::warnings(plan, daemon_set_view, live, snapshot));
    let target = &daemon_set_view.owner.spec.template;
    warnings.extend(warnings::priority_class::warning(plan, target, snapshot));
    warnings
}

/// The paused or aborted rollout of a DaemonSet; a warning when its annotation cannot be read or is
/// left over.
pub(super) fn pause_of(live: Option<&DaemonSet>) -> (Option<PausedRollout>, Option<Warning>) {
    match live.map(PausedRollout::of) {
        None => (None, None),
        Some(Ok(pause)) => (pause, live.and_then(left_over)),
        Some(Err(error)) => {
            let warning = Warning {
                code: "pauseUnreadable".to_owned(),
                message: format!(
                    "{error}: the declared update strategy is unknown, so OnDelete is assumed"
                ),
                daemon_set: live.map(|live| live.key.to_string()),
                nodes: Vec::new(),
            };
            (None, Some(warning))
        }
    }
}

fn left_over(live: &DaemonSet) -> Option<Warning> {
    LeftoverPause::of(live).map(|left| Warning {
        code: "pauseLeftOver".to_owned(),
        message: left.to_string(),
        daemon_set: Some(live.key.to_string()),
        nodes: Vec::new(),
    })
}

/// The plans of the nodes, and their waves.
#[derive(Default)]
pub(super) struct Rollout {
    /// Plans of the nodes in name order.
    pub nodes: Vec<NodePlan>,
    /// Their waves, and what blocks them.
    pub schedule: Schedule,
    /// Number of other nodes: they have no pod and get none.
    pub idle: u32,
}

/// What nodes and waves are planned by.
pub(super) struct RolloutRequest<'a> {
    /// The strategy after the apply.
    pub strategy: Strategy,
    /// The policy.
    pub policy: &'a PolicySpec,
    /// The budget that it shares with other DaemonSets, in nodes.
    pub shared_budget: Option<u32>,
    /// How many of these DaemonSets are rolled out on each node, too.
    pub siblings: &'a BTreeMap<NodeName, u32>,
    /// The reason why no action is planned at all, if there is one.
    pub untouched: Option<Reason>,
    /// The nodes that get pods and reasons.
    pub described: Described,
    /// Time that the update of one node takes, in seconds.
    pub node_seconds: u32,
    /// The live DaemonSet.
    pub live: Option<&'a DaemonSet>,
    /// The cluster.
    pub snapshot: &'a Snapshot,
    /// The time by which soaks, windows and approvals are judged.
    pub now: Timestamp,
}

/// Plans the nodes and their waves.
pub(super) fn rollout(daemon_set_view: &DaemonSetView<'_>, request: RolloutRequest<'_>) -> Rollout {
    let RolloutRequest {
        strategy,
        policy,
        shared_budget,
        siblings,
        untouched,
        described,
        node_seconds,
        live,
        snapshot,
        now,
    } = request;
    let intermediate = intermediate(daemon_set_view, live, snapshot);
    let PlannedNodes { mut nodes, budget_views, idle } =
        nodes::planned_nodes(daemon_set_view, policy, &intermediate, described);
    if let Some(reason) = untouched {
        leave_alone(&mut nodes, &reason);
        return Rollout { nodes, idle, ..Rollout::default() };
    }
    let owner = &daemon_set_view.owner;
    let template = template_digest(owner.spec.template.raw());
    let note = snapshot.steps_note(owner.key);
    let (uid, given) = (live.map(|live| &live.uid), snapshot.approvals.get(owner.key));
    let was_rolled_out = daemon_set_view.target.plan.kind != RevisionKind::New;
    let is_note_lost = note.is_none() && was_rolled_out && snapshot.coverage.leases;
    let approval_rules = ApprovalRules { template: &template, note, is_note_lost, now };
    let approved = approved_steps(policy, uid, given, approval_rules);
    let rules = waves::Rules {
        strategy,
        policy,
        shared_budget,
        siblings,
        min_ready_seconds: policy.min_ready(owner.spec),
        templates: &daemon_set_view.target.templates,
        fleet: daemon_set_view.view().fleet,
        template: &template,
        is_target_live: live
            .is_none_or(|live| template_digest(live.spec.template.raw()) == template),
        note,
        approved: &approved,
        calendar: &Calendar::of(&policy.windows, &policy.exclusions),
        node_seconds,
        now,
    };
    let mut schedule = waves::schedule(&mut nodes, &budget_views, &rules);
    for step in schedule.steps.iter_mut().filter(|step| approved.contains(&step.name)) {
        let approval = given.and_then(|given| given.get(&step.name));
        step.approved = approval.map(|it| Approved { by: it.by.clone(), at: it.at });
    }
    Rollout { nodes, schedule, idle }
}

/// The intermediate versions. The last good one is that of the unfinished rollout's start, else the live
/// one, unless that is the target.
fn intermediate(
    target: &DaemonSetView<'_>,
    live: Option<&DaemonSet>,
    snapshot: &Snapshot,
) -> Intermediate {
    let Some(live) = live else { return Intermediate::none() };
    let paused_from = PausedRollout::readable(live).and_then(|pause| pause.from);
    let from = paused_from.as_ref().or_else(|| noted_from(live, snapshot));
    let in_namespace = snapshot.revisions_in(&live.key.namespace);
    let revisions = Claims::of(&Owner::from(live), in_namespace).claimed;
    let template = live.spec.template.raw();
    let is_live_target =
        || template_digest(template) == template_digest(target.owner.spec.template.raw());
    if from.is_none() && is_live_target() {
        let failed = snapshot.failed_templates(&live.key);
        let has_failed = |it: &&Revision| failed.iter().any(|digest| is_of_template(it, digest));
        return Intermediate::failed(revisions.into_iter().filter(has_failed));
    }
    let is_good = |revision: &&&Revision| match from {
        Some(from) => revision.name == from.name,
        None => matches(template, &revision.data, Matching::Tolerant),
    };
    let last_good = revisions.iter().filter(is_good).max_by_key(|it| it.number);
    last_good.map_or_else(Intermediate::none, |it| Intermediate::AllBut(hash_of(it)))
}

/// The reason why no action is planned for any pod of this DaemonSet; none if actions are allowed.
fn untouched(change: Change, live: Option<&DaemonSet>) -> Option<Reason> {
    if live.is_some_and(|live| live.terminating) {
        return Some(Reason::DaemonSetTerminating);
    }
    (change == Change::Recreate).then_some(Reason::MustBeRecreated)
}

fn leave_alone(nodes: &mut [NodePlan], reason: &Reason) {
    for node in nodes {
        node.action = Action::Keep;
        Arc::make_mut(&mut node.reasons).insert(0, reason.clone().into());
        for pod in &mut node.pods {
            pod.fate = super::document::Fate::Keep;
        }
    }
}

/// The update strategy, resolved to numbers for this cluster.
pub(super) fn strategy(view: &View<'_, '_>) -> Strategy {
    let desired = view.desired();
    match Limits::of(&view.owner.spec.update_strategy, desired) {
        None => Strategy::OnDelete,
        Some(Limits { max_unavailable, max_surge }) => {
            Strategy::RollingUpdate { max_unavailable, max_surge, desired }
        }
    }
}

pub(super) fn totals(nodes: &[NodePlan], idle: u32) -> ActionTotals {
    let mut totals = ActionTotals { keep: idle, ..ActionTotals::default() };
    for node in nodes {
        totals.add(node.action);
    }
    totals
}
