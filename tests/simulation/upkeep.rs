//! What the run deletes as the controller, where no other one acts: what has ended, what may not be
//! where it is, and one pod too many. The rest are replacements, and the laws of a rollout hold for
//! them.

use ds_plan::controller::limits::allows_surge;
use ds_plan::controller::placement::judge;
use ds_plan::model::{DaemonSet, ManagedBy, Node, NodeName, Pod};
use ds_plan::simulator::{Kind, Store};
use jiff::Timestamp;

use crate::budget::{Nodes, is_available, owns};
use crate::objects::{is_updated, pods};

/// Why a controller takes a pod away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upkeep {
    /// For no reason of its own.
    None,
    /// It has ended, or may not stay; or it is outdated, and a surge puts no new one beside it, for
    /// it serves nobody, or its node takes none (upstream: `rollingUpdate`).
    Gone,
    /// Another one stays on its node.
    Surplus {
        /// Whether that one is available.
        serves: bool,
    },
}

/// Why the run's own controller may take this pod away.
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
    let may_stay = |node: &Node| judge(&live.spec.template.placement, node).may_stay;
    let node = store.get(Kind::Node, "", name.as_str());
    let stays = node.as_ref().and_then(|it| it.node()).is_some_and(may_stay);
    let stayed = nodes.former(name, now).is_none_or(may_stay);
    if pod.is_terminal() || !stays || !stayed {
        return Upkeep::Gone;
    }
    let may_start = |node: &Node| judge(&live.spec.template.placement, node).may_start;
    let starts = node.as_ref().and_then(|it| it.node()).is_some_and(may_start)
        && nodes.former(name, now).is_none_or(may_start);
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

/// What is wrong with a pod that the run has just created.
pub(crate) fn misplaced(
    pod: &Pod,
    live: &DaemonSet,
    store: &Store,
    nodes: &Nodes,
    now: Timestamp,
) -> Option<&'static str> {
    if !is_updated(pod, live, store) {
        return Some(", and outdated from birth");
    }
    let Some(name) = pod.node() else { return Some(" for no node") };
    let may_start = |node: &Node| judge(&live.spec.template.placement, node).may_start;
    let node = store.get(Kind::Node, "", name.as_str());
    let starts = node.as_ref().and_then(|it| it.node()).is_some_and(may_start);
    if !starts && !nodes.former(name, now).is_some_and(may_start) {
        return Some(" where none may start");
    }
    let beside = beside(pod, name, live, store).any(|it| is_updated(it, live, store));
    // A request that was given up may arrive all the same, and another one after it.
    (beside && nodes.sees_clearly()).then_some(" where there is a new one")
}

/// The other pods of a node that live.
fn beside<'s>(
    pod: &Pod,
    node: &NodeName,
    live: &DaemonSet,
    store: &'s Store,
) -> impl Iterator<Item = &'s Pod> {
    let others = pods(store).filter(|it| it.node() == Some(node) && it.uid != pod.uid);
    others.filter(|it| owns(live, it) && !it.terminating && !it.is_terminal())
}
