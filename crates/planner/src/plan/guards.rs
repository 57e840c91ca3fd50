//! Guards: conditions that block `ds-apply` until the user passes the flag that the guard names.

mod managed_by;
mod mass_eviction;
mod policy_change;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::applied::Applied;
use super::daemon_set_view::DaemonSetView;
use super::document::{Change, DaemonSetPlan, FieldOwner, Guard, GuardCode, Strategy};
use super::git_ops::{self, GitOps};
use super::health::ailments;
use super::reason::Reason;
use super::waves::{BlockedStep, Blockers};
use crate::words::{agree, grouped};
use daemonset::model::{
    Calendar, DaemonSet, DaemonSetKey, DesiredDaemonSet, NodeName, Opening, PolicySpec, Snapshot,
    StepsNote,
};

/// Maximum number of nodes named for each reason.
const MOST_NAMES: usize = 3;

/// Flag that names the field managers whose fields are overwritten.
const FORCE_CONFLICTS: &str = "--force-conflicts";
/// Flag that allows a template to be applied again after it failed.
const RETRY: &str = "--retry";
/// Flag that allows a plan that cannot finish.
const ALLOW_DEADLOCK: &str = "--allow-deadlock";

/// Input of the guards of one DaemonSet.
pub(super) struct Judged<'a> {
    /// Plan of the DaemonSet.
    pub plan: &'a DaemonSetPlan,
    /// The DaemonSet after the apply.
    pub applied: &'a Applied,
    /// The live object; none when the DaemonSet is new.
    pub live: Option<&'a DaemonSet>,
    /// View of the live DaemonSet with its nodes and pods.
    pub now: Option<&'a DaemonSetView<'a>>,
    /// View of the DaemonSet after the apply with its nodes and pods.
    pub daemon_set_view: &'a DaemonSetView<'a>,
    /// What the rollout cannot get past.
    pub blockers: &'a Blockers,
    /// Time that the update of one node takes, in seconds, if it was measured.
    pub node_seconds: Option<u32>,
    /// Number of DaemonSets of a shared budget that are updated on a node one after the other.
    pub rollouts: u32,
    /// Field managers whose fields may be overwritten (`--force-conflicts`).
    pub force_conflicts: &'a BTreeSet<String>,
    /// Snapshot of the cluster.
    pub snapshot: &'a Snapshot,
}

/// Returns all guards of one DaemonSet's plan.
pub(super) fn guards(judged: &Judged<'_>) -> Vec<Guard> {
    let mut guards = of_change(judged);
    guards.extend(policy_change::policy_change(judged.plan, &judged.applied.desired));
    guards
}

/// The guards of the change itself; the guard of a policy change is separate.
fn of_change(judged: &Judged<'_>) -> Vec<Guard> {
    let Judged {
        plan,
        applied: Applied { desired, .. },
        live,
        now: _,
        daemon_set_view,
        blockers: Blockers { unavailable, blocked_step, empty_steps },
        node_seconds,
        rollouts,
        force_conflicts: allowed,
        snapshot,
    } = *judged;
    if plan.change == Change::Recreate {
        return vec![selector_change(plan)];
    }
    if let Some(other) = managed_by::other(plan, live, snapshot) {
        return vec![other];
    }
    if let Some(own) = managed_by::own_approvals(plan, desired) {
        return vec![own];
    }
    let guards = [
        mass_eviction::mass_eviction(judged),
        deadlock(plan, daemon_set_view, unavailable),
        blocked_step.as_ref().and_then(|step| deadlock_in_step(plan, daemon_set_view, step)),
        force_conflicts(plan, allowed),
        live.and_then(|live| git_ops(judged, live)),
        failed_template(plan, snapshot),
        empty_step(plan, empty_steps, snapshot),
        surge_under_policy(plan, desired),
        window_too_short(plan, desired, (node_seconds, rollouts), snapshot.observed_at),
    ];
    guards.into_iter().flatten().collect()
}

