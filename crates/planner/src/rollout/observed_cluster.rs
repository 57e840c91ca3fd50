//! The input of a decision: one DaemonSet with its nodes, pods and revisions, at one moment.

use crate::shared::Siblings;
use daemonset::controller::Owner;
use daemonset::controller::claims::Claims;
use daemonset::controller::node_placements::NodePlacements;
use daemonset::model::{
    DaemonSet, DaemonSetKey, Neighbours, Node, Pod, Puller, Revision, Snapshot,
};

/// The newest known state of one DaemonSet. It may be older than the last write, and even older
/// than that of the decision before.
#[derive(Clone, Copy, Debug)]
pub struct ObservedCluster<'a> {
    /// The live object.
    pub daemon_set: Option<&'a DaemonSet>,
    /// All nodes of the cluster, sorted by name.
    pub nodes: &'a [Node],
    /// The pods of its namespace, including those of other owners; the claiming rules decide.
    pub pods: &'a [Pod],
    /// The revisions of its namespace, sorted by name.
    pub revisions: &'a [Revision],
    /// The placements of the live template on these nodes, if they are cached.
    pub node_placements: Option<&'a NodePlacements>,
    /// The other DaemonSets of its shared budget.
    pub siblings: Option<&'a Siblings>,
    /// The pods that pull images for it.
    pub pullers: &'a [Puller],
    /// The other pods that the checks of its policy look at.
    pub neighbours: &'a [Neighbours],
    /// Whether all watches are current and requests can be sent.
    pub is_current: bool,
    /// The error of a watch or of the lock for which it is not current, if one fails.
    pub failure: Option<&'a str>,
}

impl<'a> ObservedCluster<'a> {
    /// What a snapshot has of one DaemonSet.
    pub fn of(snapshot: &'a Snapshot, key: &DaemonSetKey, is_current: bool) -> Self {
        Self {
            daemon_set: snapshot.daemon_set(key),
            nodes: &snapshot.nodes,
            pods: snapshot.pods_in(&key.namespace),
            revisions: snapshot.revisions_in(&key.namespace),
            node_placements: None,
            siblings: None,
            pullers: &[],
            neighbours: &[],
            is_current,
            failure: None,
        }
    }

    /// The pods that belong to the DaemonSet.
    pub(super) fn pods_of(&self, live: &DaemonSet) -> Vec<&'a Pod> {
        Claims::of(&Owner::from(live), self.pods).claimed
    }

    /// The revisions that belong to the DaemonSet.
    pub(super) fn revisions_of(&self, live: &DaemonSet) -> Vec<&'a Revision> {
        Claims::of(&Owner::from(live), self.revisions).claimed
    }

    /// The same, with the other DaemonSets of the shared budget.
    #[must_use]
    pub fn beside(self, siblings: Option<&'a Siblings>) -> Self {
        Self { siblings, ..self }
    }

    /// The same, with the pods that pull images.
    #[must_use]
    pub fn pulling(self, pullers: &'a [Puller]) -> Self {
        Self { pullers, ..self }
    }

    /// The same, with the other pods that checks look at.
    #[must_use]
    pub fn among(self, neighbours: &'a [Neighbours]) -> Self {
        Self { neighbours, ..self }
    }

    /// The same, with the error of a watch or of the lock.
    #[must_use]
    pub fn failing(self, failure: Option<&'a str>) -> Self {
        Self { failure, ..self }
    }

    /// The same, with cached node placements.
    #[must_use]
    pub fn on(self, node_placements: Option<&'a NodePlacements>) -> Self {
        Self { node_placements, ..self }
    }
}

/// `metadata.resourceVersion` of the observed object; empty when it has none.
pub(super) fn resource_version(live: &DaemonSet) -> &str {
    let version = live.raw.pointer("/metadata/resourceVersion");
    version.and_then(serde_json::Value::as_str).unwrap_or_default()
}

/// Whether one resourceVersion is older than another of the same object. They are integers of any
/// length (upstream: `CompareResourceVersion`); false if one of them is not a number.
pub(super) fn is_older_version(version: &str, than: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    if !is_number(version) || !is_number(than) {
        return false;
    }
    let digits = |text: &str| text.trim_start_matches('0').to_owned();
    let (version, than) = (digits(version), digits(than));
    (version.len(), version) < (than.len(), than)
}
