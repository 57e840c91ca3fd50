//! Events that a run receives: answers, warnings, interrupts, a lost lock.

use std::collections::BTreeMap;
use std::fmt;

use daemonset::model::{
    Approval, CheckQuestion, CheckResponse, NodeName, PodName, RevisionName, Uid,
};

/// The trigger of a decision. Whatever the event, the decision is made on the whole [`ObservedCluster`](super::ObservedCluster).
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The cluster has changed, or the time of an [`Effect::WakeAt`](super::Effect::WakeAt) has come.
    Observed,
    /// A request has been answered or has failed.
    Answer(Answer),
    /// The controller reports that it cannot create a pod (warning event `FailedCreate`); the event
    /// names no node.
    CreateFailed {
        /// The message of the event.
        message: String,
    },
    /// Ctrl-C or SIGTERM. The second one ends the run at once.
    Interrupt,
    /// The run has lost its lock: it may write nothing more.
    LockLost,
}

/// The result of a request. Every request has exactly one answer, in any order.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Answer to [`Effect::Write`](super::Effect::Write).
    Written(Result<Written, Failure>),
    /// Answer to [`Effect::Delete`](super::Effect::Delete).
    Deleted {
        /// The pod.
        uid: Uid,
        /// The result.
        result: Result<(), Failure>,
    },
    /// Answer to [`Effect::Annotate`](super::Effect::Annotate).
    Annotated {
        /// The revision.
        revision: RevisionName,
        /// The result.
        result: Result<(), Failure>,
    },
    /// Answer to [`Effect::Remember`](super::Effect::Remember) and
    /// [`Effect::Forget`](super::Effect::Forget).
    Remembered(Result<(), Failure>),
    /// Answer to [`Effect::Note`](super::Effect::Note).
    Noted(Result<(), Failure>),
    /// Answer to [`Effect::CreatePuller`](super::Effect::CreatePuller).
    PullerCreated {
        /// The node.
        node: NodeName,
        /// Its name and uid.
        result: Result<(PodName, Uid), Failure>,
    },
    /// Answer to [`Effect::RemovePuller`](super::Effect::RemovePuller).
    PullerRemoved {
        /// The pod.
        uid: Uid,
        /// The result.
        result: Result<(), Failure>,
    },
    /// Answer to [`Effect::ReadApprovals`](super::Effect::ReadApprovals): the approvals by step;
    /// `None` if they could not be read.
    Approvals(Option<BTreeMap<String, Approval>>),
    /// Answer to one question of [`Effect::Ask`](super::Effect::Ask).
    Checked {
        /// The question.
        question: Box<CheckQuestion>,
        /// What came back.
        response: CheckResponse,
    },
}

/// The written object, as the server returned it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// `metadata.uid`.
    pub uid: Uid,
    /// `metadata.resourceVersion`: an observation with a lower one is older than the write.
    pub resource_version: String,
}

/// The reason why a request failed, after the retries that its verb allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A precondition did not hold (409). Nothing was done; the view of the cluster is out of date.
    Conflict,
    /// The object no longer exists, or another one has its name (404, or 409 on a uid).
    Gone,
    /// The user is not authorized (401, 403). Nothing was done.
    Forbidden {
        /// The server's message.
        message: String,
    },
    /// Validation or admission rejected the request (400, 422, a webhook). Nothing was done.
    Refused {
        /// The server's message.
        message: String,
    },
    /// The write would also change the pod template, which must stay. Nothing was done.
    ChangesTemplate,
    /// No answer, or an inconclusive one (timeout, lost connection, 429, 5xx): the request may have
    /// been executed.
    Unknown {
        /// The error message.
        message: String,
    },
}

impl Failure {
    /// Whether the server would answer the same again.
    pub(super) fn is_permanent(&self) -> bool {
        match self {
            Self::Forbidden { .. } | Self::Refused { .. } | Self::ChangesTemplate => true,
            Self::Conflict | Self::Gone | Self::Unknown { .. } => false,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict => f.write_str("another client changed it meanwhile"),
            Self::Gone => f.write_str("it is gone"),
            Self::Forbidden { message } => write!(f, "forbidden: {message}"),
            Self::Refused { message } => write!(f, "refused: {message}"),
            Self::ChangesTemplate => f.write_str(
                "the server would also change the pod template, and pods would be replaced",
            ),
            Self::Unknown { message } => write!(f, "no clear answer: {message}"),
        }
    }
}