/// A step that selects no node would be passed without a proof.
fn empty_step(plan: &DaemonSetPlan, empty: &[String], snapshot: &Snapshot) -> Option<Guard> {
    if empty.is_empty() || plan.waves.is_empty() {
        return None;
    }
    // When the rollout has begun, its nodes may have left, or be down because of it: its run waits for one,
    // and its gates must be asked. A surge and `roll` have no pause.
    let template = plan.target_template.as_str();
    let has_begun = |note: &StepsNote| note.has_begun(template);
    if plan.is_under_way() || snapshot.steps_note(&plan.key()).is_some_and(has_begun) {
        return None;
    }
    let (steps, verb) = (empty.join(", "), agree(empty.len(), "selects", "select"));
    let message = format!(
        "{} {steps} of policy {} {verb} no node of this DaemonSet, so nothing would be proven \
         there. Correct the selector, or remove the step",
        agree(empty.len(), "step", "steps"),
        plan.policy.as_deref().unwrap_or_default()
    );
    Some(plan.guard(GuardCode::EmptyStep, message, None, Vec::new()))
}

/// Where the built-in controller surges, it chooses the nodes, by its own rules.
fn surge_under_policy(plan: &DaemonSetPlan, desired: &DesiredDaemonSet) -> Option<Guard> {
    let surges = matches!(plan.strategy, Strategy::RollingUpdate { max_surge: 1.., .. });
    let policy = desired.policy.as_ref().filter(|_| surges)?;
    let fields = [
        (policy.spec.domains.is_some(), "domains"),
        (policy.spec.shared_budget.is_some(), "sharedBudget"),
    ];
    let set: Vec<&str> = fields.into_iter().filter_map(|(is, name)| is.then_some(name)).collect();
    let set = set.join(" and ");
    let message = format!(
        "policy {} has {set}, but with `maxSurge` the DaemonSet controller chooses the nodes. Set \
         `maxSurge: 0` and `maxUnavailable`, or remove {set} from the policy",
        policy.metadata.name
    );
    (!set.is_empty()).then(|| plan.guard(GuardCode::SurgeUnderPolicy, message, None, Vec::new()))
}

/// A node begins only if it is finished before the window closes: with these windows, none ever
/// would.
fn window_too_short(
    plan: &DaemonSetPlan,
    desired: &DesiredDaemonSet,
    (measured, rollouts): (Option<u32>, u32),
    now: Timestamp,
) -> Option<Guard> {
    let policy = desired.policy.as_ref().filter(|_| !plan.waves.is_empty())?;
    let PolicySpec { windows, exclusions, progress_deadline, .. } = &policy.spec;
    if windows.is_empty() {
        return None;
    }
    let seconds = measured.unwrap_or(progress_deadline.0).saturating_mul(rollouts);
    let calendar = Calendar::of(windows, exclusions);
    if calendar.next_start(now, seconds.into()).is_some() {
        return None;
    }
    let longest = match calendar.openings(now).filter_map(Opening::length).max() {
        Some(longest) => format!("is open for longer than {longest:#} within 400 days"),
        None => "opens within 400 days".to_owned(),
    };
    let takes = SignedDuration::from_secs(seconds.into());
    let (why, remedy) = match measured {
        Some(_) => ("by the start times of its pods", ""),
        None => (
            "its `progressDeadline`, as no pod with these images has started yet",
            " shorten `progressDeadline`,",
        ),
    };
    let together = match rollouts {
        0 | 1 => String::new(),
        _ => format!(" for {rollouts} DaemonSets one after the other"),
    };
    let message = format!(
        "no node would ever begin: the update of one takes {takes:#}{together} ({why}), but no window of \
         policy {} {longest}. Lengthen the `duration` of a window,{remedy} or remove exclusions",
        policy.metadata.name
    );
    Some(plan.guard(GuardCode::WindowTooShort, message, None, Vec::new()))
}

/// A forced apply would silently overwrite changes of other field managers, such as a hotfix.
fn force_conflicts(plan: &DaemonSetPlan, allowed: &BTreeSet<String>) -> Option<Guard> {
    let conflicts = plan.conflicts.iter().filter_map(|FieldOwner { path, manager }| {
        let manager = manager.as_deref().filter(|manager| !allowed.contains(*manager))?;
        Some((path.as_str(), manager))
    });
    let conflicts: Vec<_> = conflicts.collect();
    (!conflicts.is_empty()).then(|| Guard::force_conflicts(&plan.key(), conflicts))
}

