//! Whether each node is Ready, skipped or counted: by what is observed, and by what this run has done there.

use jiff::{SignedDuration, Timestamp};

use crate::classification::{NodeRole, NodeStanding, SkippedNodes, Templates};
use crate::rollout::request::RequestState;
use crate::rollout::state::{Pods, State};
use daemonset::controller::placement::Placement;
use daemonset::model::{Node, NodeReadiness, Pod};

/// Time for which a failed delete may still be executed: API servers drop a request after a minute.
const UNDER_WAY: SignedDuration = SignedDuration::from_secs(60);

/// Classifies the nodes in the order of their names.
pub(super) struct Standings<'s> {
    pub skipped: SkippedNodes,
    state: &'s State,
    now: Timestamp,
}

impl<'s> Standings<'s> {
    pub(super) fn of(state: &'s State, desired: u32, now: Timestamp) -> Self {
        let skipped = SkippedNodes::of(state.task.policy.skip_unready_nodes, desired);
        Self { skipped, state, now }
    }

    /// What a node with these pods is to the DaemonSet. Its update has begun as soon as the run has deleted
    /// its old pod: that may never end on a node that is lost meanwhile, and the new one may be gone again.
    pub(super) fn role(
        &self,
        (node, readiness): (&Node, NodeReadiness),
        placement: &Placement,
        pods: &[&Pod],
        templates: &Templates,
    ) -> NodeRole {
        let of_run = &self.state.pods;
        NodeRole::of(readiness.is_ready(), placement, || {
            let is_updated = |pod: &&Pod| templates.is_updated(pod) && !pod.terminating;
            let is_alive =
                |pod: &&Pod| !leaves(pod, templates, of_run, self.now) && !pod.is_terminal();
            let has_begun = of_run.begun.contains_key(&node.name);
            pods.iter().any(is_updated) || (has_begun && !pods.iter().any(is_alive))
        })
    }

    /// Classifies the next node.
    pub(super) fn classify(
        &mut self,
        (node, readiness): (&Node, NodeReadiness),
        role: NodeRole,
    ) -> NodeStanding {
        let is_ready = readiness.is_ready() && !self.state.is_dropped(&node.name);
        let standing = self.skipped.classify(is_ready, role);
        let is_old = || is_seen_before_delete((node, readiness), &self.state.pods, self.now);
        if standing == NodeStanding::Skipped && role.counts() && is_old() {
            return NodeStanding::Counted;
        }
        standing
    }
}

/// Whether a pod is terminating, or will be because this run has deleted it.
pub(super) fn leaves(pod: &Pod, templates: &Templates, pods: &Pods, now: Timestamp) -> bool {
    let is_spared = || spared_at(pod, templates, pods).is_some_and(|at| at <= now);
    pod.terminating || (pods.deleted.contains_key(&pod.uid) && !is_spared())
}

/// When a pod whose delete failed without a clear answer counts as alive again, because it need
/// not go any more: it is updated now, or became Ready. Until then the delete may be executed.
pub(super) fn spared_at(pod: &Pod, templates: &Templates, pods: &Pods) -> Option<Timestamp> {
    let need_not_go = templates.is_updated(pod) || pod.is_ready();
    match pods.deleted.get(&pod.uid) {
        Some(RequestState::RetryAt(at)) if !pod.terminating && need_not_go => Some(*at + UNDER_WAY),
        Some(RequestState::Idle | RequestState::Out | RequestState::RetryAt(_)) | None => None,
    }
}

/// When the run deleted the pod of a node that is not Ready since then.
pub(super) fn lost_since(
    (node, readiness): (&Node, NodeReadiness),
    pods: &Pods,
) -> Option<Timestamp> {
    // First, because most nodes are Ready, and need not be searched for.
    let unready_since = unready_since(readiness)?;
    let begun = *pods.begun.get(&node.name)?;
    (unready_since >= begun).then_some(begun)
}

fn unready_since(readiness: NodeReadiness) -> Option<Timestamp> {
    match readiness {
        NodeReadiness::Ready => None,
        NodeReadiness::NotReady { since } | NodeReadiness::Unknown { since } => {
            since.map(Timestamp::from)
        }
    }
}

/// Whether a node that seems to be not Ready is seen as it was before the run deleted its pod: it was
/// Ready then, so the observation is an old one, and its new pod is still to come. For a minute only:
/// the clocks of node and server may differ.
fn is_seen_before_delete(
    (node, readiness): (&Node, NodeReadiness),
    pods: &Pods,
    now: Timestamp,
) -> bool {
    let is_old = |deleted: &Timestamp| {
        unready_since(readiness).is_some_and(|since| since < *deleted)
            && now.duration_since(*deleted) < UNDER_WAY
    };
    pods.replacing.get(&node.name).is_some_and(is_old)
}
