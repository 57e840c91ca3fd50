//! The DaemonSets that share a budget with one of the plan, and the budget in nodes.
//!
//! Not here: which nodes may begin at once (`crate::shared`).

use std::collections::{BTreeMap, BTreeSet};

use super::document::SharedBudget;
use super::pause::PausedRollout;
use daemonset::controller::placement::judge;
use daemonset::model::{
    DaemonSet, DaemonSetKey, DesiredDaemonSet, NodeName, PodPlacement, RolloutPolicy, Snapshot,
};

/// The budget that a DaemonSet shares with others.
#[derive(Default)]
pub(super) struct Sharing {
    /// The budget; none if its policy has none.
    pub budget: Option<SharedBudget>,
    /// On how many nodes others are rolled out, too: for each node, their number.
    pub siblings: BTreeMap<NodeName, u32>,
}

impl Sharing {
    /// The one of its policy. `all` are the DaemonSets of the source.
    pub(super) fn of(
        desired: &DesiredDaemonSet,
        all: &[&DesiredDaemonSet],
        snapshot: &Snapshot,
    ) -> Self {
        let Some(policy) = desired.policy.as_deref() else { return Self::default() };
        Self {
            budget: shared_budget(policy, all, snapshot),
            siblings: siblings(policy, &desired.key, all, snapshot),
        }
    }
}

/// The maximum number of DaemonSets that are updated on one node, one after the other.
pub(super) fn rollouts_per_node(siblings: &BTreeMap<NodeName, u32>) -> u32 {
    siblings.values().max().map_or(1, |others| others.saturating_add(1))
}

/// The shared budget of a policy; `None` if it has none. `desired` are the DaemonSets of the source.
fn shared_budget(
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

/// On how many nodes others that share the budget are rolled out, too: for each node, their number.
/// A number of nodes selects those with the most first, as the rollout does.
fn siblings(
    policy: &RolloutPolicy,
    own: &DaemonSetKey,
    desired: &[&DesiredDaemonSet],
    snapshot: &Snapshot,
) -> BTreeMap<NodeName, u32> {
    let mut siblings = BTreeMap::new();
    if policy.spec.shared_budget.is_none() {
        return siblings;
    }
    let is_sibling = |one: &&&DesiredDaemonSet| {
        let of_policy = one.policy.as_ref().is_some_and(|other| **other == *policy);
        one.key != *own && of_policy && is_rolled_out(one, snapshot)
    };
    for sibling in desired.iter().filter(is_sibling) {
        let placement = &sibling.spec.template.placement;
        for node in snapshot.nodes.iter().filter(|node| judge(placement, node).may_start) {
            *siblings.entry(node.name.clone()).or_default() += 1;
        }
    }
    siblings
}

/// Whether the apply changes the pods of a DaemonSet, or resumes a rollout of it.
fn is_rolled_out(desired: &DesiredDaemonSet, snapshot: &Snapshot) -> bool {
    snapshot.daemon_set(&desired.key).is_none_or(|live| {
        let is_paused = PausedRollout::of(live).is_ok_and(|pause| pause.is_some());
        is_paused || live.spec.template.raw() != desired.spec.template.raw()
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
