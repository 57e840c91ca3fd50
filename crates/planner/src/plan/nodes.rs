//! Plans the action on each node: the controller's own decisions, plus the outdated pods to be
//! replaced. Their order is planned in `waves`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::coded::Coded;
use super::daemon_set_view::DaemonSetView;
use super::document::{Action, Fate, NodePlan, PodPlan};
use super::input::Detail;
use super::reason::Reason;
use super::waves::{BudgetView, PodBudgetState};
use crate::classification::{Availability, NodeRole, Templates, node_readiness, stays_unready};
use crate::intermediate::Intermediate;
use crate::steps::NodeUpdate;
use daemonset::controller::backoff::FailedPods;
use daemonset::controller::limits::allows_surge;
use daemonset::controller::manage::{Manage, View, manage};
use daemonset::controller::placement::{Obstacle, Placement};
use daemonset::model::{
    Node, NodeName, NodeReadiness, Pod, PodPhase, PodTarget, PolicySpec, Uid, UpdateStrategy,
};

/// Plans the nodes of one DaemonSet.
struct NodePlanner<'a> {
    /// The DaemonSet after the apply, with its nodes and pods as the controller sees them.
    view: View<'a, 'a>,
    /// Policy, which defines when a pod fails.
    policy: &'a PolicySpec,
    templates: &'a Templates,
    intermediate: &'a Intermediate,
    /// The times for which pods must have been Ready.
    availability: Availability,
    /// Whether outdated pods stay, because the rollout is paused.
    is_paused: bool,
    /// Pods that it will release, by node.
    released: HashMap<&'a NodeName, Vec<&'a Pod>>,
    /// Pods that it will adopt.
    adopted: HashSet<&'a Uid>,
    /// The nodes that get pods and reasons in the plan.
    described: Described,
}

/// The nodes that get pods and reasons in the plan. Most nodes of a large cluster have nothing to
/// do, and describing them would use most of the time and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Described {
    /// Nodes with something to do.
    Busy,
    /// All nodes.
    All,
}

impl From<Detail<'_>> for Described {
    fn from(detail: Detail<'_>) -> Self {
        if detail.all_nodes { Self::All } else { Self::Busy }
    }
}

/// One node's plan, and its state for the budget.
struct PlannedNode {
    /// The plan before waves are scheduled.
    plan: NodePlan,
    /// State for the budget.
    budget_view: BudgetView,
}

/// The plans of all nodes of a cluster.
pub(super) struct PlannedNodes {
    /// The plans in the order of the nodes' names.
    pub nodes: Vec<NodePlan>,
    /// State for the budget, one for each of `nodes`.
    pub budget_views: Vec<BudgetView>,
    /// Number of other nodes: they have no pod and get none.
    pub idle: u32,
}

/// Plans every node in name order, and the pods of nodes that no longer exist.
pub(super) fn planned_nodes(
    daemon_set_view: &DaemonSetView<'_>,
    policy: &PolicySpec,
    intermediate: &Intermediate,
    described: Described,
) -> PlannedNodes {
    let mut released: HashMap<&NodeName, Vec<&Pod>> = HashMap::new();
    for pod in &daemon_set_view.pods.released {
        if let Some(node) = pod.node() {
            released.entry(node).or_default().push(pod);
        }
    }
    let planner = NodePlanner {
        view: daemon_set_view.view(),
        policy,
        templates: &daemon_set_view.target.templates,
        intermediate,
        availability: Availability {
            outdated: daemon_set_view.owner.spec.min_ready_seconds,
            updated: policy.min_ready(daemon_set_view.owner.spec).first,
        },
        is_paused: daemon_set_view.is_paused,
        released,
        adopted: daemon_set_view.pods.adopted.iter().map(|pod| &pod.uid).collect(),
        described,
    };
    let immediate = Immediate::of(&manage(&planner.view, FailedPods::Unknown));
    let all = 0..planner.view.fleet.nodes().len();
    let is_reported = |at: &usize| described == Described::All || !planner.is_idle(*at);
    // Plans are large and there may be many: allocate memory for them once.
    let reported = all.clone().filter(is_reported).count();
    let (mut nodes, mut budget_views): (Vec<NodePlan>, Vec<_>) =
        (Vec::with_capacity(reported), Vec::with_capacity(reported));
    for at in all.clone().filter(is_reported) {
        let PlannedNode { mut plan, budget_view } =
            planner.planned(at, &planner.view.fleet.nodes()[at], &immediate);
        if let Some(last) = nodes.last().filter(|last| last.reasons == plan.reasons) {
            plan.reasons = Arc::clone(&last.reasons);
        }
        nodes.push(plan);
        budget_views.push(budget_view);
    }
    let idle = u32::try_from(all.len() - reported).unwrap_or(u32::MAX);
    let vanished: Vec<_> = planner.vanished().map(|it| (it.plan, it.budget_view)).collect();
    if !vanished.is_empty() {
        let mut all: Vec<_> = nodes.into_iter().zip(budget_views).chain(vanished).collect();
        all.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
        (nodes, budget_views) = all.into_iter().unzip();
    }
    PlannedNodes { nodes, budget_views, idle }
}

