//! Where DaemonSets stand, without any manifest: what `status -o json` prints. The counters are
//! upstream's; where our stricter words give other numbers, both are there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::{ApiVersion, ClusterSummary, Coded, Counters, Warning};
use super::reason::Reason;
use crate::model::{DaemonSetName, NamespaceName, NodeName};

/// The DaemonSets of a cluster, and what stands in the way of each node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Version of this document's form.
    pub api_version: ApiVersion,
    /// Always `Status`.
    pub kind: StatusKind,
    /// Which cluster was looked at, and when.
    pub cluster: ClusterSummary,
    /// One entry a DaemonSet, ordered by namespace and name.
    pub daemon_sets: Vec<DaemonSetStanding>,
    /// What a careful reader should know.
    pub warnings: Vec<Warning>,
}

/// Kind of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StatusKind {
    /// A status.
    Status,
}

/// Where one DaemonSet stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DaemonSetStanding {
    /// `metadata.namespace`.
    pub namespace: NamespaceName,
    /// `metadata.name`.
    pub name: DaemonSetName,
    /// `metadata.generation`: grows with each change of the spec.
    pub generation: i64,
    /// Generation that the controller's counters speak of.
    pub observed_generation: i64,
    /// The counters in the object's `status`, which kubectl prints.
    pub reported: Counters,
    /// The same counters taken from nodes and pods, by the stricter rules: a pod that is
    /// terminating is not available, and only its hash label makes a pod updated.
    pub counted: Counters,
    /// `spec.template.spec.nodeSelector` as kubectl prints it: `disk=ssd,zone=a`, or `<none>`.
    pub node_selector: String,
    /// Age of the object in seconds, at the moment observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<i64>,
    /// The nodes that are not as they should be, ordered by name.
    pub obstacles: Vec<NodeObstacles>,
}

/// What stands in the way of one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeObstacles {
    /// Name of the node.
    pub node: NodeName,
    /// Why; the first one is the main one.
    pub reasons: Vec<Coded<Reason>>,
}
