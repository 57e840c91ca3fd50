//! How a lock is taken, what a run that waits for it reports, and why it is not taken.

use std::time::Duration;

use jiff::Timestamp;

use super::clock::Clock;
use super::lease;
use crate::request::REQUEST_LIMIT;
use crate::{Error, WriteError};
use daemonset::model::{DaemonSetKey, LockHolder};

/// Options of taking and renewing a lock.
#[derive(Clone, Debug)]
pub struct LockOptions {
    /// The lease duration. The lease is renewed three times as often.
    pub lease: Duration,
    /// How long to wait for another holder to release or lose the lock (`--lock-timeout`).
    pub wait: Duration,
    /// How long the last request of a dead holder may still be in flight. Values below the 10 s
    /// request timeout are for tests.
    pub request: Duration,
    /// The clock that measures all times.
    pub clock: Clock,
}

impl LockOptions {
    /// A lease of 15 s and a wait of 30 s.
    pub fn new(clock: Clock) -> Self {
        Self {
            lease: lease::DEFAULT_LEASE,
            wait: Duration::from_secs(30),
            request: REQUEST_LIMIT,
            clock,
        }
    }
}

/// Another holder has the lock, and this run waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockWait {
    /// The current holder.
    pub holder: LockHolder,
    /// The time of the server's clock.
    pub now: Option<Timestamp>,
    /// The time until the lock can be taken if its holder does not renew it: the lease duration
    /// plus one request, from the first read of the lease.
    pub unless_renewed: Duration,
    /// The rest of the timeout.
    pub timeout: Duration,
}

/// Why the lock could not be taken, or was lost.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another holder has it (exit code 7).
    #[error("{daemon_set} is locked by {holder} for {} s", waited.as_secs())]
    Held {
        /// The locked DaemonSet.
        daemon_set: DaemonSetKey,
        /// The current holder.
        holder: String,
        /// The time waited.
        waited: Duration,
    },
    /// Another run took the lock, or a user released it by force (exit code 7).
    #[error("another run took the lock of {daemon_set}")]
    Lost {
        /// The locked DaemonSet.
        daemon_set: DaemonSetKey,
    },
    /// The lease cannot be read.
    #[error(transparent)]
    Read(#[from] Error),
    /// The lease cannot be written.
    #[error("cannot lock {daemon_set}")]
    Write {
        /// The locked DaemonSet.
        daemon_set: DaemonSetKey,
        /// The error of the write.
        #[source]
        source: Box<WriteError>,
    },
}

impl LockError {
    pub(super) fn of_write(key: &DaemonSetKey, error: WriteError) -> Self {
        Self::Write { daemon_set: key.clone(), source: Box::new(error) }
    }
}