impl NodePlanner<'_> {
    fn planned(&self, at: usize, node: &Node, immediate: &Immediate) -> PlannedNode {
        let placement = &self.view.placements[at];
        let here = self.view.pods.at(at);
        let fates: Vec<(&Pod, PodFate)> =
            here.iter().map(|pod| (*pod, self.fate(pod, immediate))).collect();
        let decision = self.decision(placement, &fates, immediate.creates_on(node));
        let readiness = node_readiness(node, placement);
        let budget_view = BudgetView {
            role: NodeRole::of(readiness.is_ready(), placement, || {
                fates.iter().any(|(_, fate)| *fate == PodFate::Updated)
            }),
            node: readiness,
            pod: self.pod_budget_state(&fates),
            update: self.update(&fates),
            has_available_pod: fates.iter().any(|(pod, _)| self.is_available(pod)),
            restarts: fates.iter().map(|(pod, _)| pod.restarts).max().unwrap_or(0),
            stays_unready: fates.iter().any(|(pod, fate)| {
                *fate == PodFate::Outdated && stays_unready(pod, self.view.now, self.policy)
            }),
        };
        let mut plan = NodePlan {
            name: node.name.clone(),
            action: decision.action,
            wave: None,
            pods: Box::default(),
            reasons: Arc::default(),
        };
        if decision.action != Action::Keep || self.described == Described::All {
            self.describe(&mut plan, &fates, placement, decision.reasons);
        }
        PlannedNode { plan, budget_view }
    }

    /// Whether the node at this position has no pod and gets none; it does not count for the
    /// budget.
    fn is_idle(&self, at: usize) -> bool {
        self.view.pods.at(at).is_empty() && !self.view.placements[at].may_start
    }

    /// Adds pods and reasons to a plan.
    fn describe(
        &self,
        plan: &mut NodePlan,
        fates: &[(&Pod, PodFate)],
        placement: &Placement,
        mut reasons: Vec<Reason>,
    ) {
        let obstacle = obstacle_to_successor(placement, fates);
        let own = fates.iter().map(|(pod, fate)| self.pod_plan(pod, fate, obstacle, plan.action));
        let released = self.released.get(&plan.name).into_iter().flatten();
        plan.pods = own.chain(released.map(|pod| released_plan(pod))).collect();
        if fates.iter().any(|(pod, _)| self.adopted.contains(&pod.uid)) {
            reasons.push(Reason::Adopted);
        }
        plan.reasons = Arc::new(reasons.into_iter().map(Coded::from).collect());
    }

    /// The fate of a pod on an existing node.
    fn fate(&self, pod: &Pod, immediate: &Immediate) -> PodFate {
        if pod.terminating {
            PodFate::Leaving
        } else if let Some(reason) = immediate.deletes.get(&pod.uid) {
            PodFate::DeletedNow(reason.clone())
        } else if pod.phase == PodPhase::Failed {
            // The controller deletes one failed pod per node at a time; the others follow.
            PodFate::DeletedNow(Reason::Failed)
        } else if self.templates.is_updated(pod) {
            PodFate::Updated
        } else {
            PodFate::Outdated
        }
    }

    /// The net effect on a node and its reasons.
    fn decision(
        &self,
        placement: &Placement,
        fates: &[(&Pod, PodFate)],
        creates: bool,
    ) -> NodeDecision {
        let mut reasons: Vec<Reason> = Vec::new();
        for (_, fate) in fates {
            if let PodFate::DeletedNow(reason) = fate
                && !reasons.contains(reason)
            {
                reasons.push(reason.clone());
            }
        }
        let deletes = !reasons.is_empty();
        if reasons.contains(&Reason::Failed) {
            reasons.push(Reason::MayBeDelayed);
        }
        let has = |wanted: &PodFate| fates.iter().any(|(_, fate)| fate == wanted);
        if has(&PodFate::Outdated) {
            let outdated = fates.iter().find(|(_, fate)| *fate == PodFate::Outdated);
            let why = outdated.map(|(pod, _)| self.templates.outdated(pod));
            let obstacle = obstacle_to_successor(placement, fates);
            return self.outdated_decision(obstacle, why, reasons);
        }
        if has(&PodFate::Updated) {
            let action = if deletes { Action::Delete } else { Action::Keep };
            if !deletes {
                reasons.push(Reason::UpToDate);
            }
            return NodeDecision { action, reasons };
        }
        no_pod_stays(placement, deletes, creates, has(&PodFate::Leaving), reasons)
    }

    /// The net effect on a node with an outdated pod that the controller does not delete at once.
    /// `immediate` has the reasons for the pods that it does delete at once.
    fn outdated_decision(
        &self,
        obstacle: Option<&Arc<Obstacle>>,
        outdated: Option<Reason>,
        immediate: Vec<Reason>,
    ) -> NodeDecision {
        if self.is_paused {
            let action = if immediate.is_empty() { Action::Wait } else { Action::Delete };
            return NodeDecision {
                action,
                reasons: immediate.into_iter().chain(outdated).collect(),
            };
        }
        let strategy = &self.view.owner.spec.update_strategy;
        let (action, main) = match (strategy, obstacle) {
            (UpdateStrategy::OnDelete, _) if immediate.is_empty() => {
                (Action::Wait, Some(Reason::OnDelete))
            }
            (UpdateStrategy::OnDelete, _) => {
                let reasons = immediate.into_iter().chain([Reason::OnDelete]).collect();
                return NodeDecision { action: Action::Delete, reasons };
            }
            (UpdateStrategy::RollingUpdate { .. }, Some(obstacle)) => {
                let obstacle = obstacle.clone();
                (Action::Delete, Some(Reason::DeletedNotRecreated { obstacle }))
            }
            (UpdateStrategy::RollingUpdate { .. }, None) if allows_surge(strategy) => {
                (Action::Surge, outdated)
            }
            (UpdateStrategy::RollingUpdate { .. }, None) => (Action::Replace, outdated),
        };
        NodeDecision { action, reasons: main.into_iter().chain(immediate).collect() }
    }

    fn pod_plan(
        &self,
        pod: &Pod,
        fate: &PodFate,
        obstacle: Option<&Arc<Obstacle>>,
        action: Action,
    ) -> PodPlan {
        let rolled = match action {
            Action::Replace | Action::Surge => true,
            Action::Delete => {
                !self.is_paused && self.view.owner.spec.update_strategy != UpdateStrategy::OnDelete
            }
            Action::Create | Action::Wait | Action::Keep => false,
        };
        let (fate, reason) = match fate {
            PodFate::Leaving => (Fate::Delete, Reason::Terminating),
            PodFate::DeletedNow(reason) => (Fate::Delete, reason.clone()),
            PodFate::Updated => (Fate::Keep, Reason::UpToDate),
            PodFate::Outdated => {
                let reason = match obstacle {
                    Some(obstacle) if rolled => {
                        Reason::DeletedNotRecreated { obstacle: obstacle.clone() }
                    }
                    Some(_) | None => self.templates.outdated(pod),
                };
                (if rolled { Fate::Delete } else { Fate::Keep }, reason)
            }
        };
        pod_plan(pod, fate, reason)
    }

    fn pod_budget_state(&self, fates: &[(&Pod, PodFate)]) -> PodBudgetState {
        let find = |wanted: &PodFate| fates.iter().find(|(_, fate)| fate == wanted);
        match (find(&PodFate::Outdated), find(&PodFate::Updated)) {
            (Some((pod, _)), _) if pod.is_ready() => PodBudgetState::OutdatedReady,
            (Some(_), _) => PodBudgetState::OutdatedUnready,
            (None, Some((pod, _))) if stays_unready(pod, self.view.now, self.policy) => {
                PodBudgetState::Failed
            }
            (None, _) => PodBudgetState::Other,
        }
    }

    /// How far the update of a node with these pods is.
    fn update(&self, fates: &[(&Pod, PodFate)]) -> NodeUpdate {
        let find = |wanted: &PodFate| fates.iter().find(|(_, fate)| fate == wanted);
        match (find(&PodFate::Outdated), find(&PodFate::Updated)) {
            (Some((pod, _)), _) => {
                NodeUpdate::Outdated { is_intermediate: self.intermediate.has(pod) }
            }
            (None, Some((pod, _))) if self.is_available(pod) => {
                NodeUpdate::Updated { since: pod.up_since() }
            }
            (None, _) => NodeUpdate::InProgress,
        }
    }

    fn is_available(&self, pod: &Pod) -> bool {
        let is_updated = self.templates.is_updated(pod);
        self.availability.is_available(pod, is_updated, self.view.now)
    }

    /// Plans of nodes that no longer exist, for their pods.
    fn vanished(&self) -> impl Iterator<Item = PlannedNode> {
        let exists = |node: &NodeName| self.view.fleet.position(node).is_some();
        let claimed = self.view.pods.vanished().flatten().map(|pod| (*pod, vanished_plan(pod)));
        let released = self.released.iter().filter(|(node, _)| !exists(node));
        let released = released.flat_map(|(_, pods)| pods).map(|pod| (*pod, released_plan(pod)));
        let mut by_node: BTreeMap<&NodeName, Vec<PodPlan>> = BTreeMap::new();
        for (pod, plan) in claimed.chain(released) {
            if let Some(node) = pod.node() {
                by_node.entry(node).or_default().push(plan);
            }
        }
        by_node.into_iter().filter_map(|(node, pods)| self.planned_vanished(node, pods))
    }

    fn planned_vanished(&self, node: &NodeName, pods: Vec<PodPlan>) -> Option<PlannedNode> {
        let deleted = pods.iter().find(|plan| plan.fate == Fate::Delete);
        let action = if deleted.is_some() { Action::Delete } else { Action::Keep };
        let mut reasons = vec![deleted.or(pods.first())?.reason.clone()];
        if pods.iter().any(|plan| self.adopted.contains(&plan.uid)) {
            reasons.push(Reason::Adopted.into());
        }
        Some(PlannedNode {
            plan: NodePlan {
                name: node.clone(),
                action,
                wave: None,
                pods: pods.into(),
                reasons: reasons.into(),
            },
            budget_view: BudgetView {
                role: NodeRole::Other,
                node: NodeReadiness::Ready,
                pod: PodBudgetState::Other,
                update: NodeUpdate::InProgress,
                has_available_pod: false,
                restarts: 0,
                stays_unready: false,
            },
        })
    }
}

