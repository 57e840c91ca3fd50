//! What a decision is made on: the state of each node that should run a pod or has one, and the budget.
//!
//! What a node or a pod is, is decided in [`classification`](crate::classification). Not here: the
//! decisions (`next_deletes`, `new_pods`).

mod standings;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::observed_cluster::ObservedCluster;
use super::progress::Progress;
use super::state::{Pods, State};
use super::task::Task;
use crate::classification::{Availability, NodeStanding, Templates, node_readiness};
use crate::plan::{PausedRollout, Reason, ailments, node_not_ready, not_available};
use daemonset::controller::history::hash_of;
use daemonset::controller::limits::Limits;
use daemonset::controller::node_placements::NodePlacements;
use daemonset::controller::node_pods::{EndedPods, NodePods};
use daemonset::controller::placement::{Obstacle, Placement};
use daemonset::controller::revision_data::{Matching, matches};
use daemonset::model::{
    DaemonSet, MinReady, Node, NodeName, NodeReadiness, Pod, Revision, UpdateStrategy,
};
use standings::Standings;

/// One DaemonSet, its nodes by name, and the budget.
pub(super) struct RolloutView<'a> {
    pub live: &'a DaemonSet,
    /// Revisions of the template of updated pods, the current one last.
    pub revisions: Vec<&'a Revision>,
    /// The hashes that mark updated pods.
    pub templates: Templates,
    pub node_views: Vec<NodeView<'a>>,
    /// Number of nodes that should run a pod.
    pub desired: u32,
    /// Number of desired nodes that may be unavailable.
    pub allowed: u32,
    /// Number of nodes that may be skipped because they are not Ready.
    pub skippable: u32,
    /// Number of NotReady nodes that count.
    pub unready: u32,
    /// Time that an updated pod must have stayed Ready to be available, in seconds.
    pub min_ready: u32,
    pub now: Timestamp,
}

/// One node with its pods.
pub(super) struct NodeView<'a> {
    pub node: &'a Node,
    /// Whether it is Ready, and does not only come back ([`node_readiness`]).
    readiness: NodeReadiness,
    /// The wave in which its outdated pod is replaced, if there is one and it was planned.
    pub wave: Option<u32>,
    /// The reason why no pod may start here; `None` on a desired node.
    pub obstacle: Option<Arc<Obstacle>>,
    pub node_standing: NodeStanding,
    pub pod_state: PodState<'a>,
    /// Whether the node has an available pod, of any revision.
    pub has_available_pod: bool,
    /// Whether the controller counts one of its pods as available, by the declared
    /// `minReadySeconds`. A surge continues by this.
    has_serving_pod: bool,
    /// A pod that is terminating or was sent a delete.
    terminating: Option<&'a Pod>,
    /// Whether its updated pod failed before this rollout.
    pub failed_before: bool,
    /// When this run deleted its pod, if the node is not Ready, and was until then.
    pub lost_since: Option<Timestamp>,
}

