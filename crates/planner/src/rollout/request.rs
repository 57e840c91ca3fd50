//! Requests to the API server that a decision makes. Data only; the JSON bodies are made in `write`.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::task::Provenance;
use crate::plan::{PausedRollout, Reason};
use daemonset::model::{NodeName, PodName, Uid};

/// A server-side apply of all fields that `ds-apply` owns.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// The condition that the live object must still meet.
    pub precondition: Precondition,
    /// The complete live object that the decision is based on.
    pub live: Option<Arc<Value>>,
    /// Whether the live pod template must stay: a write that would change it is not sent.
    pub keeps_template: bool,
    /// The purpose of the write.
    pub purpose: Purpose,
    /// The object to send, before the changes below.
    pub written: Arc<Value>,
    /// The pod template that replaces the one in `written`.
    pub template: Option<Arc<Value>>,
    /// `spec.updateStrategy`, always set.
    pub strategy: Value,
    /// The pause annotation; `None` removes it.
    pub pause: Option<PausedRollout>,
    /// Provenance annotations; `None` keeps those of `written`.
    pub provenance: Option<Provenance>,
}

/// The condition on the live object for a write, which is a compare-and-swap. Without the uid the
/// write would create a DaemonSet that was deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// The object does not exist.
    Absent,
    /// It is this object, and no client has written it since.
    Unchanged {
        /// `metadata.uid`.
        uid: Uid,
        /// `metadata.resourceVersion` of the object that was evaluated.
        resource_version: String,
    },
}

/// The purpose of a write of the DaemonSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// Apply the target, paused if pods must be replaced.
    Apply,
    /// Pause the rollout where it is; the template stays.
    Pause,
    /// Add the gate that has failed to a pause. Only for information: the rollout ends without it, too.
    AddFailedGate,
    /// Abort: the last good template, paused.
    Abort,
    /// The rollout waits: the last good template, paused.
    Wait,
    /// Restore the declared strategy and remove the pause.
    RestoreStrategy,
}

/// A pod to delete, with the reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    /// Its name.
    pub pod: PodName,
    /// Its uid, a precondition of the request.
    pub uid: Uid,
    /// The node it is on.
    pub node: NodeName,
    /// The reason for the delete.
    pub reason: Reason,
    /// The cost against the budget.
    pub cost: Cost,
}

/// A pod that makes a node pull the images of new pods.
#[derive(Clone, Debug, PartialEq)]
pub struct NewPuller {
    /// The node.
    pub node: NodeName,
    /// The pod, without its owner.
    pub pod: Value,
}

/// The cost of a delete against the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// No cost: the pod is not Ready, and its node already counts as unavailable.
    Nothing,
    /// One node becomes unavailable.
    One {
        /// Unavailable nodes before the delete.
        unavailable: u32,
        /// Nodes that may be unavailable.
        allowed: u32,
    },
}

/// The state of a kind of request of which at most one is pending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum RequestState {
    #[default]
    Idle,
    Out,
    /// The request failed; it is not retried before this time.
    RetryAt(Timestamp),
}
