//! Groups pods by node, in upstream's order (upstream: `getNodesToDaemonPods`,
//! `podByCreationTimestampAndPhase`).
//!
//! Decisions about the pods are in `manage` and `rolling_update`.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::placement::{Judge, Placement};
use crate::model::{Node, NodeName, Pod, PodPlacement, TextMap};

/// Positions of nodes in a list of nodes, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Positions(TextMap<NodeName, usize>);

impl Positions {
    /// The positions of these nodes.
    pub fn of(nodes: &[Node]) -> Self {
        Self(nodes.iter().enumerate().map(|(at, node)| (node.name.clone(), at)).collect())
    }
}

/// All nodes of the cluster, indexed by name, with their classes. Built once for all DaemonSets.
#[derive(Clone, Debug)]
pub struct Fleet<'a> {
    nodes: &'a [Node],
    positions: Cow<'a, Positions>,
    judge: Judge<'a>,
}

impl<'a> Fleet<'a> {
    /// The fleet of `nodes`, sorted by name as in a snapshot: decisions are made in that order.
    pub fn new(nodes: &'a [Node]) -> Self {
        Self::seen_by(nodes, [])
    }

    /// The same fleet, optimized for DaemonSets with these templates.
    pub fn seen_by(
        nodes: &'a [Node],
        templates: impl IntoIterator<Item = &'a PodPlacement>,
    ) -> Self {
        let positions = Cow::Owned(Positions::of(nodes));
        Self { nodes, positions, judge: Judge::new(nodes, templates) }
    }

    /// The same fleet from known positions of the nodes.
    pub fn standing(nodes: &'a [Node], positions: &'a Positions) -> Self {
        Self { nodes, positions: Cow::Borrowed(positions), judge: Judge::idle(nodes) }
    }

    /// The placement of `template` on each node, in their order. Fast for the templates for which
    /// the fleet was made.
    pub fn placements(&self, template: &PodPlacement) -> Vec<Placement> {
        self.judge.judge(template)
    }

    /// The judge for the templates for which the fleet was made.
    pub fn judge(&self) -> &Judge<'a> {
        &self.judge
    }

    /// Its nodes, in the given order.
    pub fn nodes(&self) -> &'a [Node] {
        self.nodes
    }

    /// Position of the node with this name in [`Fleet::nodes`]; `None` if it does not exist.
    pub fn position(&self, name: &NodeName) -> Option<usize> {
        self.positions.0.get(name).copied()
    }
}

/// Treatment of pods that have ended *and* are being deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedPods {
    /// They are ignored, as in every decision about pods.
    Dropped,
    /// They keep their revision in use, as in the pruning of old revisions.
    Counted,
}

/// The claimed pods by node. A node's pods are in upstream's order, the "oldest" first.
#[derive(Clone, Debug)]
pub struct NodePods<'a> {
    /// Pods of existing nodes, grouped by position in the fleet.
    pods: Vec<&'a Pod>,
    /// `pods[starts[i]..starts[i + 1]]` belong to the node at position `i`.
    starts: Vec<usize>,
    /// Pods of nodes that no longer exist, by node name.
    vanished: Vec<&'a Pod>,
}

impl<'a> NodePods<'a> {
    /// Groups `claimed` pods. A pod that is aimed at no node, or at several, is ignored.
    pub fn group(fleet: &Fleet<'_>, claimed: &[&'a Pod], ended: EndedPods) -> Self {
        let mut at_node = Vec::with_capacity(claimed.len());
        let mut vanished = Vec::new();
        for &pod in claimed {
            let dropped = ended == EndedPods::Dropped && pod.is_terminal() && pod.terminating;
            let Some(node) = pod.node().filter(|_| !dropped) else { continue };
            match fleet.position(node) {
                Some(at) => at_node.push((at, pod)),
                None => vanished.push(pod),
            }
        }
        vanished.sort_unstable_by(|a, b| a.node().cmp(&b.node()).then_with(|| order(a, b)));
        let starts = starts(fleet.nodes.len(), at_node.iter().map(|(at, _)| *at));
        let mut grouped = Self { pods: by_node(&at_node, &starts), starts, vanished };
        for at in 0..fleet.nodes.len() {
            grouped.pods[grouped.starts[at]..grouped.starts[at + 1]].sort_by(|a, b| order(a, b));
        }
        grouped
    }

    /// The pods of the node at `position` in the fleet, oldest first.
    pub fn at(&self, position: usize) -> &[&'a Pod] {
        &self.pods[self.starts[position]..self.starts[position + 1]]
    }

    /// The pods of each node that no longer exists, by node name.
    pub fn vanished(&self) -> impl Iterator<Item = &[&'a Pod]> {
        self.vanished.chunk_by(|a, b| a.node() == b.node())
    }

    /// All pods that belong to a node, existing or not.
    pub fn iter(&self) -> impl Iterator<Item = &'a Pod> {
        self.pods.iter().chain(&self.vanished).copied()
    }
}

