//! Effects of a decision. Data only; the JSON bodies are made in `write`.

use jiff::Timestamp;

use super::outcome::Ending;
use super::progress::Report;
use super::request::{Delete, NewPuller, Write};
use daemonset::model::{CheckQuestion, PodName, RevisionName, StepsNote, Uid};

/// One effect, performed in the order given. Requests (the first ten) are each answered by one
/// [`Answer`](super::Answer).
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Write the DaemonSet, by server-side apply.
    Write(Box<Write>),
    /// Delete a pod, its uid a precondition.
    Delete(Delete),
    /// Add the provenance to a revision that does not have it
    /// ([`write::provenance`](super::write::provenance) returns the annotations).
    Annotate {
        /// The revision.
        revision: RevisionName,
        /// Its uid.
        uid: Uid,
    },
    /// Remember a failed template on the lock (a Lease).
    Remember {
        /// Its [`template_digest`](crate::digest::template_digest).
        digest: String,
    },
    /// Forget a failed template: it has been rolled out completely since.
    Forget {
        /// Its [`template_digest`](crate::digest::template_digest).
        digest: String,
    },
    /// Note what has become of the steps, on the lock.
    Note(Box<StepsNote>),
    /// Read the approvals of the steps again.
    ReadApprovals,
    /// Ask these checks of the policy. Each question is answered by one
    /// [`Answer::Checked`](super::Answer::Checked).
    Ask(Vec<CheckQuestion>),
    /// Create a pod that makes a node pull images; the caller adds the Lease as its owner.
    CreatePuller(Box<NewPuller>),
    /// Delete such a pod, its uid a precondition.
    RemovePuller {
        /// The pod.
        pod: PodName,
        /// Its uid.
        uid: Uid,
    },
    /// Report progress to the user.
    Report(Report),
    /// Decide again no later than this, with [`Event::Observed`](super::Event::Observed). Valid until the
    /// next decision, which sets it again.
    WakeAt(Timestamp),
    /// The run has ended. No request is pending; further decisions have no effects.
    Finish(Box<Ending>),
}
