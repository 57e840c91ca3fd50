//! The part of a plan that one step applies: the first outdated pods, or those of some nodes.

use std::collections::BTreeSet;

use super::daemon_set::totals;
use super::document::{Action, DaemonSetPlan, NodePlan};
use crate::extent::Extent;
use daemonset::model::NodeName;

/// Leaves out the nodes whose outdated pod a step of this extent keeps. What the controller does at
/// once stays: it does not depend on the step.
pub(super) fn narrow(plan: &mut DaemonSetPlan, extent: &Extent) {
    let replaced = plan.waves.iter().flat_map(|wave| &wave.nodes);
    let replaced: BTreeSet<NodeName> = match extent {
        Extent::All => return,
        Extent::Count(count) => {
            replaced.take(usize::try_from(*count).unwrap_or(usize::MAX)).cloned().collect()
        }
        Extent::Nodes(nodes) => replaced.filter(|node| nodes.contains(*node)).cloned().collect(),
    };
    let is_kept = |node: &NodePlan| match extent {
        _ if node.wave.is_some() => replaced.contains(&node.name),
        Extent::Nodes(nodes) if node.action == Action::Wait => nodes.contains(&node.name),
        Extent::All | Extent::Count(_) | Extent::Nodes(_) => true,
    };
    let before = plan.nodes.len();
    let listed = plan.nodes.iter().filter(|node| node.action == Action::Keep).count();
    let idle = plan.totals.keep.saturating_sub(u32::try_from(listed).unwrap_or(u32::MAX));
    plan.nodes.retain(is_kept);
    let left_out = u32::try_from(before - plan.nodes.len()).unwrap_or(u32::MAX);
    plan.totals = totals(&plan.nodes, idle.saturating_add(left_out));
    for wave in &mut plan.waves {
        wave.nodes.retain(|node| replaced.contains(node));
    }
    plan.waves.retain(|wave| !wave.nodes.is_empty());
    plan.next_waves.retain(|number| plan.waves.iter().any(|wave| wave.index == *number));
}
