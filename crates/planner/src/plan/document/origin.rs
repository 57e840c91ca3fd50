//! Origin of a plan: the source of its manifests, and the cluster.

use std::collections::{BTreeMap, BTreeSet};

use arcstr::ArcStr;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use daemonset::model::{Cascade, ClusterInfo, NamespaceName, Node, NodeName, Snapshot, Uid};

/// Origin of the manifests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceInfo {
    /// The git repository, as a path or URL without credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// The full id of the commit that was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The first line of its message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The full id of the merge base with which the change is compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The files and folders that were read.
    pub paths: Vec<String>,
    /// The id that applied DaemonSets are annotated with (`--source-id`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Whether the pods of DaemonSets with the id that are no longer in the source are deleted or
    /// orphaned (`--prune`); none when such DaemonSets are not deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prune: Option<Cascade>,
    /// Namespaces in which DaemonSets are pruned, in addition to those of the DaemonSets in the
    /// source: those that it creates, and those of `--prune-namespace`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub prune_namespaces: BTreeSet<NamespaceName>,
}

/// The cluster of a plan or report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSummary {
    /// Its name in the kubeconfig.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Uid of its `kube-system` namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<Uid>,
    /// Version of its API server, such as `v1.36.3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Time of the snapshot.
    pub observed_at: Timestamp,
    /// Number of nodes.
    pub nodes: u32,
    /// File of the recorded snapshot; none when the cluster was read live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// The zone of each node, if known: only for printing, so not part of the document.
    #[serde(skip)]
    pub zones: Zones,
}

/// Zones by node.
pub type Zones = BTreeMap<NodeName, ArcStr>;

/// The zone of each node that is in one.
pub fn zones(nodes: &[Node]) -> Zones {
    nodes.iter().filter_map(|node| Some((node.name.clone(), node.zone()?.clone()))).collect()
}

impl From<&Snapshot> for ClusterSummary {
    fn from(snapshot: &Snapshot) -> Self {
        let ClusterInfo { name, uid, version, file } = snapshot.cluster.clone();
        Self {
            name,
            uid,
            version,
            observed_at: snapshot.observed_at,
            nodes: u32::try_from(snapshot.nodes.len()).unwrap_or(u32::MAX),
            snapshot: file,
            zones: zones(&snapshot.nodes),
        }
    }
}
