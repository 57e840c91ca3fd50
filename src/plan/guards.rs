//! What `ds-apply` refuses to do without being told, and the flag that tells it.

mod managed_by;
mod policy_change;

use std::collections::{BTreeMap, BTreeSet};

use super::document::{Change, DaemonSetPlan, FieldOwner, Guard, GuardCode, Strategy};
use super::git_ops::{self, GitOps};
use super::health::ailments;
use super::reason::Reason;
use super::scene::Scene;
use crate::model::{DaemonSet, DaemonSetKey, DesiredDaemonSet, NodeName, Snapshot};
use crate::planted::planted;

/// Evictions at once that pass without a guard under `OnDelete`, which has no budget of its own.
const ON_DELETE_BUDGET: u32 = 1;

/// So many nodes are named for each reason.
const MOST_NAMES: usize = 3;

/// Allows an eviction of more pods at once than the budget.
const ALLOW_MASS_EVICTION: &str = "--allow-mass-eviction";
/// Names the managers whose fields become ours.
const TAKE_OVER: &str = "--take-over";
/// Applies a template that failed once more.
const RETRY: &str = "--retry";
/// Allows a plan that cannot finish.
const ALLOW_DEADLOCK: &str = "--allow-deadlock";

/// What guards look at.
pub(super) struct Judged<'a> {
    /// The plan.
    pub plan: &'a DaemonSetPlan,
    /// What is asked for.
    pub desired: &'a DesiredDaemonSet,
    /// The live object.
    pub live: Option<&'a DaemonSet>,
    /// The DaemonSet as it is among its pods.
    pub now: Option<&'a Scene<'a>>,
    /// The DaemonSet as it will be among its pods.
    pub scene: &'a Scene<'a>,
    /// Nodes that use up the budget and that the plan does nothing about.
    pub holders: &'a [NodeName],
    /// Whether `ds-apply` remembers that a rollout of the template to come failed.
    pub failed_before: bool,
    /// Managers whose fields may be taken.
    pub take_over: &'a BTreeSet<String>,
    /// The cluster.
    pub snapshot: &'a Snapshot,
}

/// All guards of one DaemonSet's plan.
pub(super) fn guards(judged: &Judged<'_>) -> Vec<Guard> {
    let mut guards = of_change(judged);
    guards.extend(policy_change::policy_change(judged.plan, judged.desired));
    guards
}

/// Those that the change itself meets.
fn of_change(judged: &Judged<'_>) -> Vec<Guard> {
    let Judged {
        plan,
        desired: _,
        live,
        now,
        scene,
        holders,
        failed_before,
        take_over: allowed,
        snapshot,
    } = *judged;
    if plan.change == Change::Recreate {
        return vec![selector_change(plan)];
    }
    if let Some(other) = managed_by::other(plan, live, snapshot) {
        return vec![other];
    }
    let evicted = now.and_then(|now| mass_eviction(plan, now, scene));
    let guards = [
        evicted,
        deadlock(plan, scene, holders),
        take_over(plan, allowed),
        live.and_then(|live| git_ops(plan, live)),
        failed_template(plan, failed_before),
    ];
    guards.into_iter().flatten().collect()
}

/// A forced apply would silently undo what somebody else did, such as a hotfix at night.
fn take_over(plan: &DaemonSetPlan, allowed: &BTreeSet<String>) -> Option<Guard> {
    let refused = plan.conflicts.iter().filter_map(|FieldOwner { path, manager }| {
        let manager = manager.as_deref().filter(|manager| !allowed.contains(*manager))?;
        Some((path.as_str(), manager))
    });
    let refused: Vec<_> = refused.collect();
    (!refused.is_empty()).then(|| Guard::take_over(&plan.key(), refused))
}

/// A controller that applies the object again and again would undo the hold, and then all pods
/// would be replaced at the controller's own pace.
fn git_ops(plan: &DaemonSetPlan, live: &DaemonSet) -> Option<Guard> {
    let holds = matches!(plan.strategy, Strategy::RollingUpdate { max_surge: 0, .. })
        && !plan.waves.is_empty();
    if plan.change == Change::None && !holds {
        return None;
    }
    let GitOps { product, evidence } = git_ops::found(live)?;
    let message = format!(
        "{product} applies this DaemonSet ({evidence}) and would undo what is applied here. Let it \
         apply `updateStrategy: {{type: OnDelete}}`, and pace the pods with `ds-apply roll`"
    );
    Some(guard(plan, GuardCode::GitOps, message, None, Vec::new()))
}

/// A template that failed fails again, until somebody says that it will not.
///
/// The hold of a parked rollout says so, and the lease that `ds-apply` locks the DaemonSet with. One
/// that is live everywhere by now has proved itself, whoever rolled it out.
fn failed_template(plan: &DaemonSetPlan, failed_before: bool) -> Option<Guard> {
    let parked = plan.hold.as_ref().and_then(|hold| hold.failed.as_ref());
    let is_live = plan.live_template.as_ref() == Some(&plan.target_template);
    let is_whole = is_live && plan.hold.is_none() && plan.waves.is_empty();
    let failed = parked == Some(&plan.target_template) || (failed_before && !is_whole);
    let refused = planted!(failed, "a failed template is tried again" => false);
    refused.then(|| Guard::failed_template(&plan.key()))
}

