//! The outcome of a run, and its exit code.
//!
//! Scripts rely on the codes. With several DaemonSets, the most severe outcome wins.

use std::process::ExitCode;

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exit {
    /// The command succeeded.
    Done,
    /// `--detailed-exitcode`: there are changes.
    Changes,
    /// `drift`: the cluster differs from the source.
    Drift,
    /// A rollout waits for time, or for another DaemonSet; running again later continues it.
    Waiting,
    /// A rollout waits until a person approves it.
    ApprovalNeeded,
    /// A rollout is paused or aborted; running again resumes it.
    Paused,
    /// The cluster has changed since the plan was made.
    Stale,
    /// A guard blocks the plan.
    Blocked,
    /// Another run holds the lock.
    Locked,
    /// An error, which has been printed.
    Failed,
    /// The command line is invalid.
    Usage,
    /// SIGINT.
    Interrupted,
    /// SIGTERM.
    Terminated,
}

impl Exit {
    /// Every outcome, ordered from the least to the most severe. A lock is less severe than a rollout
    /// that has failed, because schedules count it as a success.
    pub const BY_SEVERITY: [Self; 13] = [
        Self::Done,
        Self::Changes,
        Self::Drift,
        Self::Waiting,
        Self::ApprovalNeeded,
        Self::Locked,
        Self::Paused,
        Self::Stale,
        Self::Blocked,
        Self::Failed,
        Self::Usage,
        Self::Terminated,
        Self::Interrupted,
    ];

    /// The more severe of two outcomes.
    #[must_use]
    pub fn or_more_severe(self, other: Self) -> Self {
        if other.severity() > self.severity() { other } else { self }
    }

    fn severity(self) -> Option<usize> {
        Self::BY_SEVERITY.iter().position(|exit| *exit == self)
    }

    /// The exit code of the process. `clap`'s own 2 is replaced by 64, so 2 always means changes.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Changes => 2,
            Self::Drift => 3,
            Self::Paused => 4,
            Self::Stale => 5,
            Self::Blocked => 6,
            Self::Locked => 7,
            Self::Waiting => 8,
            Self::ApprovalNeeded => 9,
            Self::Usage => 64,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_most_severe_wins() {
        let codes: Vec<u8> = Exit::BY_SEVERITY.iter().map(|exit| exit.code()).collect();
        assert_eq!(codes, [0, 2, 3, 8, 9, 7, 4, 5, 6, 1, 64, 143, 130]);
        for (mild, grave) in Exit::BY_SEVERITY.iter().zip(&Exit::BY_SEVERITY[1..]) {
            assert_eq!(mild.or_more_severe(*grave), *grave);
            assert_eq!(grave.or_more_severe(*mild), *grave);
        }
    }

    #[test]
    fn every_outcome_has_its_own_code() {
        let codes: BTreeSet<u8> = Exit::BY_SEVERITY.iter().map(|exit| exit.code()).collect();
        assert_eq!(codes.len(), Exit::BY_SEVERITY.len());
    }
}