/// The pods in the order of their nodes; the pods of the node at `i` begin at `starts[i]`.
fn by_node<'a>(at_node: &[(usize, &'a Pod)], starts: &[usize]) -> Vec<&'a Pod> {
    let Some((_, any)) = at_node.first() else { return Vec::new() };
    let mut pods = vec![*any; at_node.len()];
    let mut next = starts.to_vec();
    for (at, pod) in at_node {
        pods[next[*at]] = pod;
        next[*at] += 1;
    }
    pods
}

/// For each of `nodes` positions, the number of `taken` positions before it.
fn starts(nodes: usize, taken: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut starts = vec![0; nodes + 1];
    for at in taken {
        starts[at + 1] += 1;
    }
    for at in 0..nodes {
        starts[at + 1] += starts[at];
    }
    starts
}

/// Upstream's order of a node's pods: bound before unbound, then older, then by name. The first pod
/// is kept, and counts for the status.
pub fn order(a: &Pod, b: &Pod) -> Ordering {
    // A pod without creation time sorts first, as Go's zero time does.
    b.is_bound()
        .cmp(&a.is_bound())
        .then_with(|| a.created.cmp(&b.created))
        .then_with(|| a.name.cmp(&b.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::test_cluster::{at, node, pod};
    use crate::model::{PodPhase, PodTarget};

    #[test]
    fn get_nodes_to_daemon_pods() {
        let nodes = [node("node-0", &[], &[]), node("node-1", &[], &[])];
        let fleet = Fleet::new(&nodes);
        let of = |name: &str, target, phase, terminating| Pod {
            target,
            phase,
            terminating,
            ..pod(name, "")
        };
        let bound = |name: &str| PodTarget::Bound(name.into());
        let aimed = |name: &str| PodTarget::Aimed(name.into());
        let pods = [
            of("running", bound("node-0"), PodPhase::Running, false),
            of("aimed", aimed("node-0"), PodPhase::Pending, false),
            of("terminating", bound("node-1"), PodPhase::Running, true),
            of("failed", bound("node-1"), PodPhase::Failed, false),
            of("gone", bound("node-1"), PodPhase::Failed, true),
            of("done", bound("node-0"), PodPhase::Succeeded, true),
            of("nowhere", PodTarget::Nowhere, PodPhase::Pending, false),
            of("vanished-b", aimed("node-3"), PodPhase::Pending, false),
            of("vanished-a", bound("node-2"), PodPhase::Running, false),
        ];
        let pods: Vec<_> = pods.iter().collect();
        let names = |pods: &[&Pod]| pods.iter().map(|p| p.name.to_string()).collect::<Vec<_>>();

        let grouped = NodePods::group(&fleet, &pods, EndedPods::Dropped);
        assert_eq!(names(grouped.at(0)), ["running", "aimed"]);
        assert_eq!(names(grouped.at(1)), ["failed", "terminating"]);
        let vanished: Vec<_> = grouped.vanished().map(names).collect();
        assert_eq!(vanished, [["vanished-a"], ["vanished-b"]]);
        assert_eq!(grouped.iter().count(), 6);

        let grouped = NodePods::group(&fleet, &pods, EndedPods::Counted);
        assert_eq!(names(grouped.at(0)), ["done", "running", "aimed"]);
        assert_eq!(names(grouped.at(1)), ["failed", "gone", "terminating"]);
    }

    #[test]
    fn bound_before_unbound_then_older_then_by_name() {
        let of = |name: &str, bound, created: Option<i64>| Pod {
            target: if bound { PodTarget::Bound("n".into()) } else { PodTarget::Aimed("n".into()) },
            created: created.map(|second| at(second).into()),
            ..pod(name, "n")
        };
        let mut pods = [
            of("unbound-old", false, Some(1)),
            of("b", true, Some(20)),
            of("a", true, Some(20)),
            of("older", true, Some(10)),
            of("timeless", true, None),
        ];
        pods.sort_by(order);
        let names: Vec<_> = pods.iter().map(|pod| pod.name.as_str()).collect();
        assert_eq!(names, ["timeless", "older", "a", "b", "unbound-old"]);
    }

    #[test]
    fn a_fleet_without_nodes_has_only_vanished_pods() {
        let fleet = Fleet::new(&[]);
        let lost = pod("p", "n");
        let grouped = NodePods::group(&fleet, &[&lost], EndedPods::Dropped);
        assert_eq!(grouped.vanished().count(), 1);
    }
}
