//! What a step wants done. Data only; the JSON bodies are made in `write`.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::outcome::Ending;
use super::progress::Report;
use super::task::Provenance;
use crate::model::{NodeName, PodName, RevisionName, Uid};
use crate::plan::{Hold, Reason};

/// One thing to be done, in the order given. Requests (the first five) are each answered by one
/// [`Answer`](super::Answer).
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Write the DaemonSet, by server-side apply.
    Write(Box<Write>),
    /// Delete a pod, its uid a precondition.
    Delete(Delete),
    /// Add the provenance to a revision that does not carry it
    /// ([`write::provenance`](super::write::provenance) says which annotations).
    Record {
        /// The revision.
        revision: RevisionName,
        /// Its identity.
        uid: Uid,
    },
    /// Remember a template that failed, where the lock is.
    Remember {
        /// [`template_digest`](crate::plan::template_digest) of it.
        digest: String,
    },
    /// Forget that a template failed: it has been rolled out whole since.
    Forget {
        /// [`template_digest`](crate::plan::template_digest) of it.
        digest: String,
    },
    /// Tell the user.
    Report(Report),
    /// Take a step no later than this, with [`Event::Look`](super::Event::Look). Counts until the
    /// next step, which says it anew.
    WakeAt(Timestamp),
    /// It is over. No request is out; no further step does anything.
    Finish(Box<Ending>),
}

/// A write of the whole object, as `ds-apply` owns it.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// What must still be true of the live object.
    pub precondition: Precondition,
    /// The live object that was looked at, whole.
    pub live: Option<Arc<Value>>,
    /// Whether the live pod template has to stay as it is: else nothing is written.
    pub keeps_template: bool,
    /// What it is for.
    pub purpose: Purpose,
    /// What is sent, but for what follows.
    pub written: Arc<Value>,
    /// The pod template that takes the place of the one in `written`.
    pub template: Option<Arc<Value>>,
    /// `spec.updateStrategy`, always written out.
    pub strategy: Value,
    /// The annotation that says what is held; `None` takes it away.
    pub hold: Option<Hold>,
    /// Provenance annotations; `None` keeps those of `written`.
    pub provenance: Option<Provenance>,
}

/// What must be true of the live object for a write to be carried out: it is a compare-and-swap.
/// Without the uid it would create a DaemonSet that was deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// It does not exist.
    Absent,
    /// It is this one, and nobody has written it since.
    Unchanged {
        /// `metadata.uid`.
        uid: Uid,
        /// `metadata.resourceVersion` of what was just looked at.
        resource_version: String,
    },
}

/// What a write of the DaemonSet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// The target, under a hold if pods must be replaced.
    Apply,
    /// Stop where it is: the hold alone.
    Hold,
    /// The last good template under the hold.
    Park,
    /// The declared strategy, and no hold any more.
    GiveBack,
}

/// A pod to delete, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    /// Its name.
    pub pod: PodName,
    /// Its identity, a precondition of the request.
    pub uid: Uid,
    /// The node it is on.
    pub node: NodeName,
    /// Why it goes.
    pub reason: Reason,
    /// Whether that costs something.
    pub cost: Cost,
}

/// What a delete takes from the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Nothing: the pod is not Ready, and its node counts already.
    Nothing,
    /// One node.
    One {
        /// Nodes that count as unavailable before it.
        unavailable: u32,
        /// How many may.
        allowed: u32,
    },
}
