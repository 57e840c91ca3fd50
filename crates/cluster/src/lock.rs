//! The lock of a DaemonSet: one run at a time, by a Lease in its namespace (upstream:
//! `coordination.k8s.io`, as in leader election).
//!
//! Every write to the lease is compare-and-swap on its resource version. A run that waits for the
//! lock measures on its own clock how long the lease has not changed; clocks of two machines are
//! never compared. The fence decides whether the holder may still send requests. Not here: the
//! writes done under the lock.

mod clock;
mod decide;
mod fence;
mod record;
mod renewal;
mod take;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::task::JoinHandle;

pub use clock::Clock;
pub use record::{Holder, LeaseRecord};

pub(super) use record::{HOLDER_ANNOTATION, LeaseSpec, lock_holder};

pub(super) use fence::Fence;

use self::renewal::Renewal;
use self::take::Taker;
use super::request::{REQUEST_LIMIT, Requests};
use super::{Error, WriteError, Writer};
use daemonset::model::{DaemonSetKey, LockHolder};

/// Attempts to release a lock by force when its holder renews it in between.
const RENEWED: u32 = 3;

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
            lease: record::DEFAULT_LEASE,
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
    fn of_write(key: &DaemonSetKey, error: WriteError) -> Self {
        Self::Write { daemon_set: key.clone(), source: Box::new(error) }
    }
}

/// A DaemonSet's lock. It is renewed in the background. Dropping it releases it on a best-effort
/// basis; call [`release`](Self::release) to wait for that.
pub struct Lock {
    renewal: Arc<Renewal>,
    task: JoinHandle<()>,
}

impl Lock {
    /// A writer whose requests are sent only while the lock is fresh.
    pub fn writer(&self) -> Writer {
        Writer::new(Arc::clone(&self.renewal.requests), Arc::clone(&self.renewal.fence))
    }

    /// Whether the lock was renewed recently enough to write. A stale lock becomes fresh again when
    /// it is renewed, unless it is lost. Measured on a clock that counts suspends, so a process
    /// that was stopped for long finds its lock stale before it writes again.
    pub fn is_fresh(&self) -> bool {
        self.renewal.fence.is_fresh()
    }

    /// Waits until the lock is lost: another run took it, or a user released it by force.
    pub async fn lost(&self) {
        self.renewal.fence.lost().await;
    }

    /// The value of an annotation of the lease, such as the templates that failed before.
    pub async fn note(&self, key: &str) -> Option<String> {
        self.renewal.note(key).await
    }

    /// Sets an annotation of the lease, compare-and-swap; `None` removes it. Annotations outlive
    /// the lock: the lease is never deleted.
    ///
    /// # Errors
    /// The lease cannot be written; [`WriteError::Unlocked`] when another run holds it.
    pub async fn set_note(&self, key: &str, value: Option<&str>) -> Result<(), WriteError> {
        self.renewal.set_note(key, value).await
    }

    /// Releases the lock after the writes in flight have ended. No more writes are sent.
    ///
    /// # Errors
    /// The lease cannot be written; it then expires.
    pub async fn release(self) -> Result<(), WriteError> {
        self.task.abort();
        self.renewal.release().await
    }

    /// Simulates a killed process: the lock is neither renewed nor released.
    #[cfg(test)]
    pub(super) fn die(self) {
        self.task.abort();
        self.renewal.fence.lose();
    }

    pub(super) async fn take(
        requests: Arc<Requests>,
        key: &DaemonSetKey,
        holder: &Holder,
        options: &LockOptions,
        waits: &(dyn Fn(&LockWait) + Sync),
    ) -> Result<Self, LockError> {
        let renewal = Taker { requests, key, holder, options, waits }.take().await?;
        let renewal = Arc::new(renewal);
        let task = tokio::spawn(Arc::clone(&renewal).run());
        Ok(Self { renewal, task })
    }

    pub(super) async fn force_unlock(
        requests: &Requests,
        key: &DaemonSetKey,
    ) -> Result<Option<LeaseRecord>, LockError> {
        let mut attempts = 0;
        loop {
            let Some(record) = requests.lease(key).await?.filter(LeaseRecord::is_held) else {
                return Ok(None);
            };
            attempts += 1;
            match Self::break_open_as(requests, key, &record).await {
                Ok(()) => return Ok(Some(record)),
                // The holder has renewed it in between.
                Err(LockError::Write { source, .. })
                    if matches!(*source, WriteError::Stale { .. }) && attempts < RENEWED => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) async fn break_open_as(
        requests: &Requests,
        key: &DaemonSetKey,
        seen: &LeaseRecord,
    ) -> Result<(), LockError> {
        let broken = requests.patch_lease(key, &record::released(seen), REQUEST_LIMIT).await;
        broken.map(drop).map_err(|error| LockError::of_write(key, error))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.task.abort();
        if self.renewal.fence.is_gone() {
            return;
        }
        self.renewal.fence.close();
        let renewal = Arc::clone(&self.renewal);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { renewal.release().await });
        }
    }
}
