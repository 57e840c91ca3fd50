//! A cache of the positions of nodes in the list of nodes, and of the placements of one template.
//!
//! Each evaluation of a DaemonSet and each sync needs both; between two of them pods change often,
//! nodes and template rarely. The rules are in `placement`.

use std::sync::Arc;

use super::node_pods::{Fleet, Positions};
use super::placement::{Judge, Placement};
use crate::model::{DaemonSet, Node, PodPlacement, Uid};

/// The placement of one template on all nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodePlacements {
    positions: Positions,
    placements: Vec<Placement>,
}

impl NodePlacements {
    /// The placements on `nodes`, which are sorted by name.
    pub fn of(template: &PodPlacement, nodes: &[Node]) -> Self {
        let placements = Judge::judge_all(template, nodes);
        Self { positions: Positions::of(nodes), placements }
    }

    /// The fleet of the nodes from which this was computed.
    pub fn fleet<'a>(&'a self, nodes: &'a [Node]) -> Fleet<'a> {
        Fleet::standing(nodes, &self.positions)
    }

    /// The placement on each node, in their order.
    pub fn placements(&self) -> &[Placement] {
        &self.placements
    }
}

/// The placements of one DaemonSet, computed again when its spec or the nodes change.
#[derive(Clone, Debug, Default)]
pub struct PlacementCache {
    last: Option<(Version, Arc<NodePlacements>)>,
}

/// The cache key: the DaemonSet's uid, its generation, and the version of the nodes.
type Version = (Uid, i64, u64);

impl PlacementCache {
    /// The placements of a DaemonSet. `nodes_version` must change whenever a node changes.
    pub fn node_placements(
        &mut self,
        daemon_set: &DaemonSet,
        nodes: &[Node],
        nodes_version: u64,
    ) -> Arc<NodePlacements> {
        let version = (daemon_set.uid.clone(), daemon_set.generation, nodes_version);
        if let Some((_, known)) = self.last.as_ref().filter(|(of, _)| *of == version) {
            return Arc::clone(known);
        }
        let node_placements =
            Arc::new(NodePlacements::of(&daemon_set.spec.template.placement, nodes));
        self.last = Some((version, Arc::clone(&node_placements)));
        node_placements
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::test_cluster::Cluster;

    /// Each relevant change by itself.
    #[test]
    fn placements_are_computed_again_when_nodes_or_spec_change() {
        let mut cluster = Cluster::of(3);
        let mut placement_cache = PlacementCache::default();
        let mut look = |cluster: &Cluster, nodes_version| {
            let node_placements =
                placement_cache.node_placements(&cluster.daemon_set, &cluster.nodes, nodes_version);
            let placement = &cluster.daemon_set.spec.template.placement;
            assert_eq!(
                *node_placements,
                NodePlacements::of(placement, &cluster.nodes),
                "equal to a new computation"
            );
            node_placements
        };
        let first = look(&cluster, 1);
        assert!(Arc::ptr_eq(&first, &look(&cluster, 1)), "the same as long as nothing changes");

        cluster.nodes.pop();
        let fewer = look(&cluster, 2);
        assert_ne!(first, fewer);

        cluster
            .edit(|spec| spec["template"]["spec"]["nodeSelector"] = serde_json::json!({"a": "b"}));
        let selected = look(&cluster, 2);
        assert_ne!(fewer, selected);

        cluster.daemon_set.uid = "another".into();
        assert!(!Arc::ptr_eq(&selected, &look(&cluster, 2)), "another DaemonSet of this name");
    }
}
