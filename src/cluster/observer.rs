//! What a rollout of one DaemonSet sees of the cluster: all nodes, and the DaemonSet's own pods,
//! revisions and complaints, kept current by one watch each.
//!
//! How stale it may be: a change is here as soon as the server tells of it, which takes
//! milliseconds while the watch stands. When a connection dies without a word, nothing is heard
//! until it is given up for dead (after [`SILENCE`] without an event or bookmark) and the watch is
//! resumed. A watch never stops silently: [`Observer::health`] says for each when it last gave a
//! sign of life, and what has been wrong since when.

use std::time::Duration;

use jiff::Timestamp;

use super::{Error, LiveCluster, Resource};
use crate::model::{DaemonSetKey, LabelSelector, Snapshot};

/// How long a watch may be silent before it is begun anew. Servers send bookmarks every minute.
pub const SILENCE: Duration = Duration::from_secs(75);

/// What is to be observed.
#[derive(Clone, Debug)]
pub struct Target {
    /// Which DaemonSet. It need not exist yet.
    pub key: DaemonSetKey,
    /// `spec.selector`: narrows pods and revisions. A pod that does not match is none of the
    /// DaemonSet's, whoever is its owner: the controller releases it.
    pub selector: LabelSelector,
    /// Whether to watch the events of the DaemonSet too. RBAC may not allow it.
    pub events: bool,
}

/// Something that the controller complained of (upstream: `v1` Event on the DaemonSet).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// One word, such as `FailedCreate`.
    pub reason: String,
    /// What is wrong.
    pub message: String,
    /// How often it was told.
    pub count: u32,
    /// When it was told last, by the server's clock.
    pub last: Option<Timestamp>,
}

/// Everything that is observed, at one moment.
#[derive(Clone, Debug)]
pub struct View {
    /// Nodes, pods, revisions and the DaemonSet, if it exists. `observed_at` is the server's clock.
    /// Namespaces and the cluster's name are not observed.
    pub snapshot: Snapshot,
    /// The DaemonSet's warnings, oldest first.
    pub complaints: Vec<Complaint>,
}

/// How one watch stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchHealth {
    /// Of what.
    pub resource: Resource,
    /// Time since the server last told anything, be it that nothing has changed.
    pub silent: Duration,
    /// What is wrong now; `None` while the watch stands.
    pub trouble: Option<String>,
}

/// Keeps a [`View`] current until it is dropped.
pub struct Observer {}

impl LiveCluster {
    /// Begins to observe. Returns when everything has been seen once; `now` is the local clock, for
    /// a server that does not say what time it is.
    ///
    /// # Errors
    /// As [`LiveCluster::snapshot`]; everything that the user may not list or watch is in one
    /// error. Later troubles are told by [`Observer::health`], and passed over when they pass.
    pub async fn observe(&self, target: Target, now: Timestamp) -> Result<Observer, Error> {
        unimplemented!()
    }
}

impl Observer {
    /// Looks at the view. Nothing changes meanwhile, so be quick, and do not wait for anything.
    pub fn look<R>(&self, look: impl FnOnce(&View) -> R) -> R {
        unimplemented!()
    }

    /// Waits until something has changed since this was last called, be it a watch's health. At
    /// once when it already has; many changes are one.
    pub async fn changed(&mut self) {
        unimplemented!()
    }

    /// How each watch stands.
    pub fn health(&self) -> Vec<WatchHealth> {
        unimplemented!()
    }
}