impl Guard {
    /// What fields of others meet, each given as path and manager.
    pub fn take_over<'a>(
        daemon_set: &DaemonSetKey,
        owned: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let (paths, managers): (BTreeSet<&str>, BTreeSet<&str>) = owned.into_iter().unzip();
        let names = managers.into_iter().collect::<Vec<_>>().join(",");
        let paths = paths.into_iter().collect::<Vec<_>>().join(", ");
        Self {
            code: GuardCode::TakeOver,
            message: format!("others own fields that the manifest sets ({names}): {paths}"),
            allow_flag: Some(format!("{TAKE_OVER}={names}")),
            daemon_set: Some(daemon_set.to_string()),
            nodes: Vec::new(),
        }
    }

    /// What a template that failed before meets.
    fn failed_template(daemon_set: &DaemonSetKey) -> Self {
        Self {
            code: GuardCode::FailedTemplate,
            message: "the rollout of this very template failed before. Mend the template, or what \
                      it failed for"
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
        "spec.selector of {namespace}/{name} changes, and a selector is immutable. To replace the \
         DaemonSet by hand, with every pod going at once: `kubectl -n {namespace} delete daemonset \
         {name}`, then apply again; to move without a gap, give the new one another name"
    );
    guard(plan, GuardCode::SelectorChange, message, None, Vec::new())
}

/// The controller removes pods from nodes that are no longer eligible all at once, whatever the
/// strategy: no budget holds it back.
///
/// A node that is to get its pod counts as one that has it: the controller may create it between the
/// plan and the write.
fn mass_eviction(plan: &DaemonSetPlan, now: &Scene<'_>, scene: &Scene<'_>) -> Option<Guard> {
    let allowed = match plan.strategy {
        Strategy::OnDelete => ON_DELETE_BUDGET,
        Strategy::RollingUpdate { max_unavailable, max_surge: _, desired: _ } => {
            max_unavailable.max(1)
        }
    };
    let (before, after) = (now.view(), scene.view());
    let (mut evicted, mut to_come) = (Vec::new(), 0);
    for (at, node) in after.fleet.nodes().iter().enumerate() {
        let has_pod = after.pods.at(at).iter().any(|pod| !pod.terminating);
        let (was, is) = (&before.placements[at], &after.placements[at]);
        if was.may_stay && !is.may_stay && (has_pod || was.may_start) {
            evicted.push(node.name.clone());
            to_come += usize::from(!has_pod);
        }
    }
    let count = evicted.len();
    let passes = count <= usize::try_from(allowed).unwrap_or(usize::MAX);
    if planted!(passes, "an eviction is not guarded" => true) {
        return None;
    }
    let not_yet = match to_come {
        0 => String::new(),
        _ => format!(" ({to_come} of them are to get theirs only now)"),
    };
    let message = format!(
        "{count} nodes are no longer eligible, and the controller removes their pods all at once, \
         whatever the strategy{not_yet}; at most {allowed} may be unavailable"
    );
    Some(guard(plan, GuardCode::MassEviction, message, Some(ALLOW_MASS_EVICTION), evicted))
}

/// Waiting does not help: what uses up the budget is nothing that this plan replaces.
fn deadlock(plan: &DaemonSetPlan, scene: &Scene<'_>, holders: &[NodeName]) -> Option<Guard> {
    // What has begun is judged by its gates: refusing to go on with it would leave a template live
    // that fails, and going back is always possible.
    if plan.is_under_way() {
        return None;
    }
    let blocked =
        plan.nodes.iter().flat_map(|node| &node.reasons).filter_map(|coded| match coded.reason {
            Reason::BudgetTaken { unavailable, allowed } => Some((unavailable, allowed)),
            _ => None,
        });
    let waiting = blocked.clone().count();
    let (unavailable, allowed) = blocked.into_iter().next()?;
    let message = format!(
        "the plan cannot finish: {unavailable} unavailable already, at most {allowed} allowed, and \
         nothing in the plan mends them ({}); {waiting} outdated {} for good. Mend these nodes \
         first, or go back to a template that works there",
        why_unavailable(scene, holders),
        if waiting == 1 { "pod waits" } else { "pods wait" }
    );
    Some(guard(plan, GuardCode::Deadlock, message, Some(ALLOW_DEADLOCK), holders.to_vec()))
}

/// `pod is not Ready: CrashLoopBackOff in container agent: node-1, node-2 and 3 more`, for each
/// reason why nodes are without an available pod.
fn why_unavailable(scene: &Scene<'_>, holders: &[NodeName]) -> String {
    let view = scene.view();
    let mut nodes_by_reason: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for holder in holders {
        let Some(at) = view.fleet.position(holder) else { continue };
        let (node, pods) = (&view.fleet.nodes()[at], view.pods.at(at));
        let reasons = ailments(node, pods, scene.owner.spec.min_ready_seconds, view.now);
        // A dead node explains what ails its pod.
        let reason = match reasons.into_iter().next() {
            // Nodes that died at different times stand together.
            Some(Reason::NodeNotReady { .. }) => {
                Reason::NodeNotReady { since: None, seconds: None }.to_string()
            }
            Some(reason) => reason.to_string(),
            None => "no pod stays there".to_owned(),
        };
        nodes_by_reason.entry(reason).or_default().push(holder.as_str());
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

fn guard(
    plan: &DaemonSetPlan,
    code: GuardCode,
    message: String,
    allow_flag: Option<&str>,
    nodes: Vec<NodeName>,
) -> Guard {
    Guard {
        code,
        message,
        allow_flag: allow_flag.map(str::to_owned),
        daemon_set: Some(format!("{}/{}", plan.namespace, plan.name)),
        nodes,
    }
}
