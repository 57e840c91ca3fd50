//! What a plan is made from.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::document::{SourceInfo, Warning};
use super::secrets::ShownValues;
use crate::extent::Extent;
use daemonset::model::{
    Cascade, DaemonSet, DaemonSetKey, DesiredDaemonSet, NamespaceName, NodeName, Place, Snapshot,
};

/// Input of a plan.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    /// Snapshot of the cluster.
    pub snapshot: &'a Snapshot,
    /// The DaemonSets of the source, each once.
    pub desired: &'a [DesiredDaemonSet],
    /// Namespaces in the source, and where: a plan does not create them.
    pub created_namespaces: &'a BTreeMap<NamespaceName, Place>,
    /// Field managers whose fields are overwritten or removed (`--force-conflicts`), in addition
    /// to those in conflict.
    pub force_conflicts: &'a BTreeSet<String>,
    /// Pruning of DaemonSets that were applied from the source and are no longer in it; `None`
    /// keeps them.
    pub prune: Option<Prune<'a>>,
    /// The DaemonSets at the merge base of a pull request, to show its own changes.
    pub base: Option<&'a [DesiredDaemonSet]>,
    /// The DaemonSets at the base that are selected and that the whole source no longer has.
    pub removed: &'a BTreeSet<DaemonSetKey>,
    /// Origin of the manifests.
    pub source: SourceInfo,
    /// Warnings from reading the source.
    pub warnings: Vec<Warning>,
    /// Time at which the plan is made.
    pub created_at: Timestamp,
    /// The outdated pods that are replaced (`step`); the digest is that of all.
    pub extent: &'a Extent,
    /// What the plan is for.
    pub intent: Intent,
    /// Level of detail of the document.
    pub detail: Detail<'a>,
}

impl<'a> Input<'a> {
    /// Input for these DaemonSets on this cluster, with defaults for everything else.
    pub fn of(snapshot: &'a Snapshot, desired: &'a [DesiredDaemonSet]) -> Self {
        Self {
            snapshot,
            desired,
            created_namespaces: const { &BTreeMap::new() },
            force_conflicts: const { &BTreeSet::new() },
            prune: None,
            base: None,
            removed: const { &BTreeSet::new() },
            source: SourceInfo::default(),
            warnings: Vec::new(),
            created_at: snapshot.observed_at,
            extent: &Extent::All,
            intent: Intent::default(),
            detail: Detail::default(),
        }
    }
}

/// What a plan is for. It matters only where Flux or Argo CD applies a DaemonSet under `OnDelete`, and
/// `ds-apply roll` replaces the pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Intent {
    /// `ds-apply` applies it: it must not apply such a DaemonSet.
    #[default]
    Apply,
    /// `ds-plan` shows it: what Flux or Argo CD will write to such a DaemonSet.
    Preview,
}

/// Input of pruning: the source, and the DaemonSets that it declares.
#[derive(Clone, Copy, Debug)]
pub struct Prune<'a> {
    /// Id of the source (`--source-id`).
    pub id: &'a str,
    /// Whether the pods are deleted with their DaemonSet or orphaned.
    pub cascade: Cascade,
    /// Every DaemonSet in the source, including those that are not in the plan.
    pub declared: &'a BTreeSet<DaemonSetKey>,
    /// Namespaces in which DaemonSets are pruned, in addition to those of `declared`: those that
    /// the source creates, and those of `--prune-namespace`.
    pub namespaces: &'a BTreeSet<NamespaceName>,
}

impl Prune<'_> {
    /// Whether DaemonSets of this namespace are pruned. In other namespaces the annotation is not
    /// trusted: any user who can write DaemonSets there can set it.
    pub(super) fn counts_in(&self, namespace: &NamespaceName) -> bool {
        self.namespaces.contains(namespace)
            || self.declared.iter().any(|key| key.namespace == *namespace)
    }
}

/// Level of detail of a plan. It changes neither the planned actions nor the digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detail<'a> {
    /// Whether nodes with nothing to do are included.
    pub all_nodes: bool,
    /// The values that are shown although they may be secret.
    pub show_values: ShownValues<'a>,
}

/// An object that does not exist in the cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFound {
    /// No DaemonSet with this namespace and name.
    #[error("the cluster has no DaemonSet {0}")]
    DaemonSet(DaemonSetKey),
    /// No node with this name.
    #[error("the cluster has no node {0}")]
    Node(NodeName),
}

pub(super) fn find_daemon_set<'a>(
    snapshot: &'a Snapshot,
    key: &DaemonSetKey,
) -> Result<&'a DaemonSet, NotFound> {
    snapshot.daemon_set(key).ok_or_else(|| NotFound::DaemonSet(key.clone()))
}
