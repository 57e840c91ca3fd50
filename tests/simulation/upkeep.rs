//! What the run deletes as the controller, where no other one acts: what has ended, what may not be
//! where it is, and one pod too many. The rest are replacements, and the laws of a rollout hold for
//! them.

use ds_plan::controller::placement::judge;
use ds_plan::model::{DaemonSet, ManagedBy, Node, Pod};
use ds_plan::simulator::{Kind, Store};
use jiff::Timestamp;

use crate::budget::{Nodes, is_available, owns};
use crate::objects::pods;

/// Why a controller takes a pod away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upkeep {
    /// For no reason of its own.
    None,
    /// It has ended, or may not stay.
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
    let beside = || {
        let others = pods(store).filter(|it| it.node() == Some(name) && it.uid != pod.uid);
        others.filter(|it| owns(live, it) && !it.terminating && !it.is_terminal())
    };
    if beside().next().is_none() {
        return Upkeep::None;
    }
    Upkeep::Surplus { serves: beside().any(|it| is_available(it, live, now)) }
}
