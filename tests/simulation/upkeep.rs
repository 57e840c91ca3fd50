//! What the run deletes as the controller, where no other one acts: what has ended, what may not be
//! where it is, and one pod too many. The rest are replacements, and the laws of a rollout hold for
//! them.

use ds_plan::controller::limits::allows_surge;
use ds_plan::controller::placement::{Placement, judge};
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
    let (is, was) = judged(name, live, store, nodes, now);
    if ![is, was].into_iter().flatten().any(|it| it.may_start) {
        return Some(" where none may start");
    }
    let beside = beside(pod, name, live, store).any(|it| is_updated(it, live, store));
    // A request that was given up may arrive all the same, and another one after it.
    (beside && nodes.sees_clearly()).then_some(" where there is a new one")
}

/// What the template says of a node as it is, and as it was before if the program may see it so yet.
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