/// Fate of a pod before outdated ones are replaced.
#[derive(Clone, Debug, PartialEq)]
enum PodFate {
    /// It is being deleted already.
    Leaving,
    /// The controller deletes it at once.
    DeletedNow(Reason),
    /// It is kept and comes from the target template.
    Updated,
    /// It is kept and comes from another template.
    Outdated,
}

struct NodeDecision {
    action: Action,
    reasons: Vec<Reason>,
}

/// Actions that the controller takes at once.
struct Immediate {
    deletes: HashMap<Uid, Reason>,
    creates: HashSet<String>,
}

impl Immediate {
    fn of(manage: &Manage<'_>) -> Self {
        let deletes = manage.delete.iter();
        let creates = manage.create.iter();
        Self {
            deletes: deletes.map(|d| (d.pod.uid.clone(), Reason::from(&d.reason))).collect(),
            creates: creates.map(|creation| creation.node.to_string()).collect(),
        }
    }

    fn creates_on(&self, node: &Node) -> bool {
        self.creates.contains(node.name.as_str())
    }
}

/// The placement rule that keeps the node from getting a pod in place of an outdated one; none
/// where one may start, or where an updated one, of a surge, runs already.
fn obstacle_to_successor<'p>(
    placement: &'p Placement,
    fates: &[(&Pod, PodFate)],
) -> Option<&'p Arc<Obstacle>> {
    let has_updated = fates.iter().any(|(_, fate)| *fate == PodFate::Updated);
    placement.obstacle.as_ref().filter(|_| !has_updated)
}