/// The state of a node's pods. Pods that are terminating or have been sent a delete are considered
/// only where there is no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PodState<'a> {
    /// An updated, available pod.
    UpdatedAvailable(&'a Pod),
    /// An updated pod that is not available.
    UpdatedUnavailable(&'a Pod),
    /// An outdated pod.
    Outdated(&'a Pod),
    /// Several pods: surplus ones that the controller will delete, or both pods of a surge.
    Several {
        /// The updated pod, if there is one.
        updated: Option<&'a Pod>,
        /// The outdated pod, if there is one.
        outdated: Option<&'a Pod>,
    },
    /// Only a pod that is terminating.
    Terminating(&'a Pod),
    /// Only a pod that has ended; the controller replaces it.
    Ended(&'a Pod),
    /// No pod.
    Empty,
}

impl<'a> PodState<'a> {
    /// The outdated pod, also if it is one of several.
    fn outdated(self) -> Option<&'a Pod> {
        match self {
            Self::Outdated(pod) | Self::Several { updated: _, outdated: Some(pod) } => Some(pod),
            Self::UpdatedAvailable(_)
            | Self::UpdatedUnavailable(_)
            | Self::Several { updated: _, outdated: None }
            | Self::Terminating(_)
            | Self::Ended(_)
            | Self::Empty => None,
        }
    }

    /// The updated pod, if it is the only pod.
    pub(super) fn only_updated(self) -> Option<&'a Pod> {
        match self {
            Self::UpdatedAvailable(pod) | Self::UpdatedUnavailable(pod) => Some(pod),
            Self::Outdated(_)
            | Self::Several { .. }
            | Self::Terminating(_)
            | Self::Ended(_)
            | Self::Empty => None,
        }
    }

    /// Whether there is an updated pod and no outdated one.
    pub(super) fn is_updated(self) -> bool {
        self.only_updated().is_some()
            || matches!(self, Self::Several { updated: Some(_), outdated: None })
    }
}

impl<'a> RolloutView<'a> {
    /// Evaluates the live object, its nodes and pods.
    pub(super) fn of(
        live: &'a DaemonSet,
        observed: &ObservedCluster<'a>,
        state: &State,
        now: Timestamp,
    ) -> Self {
        Self::updated_by(live.spec.template.raw(), live, observed, state, now)
    }

    /// The same, with another template than the live one as that of updated pods.
    pub(super) fn updated_by(
        template: &Value,
        live: &'a DaemonSet,
        observed: &ObservedCluster<'a>,
        state: &State,
        now: Timestamp,
    ) -> Self {
        let claimed = observed.revisions_of(live);
        let (templates, revisions) = of_template(template, &claimed);
        let made = || NodePlacements::of(&live.spec.template.placement, observed.nodes);
        let node_placements =
            observed.node_placements.map_or_else(|| Cow::Owned(made()), Cow::Borrowed);
        debug_assert_eq!(
            *node_placements,
            made(),
            "the cached node placements are those of these nodes"
        );
        let (fleet, placements) =
            (node_placements.fleet(observed.nodes), node_placements.placements());
        let own = observed.pods_of(live);
        let pods = NodePods::group(&fleet, &own, EndedPods::Dropped);
        let desired = placements.iter().filter(|placement| placement.may_start).count();
        let desired = u32::try_from(desired).unwrap_or(u32::MAX);
        let mut standings = Standings::of(state, desired, now);
        let mut view = Self {
            live,
            revisions,
            templates,
            node_views: Vec::with_capacity(observed.nodes.len()),
            desired,
            allowed: allowed(&state.task, live, desired),
            skippable: standings.skipped.skippable,
            unready: 0,
            min_ready: min_ready(state, live),
            now,
        };
        for ((at, node), placement) in observed.nodes.iter().enumerate().zip(placements) {
            let here = pods.at(at);
            let readiness = node_readiness(node, placement);
            let role = standings.role((node, readiness), placement, here, &view.templates);
            let is_empty = !placement.may_stay || here.is_empty();
            if is_empty && !role.counts() {
                continue;
            }
            let node_standing = standings.classify((node, readiness), role);
            let node_view =
                view.node_view((node, readiness), placement, node_standing, here, state);
            view.node_views.push(node_view);
        }
        view.unready = standings.skipped.unready;
        view
    }

    fn node_view(
        &self,
        (node, readiness): (&'a Node, NodeReadiness),
        placement: &Placement,
        node_standing: NodeStanding,
        pods: &[&'a Pod],
        state: &State,
    ) -> NodeView<'a> {
        let (terminating, mut alive): (Vec<&Pod>, Vec<&Pod>) = pods
            .iter()
            .copied()
            .partition(|pod| standings::leaves(pod, &self.templates, &state.pods, self.now));
        alive.retain(|pod| !pod.is_terminal());
        let terminating = terminating.first().copied();
        let ended = pods.iter().copied().find(|pod| pod.is_terminal());
        let is_updated = |pod: &&&Pod| self.templates.is_updated(pod);
        let pod_state = match (alive.as_slice(), terminating, ended) {
            ([pod], ..) if is_updated(&pod) && self.is_available(pod) => {
                PodState::UpdatedAvailable(pod)
            }
            ([pod], ..) if is_updated(&pod) => PodState::UpdatedUnavailable(pod),
            ([pod], ..) => PodState::Outdated(pod),
            ([_, _, ..], ..) => PodState::Several {
                updated: alive.iter().find(is_updated).copied(),
                outdated: alive.iter().find(|pod| !is_updated(pod)).copied(),
            },
            ([], Some(pod), _) => PodState::Terminating(pod),
            ([], None, Some(pod)) => PodState::Ended(pod),
            ([], None, None) => PodState::Empty,
        };
        let has_available_pod = alive.iter().any(|pod| self.is_available(pod));
        let declared = self.live.spec.min_ready_seconds;
        let has_serving_pod = alive.iter().any(|pod| pod.serves(declared, self.now));
        let obstacle = placement.obstacle.clone();
        let failing_before = state.pods.failing_before.as_ref();
        let failed_before =
            failing_before.is_some_and(|uids| alive.iter().any(|pod| uids.contains(&pod.uid)));
        let mut node_view = NodeView {
            node,
            readiness,
            wave: None,
            obstacle,
            node_standing,
            pod_state,
            has_available_pod,
            has_serving_pod,
            terminating,
            failed_before,
            lost_since: standings::lost_since((node, readiness), &state.pods),
        };
        if node_view.has_outdated_pod() {
            node_view.wave = state.waves.get(&node.name).copied();
        }
        node_view
    }

    /// When a pod whose delete failed without a clear answer counts as alive again; none if it will not.
    pub(super) fn spared_at(&self, pod: &Pod, pods: &Pods) -> Option<Timestamp> {
        standings::spared_at(pod, &self.templates, pods)
    }

    /// Whether a pod that is not terminating is available.
    pub(super) fn is_available(&self, pod: &Pod) -> bool {
        self.availability().is_available(pod, self.templates.is_updated(pod), self.now)
    }

    /// The time when a Ready pod becomes available, if it stays Ready.
    pub(super) fn available_at(&self, pod: &Pod) -> Option<Timestamp> {
        self.availability().available_at(pod, self.templates.is_updated(pod), self.now)
    }

    fn availability(&self) -> Availability {
        Availability { outdated: self.live.spec.min_ready_seconds, updated: self.min_ready }
    }

    /// Number of nodes that count as unavailable.
    pub(super) fn unavailable(&self) -> u32 {
        count(self.node_views.iter().filter(|node_view| node_view.is_unavailable()))
    }

    /// Number of nodes with an outdated pod that this run could replace.
    pub(super) fn outdated(&self) -> u32 {
        let outdated =
            |node_view: &&NodeView<'_>| node_view.is_ready() && node_view.has_outdated_pod();
        count(self.node_views.iter().filter(outdated))
    }

    /// The rollout progress as node counts.
    pub(super) fn progress(&self, wave: Option<u32>, pods: &Pods) -> Progress {
        let desired = || self.node_views.iter().filter(|node_view| node_view.is_desired());
        let limits = Limits::of(&self.live.spec.update_strategy, self.desired);
        let may_surge = limits.map_or(0, |limits| limits.max_surge);
        // The controller, which surges, counts by its own rule.
        let is_unavailable = |node_view: &&NodeView<'_>| {
            node_view.is_unavailable() && !(may_surge > 0 && node_view.has_serving_pod)
        };
        Progress {
            desired: self.desired,
            updated: count(desired().filter(|node_view| node_view.pod_state.is_updated())),
            available: count(desired().filter(|node_view| node_view.has_available_pod)),
            unavailable: count(self.node_views.iter().filter(is_unavailable)),
            awaiting_first_pod: count(self.node_views.iter().filter(|node_view| {
                node_view.is_in_flight()
                    && is_unavailable(node_view)
                    && !pods.had_pod.contains(&node_view.node.name)
            })),
            allowed: self.allowed,
            surging: count(desired().filter(|node_view| node_view.is_surging())),
            may_surge,
            recovering: u32::try_from(pods.waiting.len()).unwrap_or(u32::MAX),
            outdated: count(
                self.node_views.iter().filter(|node_view| node_view.has_outdated_pod()),
            ),
            skipped: count(
                desired().filter(|node_view| node_view.node_standing == NodeStanding::Skipped),
            ),
            wave,
        }
    }

    /// The reason why an outdated pod is deleted.
    pub(super) fn why(&self, node_view: &NodeView<'_>, pod: &Pod) -> Reason {
        match &node_view.obstacle {
            Some(obstacle) => Reason::DeletedNotRecreated { obstacle: Arc::clone(obstacle) },
            None => self.templates.outdated(pod),
        }
    }

    /// Nodes that are not in the desired state, and the reasons.
    pub(super) fn left(&self) -> BTreeMap<NodeName, Vec<Reason>> {
        let reported = self
            .node_views
            .iter()
            .map(|node_view| (node_view.node.name.clone(), self.reasons(node_view)));
        reported.filter(|(_, reasons)| !reasons.is_empty()).collect()
    }

    fn reasons(&self, node_view: &NodeView<'_>) -> Vec<Reason> {
        let of_pod = match node_view.pod_state {
            PodState::UpdatedAvailable(_) => return Vec::new(),
            PodState::Outdated(pod) | PodState::Several { outdated: Some(pod), .. } => {
                self.of_outdated(node_view, pod)
            }
            PodState::UpdatedUnavailable(pod) => vec![not_available(pod, self.min_ready)],
            PodState::Several { updated: _, outdated: None } => Vec::new(),
            PodState::Terminating(_) => vec![Reason::Terminating],
            PodState::Ended(_) => vec![Reason::NoLivePod],
            PodState::Empty => vec![Reason::NoPod],
        };
        let of_node = match (node_view.node_standing, node_not_ready(node_view.readiness, self.now))
        {
            (NodeStanding::Skipped, Some(Reason::NodeNotReady(node)))
                if node_view.has_outdated_pod() =>
            {
                Some(Reason::SkippedUnreadyNode(node))
            }
            (NodeStanding::Counted, _) => {
                Some(Reason::UnreadyNodeCounts { unready: self.unready, skippable: self.skippable })
            }
            (NodeStanding::Ready | NodeStanding::Skipped, other) => other,
        };
        of_node.into_iter().chain(of_pod).collect()
    }

    /// The reasons of an outdated pod that the run leaves: it is not deleted, wherever it runs.
    fn of_outdated(&self, node_view: &NodeView<'_>, pod: &Pod) -> Vec<Reason> {
        let obstacle = node_view.obstacle.clone();
        let misscheduled = obstacle.map(|obstacle| Reason::Misscheduled { obstacle });
        let declared = self.live.spec.min_ready_seconds;
        let ailing = ailments(node_view.node, &[pod], declared, self.now);
        let ailing = ailing.into_iter().filter(|it| !matches!(it, Reason::NodeNotReady(_)));
        [self.templates.outdated(pod)].into_iter().chain(misscheduled).chain(ailing).collect()
    }
}

impl<'a> NodeView<'a> {
    /// Whether the node should run a pod.
    pub(super) fn is_desired(&self) -> bool {
        self.obstacle.is_none()
    }

    /// Whether the node is Ready, and is not treated as if it were not, because images could not be
    /// pulled to it.
    pub(super) fn is_ready(&self) -> bool {
        self.node_standing == NodeStanding::Ready
    }

    /// Whether the node has an outdated pod.
    pub(super) fn has_outdated_pod(&self) -> bool {
        self.outdated_pod().is_some()
    }

    /// The outdated pod of the node.
    pub(super) fn outdated_pod(&self) -> Option<&'a Pod> {
        self.pod_state.outdated()
    }

    /// Whether the node has an old and a new pod.
    pub(super) fn is_surging(&self) -> bool {
        matches!(self.pod_state, PodState::Several { updated: Some(_), outdated: Some(_) })
    }

    /// Whether the node has an old pod, or an available one.
    pub(super) fn has_had_pod(&self) -> bool {
        match self.pod_state {
            PodState::UpdatedUnavailable(_) | PodState::Empty => self.terminating.is_some(),
            PodState::UpdatedAvailable(_)
            | PodState::Outdated(_)
            | PodState::Several { .. }
            | PodState::Terminating(_)
            | PodState::Ended(_) => true,
        }
    }

    /// Whether the node waits for its new pod: it has no available pod and no outdated one, and its
    /// pod did not fail before this rollout.
    pub(super) fn is_in_flight(&self) -> bool {
        self.is_desired()
            && self.is_ready()
            && !self.has_available_pod
            && !self.has_outdated_pod()
            && !self.failed_before
    }

    /// The pod that is terminating or was sent a delete.
    pub(super) fn terminating(&self) -> Option<&'a Pod> {
        self.terminating
    }

    /// Whether the node counts against the budget. A node that may not start a pod is not a desired
    /// one; it counts if it is lost after its update, and while its pod is terminating, so that such pods
    /// are deleted at the same pace. On a node that is not Ready, that may last for ever. A Ready node that
    /// is skipped, because images could not be pulled to it, counts as any other.
    pub(super) fn is_unavailable(&self) -> bool {
        if !self.is_desired() {
            let is_counted = self.node_standing == NodeStanding::Counted;
            return is_counted || (self.is_ready() && self.terminating.is_some());
        }
        let is_down = self.readiness.is_ready() && !self.has_available_pod;
        is_down || self.node_standing.is_unavailable(self.has_available_pod)
    }
}

