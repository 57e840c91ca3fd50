//! A node, as slim as planning needs it.

use jiff::Timestamp;

use super::{Labels, NodeName, Taint, Uid};

/// One node of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// `metadata.name`.
    pub name: NodeName,
    /// `metadata.uid`: tells a node from a later one of the same name.
    pub uid: Uid,
    /// All labels.
    pub labels: Labels,
    /// `spec.taints`. A cordon is one of them.
    pub taints: Box<[Taint]>,
    /// `spec.unschedulable`, for display; placement goes by the taint.
    pub unschedulable: bool,
    /// Condition `Ready`. Never a filter for placement.
    pub readiness: NodeReadiness,
    /// `status.allocatable`: what pods may request of each resource, as the server writes it.
    pub allocatable: Labels,
    /// `metadata.creationTimestamp`.
    pub created: Option<Timestamp>,
}

impl Node {
    /// The zone that it is in, by the well-known label, or by the one of before 1.17.
    pub fn zone(&self) -> Option<&str> {
        let labels = ["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"];
        labels.into_iter().find_map(|label| self.labels.get(label))
    }
}

/// What the node's `Ready` condition says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeReadiness {
    /// Status `True`.
    Ready,
    /// Status `False`: the kubelet says so itself.
    NotReady {
        /// Since when (`lastTransitionTime`).
        since: Option<Timestamp>,
    },
    /// Status `Unknown`, or no condition at all: nothing was heard of the kubelet.
    Unknown {
        /// Since when (`lastTransitionTime`).
        since: Option<Timestamp>,
    },
}

impl NodeReadiness {
    /// Whether the kubelet reports that pods can run.
    pub fn is_ready(self) -> bool {
        matches!(self, Self::Ready)
    }
}
