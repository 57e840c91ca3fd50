//! What becomes of nodes and their pods, and in which waves.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{NodeName, PodName, RevisionHash, Uid};
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
    /// Its nodes, in the order in which they become candidates.
    pub nodes: Vec<NodeName>,
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
