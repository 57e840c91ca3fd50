//! Effects that a step requests. Data only; the JSON bodies are made in `write`.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::outcome::Ending;
use super::progress::Report;
use super::task::Provenance;
use crate::plan::{PausedRollout, Reason};
use daemonset::model::{NodeName, PodName, RevisionName, Uid};

/// One effect, performed in the order given. Requests (the first five) are each answered by one
/// [`Answer`](super::Answer).
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Write the DaemonSet, by server-side apply.
    Write(Box<Write>),
    /// Delete a pod, its uid a precondition.
    Delete(Delete),
    /// Add the provenance to a revision that does not have it
    /// ([`write::provenance`](super::write::provenance) returns the annotations).
    Record {
        /// The revision.
        revision: RevisionName,
        /// Its uid.
        uid: Uid,
    },
    /// Record a failed template on the lock (a Lease).
    Remember {
        /// Its [`template_digest`](crate::plan::template_digest).
        digest: String,
    },
    /// Remove the record of a failed template: it has been rolled out completely since.
    Forget {
        /// Its [`template_digest`](crate::plan::template_digest).
        digest: String,
    },
    /// Report progress to the user.
    Report(Report),
    /// Take a step no later than this, with [`Event::Look`](super::Event::Look). Valid until the
    /// next step, which sets it again.
    WakeAt(Timestamp),
    /// The run has ended. No request is pending; further steps do nothing.
    Finish(Box<Ending>),
}

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
    /// Abort: the last good template, paused.
    Abort,
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
