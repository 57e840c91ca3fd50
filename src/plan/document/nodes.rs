//! What becomes of nodes and their pods, and in which waves.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{MinReady, NodeName, PodName, Ramp, RevisionHash, Uid};
use crate::plan::coded::Coded;
use crate::plan::reason::Reason;

/// Nodes that are replaced together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Wave {
    /// Place in the order, from 1.
    pub index: u32,
    /// What it is called.
    pub name: String,
    /// So many desired nodes may be without an available pod while it runs.
    pub max_unavailable: u32,
    /// So many nodes may run two pods while it runs.
    pub max_surge: u32,
    /// How fast the number of nodes in flight grows up to that.
    #[serde(default)]
    pub ramp: Ramp,
    /// How long a new pod must stay up to count as available.
    #[serde(default)]
    pub min_ready_seconds: MinReady,
    /// Its nodes, in the order in which they become candidates.
    pub nodes: Vec<NodeName>,
}

impl Wave {
    /// How many nodes may be in flight at once: replaced, or with two pods.
    pub fn at_a_time(&self) -> u32 {
        self.max_unavailable.max(self.max_surge).max(1)
    }

    /// How many nodes go in each round, where those of one are available before the next one begins.
    pub fn rounds(&self) -> impl Iterator<Item = u32> {
        rounds(self.nodes.len(), self.at_a_time(), self.ramp)
    }
}

/// So many nodes in rounds, at most so many at a time.
pub(in crate::plan) fn rounds(
    nodes: usize,
    at_a_time: u32,
    ramp: Ramp,
) -> impl Iterator<Item = u32> {
    let left = u32::try_from(nodes).unwrap_or(u32::MAX);
    Rounds { ramp, at_a_time, gone: 0, left }
}

/// The rounds of a wave, one after the other.
struct Rounds {
    ramp: Ramp,
    at_a_time: u32,
    gone: u32,
    left: u32,
}

impl Iterator for Rounds {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let available = usize::try_from(self.gone).unwrap_or(usize::MAX);
        let nodes = self.ramp.window(available, self.at_a_time).min(self.left);
        self.gone += nodes;
        self.left -= nodes;
        (nodes > 0).then_some(nodes)
    }
}

/// What happens on one node: the net effect, and the fate of each pod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePlan {
    /// Name of the node.
    pub name: NodeName,
    /// The net effect.
    pub action: Action,
    /// Index of the wave; none for what the controller does at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wave: Option<u32>,
    /// Pods of this DaemonSet that are there now.
    pub pods: Vec<PodPlan>,
    /// Why; the first one is the main one.
    pub reasons: Vec<Coded<Reason>>,
}

/// The net effect on one node.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// Eligible node without a pod.
    Create,
    /// A pod goes and no other follows.
    Delete,
    /// A pod is deleted, then created anew.
    Replace,
    /// The new pod comes first, then the old one goes.
    Surge,
    /// It needs something but cannot have it now.
    Wait,
    /// Nothing to do.
    Keep,
}

impl Action {
    /// Every action, in the order in which they are counted and shown.
    pub const ALL: [Self; 6] =
        [Self::Create, Self::Delete, Self::Replace, Self::Surge, Self::Wait, Self::Keep];

    /// The sign that stands before it in text.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Create => "+",
            Self::Delete => "-",
            Self::Replace => "-/+",
            Self::Surge => "+/-",
            Self::Wait => "!",
            Self::Keep => "",
        }
    }
}

/// One pod's fate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodPlan {
    /// Name of the pod.
    pub name: PodName,
    /// Identity of the pod.
    pub uid: Uid,
    /// Its label `controller-revision-hash`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision_hash: Option<RevisionHash>,
    /// What becomes of it.
    pub fate: Fate,
    /// Why.
    pub reason: Coded<Reason>,
}

/// What becomes of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Fate {
    /// It stays.
    Keep,
    /// It goes.
    Delete,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_node_alone_then_twice_as_many_up_to_the_budget() {
        for (nodes, budget, ramp, want) in [
            (0, 3, Ramp::Double, &[][..]),
            (3, 1, Ramp::Double, &[1, 1, 1]),
            (20, 6, Ramp::Double, &[1, 2, 4, 6, 6, 1]),
            (20, 6, Ramp::None, &[6, 6, 6, 2]),
            (2, 0, Ramp::None, &[1, 1]),
        ] {
            let wave = Wave {
                index: 1,
                name: "all nodes".into(),
                max_unavailable: budget,
                max_surge: 0,
                ramp,
                min_ready_seconds: MinReady::default(),
                nodes: (0..nodes).map(|at| format!("n-{at}").into()).collect(),
            };
            assert_eq!(wave.rounds().collect::<Vec<_>>(), want, "{nodes} by {budget}");
        }
    }
}
