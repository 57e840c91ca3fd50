//! The outcome of a run that failed: its exit code, and whether other DaemonSets are still applied.

use super::Error;
use crate::exit::Exit;
use cluster::{self, LockError, WriteError};
use executor::PreflightError;
use planner::roll::{RollError, WaveError};
use planner::rollback::RollbackError;

impl Error {
    /// Whether the server answered 403 Forbidden.
    pub(crate) fn is_forbidden(&self) -> bool {
        let by_write = |error: &WriteError| {
            matches!(
                error,
                WriteError::Forbidden { .. }
                    | WriteError::Cluster(cluster::Error::Forbidden { .. })
            )
        };
        match self {
            Self::Cluster(error) | Self::Preflight(PreflightError::Cluster(error)) => {
                matches!(error, cluster::Error::Forbidden { .. })
            }
            Self::Preflight(
                PreflightError::DaemonSet(error)
                | PreflightError::Pod(error)
                | PreflightError::ForceConflicts(error),
            ) => by_write(error),
            Self::Preflight(PreflightError::MayNotCreate { .. }) => true,
            _others => false,
        }
    }

    /// Whether the error is limited to one DaemonSet and the objects of its namespace. The other
    /// DaemonSets are still applied then.
    pub(crate) fn is_about_one(&self) -> bool {
        match self {
            Self::Blocked(_)
            | Self::Stale(_)
            | Self::Mutated(_)
            | Self::MutatedUnderApprovals { .. }
            | Self::StillDiffers { .. }
            | Self::NamespaceMissing { .. }
            | Self::Roll(RollError::PausedByApply { .. } | RollError::LiveObject(_))
            | Self::Wave(_)
            | Self::Rollback(RollbackError::FieldsStay { .. } | RollbackError::LiveObject(_))
            | Self::LiveObject(_)
            | Self::Ownership(_)
            | Self::HolderIsLive { .. }
            | Self::Lock(LockError::Held { .. })
            | Self::Preflight(
                PreflightError::DaemonSet(_)
                | PreflightError::Pod(_)
                | PreflightError::DaemonSetRecord(_)
                | PreflightError::Ownership(_)
                | PreflightError::ForceConflicts(_),
            ) => !self.is_forbidden(),
            Self::Cluster(cluster::Error::Object { .. }) => true,
            _others => false,
        }
    }

    /// The outcome of a run that failed with this error.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Source(_)
            | Self::Manifest(_)
            | Self::Policy(_)
            | Self::NoDaemonSet { .. }
            | Self::NamespaceMissing { .. }
            | Self::Cluster(_)
            | Self::NothingSelected { .. }
            | Self::Save { .. }
            | Self::CheckToken { .. }
            | Self::NotifySecret { .. }
            | Self::Notify(_)
            | Self::NotFound { .. }
            | Self::StillInProgress { .. }
            | Self::NoSuchNode { .. }
            | Self::NodeFirst(_)
            | Self::NoSuchRevision(_)
            | Self::Page { .. }
            | Self::Render(_)
            | Self::Output(_)
            | Self::Random(_)
            | Self::CurrentFolder(_)
            | Self::Ownership(_)
            | Self::LiveObject(_)
            | Self::NoTerminal
            | Self::Declined
            | Self::Answer(_)
            | Self::Declared(_)
            | Self::Preflight(_)
            | Self::NotReconciled { .. }
            | Self::Remove { .. }
            | Self::Process(_) => Exit::Failed,
            Self::Stale(_)
            | Self::Mutated(_)
            | Self::MutatedUnderApprovals { .. }
            | Self::StillDiffers { .. } => Exit::Stale,
            Self::NotPermitted { missing: _, paused } if paused.is_empty() => Exit::Failed,
            Self::TimeIsOver(_) | Self::NotPermitted { .. } | Self::StaysPaused { .. } => {
                Exit::Paused
            }
            Self::Interrupted => Exit::Interrupted,
            Self::Blocked(_) => Exit::Blocked,
            Self::Roll(error) => of_roll(error),
            Self::Wave(error) => of_wave(error),
            Self::Rollback(error) => of_rollback(error),
            Self::SavedPlan(error) => error.exit(),
            Self::Rehearsal(error) => error.exit(),
            Self::Approval(error) => error.exit(),
            Self::Lock(error) => of_lock(error),
            Self::HolderIsLive { .. } => Exit::Locked,
            Self::OtherNamespace { .. }
            | Self::LogFilter(_)
            | Self::CommentUnread
            | Self::StandardInputTwice
            | Self::PruneNarrowed
            | Self::PruneUnread(_)
            | Self::NoSuchPage { .. } => Exit::Usage,
        }
    }
}

fn of_roll(error: &RollError) -> Exit {
    match error {
        RollError::NotOnDelete(_) | RollError::LiveObject(_) => Exit::Failed,
        RollError::PausedByApply { .. } => Exit::Blocked,
    }
}

fn of_wave(error: &WaveError) -> Exit {
    match error {
        WaveError::NotLeft { .. } | WaveError::Renumbered { .. } | WaveError::OtherNodes { .. } => {
            Exit::Stale
        }
        WaveError::NotNext { .. } => Exit::Blocked,
    }
}

fn of_rollback(error: &RollbackError) -> Exit {
    match error {
        RollbackError::NoSuchRevision(_)
        | RollbackError::NothingBefore(_)
        | RollbackError::NoRevisionOf { .. }
        | RollbackError::AmbiguousCommit { .. }
        | RollbackError::Unreadable { .. }
        | RollbackError::LiveObject(_) => Exit::Failed,
        RollbackError::FieldsStay { .. } => Exit::Blocked,
    }
}

fn of_lock(error: &LockError) -> Exit {
    match error {
        LockError::Read(_) | LockError::Write { .. } => Exit::Failed,
        LockError::Held { .. } | LockError::Lost { .. } => Exit::Locked,
    }
}
