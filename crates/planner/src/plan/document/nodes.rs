//! The plans of nodes and their pods, and the waves.

use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::coded::Coded;
use crate::plan::reason::Reason;
use daemonset::model::{MinReady, NodeName, PodName, Ramp, RevisionHash, Uid};

/// Nodes whose pods are replaced together under one budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Wave {
    /// Its number, in the order of waves. Waves that are finished are left out, but counted: a wave
    /// keeps its number while the rollout proceeds.
    pub index: u32,
    /// Name of the wave: of its step and its domain.
    pub name: String,
    /// The step of the policy; none if it has no steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The domain, a value of the policy's node label; empty for nodes without the label, none if
    /// the policy has no domains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Maximum number of desired nodes without an available pod during the wave.
    pub max_unavailable: u32,
    /// Maximum number of nodes with two pods during the wave.
    pub max_surge: u32,
    /// Maximum number of desired nodes of the domain without an available pod; none without a limit
    /// of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain_max_unavailable: Option<u32>,
    /// Maximum number of domains with an unavailable node at the same time; none if the policy has
    /// no domains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domains_at_once: Option<u32>,
    /// Maximum number of nodes that it disturbs together with other DaemonSets; none if the policy
    /// has no shared budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_budget: Option<u32>,
    /// How fast the number of nodes in progress grows to these limits.
    #[serde(default)]
    pub ramp: Ramp,
    /// Seconds that a new pod must be Ready to count as available.
    #[serde(default)]
    pub min_ready_seconds: MinReady,
    /// Seconds for which its new pods must stay up before the next domain begins, or the
    /// rollout ends.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub soak_seconds: u32,
    /// Its nodes, in the order in which they become candidates.
    pub nodes: Vec<NodeName>,
}

/// For `skip_serializing_if`.
pub(super) fn is_zero<T: Default + PartialEq>(seconds: &T) -> bool {
    *seconds == T::default()
}

/// A step of the policy, in this cluster. It contains the nodes of all earlier steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepPlan {
    /// Its name; `rest` is the implied last one.
    pub name: String,
    /// Number of its nodes.
    pub nodes: u32,
    /// The part of them with an available pod of the target template.
    pub updated: u32,
    /// How far it is.
    pub state: StepState,
    /// Whether `ds-apply approve` must allow it before it begins.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approve: bool,
    /// The approval, if it is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<Approved>,
    /// Seconds for which its new pods must stay up before the next step begins.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub soak_seconds: u32,
}

/// A valid approval of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approved {
    /// The user who has approved it, as told by their machine.
    pub by: String,
    /// Time of the approval.
    pub at: Timestamp,
}

/// How far a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum StepState {
    /// Earlier steps come first.
    Pending,
    /// Its nodes are updated now, or next.
    InProgress,
    /// All its nodes are updated, and must stay up for a while.
    Soaking,
    /// The soak is over.
    Done,
}

impl Wave {
    /// A wave without step and domain, and without a ramp.
    pub fn plain(index: u32, max_unavailable: u32, nodes: Vec<NodeName>) -> Self {
        Self {
            index,
            name: "all nodes".to_owned(),
            step: None,
            domain: None,
            max_unavailable,
            max_surge: 0,
            domain_max_unavailable: None,
            domains_at_once: None,
            shared_budget: None,
            ramp: Ramp::None,
            min_ready_seconds: MinReady::default(),
            soak_seconds: 0,
            nodes,
        }
    }

    /// Maximum number of nodes in progress: without an available pod, or with two pods.
    pub fn at_a_time(&self) -> u32 {
        let limit = self.max_unavailable.max(self.max_surge);
        let narrower = [self.domain_max_unavailable, self.shared_budget];
        narrower.into_iter().flatten().fold(limit, u32::min).max(1)
    }

    /// Number of nodes in each round; all pods of a round are available before the next one starts.
    pub fn rounds(&self) -> impl Iterator<Item = u32> {
        rounds(self.nodes.len(), self.at_a_time(), self.ramp)
    }
}

/// Divides `nodes` into rounds of at most `at_a_time`.
pub(in crate::plan) fn rounds(
    nodes: usize,
    at_a_time: u32,
    ramp: Ramp,
) -> impl Iterator<Item = u32> {
    let left = u32::try_from(nodes).unwrap_or(u32::MAX);
    Rounds { ramp, at_a_time, gone: 0, left }
}

/// Iterator over the sizes of the rounds of a wave.
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

/// The plan of one node: the net effect, and the fate of each pod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePlan {
    /// Name of the node.
    pub name: NodeName,
    /// Net effect on the node.
    pub action: Action,
    /// Index of the wave; none for actions that the controller takes at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wave: Option<u32>,
    /// Current pods of this DaemonSet on the node.
    pub pods: Box<[PodPlan]>,
    /// Reasons; the first one is the main one.
    pub reasons: Arc<Vec<Coded<Reason>>>,
}

impl NodePlan {
    /// The pods that the plan deletes; pods that are terminating already are not among them.
    pub fn deleted(&self) -> impl Iterator<Item = &PodPlan> {
        let terminating = |pod: &PodPlan| matches!(pod.reason.reason, Reason::Terminating);
        self.pods.iter().filter(move |pod| pod.fate == Fate::Delete && !terminating(pod))
    }
}

/// The net effect on one node.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// A pod is created on an eligible node without one.
    Create,
    /// A pod is deleted and not recreated.
    Delete,
    /// A pod is deleted, then recreated.
    Replace,
    /// The new pod is created first, then the old one is deleted.
    Surge,
    /// A change is needed but cannot be made now.
    Wait,
    /// Nothing to do.
    Keep,
}

impl Action {
    /// All actions, in the order in which they are counted and shown.
    pub const ALL: [Self; 6] =
        [Self::Create, Self::Delete, Self::Replace, Self::Surge, Self::Wait, Self::Keep];

    /// The symbol before a node in text output.
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

/// The plan of one pod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodPlan {
    /// Name of the pod.
    pub name: PodName,
    /// `metadata.uid`.
    pub uid: Uid,
    /// Value of its label `controller-revision-hash`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision_hash: Option<RevisionHash>,
    /// Whether it is kept or deleted.
    pub fate: Fate,
    /// The reason.
    pub reason: Coded<Reason>,
}

/// Fate of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Fate {
    /// It is kept.
    Keep,
    /// It is deleted.
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
            let nodes_of_wave = (0..nodes).map(|at| format!("n-{at}").into()).collect();
            let wave = Wave { ramp, ..Wave::plain(1, budget, nodes_of_wave) };
            assert_eq!(wave.rounds().collect::<Vec<_>>(), want, "{nodes} by {budget}");
        }
    }
}
