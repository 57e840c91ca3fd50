//! What `ds-plan snapshot` writes beside the objects: when and from what they were taken.
//!
//! It stands in the `List` under a key of its own, which readers of kubectl's format pass over.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::mask::Salt;
use crate::model::{NamespaceName, Uid};

/// The key in the `List`.
pub(super) const KEY: &str = "dsPlan";

/// When and from what a recording was taken. Unknown fields are passed over: later versions may
/// say more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "each is a list that was read or was not")]
pub(super) struct Header {
    /// Version of the program that wrote it.
    pub(super) tool_version: String,
    /// The server's clock.
    pub(super) observed_at: Timestamp,
    /// Which cluster.
    pub(super) cluster: HeaderCluster,
    /// The namespaces whose pods, DaemonSets and revisions are in it; absent means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) scope: Option<BTreeSet<NamespaceName>>,
    /// Whether every namespace is in it.
    pub(super) all_namespaces: bool,
    /// Whether the Services are in it.
    #[serde(default)]
    pub(super) services: bool,
    /// Whether the leases are in it that remember something.
    #[serde(default)]
    pub(super) leases: bool,
    /// Whether the ledgers are in it.
    #[serde(default)]
    pub(super) ledgers: bool,
    /// Salt of the digests in place of secret values; absent when the values are the real ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) salt: Option<Salt>,
}

/// The cluster that a recording was taken from.
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