/// The net effect on a node where no pod is kept.
fn no_pod_stays(
    placement: &Placement,
    deletes: bool,
    creates: bool,
    leaving: bool,
    mut reasons: Vec<Reason>,
) -> NodeDecision {
    let action = match &placement.obstacle {
        None if deletes => Action::Replace,
        None if creates => {
            reasons.push(if leaving { Reason::NoLivePod } else { Reason::NoPod });
            Action::Create
        }
        None => {
            reasons.push(Reason::Terminating);
            Action::Wait
        }
        Some(obstacle) if deletes => {
            if placement.may_stay {
                reasons.push(Reason::DeletedNotRecreated { obstacle: obstacle.clone() });
            }
            Action::Delete
        }
        Some(obstacle) => {
            reasons.push(Reason::NotEligible { obstacle: obstacle.clone() });
            Action::Keep
        }
    };
    NodeDecision { action, reasons }
}

pub(super) fn pod_plan(pod: &Pod, fate: Fate, reason: Reason) -> PodPlan {
    PodPlan {
        name: pod.name.clone(),
        uid: pod.uid.clone(),
        revision_hash: pod.revision_hash(),
        fate,
        reason: reason.into(),
    }
}

/// The plan of a pod that the DaemonSet releases.
fn released_plan(pod: &Pod) -> PodPlan {
    pod_plan(pod, Fate::Keep, Reason::Released)
}

/// The plan of a pod whose node no longer exists: an unbound one is deleted, a bound one is left to
/// the pod garbage collector.
fn vanished_plan(pod: &Pod) -> PodPlan {
    match &pod.target {
        PodTarget::Aimed(_) => pod_plan(pod, Fate::Delete, Reason::NodeVanished),
        PodTarget::Bound(_) | PodTarget::Nowhere => {
            pod_plan(pod, Fate::Keep, Reason::LeftToGarbageCollector)
        }
    }
}
