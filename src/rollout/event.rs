//! What happens to a run from outside.

use std::fmt;

use crate::model::{RevisionName, Uid};

/// Why a step is taken. Whatever it is, the step looks at the whole world and decides afresh.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The world has changed, or the time of an [`Effect::WakeAt`](super::Effect::WakeAt) has come.
    Look,
    /// A request has been answered, or has come to nothing.
    Answer(Answer),
    /// The controller says that it cannot create a pod (warning event `FailedCreate`); the event
    /// names no node.
    CreateFailed {
        /// What it says.
        message: String,
    },
    /// Ctrl-C or SIGTERM. The second one leaves at once.
    Interrupt,
    /// The lock is no longer ours: nothing may be written any more.
    LockLost,
}

/// What came of a request. Every request has exactly one answer, in any order.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Of [`Effect::Write`](super::Effect::Write).
    Written(Result<Written, Failure>),
    /// Of [`Effect::Delete`](super::Effect::Delete).
    Deleted {
        /// The pod.
        uid: Uid,
        /// What came of it.
        result: Result<(), Failure>,
    },
    /// Of [`Effect::Record`](super::Effect::Record).
    Recorded {
        /// The revision.
        revision: RevisionName,
        /// What came of it.
        result: Result<(), Failure>,
    },
    /// Of [`Effect::Remember`](super::Effect::Remember), and of
    /// [`Effect::Forget`](super::Effect::Forget).
    Remembered(Result<(), Failure>),
}

/// The object as the server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// `metadata.uid`.
    pub uid: Uid,
    /// `metadata.resourceVersion`: an observation with a lower one is older than the write.
    pub resource_version: String,
}

/// Why a request did not do what it should, after the retries that its verb allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A precondition did not hold (409): nothing was done, and the world is not as it was thought.
    Conflict,
    /// There is no such object any more, or another one has its name (404, or 409 on a uid).
    Gone,
    /// The user may not (401, 403). Nothing was done.
    Forbidden {
        /// What the server says.
        message: String,
    },
    /// Validation or admission says no (400, 422, a webhook). Nothing was done.
    Refused {
        /// What the server says.
        message: String,
    },
    /// The server would change the pod template with it, which was to stay. Nothing was done.
    ChangesTemplate,
    /// No answer, or one that does not say (timeout, lost connection, 429, 5xx): it may have been
    /// done.
    Unknown {
        /// What was seen of it.
        message: String,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict => f.write_str("somebody else wrote it meanwhile"),
            Self::Gone => f.write_str("it is gone"),
            Self::Forbidden { message } => write!(f, "forbidden: {message}"),
            Self::Refused { message } => write!(f, "refused: {message}"),
            Self::ChangesTemplate => f.write_str(
                "the server would change the pod template with it, and pods would be replaced",
            ),
            Self::Unknown { message } => write!(f, "no clear answer: {message}"),
        }
    }
}
