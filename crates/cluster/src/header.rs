//! The header that `ds-plan snapshot` writes in addition to the objects: the time and the cluster.
//!
//! It is a separate key of the `List`, which readers of kubectl's format ignore.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use daemonset::model::mask::Salt;
use daemonset::model::{NamespaceName, Uid};

/// The header's key in the `List`.
pub(super) const KEY: &str = "dsPlan";

/// The time and the cluster of a recording. Unknown fields are ignored: later versions may add
/// some.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "one flag per optional list")]
pub(super) struct Header {
    /// The version of ds-plan that wrote it.
    pub(super) tool_version: String,
    /// The server's time when the cluster was read.
    pub(super) observed_at: Timestamp,
    /// The recorded cluster.
    pub(super) cluster: HeaderCluster,
    /// The namespaces whose pods, DaemonSets and revisions are in it; absent means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) scope: Option<BTreeSet<NamespaceName>>,
    /// Whether all Namespace objects are in it.
    pub(super) all_namespaces: bool,
    /// Whether the Services are in it.
    #[serde(default)]
    pub(super) services: bool,
    /// Whether the leases with failed templates or notes about steps are in it.
    #[serde(default)]
    pub(super) leases: bool,
    /// Whether the records are in it.
    #[serde(default)]
    pub(super) records: bool,
    /// Salt of the digests in place of secret values; absent when the values are the real ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) salt: Option<Salt>,
}

/// The identity of the recorded cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HeaderCluster {
    /// Its name in the kubeconfig.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    /// Uid of the namespace `kube-system`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) uid: Option<Uid>,
    /// The API server's `gitVersion`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<String>,
}
