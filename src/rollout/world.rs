//! What a step sees: one DaemonSet and what is about it, at one moment.

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
}

impl<'a> World<'a> {
    /// What a snapshot says about one DaemonSet.
    pub fn of(snapshot: &'a Snapshot, key: &DaemonSetKey) -> Self {
        Self {
            daemon_set: snapshot.daemon_set(key),
            nodes: &snapshot.nodes,
            pods: snapshot.pods_in(&key.namespace),
            revisions: snapshot.revisions_in(&key.namespace),
        }
    }
}
