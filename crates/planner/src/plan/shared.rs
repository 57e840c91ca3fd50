//! The DaemonSets that share a budget with one of the plan, and the budget in nodes.
//!
//! Not here: which nodes may begin at once (`crate::shared`).

use std::collections::BTreeSet;

use super::document::SharedBudget;
use daemonset::controller::placement::judge;
use daemonset::model::{
    DaemonSet, DaemonSetKey, DesiredDaemonSet, NodeName, PodPlacement, RolloutPolicy, Snapshot,
};

/// The shared budget of a policy; `None` if it has none. `desired` are the DaemonSets of the source.
pub(super) fn shared_budget(
    policy: &RolloutPolicy,
    desired: &[&DesiredDaemonSet],
    snapshot: &Snapshot,
) -> Option<SharedBudget> {
    let budget = policy.spec.shared_budget?;
    let selected = selected(policy, desired, &snapshot.daemon_sets);
    let nodes: BTreeSet<&NodeName> = selected
        .iter()
        .filter_map(|key| placement(key, desired, snapshot))
        .flat_map(|placement| {
            let may_start = |node: &&_| judge(placement, node).may_start;
            snapshot.nodes.iter().filter(may_start).map(|node| &node.name)
        })
        .collect();
    let nodes = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
    Some(SharedBudget {
        nodes: budget.scaled(nodes).max(1),
        daemon_sets: selected.iter().map(ToString::to_string).collect(),
    })
}

/// The selected DaemonSets, in the order in which they follow on each node: that of the names, then
/// by name those with the labels. One that exists nowhere is among them if it is named.
fn selected(
    policy: &RolloutPolicy,
    desired: &[&DesiredDaemonSet],
    live: &[DaemonSet],
) -> Vec<DaemonSetKey> {
    let by_labels = desired
        .iter()
        .map(|one| (&one.key, &one.labels))
        .chain(live.iter().map(|one| (&one.key, &one.labels)))
        .filter(|(key, labels)| policy.selects(key, labels));
    let by_labels: BTreeSet<&DaemonSetKey> = by_labels.map(|(key, _)| key).collect();
    let mut selected: Vec<DaemonSetKey> = Vec::new();
    for key in policy.spec.selects.names.iter().chain(by_labels) {
        if !selected.contains(key) {
            selected.push(key.clone());
        }
    }
    selected
}

/// Where the pods of a DaemonSet may start after the apply.
fn placement<'a>(
    key: &DaemonSetKey,
    desired: &'a [&DesiredDaemonSet],
    snapshot: &'a Snapshot,
) -> Option<&'a PodPlacement> {
    let of_source = desired.iter().find(|one| one.key == *key).map(|one| &one.spec);
    let spec = of_source.or_else(|| snapshot.daemon_set(key).map(|live| &live.spec));
    spec.map(|spec| &spec.template.placement)
}
