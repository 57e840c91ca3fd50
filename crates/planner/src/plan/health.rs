//! Pod failures on a node: the reasons why it has no available pod although no action is planned,
//! or has a pod that it should not have. For `status` and `explain`.

use std::sync::Arc;

use jiff::Timestamp;

use super::coded::Coded;
use super::daemon_set_view::DaemonSetView;
use super::document::{Action, NodePlan};
use super::reason::{NotReadyNode, PodNotReady, Reason};
use crate::classification::Availability;
use daemonset::controller::placement::Placement;
use daemonset::model::{MinReady, Node, NodeReadiness, Pod};

/// Adds the failures of a node's pods to the reasons of its plan, unless they are there already.
pub(super) fn add_ailments(daemon_set_view: &DaemonSetView<'_>, plan: &mut NodePlan) {
    let view = daemon_set_view.view();
    let Some(at) = view.fleet.position(&plan.name) else { return };
    let pods = view.pods.at(at);
    let ailments = match &view.placements[at] {
        _ if pods.is_empty() => Vec::new(),
        Placement { may_start: false, obstacle: Some(obstacle), .. } => {
            let misscheduled = match plan.action {
                Action::Keep | Action::Wait => {
                    Some(Reason::Misscheduled { obstacle: obstacle.clone() })
                }
                Action::Create | Action::Delete | Action::Replace | Action::Surge => None,
            };
            let mut of_pod = unavailable(daemon_set_view, &view.fleet.nodes()[at], pods);
            of_pod.retain(|reason| !says_node_unready(reason));
            misscheduled.into_iter().chain(of_pod).collect()
        }
        Placement { .. } => unavailable(daemon_set_view, &view.fleet.nodes()[at], pods),
    };
    let node_known = plan.reasons.iter().any(|coded| says_node_unready(&coded.reason));
    let new = ailments.into_iter().filter(|reason| !(node_known && says_node_unready(reason)));
    let new: Vec<_> = new.map(Coded::from).collect();
    if !new.is_empty() {
        Arc::make_mut(&mut plan.reasons).extend(new);
    }
}

fn says_node_unready(reason: &Reason) -> bool {
    matches!(
        reason,
        Reason::NodeNotReady(_) | Reason::SkippedUnreadyNode(_) | Reason::UnreadyNodeCounts { .. }
    )
}

/// The reasons why no pod of an eligible node is available.
fn unavailable(daemon_set_view: &DaemonSetView<'_>, node: &Node, pods: &[&Pod]) -> Vec<Reason> {
    let now = daemon_set_view.view().now;
    if pods.iter().any(|pod| is_available(daemon_set_view, pod)) {
        return Vec::new();
    }
    let seconds = |pod: &Pod| {
        let is_updated = daemon_set_view.target.templates.is_updated(pod);
        availability(daemon_set_view).seconds(is_updated)
    };
    reasons(node, pods, seconds, now)
}

/// Whether a pod is available: by upstream's rule for an outdated pod; a pod of the target has to
/// be Ready for as long as a rollout without a policy waits.
pub(super) fn is_available(daemon_set_view: &DaemonSetView<'_>, pod: &Pod) -> bool {
    let is_updated = daemon_set_view.target.templates.is_updated(pod);
    availability(daemon_set_view).is_available(pod, is_updated, daemon_set_view.view().now)
}

fn availability(daemon_set_view: &DaemonSetView<'_>) -> Availability {
    let spec = daemon_set_view.owner.spec;
    Availability { outdated: spec.min_ready_seconds, updated: MinReady::of(spec, None).others }
}

/// The reasons why no pod of `pods` is available on `node`, by upstream's rule; empty when one is.
pub fn ailments(node: &Node, pods: &[&Pod], min_ready: u32, now: Timestamp) -> Vec<Reason> {
    if pods.iter().any(|pod| pod.serves(min_ready, now)) {
        return Vec::new();
    }
    reasons(node, pods, |_| min_ready, now)
}

fn reasons(
    node: &Node,
    pods: &[&Pod],
    min_ready: impl Fn(&Pod) -> u32,
    now: Timestamp,
) -> Vec<Reason> {
    // A pod that is terminating or has ended has its own reason.
    let staying = pods.iter().find(|pod| !pod.terminating && !pod.is_terminal());
    let of_pod = staying.map(|pod| not_available(pod, min_ready(pod)));
    node_not_ready(node.readiness, now).into_iter().chain(of_pod).collect()
}

/// The reason `NodeNotReady`, if a node with this readiness is not Ready.
pub fn node_not_ready(readiness: NodeReadiness, now: Timestamp) -> Option<Reason> {
    NotReadyNode::of(readiness, now).map(|it| Reason::NodeNotReady(it.into()))
}

/// The reason why a pod is not available.
pub fn not_available(pod: &Pod, min_ready: u32) -> Reason {
    if pod.is_ready() {
        return Reason::NotAvailableYet { min_ready_seconds: min_ready };
    }
    let container_failure = pod.why_unready();
    let unready = PodNotReady {
        container: container_failure
            .map(|it| it.container.to_string())
            .filter(|name| !name.is_empty()),
        container_failure: container_failure.map(|it| it.reason.to_string()),
        detail: container_failure.map(|it| it.message.to_string()).filter(|text| !text.is_empty()),
        warning: pod.last_warning().map(str::to_owned),
        restarts: pod.restarts,
    };
    Reason::PodNotReady(unready.into())
}
