//! What a step sees: one DaemonSet and what is about it, at one moment.

use crate::controller::ground::Ground;
use crate::model::{DaemonSet, DaemonSetKey, Node, Pod, Revision, Snapshot};

/// The newest that is known of one DaemonSet. It may be older than the last write; it may even be
/// older than the world of the step before.
#[derive(Clone, Copy, Debug)]
pub struct World<'a> {
    /// The live object.
    pub daemon_set: Option<&'a DaemonSet>,
    /// All nodes of the cluster, sorted by name.
    pub nodes: &'a [Node],
    /// The pods of its namespace. Those of others may be among them; the claiming rules decide.
    pub pods: &'a [Pod],
    /// The revisions of its namespace, sorted by name.
    pub revisions: &'a [Revision],
    /// What the live template says about these nodes, by whoever knows it already.
    pub ground: Option<&'a Ground>,
    /// Whether all of it is kept current, and whatever is decided can be sent.
    pub is_current: bool,
}

impl<'a> World<'a> {
    /// What a snapshot says about one DaemonSet.
    pub fn of(snapshot: &'a Snapshot, key: &DaemonSetKey, is_current: bool) -> Self {
        Self {
            daemon_set: snapshot.daemon_set(key),
            nodes: &snapshot.nodes,
            pods: snapshot.pods_in(&key.namespace),
            revisions: snapshot.revisions_in(&key.namespace),
            ground: None,
            is_current,
        }
    }

    /// The same world, on ground that is known.
    #[must_use]
    pub fn on(self, ground: Option<&'a Ground>) -> Self {
        Self { ground, ..self }
    }
}

/// `metadata.resourceVersion` of what was seen; empty when it has none.
pub(super) fn resource_version(live: &DaemonSet) -> &str {
    let version = live.raw.pointer("/metadata/resourceVersion");
    version.and_then(serde_json::Value::as_str).unwrap_or_default()
}

/// Whether one resourceVersion is older than another of the same object. They are integers of any
/// length (upstream: `CompareResourceVersion`); of what is none, nothing can be said.
pub(super) fn is_older(version: &str, than: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    if !is_number(version) || !is_number(than) {
        return false;
    }
    let digits = |text: &str| text.trim_start_matches('0').to_owned();
    let (version, than) = (digits(version), digits(than));
    (version.len(), version) < (than.len(), than)
}
