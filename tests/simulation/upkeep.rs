//! The deletes that the run makes as the controller: pods that have ended, pods that may not stay
//! on their node, and surplus pods. All other deletes are replacements and subject to the laws of a
//! rollout.

use daemonset::controller::hash::hash;
use daemonset::controller::limits::allows_surge;
use daemonset::controller::placement::{Placement, judge};
use daemonset::model::{DaemonSet, ManagedBy, Node, NodeName, Pod};
use embedded::{Kind, Store};
use jiff::Timestamp;

use crate::budget::{Nodes, is_available, owns};
use crate::objects::{is_updated, pods};

/// Why a controller deletes a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upkeep {
    /// The controller has no reason to delete it.
    None,
    /// It has ended, or may not stay; or it is outdated, and a surge creates no new one next to it,
    /// because it is not available, or its node accepts none (upstream: `rollingUpdate`).
    Gone,
    /// Another pod stays on its node.
    Surplus {
        /// Whether the other pod is available.
        serves: bool,
    },
}

/// Why the run's controller may delete this pod.
pub(crate) fn of(
    pod: &Pod,
    live: &DaemonSet,
    store: &Store,
    nodes: &Nodes,
    now: Timestamp,
) -> Upkeep {
    if live.managed_by == ManagedBy::DaemonSetController {
        return Upkeep::None;
    }
    let Some(name) = pod.node() else { return Upkeep::Gone };
    let (is, was) = judged(name, live, store, nodes, now);
    let stays = is.as_ref().is_some_and(|it| it.may_stay);
    if pod.is_terminal() || !stays || was.as_ref().is_some_and(|it| !it.may_stay) {
        return Upkeep::Gone;
    }
    let starts = is.is_some_and(|it| it.may_start) && was.is_none_or(|it| it.may_start);
    let is_surged = starts && is_available(pod, live, nodes.seen_by(now));
    if allows_surge(&live.spec.update_strategy) && !is_surged && !is_updated(pod, live, store) {
        return Upkeep::Gone;
    }
    let mut beside = beside(pod, name, live, store).peekable();
    if beside.peek().is_none() {
        return Upkeep::None;
    }
    Upkeep::Surplus { serves: beside.any(|it| is_available(it, live, now)) }
}

/// Whether the program may see an outdated pod as one that the rollout replaces, not the controller.
pub(crate) fn may_be_replaced(
    pod: &Pod,
    live: &DaemonSet,
    store: &Store,
    nodes: &Nodes,
    now: Timestamp,
) -> bool {
    let Some(name) = pod.node() else { return false };
    let (is, was) = judged(name, live, store, nodes, now);
    let takes_pods = [is, was].into_iter().flatten().any(|it| it.may_stay && it.may_start);
    takes_pods && !pod.is_terminal() && !is_updated(pod, live, store)
}

/// The broken law of a pod that the run has just created.
pub(crate) fn misplaced(
    pod: &Pod,
    live: &DaemonSet,
    store: &Store,
    nodes: &Nodes,
    now: Timestamp,
) -> Option<&'static str> {
    // A revision that a deleted DaemonSet has left is used as it is, before it has a new owner.
    let to_come = hash(live.spec.template.raw(), live.status.collision_count);
    if !is_updated(pod, live, store) && !pod.has_hash(&to_come) {
        return Some(", with an outdated template");
    }
    let Some(name) = pod.node() else { return Some(" for no node") };
    let (is, was) = judged(name, live, store, nodes, now);
    if ![is, was].into_iter().flatten().any(|it| it.may_start) {
        return Some(" on a node where it may not start");
    }
    let beside = beside(pod, name, live, store).any(|it| is_updated(it, live, store));
    // A request that timed out may still arrive, and be repeated.
    (beside && nodes.sees_clearly()).then_some(" on a node with a new pod")
}

/// The placement of the template on a node as it is now, and as it was before if the program may
/// still see that.
fn judged(
    name: &NodeName,
    live: &DaemonSet,
    store: &Store,
    nodes: &Nodes,
    now: Timestamp,
) -> (Option<Placement>, Option<Placement>) {
    let judged = |node: &Node| judge(&live.spec.template.placement, node);
    let is = store.get(Kind::Node, "", name.as_str());
    (is.and_then(|it| it.node()).map(judged), nodes.former(name, now).map(judged))
}

/// The other live pods of a node.
fn beside<'s>(
    pod: &Pod,
    node: &NodeName,
    live: &DaemonSet,
    store: &'s Store,
) -> impl Iterator<Item = &'s Pod> {
    let others = pods(store).filter(|it| it.node() == Some(node) && it.uid != pod.uid);
    others.filter(|it| owns(live, it) && !it.terminating && !it.is_terminal())
}
