//! How a run ended, and the one place where that becomes a number.
//!
//! The codes are a promise to scripts. With several DaemonSets the gravest outcome wins.

use std::process::ExitCode;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exit {
    /// Everything that was asked for was done.
    Done,
    /// `--detailed-exitcode`: there are changes.
    Changes,
    /// Live differs from the source.
    Drift,
    /// Stopped safely; running again goes on.
    Held,
    /// The cluster is no longer the one that the plan was made for.
    Stale,
    /// A guard says no.
    Refused,
    /// Another run holds the lock.
    Locked,
    /// An error, already explained.
    Failed,
    /// The command line is not understood.
    Usage,
    /// SIGINT.
    Interrupted,
    /// SIGTERM.
    Terminated,
}

impl Exit {
    /// Every outcome, the mildest first: the order in which one outweighs another.
    pub const BY_GRAVITY: [Self; 11] = [
        Self::Done,
        Self::Changes,
        Self::Drift,
        Self::Held,
        Self::Locked,
        Self::Stale,
        Self::Refused,
        Self::Failed,
        Self::Usage,
        Self::Terminated,
        Self::Interrupted,
    ];

    /// The graver of two outcomes.
    #[must_use]
    pub fn or_graver(self, other: Self) -> Self {
        if other.gravity() > self.gravity() { other } else { self }
    }

    fn gravity(self) -> Option<usize> {
        Self::BY_GRAVITY.iter().position(|exit| *exit == self)
    }

    /// The process's exit status. `clap`'s own 2 never gets out, so 2 always means changes.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Changes => 2,
            Self::Drift => 3,
            Self::Held => 4,
            Self::Stale => 5,
            Self::Refused => 6,
            Self::Locked => 7,
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
    fn the_gravest_wins() {
        let codes: Vec<u8> = Exit::BY_GRAVITY.iter().map(|exit| exit.code()).collect();
        assert_eq!(codes, [0, 2, 3, 4, 7, 5, 6, 1, 64, 143, 130]);
        for (mild, grave) in Exit::BY_GRAVITY.iter().zip(&Exit::BY_GRAVITY[1..]) {
            assert_eq!(mild.or_graver(*grave), *grave);
            assert_eq!(grave.or_graver(*mild), *grave);
        }
    }

    #[test]
    fn every_outcome_has_a_number_of_its_own() {
        let codes: BTreeSet<u8> = Exit::BY_GRAVITY.iter().map(|exit| exit.code()).collect();
        assert_eq!(codes.len(), Exit::BY_GRAVITY.len());
    }
}