/// A GitOps controller that reapplies the object would set the update strategy back during the
/// pause, and the DaemonSet controller would replace all pods at its own pace. Under `OnDelete` there
/// is no pause, but the controller applies the object all the same: a preview shows that write, which
/// needs no guard.
///
/// Where only its field manager is left, the controller may have left the object: the user says so by
/// taking over its fields.
fn git_ops(judged: &Judged<'_>, live: &DaemonSet) -> Option<Guard> {
    let Judged { plan, applied, force_conflicts: allowed, .. } = *judged;
    let holds = plan.waves.iter().any(|wave| wave.max_surge == 0);
    if applied.git_ops.is_some() || plan.change == Change::None && !holds {
        return None;
    }
    let GitOps { product, evidence, manager } = git_ops::found(live, allowed)?;
    let left =
        manager.map(|_| format!(". If {product} applies it no longer, take over its fields"));
    let remedy = if git_ops::is_left_to_roll(live, &applied.desired) {
        ", and applies it. Replace its pods with `ds-apply roll`".to_owned()
    } else {
        format!(
            " and would revert this apply. Let {product} apply `updateStrategy: {{type: \
             OnDelete}}`, and replace the pods with `ds-apply roll`"
        )
    };
    let message = format!(
        "{product} manages this DaemonSet ({evidence}){remedy}{}",
        left.unwrap_or_default()
    );
    let flag = manager.map(|manager| format!("{FORCE_CONFLICTS}={manager}"));
    Some(plan.guard(GuardCode::GitOps, message, flag.as_deref(), Vec::new()))
}

/// A template that failed is expected to fail again, unless the user passes `--retry`.
///
/// The failure is recorded in the annotation of an aborted rollout, and in the lease with which
/// `ds-apply` locks the DaemonSet. A template that is live on every node by now is not guarded.
fn failed_template(plan: &DaemonSetPlan, snapshot: &Snapshot) -> Option<Guard> {
    // Recorded by an earlier run.
    let failed_before = snapshot.has_failed(&plan.key(), &plan.target_template);
    let aborted = plan.pause.as_ref().and_then(|pause| pause.failed.as_ref());
    let is_live = plan.live_template.as_ref() == Some(&plan.target_template);
    // There are no waves either while all outdated pods wait for the budget.
    let is_whole = is_live
        && plan.pause.is_none()
        && plan.waves.is_empty()
        && waiting_for_budget(plan).next().is_none();
    let failed = aborted == Some(&plan.target_template) || (failed_before && !is_whole);
    failed.then(|| Guard::failed_template(&plan.key()))
}

impl Guard {
    /// The guard of fields that other managers own, each given as path and manager.
    pub fn force_conflicts<'a>(
        daemon_set: &DaemonSetKey,
        owned: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let (paths, managers): (BTreeSet<&str>, BTreeSet<&str>) = owned.into_iter().unzip();
        let names = managers.into_iter().collect::<Vec<_>>().join(",");
        let paths = paths.into_iter().collect::<Vec<_>>().join(", ");
        Self {
            code: GuardCode::ForceConflicts,
            message: format!(
                "other field managers ({names}) own fields that the manifest sets: {paths}"
            ),
            allow_flag: Some(format!("{FORCE_CONFLICTS}={names}")),
            daemon_set: Some(daemon_set.to_string()),
            nodes: Vec::new(),
        }
    }

    /// The guard of a template whose rollout failed before.
    pub fn failed_template(daemon_set: &DaemonSetKey) -> Self {
        Self {
            code: GuardCode::FailedTemplate,
            message:
                "the rollout of this template failed before. Fix the template or the cause of \
                      the failure"
                    .to_owned(),
            allow_flag: Some(RETRY.to_owned()),
            daemon_set: Some(daemon_set.to_string()),
            nodes: Vec::new(),
        }
    }
}

fn selector_change(plan: &DaemonSetPlan) -> Guard {
    let DaemonSetPlan { namespace, name, .. } = plan;
    let message = format!(
        "spec.selector of {namespace}/{name} changes, but it is immutable. To recreate the \
         DaemonSet, run `kubectl -n {namespace} delete daemonset {name}` (deletes all pods at \
         once) and apply again; to avoid downtime, give the new DaemonSet another name"
    );
    plan.guard(GuardCode::SelectorChange, message, None, Vec::new())
}

