//! Which nodes are candidates, and which wait.

use super::*;
use crate::classification::NodeRole;
use crate::plan::document::{Action, Fate, PodPlan};
use crate::plan::reason::Reason;
use crate::steps::NodeUpdate;

const NOT_READY: NodeReadiness = NodeReadiness::NotReady { since: None };

/// `count` nodes in one state, named after `prefix`, each with one pod that is replaced if it
/// is outdated.
fn nodes(
    prefix: &str,
    count: usize,
    node: NodeReadiness,
    pod: PodBudgetState,
) -> Vec<(NodePlan, BudgetView)> {
    let reason =
        if pod.is_outdated() { Reason::Outdated { revision: None } } else { Reason::UpToDate };
    let action = if pod.is_outdated() { Action::Replace } else { Action::Keep };
    let fate = if pod.is_outdated() { Fate::Delete } else { Fate::Keep };
    let plan = |at: usize| NodePlan {
        name: format!("{prefix}{at}").into(),
        action,
        wave: None,
        pods: [PodPlan {
            name: format!("pod-{prefix}{at}").into(),
            uid: format!("uid-{prefix}{at}").into(),
            revision_hash: None,
            fate,
            reason: reason.clone().into(),
        }]
        .into(),
        reasons: vec![reason.clone().into()].into(),
    };
    let view = BudgetView {
        role: NodeRole::Desired,
        node,
        pod,
        update: NodeUpdate::Outdated { is_intermediate: false },
        has_available_pod: true,
        restarts: 0,
        stays_unready: false,
    };
    (0..count).map(|at| (plan(at), view)).collect()
}

/// The first reason codes of the waiting nodes, and the nodes of the wave.
fn scheduled(
    fleet: Vec<(NodePlan, BudgetView)>,
    max_unavailable: u32,
    max_surge: u32,
) -> (Vec<NodePlan>, Vec<String>) {
    let (mut plans, budget_views): (Vec<_>, Vec<_>) = fleet.into_iter().unzip();
    let desired = u32::try_from(plans.len()).unwrap();
    let strategy = Strategy::RollingUpdate { max_unavailable, max_surge, desired };
    let rules = Rules {
        strategy,
        policy: &PolicySpec::default(),
        shared_budget: None,
        siblings: &BTreeMap::new(),
        min_ready_seconds: MinReady::default(),
        templates: &Templates::default(),
        fleet: &Fleet::new(&[]),
        template: "",
        is_target_live: true,
        note: None,
        approved: &BTreeSet::new(),
        calendar: &Calendar::of(&[], &[]),
        node_seconds: 60,
        now: Timestamp::UNIX_EPOCH,
    };
    let Schedule { waves, .. } = schedule(&mut plans, &budget_views, &rules);
    let names = waves.iter().flat_map(|wave| wave.nodes.iter().map(ToString::to_string));
    (plans, names.collect())
}

fn codes(plans: &[NodePlan], action: Action) -> Vec<&'static str> {
    plans.iter().filter(|p| p.action == action).map(|p| p.reasons[0].reason.code()).collect()
}

#[test]
fn unready_pods_come_first_because_they_need_no_budget() {
    let mut fleet = nodes("a", 2, NodeReadiness::Ready, PodBudgetState::OutdatedReady);
    fleet.extend(nodes("b", 1, NodeReadiness::Ready, PodBudgetState::OutdatedUnready));
    let (plans, order) = scheduled(fleet, 1, 0);
    assert_eq!(order, ["b0", "a0", "a1"]);
    assert!(plans.iter().all(|plan| plan.wave == Some(1)));
}

#[test]
fn unready_nodes_are_skipped_up_to_a_share_of_the_fleet() {
    // 5% of 60 is 3, rounded up.
    let mut fleet = nodes("a", 56, NodeReadiness::Ready, PodBudgetState::OutdatedReady);
    fleet.extend(nodes("b", 4, NOT_READY, PodBudgetState::OutdatedUnready));
    let (plans, order) = scheduled(fleet.clone(), 2, 0);
    assert_eq!(order.len(), 56);
    let waiting = codes(&plans, Action::Wait);
    assert_eq!(waiting, [&["skippedUnreadyNode"; 3][..], &["unreadyNodeCounts"]].concat());
    // The fourth counts as unavailable, and with a budget of one no other node is replaced.
    let (plans, order) = scheduled(fleet, 1, 0);
    assert_eq!(order, Vec::<String>::new());
    assert_eq!(
        codes(&plans, Action::Wait).iter().filter(|c| **c == "maxUnavailableReached").count(),
        56
    );
    assert!(plans.iter().all(|plan| plan.pods[0].fate == Fate::Keep));
}

#[test]
fn at_least_one_unready_node_is_skipped() {
    let mut fleet = nodes("a", 2, NodeReadiness::Ready, PodBudgetState::OutdatedReady);
    fleet.extend(nodes("b", 1, NOT_READY, PodBudgetState::OutdatedReady));
    let (plans, order) = scheduled(fleet, 1, 0);
    assert_eq!(order, ["a0", "a1"]);
    assert_eq!(codes(&plans, Action::Wait), ["skippedUnreadyNode"]);
}

/// The rollout does not count them either.
#[test]
fn nodes_that_are_not_eligible_never_count() {
    let mut fleet = nodes("a", 40, NodeReadiness::Ready, PodBudgetState::OutdatedReady);
    fleet.extend(nodes("b", 5, NOT_READY, PodBudgetState::OutdatedReady));
    let (_, ineligible) = fleet.last_mut().unwrap();
    ineligible.role = NodeRole::Other;
    let (plans, _) = scheduled(fleet, 9, 0);
    let waiting = codes(&plans, Action::Wait);
    let (skipped, counts) = ("skippedUnreadyNode", "unreadyNodeCounts");
    assert_eq!(waiting, [skipped, skipped, skipped, counts, skipped]);
}

#[test]
fn failed_pods_use_up_the_budget_except_for_unready_pods() {
    let mut fleet = nodes("a", 2, NodeReadiness::Ready, PodBudgetState::OutdatedReady);
    fleet.extend(nodes("b", 1, NodeReadiness::Ready, PodBudgetState::OutdatedUnready));
    fleet.extend(nodes("c", 1, NodeReadiness::Ready, PodBudgetState::Failed));
    let (plans, order) = scheduled(fleet.clone(), 1, 0);
    assert_eq!(order, ["b0"]);
    assert_eq!(codes(&plans, Action::Wait), ["maxUnavailableReached"; 2]);
    let (_, order) = scheduled(fleet, 2, 0);
    assert_eq!(order, ["b0", "a0", "a1"]);
}

#[test]
fn with_a_surge_the_controller_skips_no_nodes() {
    let fleet = nodes("b", 4, NOT_READY, PodBudgetState::OutdatedUnready);
    let (_, order) = scheduled(fleet, 0, 1);
    assert_eq!(order.len(), 4);
}
