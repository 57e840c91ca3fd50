//! Why pods were not reconciled.

/// Why the pods of a DaemonSet were not reconciled within half a minute.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreconciled {
    /// No watch of the cluster was current.
    #[error("the cluster was not observed")]
    NotObserved,
    /// The lock was not renewed recently enough for requests.
    #[error("the lock was not renewed in time")]
    LockNotRenewed,
    /// A request failed; its message.
    #[error("{0}")]
    RequestFailed(String),
    /// Requests were sent, and not answered.
    #[error("requests were not answered")]
    NotAnswered,
    /// The watches did not show what requests have written.
    #[error("what was written was not observed")]
    WritesNotObserved,
}
