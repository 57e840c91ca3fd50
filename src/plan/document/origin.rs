//! Where a plan comes from: the source of its manifests, and the cluster that was looked at.

use std::collections::BTreeSet;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{Cascade, NamespaceName, Uid};

/// Where the manifests came from.
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
    /// The full id of the merge base that the change is told against.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The files and folders that were read.
    pub paths: Vec<String>,
    /// The id that what it applies is marked with (`--source-id`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What becomes of the pods of DaemonSets that carry the id and are not in the source any more
    /// (`--prune`); none when they are left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prune: Option<Cascade>,
    /// Namespaces in which the id counts, besides those of the DaemonSets in the source: those that
    /// it creates, and those that were named (`--prune-namespace`).
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub prune_namespaces: BTreeSet<NamespaceName>,
}

/// Which cluster was looked at.
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
    /// The moment that the plan speaks of.
    pub observed_at: Timestamp,
    /// How many nodes it has.
    pub nodes: u32,
    /// The recorded snapshot's file, when the cluster was not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
}
