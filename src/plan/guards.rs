//! What `ds-apply` refuses to do without being told, and the flag that tells it.

use super::document::{Change, DaemonSetPlan, Guard, GuardCode, PodPlan, Strategy};
use super::reason::Reason;
use super::scene::Scene;
use crate::model::NodeName;

/// Evictions at once that pass without a guard under `OnDelete`, which has no budget of its own.
const ON_DELETE_BUDGET: u32 = 1;

/// Allows an eviction of more pods at once than the budget.
const ALLOW_MASS_EVICTION: &str = "--allow-mass-eviction";
/// Allows a plan that cannot finish.
const ALLOW_DEADLOCK: &str = "--allow-deadlock";

/// All guards of one DaemonSet's plan. `now` is the DaemonSet as it is; `holders` are the nodes
/// that use up the budget and that the plan does nothing about.
pub(super) fn guards(
    plan: &DaemonSetPlan,
    now: Option<&Scene<'_>>,
    holders: &[NodeName],
) -> Vec<Guard> {
    if plan.change == Change::Recreate {
        return vec![selector_change(plan)];
    }
    let evicted = now.and_then(|now| mass_eviction(plan, now));
    evicted.into_iter().chain(deadlock(plan, holders)).collect()
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
fn mass_eviction(plan: &DaemonSetPlan, now: &Scene<'_>) -> Option<Guard> {
    let allowed = match plan.strategy {
        Strategy::OnDelete => ON_DELETE_BUDGET,
        Strategy::RollingUpdate { max_unavailable, max_surge: _, desired: _ } => {
            max_unavailable.max(1)
        }
    };
    let view = now.view();
    let may_stay =
        |node: &NodeName| view.fleet.position(node).is_some_and(|at| view.placements[at].may_stay);
    let not_eligible = |pod: &PodPlan| matches!(pod.reason.reason, Reason::NotEligible { .. });
    let evicted: Vec<NodeName> = plan
        .nodes
        .iter()
        .filter(|node| node.pods.iter().any(not_eligible) && may_stay(&node.name))
        .map(|node| node.name.clone())
        .collect();
    let count = evicted.len();
    if count <= usize::try_from(allowed).unwrap_or(usize::MAX) {
        return None;
    }
    let message = format!(
        "{count} nodes are no longer eligible, and the controller removes their pods all at once, \
         whatever the strategy; at most {allowed} may be unavailable"
    );
    Some(guard(plan, GuardCode::MassEviction, message, Some(ALLOW_MASS_EVICTION), evicted))
}

/// Waiting does not help: what uses up the budget is nothing that this plan replaces.
fn deadlock(plan: &DaemonSetPlan, holders: &[NodeName]) -> Option<Guard> {
    let blocked =
        plan.nodes.iter().flat_map(|node| &node.reasons).filter_map(|coded| match coded.reason {
            Reason::BudgetTaken { unavailable, allowed } => Some((unavailable, allowed)),
            _ => None,
        });
    let waiting = blocked.clone().count();
    let (unavailable, allowed) = blocked.into_iter().next()?;
    let message = format!(
        "the plan cannot finish: {unavailable} unavailable already, at most {allowed} allowed, and \
         nothing in the plan mends them; {waiting} outdated {} for good. Mend these nodes first, or \
         go back to a template that works there",
        if waiting == 1 { "pod waits" } else { "pods wait" }
    );
    Some(guard(plan, GuardCode::Deadlock, message, Some(ALLOW_DEADLOCK), holders.to_vec()))
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
