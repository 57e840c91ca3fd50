//! What changes seldom and is asked for often: where each node stands in the list of nodes, and what
//! one template says about it.
//!
//! A look at a DaemonSet needs both, and so does each sync; between two of them pods come and go, but
//! nodes and template mostly stay. Not here: the rules (`placement`).

use std::sync::Arc;

use super::node_pods::{Fleet, Positions};
use super::placement::{Judge, Placement};
use crate::model::{DaemonSet, Node, PodPlacement, Uid};

/// All nodes, as one template sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ground {
    positions: Positions,
    placements: Vec<Placement>,
}

impl Ground {
    /// That of `nodes`, sorted by name.
    pub fn of(template: &PodPlacement, nodes: &[Node]) -> Self {
        let placements = Judge::judge_all(template, nodes);
        Self { positions: Positions::of(nodes), placements }
    }

    /// The fleet of the nodes that this was made of.
    pub fn fleet<'a>(&'a self, nodes: &'a [Node]) -> Fleet<'a> {
        Fleet::standing(nodes, &self.positions)
    }

    /// What the template says about each node, in their order.
    pub fn placements(&self) -> &[Placement] {
        &self.placements
    }
}

/// The ground of one DaemonSet, made anew when its spec or the nodes are others.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    last: Option<(Version, Arc<Ground>)>,
}

/// What a ground depends on: which DaemonSet, which state of its spec, which state of the nodes.
type Version = (Uid, i64, u64);

impl Survey {
    /// The ground of a DaemonSet. `nodes_version` is another one whenever a node is.
    pub fn ground(
        &mut self,
        daemon_set: &DaemonSet,
        nodes: &[Node],
        nodes_version: u64,
    ) -> Arc<Ground> {
        let version = (daemon_set.uid.clone(), daemon_set.generation, nodes_version);
        if let Some((_, known)) = self.last.as_ref().filter(|(of, _)| *of == version) {
            return Arc::clone(known);
        }
        let ground = Arc::new(Ground::of(&daemon_set.spec.template.placement, nodes));
        self.last = Some((version, Arc::clone(&ground)));
        ground
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::test_cluster::Cluster;

    /// Each change that counts, alone.
    #[test]
    fn it_is_made_anew_when_nodes_or_spec_are_others() {
        let mut cluster = Cluster::of(3);
        let mut survey = Survey::default();
        let mut look = |cluster: &Cluster, nodes_version| {
            let ground = survey.ground(&cluster.daemon_set, &cluster.nodes, nodes_version);
            let placement = &cluster.daemon_set.spec.template.placement;
            assert_eq!(*ground, Ground::of(placement, &cluster.nodes), "as if made anew");
            ground
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
        assert!(!Arc::ptr_eq(&selected, &look(&cluster, 2)), "another one of the same name");
    }
}
