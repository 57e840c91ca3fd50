//! The budget before the first wave begins: the nodes that count as unavailable already, those that
//! have to wait for it, and the candidates that are left.

use std::sync::Arc;

use jiff::Timestamp;

use crate::classification::{NodeRole, NodeStanding, SkippedNodes, Templates};
use crate::plan::coded::Coded;
use crate::plan::document::{Action, Fate, NodePlan, PodPlan};
use crate::plan::reason::{NotReadyNode, Reason};
use crate::steps::NodeUpdate;
use daemonset::model::{NodeReadiness, SkipUnreadyNodes};

/// State of one node that matters for the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::plan) struct BudgetView {
    /// What the node is to the DaemonSet.
    pub role: NodeRole,
    /// Readiness of the node.
    pub node: NodeReadiness,
    /// State of its pod.
    pub pod: PodBudgetState,
    /// How far its update is.
    pub update: NodeUpdate,
    /// Whether it has an available pod, of any template.
    pub has_available_pod: bool,
    /// Restarts of its pod.
    pub restarts: u32,
    /// Whether its outdated pod is not Ready, and will probably stay so.
    pub stays_unready: bool,
}

/// State of a node's pod that matters for the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::plan) enum PodBudgetState {
    /// Outdated and Ready: replacing it needs budget.
    OutdatedReady,
    /// Outdated and not Ready: replacing it needs no budget.
    OutdatedUnready,
    /// Updated and not Ready, and will probably stay so.
    Failed,
    /// Anything else: running, starting, or handled by the controller.
    Other,
}

impl BudgetView {
    pub(super) fn is_desired(&self) -> bool {
        self.role == NodeRole::Desired
    }

    /// Whether its updated pod has failed although the node is Ready.
    fn has_failed(&self) -> bool {
        self.is_desired() && self.node == NodeReadiness::Ready && self.pod == PodBudgetState::Failed
    }
}

impl PodBudgetState {
    pub(super) fn is_outdated(self) -> bool {
        matches!(self, Self::OutdatedReady | Self::OutdatedUnready)
    }
}

/// The nodes that count as unavailable before the first wave begins, and that no wave changes.
#[derive(Debug, Default)]
pub(super) struct AlreadyUnavailable {
    /// Their positions.
    pub nodes: Vec<usize>,
    /// Whether they use up the budget, so that other nodes have to wait for it.
    pub use_up_budget: bool,
}

/// Lets nodes wait on which a pod is not replaced for now. `skips_nodes`: whether NotReady nodes are
/// skipped.
pub(super) fn defer_nodes(
    nodes: &mut [NodePlan],
    budget_views: &[BudgetView],
    templates: &Templates,
    skips_nodes: bool,
    skip: SkipUnreadyNodes,
    max_unavailable: u32,
    now: Timestamp,
) -> AlreadyUnavailable {
    let mut already =
        skip_unready_nodes(nodes, budget_views, skips_nodes.then_some(templates), skip, now);
    already.extend((0..nodes.len()).filter(|at| budget_views[*at].has_failed()));
    already.sort_unstable();
    let count = u32::try_from(already.len()).unwrap_or(u32::MAX);
    let use_up_budget = count >= max_unavailable
        && defer_ready_pods(nodes, budget_views, templates, count, max_unavailable);
    AlreadyUnavailable { nodes: already, use_up_budget }
}

/// Lets outdated pods on NotReady nodes wait, given the templates. Returns the positions of the
/// nodes that count as unavailable because more nodes are NotReady than may be skipped.
fn skip_unready_nodes(
    nodes: &mut [NodePlan],
    budget_views: &[BudgetView],
    templates: Option<&Templates>,
    skip: SkipUnreadyNodes,
    now: Timestamp,
) -> Vec<usize> {
    let count = |wanted: &dyn Fn(&BudgetView) -> bool| {
        u32::try_from(budget_views.iter().filter(|it| wanted(it)).count()).unwrap_or(u32::MAX)
    };
    let desired = count(&BudgetView::is_desired);
    let unready = count(&|it| it.role.counts() && it.node != NodeReadiness::Ready);
    let mut skipped = SkippedNodes::of(skip, desired);
    let mut counting = Vec::new();
    for (at, (node, budget_view)) in nodes.iter_mut().zip(budget_views).enumerate() {
        let Some(not_ready) = NotReadyNode::of(budget_view.node, now) else { continue };
        let reason = match skipped.classify(false, budget_view.role) {
            NodeStanding::Ready | NodeStanding::Skipped => {
                Reason::SkippedUnreadyNode(not_ready.into())
            }
            NodeStanding::Counted => {
                counting.push(at);
                Reason::UnreadyNodeCounts { unready, skippable: skipped.skippable }
            }
        };
        if let Some(templates) = templates
            && budget_view.pod.is_outdated()
            && is_rolled(node)
        {
            wait(node, templates, reason);
        }
    }
    counting
}

/// Lets Ready outdated pods wait, because nothing in the plan frees the budget. Returns whether
/// there are any.
fn defer_ready_pods(
    nodes: &mut [NodePlan],
    budget_views: &[BudgetView],
    templates: &Templates,
    unavailable: u32,
    allowed: u32,
) -> bool {
    let mut any = false;
    for (node, budget_view) in nodes.iter_mut().zip(budget_views) {
        if budget_view.pod == PodBudgetState::OutdatedReady && is_rolled(node) {
            wait(node, templates, Reason::MaxUnavailableReached { unavailable, allowed });
            any = true;
        }
    }
    any
}

/// The positions of the nodes to be replaced: first those whose pod is not Ready, as they need no
/// budget, then the others; each by name.
pub(super) fn candidates(nodes: &[NodePlan], budget_views: &[BudgetView]) -> Vec<usize> {
    let outdated = |pod: PodBudgetState| {
        (0..nodes.len()).filter(move |at| budget_views[*at].pod == pod && is_rolled(&nodes[*at]))
    };
    outdated(PodBudgetState::OutdatedUnready)
        .chain(outdated(PodBudgetState::OutdatedReady))
        .collect()
}

/// Whether the plan deletes an outdated pod of the node.
fn is_rolled(node: &NodePlan) -> bool {
    node.deleted().any(is_outdated)
}

fn is_outdated(pod: &PodPlan) -> bool {
    matches!(pod.reason.reason, Reason::Outdated { .. } | Reason::DeletedNotRecreated { .. })
}

/// Keeps the outdated pod of a node. The node waits, unless the controller deletes another of its
/// pods at once.
fn wait(node: &mut NodePlan, templates: &Templates, reason: Reason) {
    for pod in node.pods.iter_mut().filter(|pod| is_outdated(pod)) {
        pod.fate = Fate::Keep;
        // A pod that is not deleted needs no successor: it is only outdated.
        if let Reason::DeletedNotRecreated { .. } = pod.reason.reason {
            let outdated = Coded::from(templates.outdated_with(pod.revision_hash.as_ref()));
            for of_node in
                Arc::make_mut(&mut node.reasons).iter_mut().filter(|it| **it == pod.reason)
            {
                *of_node = outdated.clone();
            }
            pod.reason = outdated;
        }
    }
    if node.deleted().next().is_some() {
        // The first reason is the main one: now that of the delete, no longer that of the update.
        let reasons = Arc::make_mut(&mut node.reasons);
        reasons.rotate_left(1);
        reasons.push(Coded::from(reason));
        node.action = Action::Delete;
    } else {
        Arc::make_mut(&mut node.reasons).insert(0, Coded::from(reason));
        node.action = Action::Wait;
    }
}