/// The plan never finishes: the unavailable pods that use up the budget are not replaced by it.
fn deadlock(
    plan: &DaemonSetPlan,
    daemon_set_view: &DaemonSetView<'_>,
    unavailable: &[NodeName],
) -> Option<Guard> {
    // A rollout that has begun is checked by its gates: blocking it here would leave a failing
    // template live, and rolling back must always be possible.
    if plan.is_under_way() {
        return None;
    }
    let (count, allowed) = waiting_for_budget(plan).next()?;
    let waiting = waiting_for_budget(plan).count();
    let message = format!(
        "the plan cannot finish: {} already unavailable, at most {} allowed, and the plan does not \
         fix them ({}); {} outdated {} indefinitely. Fix these nodes first, or roll back to a \
         template that works on them",
        grouped(count),
        grouped(allowed),
        why_unavailable(daemon_set_view, unavailable),
        grouped(waiting),
        agree(waiting, "pod waits", "pods wait")
    );
    Some(plan.guard(GuardCode::Deadlock, message, Some(ALLOW_DEADLOCK), unavailable.to_vec()))
}

/// The outdated pods that wait because unavailable pods use up the budget: for each, how many are
/// unavailable and how many may be.
fn waiting_for_budget(plan: &DaemonSetPlan) -> impl Iterator<Item = (u32, u32)> {
    let reasons = plan.nodes.iter().flat_map(|node| &*node.reasons);
    reasons.filter_map(|coded| match coded.reason {
        Reason::MaxUnavailableReached { unavailable, allowed } => Some((unavailable, allowed)),
        _ => None,
    })
}

/// A step never finishes: unavailable pods that it does not replace use up what may be unavailable.
fn deadlock_in_step(
    plan: &DaemonSetPlan,
    daemon_set_view: &DaemonSetView<'_>,
    step: &BlockedStep,
) -> Option<Guard> {
    if plan.is_under_way() {
        return None;
    }
    let BlockedStep { name, allowed, limit, unavailable, waiting } = step;
    let message = format!(
        "step {name} cannot finish: {} already unavailable, at most {} allowed in it ({limit}), and \
         the step does not fix them ({}); {} outdated {} indefinitely. Fix these nodes first, or \
         select them in this step or an earlier one",
        grouped(unavailable.len()),
        grouped(*allowed),
        why_unavailable(daemon_set_view, unavailable),
        grouped(*waiting),
        agree(*waiting, "pod waits", "pods wait")
    );
    Some(plan.guard(GuardCode::Deadlock, message, Some(ALLOW_DEADLOCK), unavailable.clone()))
}

/// The reasons why nodes have no available pod, each with its nodes, such as
/// `pod is not Ready: CrashLoopBackOff in container agent: node-1, node-2 and 3 more`.
fn why_unavailable(daemon_set_view: &DaemonSetView<'_>, unavailable: &[NodeName]) -> String {
    let view = daemon_set_view.view();
    let mut nodes_by_reason: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for name in unavailable {
        let Some(at) = view.fleet.position(name) else { continue };
        let (node, pods) = (&view.fleet.nodes()[at], view.pods.at(at));
        let reasons = ailments(node, pods, daemon_set_view.owner.spec.min_ready_seconds, view.now);
        // A NotReady node explains why its pod is not Ready.
        let reason = match reasons.into_iter().next() {
            // Nodes that became NotReady at different times share one group.
            Some(Reason::NodeNotReady(_)) => Reason::NodeNotReady(Box::default()).to_string(),
            Some(reason) => reason.to_string(),
            None => "no pod remains".to_owned(),
        };
        nodes_by_reason.entry(reason).or_default().push(name.as_str());
    }
    let groups = nodes_by_reason.into_iter().map(|(reason, nodes)| {
        let named = nodes.iter().take(MOST_NAMES).copied().collect::<Vec<_>>().join(", ");
        match nodes.len().saturating_sub(MOST_NAMES) {
            0 => format!("{reason}: {named}"),
            more => format!("{reason}: {named} and {more} more"),
        }
    });
    groups.collect::<Vec<_>>().join("; ")
}
