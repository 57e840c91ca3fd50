//! A node, with the fields that planning needs.

use arcstr::ArcStr;

use super::{Labels, NodeName, Taint, Time, Uid};

/// One node of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// `metadata.name`.
    pub name: NodeName,
    /// `metadata.uid`: distinguishes a node from a later one of the same name.
    pub uid: Uid,
    /// All labels.
    pub labels: Labels,
    /// `spec.taints`; a cordoned node has one more.
    pub taints: Box<[Taint]>,
    /// `spec.unschedulable`, for display; placement uses the taint.
    pub unschedulable: bool,
    /// Condition `Ready`, which counts for budgets. Never a filter for placement.
    pub readiness: NodeReadiness,
    /// `status.conditions`, in the order of their types. Only the checks of a policy use them.
    pub conditions: Box<[NodeCondition]>,
    /// `status.allocatable`: the amount of each resource that pods may request, as served.
    pub allocatable: Labels,
    /// `metadata.creationTimestamp`.
    pub created: Option<Time>,
}

/// A condition of a node, without its heartbeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeCondition {
    /// `type`, such as `NetworkUnavailable`.
    pub kind: ArcStr,
    /// `status`.
    pub status: ConditionStatus,
    /// `lastTransitionTime`.
    pub since: Option<Time>,
}

/// The status of a condition (upstream: `v1.ConditionStatus`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionStatus {
    /// `True`.
    True,
    /// `False`.
    False,
    /// `Unknown`; also any other text, which has no meaning upstream.
    Unknown,
}

impl ConditionStatus {
    /// As in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<&str> for ConditionStatus {
    fn from(text: &str) -> Self {
        match text {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }
}

impl Node {
    /// The condition of this type.
    pub fn condition(&self, kind: &str) -> Option<&NodeCondition> {
        self.conditions.iter().find(|condition| &*condition.kind == kind)
    }

    /// Its zone, from the well-known label, or from the label used before Kubernetes 1.17.
    pub fn zone(&self) -> Option<&ArcStr> {
        let labels = ["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"];
        labels.into_iter().find_map(|label| self.labels.shared(label))
    }
}

/// The node's `Ready` condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeReadiness {
    /// Status `True`.
    Ready,
    /// Status `False`, reported by the kubelet.
    NotReady {
        /// Time of the transition (`lastTransitionTime`).
        since: Option<Time>,
    },
    /// Status `Unknown`, or no condition: the kubelet does not report.
    Unknown {
        /// Time of the transition (`lastTransitionTime`).
        since: Option<Time>,
    },
}

impl NodeReadiness {
    /// Whether the kubelet reports that pods can run.
    pub fn is_ready(self) -> bool {
        matches!(self, Self::Ready)
    }
}