/// The hashes of this template, to recognize its pods, and its revisions, the current one last: the
/// controller compares bytes, so an exact match comes after one that an older server wrote.
pub(super) fn of_template<'a>(
    template: &Value,
    claimed: &[&'a Revision],
) -> (Templates, Vec<&'a Revision>) {
    let is = |revision: &Revision, how| matches(template, &revision.data, how);
    let mut same: Vec<&Revision> =
        claimed.iter().copied().filter(|revision| is(revision, Matching::Tolerant)).collect();
    let templates = Templates {
        target: same.iter().map(|revision| hash_of(revision)).collect(),
        numbers: claimed.iter().map(|revision| (hash_of(revision), revision.number)).collect(),
    };
    if same.iter().any(|revision| is(revision, Matching::Exact)) {
        same.retain(|revision| is(revision, Matching::Exact));
    }
    same.sort_by_key(|revision| revision.number);
    (templates, same)
}

/// Number of desired nodes that may be unavailable.
fn allowed(task: &Task, live: &DaemonSet, desired: u32) -> u32 {
    let declared = match task.goal.target() {
        Some(target) => Some(*target.declared.strategy()),
        None => PausedRollout::of(live)
            .ok()
            .flatten()
            .and_then(|pause| serde::Deserialize::deserialize(&pause.declared).ok()),
    };
    let limits = declared.and_then(|strategy: UpdateStrategy| Limits::of(&strategy, desired));
    match (limits, task.policy.max_unavailable) {
        (Some(limits), _) => task.policy.while_deleting(limits.max_unavailable, desired),
        (None, Some(limit)) => limit.scaled(desired).max(1),
        (None, None) => 1,
    }
}

/// Time that an updated pod must have stayed Ready to be available, in seconds. It is longer for
/// the first pod that this run replaces, which proves the template, whatever pods of it run
/// already.
fn min_ready(state: &State, live: &DaemonSet) -> u32 {
    let MinReady { first, others } = state.task.policy.min_ready(&live.spec);
    if state.pods.replaced.is_empty() { first } else { others }
}

pub(super) fn count<T>(items: impl Iterator<Item = T>) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}
