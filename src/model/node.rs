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
