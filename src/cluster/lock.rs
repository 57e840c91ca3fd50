//! One run at a time for each DaemonSet: a Lease in its namespace (upstream: `coordination.k8s.io`,
//! as leader election uses it).
//!
//! Every write to the lease is compare-and-swap on its resource version. A taker measures on its
//! own clock how long the record has not changed; no two clocks are compared. What the holder may
//! still send is up to the fence. Not here: what is done under the lock.

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
use crate::model::{DaemonSetKey, LockHolder};

/// How often a lock is broken open whose holder comes in between: it renews it every few seconds.
const RENEWED: u32 = 3;

/// How a lock is taken and kept.
#[derive(Clone, Debug)]
pub struct LockOptions {
    /// How long it lasts without being renewed; renewed three times as often.
    pub lease: Duration,
    /// How long to wait for somebody else to give it back or to lose it (`--lock-timeout`).
    pub wait: Duration,
    /// How long the last request of a holder that is gone may be under way. Shorter than the 10 s
    /// after which requests are given up is for tests.
    pub request: Duration,
    /// What time is measured with.
    pub clock: Clock,
}

impl LockOptions {
    /// A lease of 15 s, waited for 30 s.
    pub fn new(clock: Clock) -> Self {
        Self {
            lease: record::DEFAULT_LEASE,
            wait: Duration::from_secs(30),
            request: REQUEST_LIMIT,
            clock,
        }
    }
}

/// Somebody else has the lock, and is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockWait {
    /// Who has it.
    pub holder: LockHolder,
    /// The server's clock.
    pub now: Option<Timestamp>,
    /// After how long it is ours, if its holder does not renew it: the lease and one request are
    /// waited out, from when it was first looked at.
    pub unless_renewed: Duration,
    /// How long it is waited for at most.
    pub patience: Duration,
}

/// Why there is no lock.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody else has it (exit 7).
    #[error("{daemon_set} is locked by {holder}, and was for {} s", waited.as_secs())]
    Held {
        /// Whose lock.
        daemon_set: DaemonSetKey,
        /// Who has it.
        holder: String,
        /// How long it was waited for.
        waited: Duration,
    },
    /// Another run has taken it over, or somebody broke it open (exit 7).
    #[error("another run took the lock of {daemon_set}")]
    Lost {
        /// Whose lock.
        daemon_set: DaemonSetKey,
    },
    /// The lease cannot be read.
    #[error(transparent)]
    Read(#[from] Error),
    /// The lease cannot be written.
    #[error("cannot lock {daemon_set}")]
    Write {
        /// Whose lock.
        daemon_set: DaemonSetKey,
        /// What the server says.
        #[source]
        source: Box<WriteError>,
    },
}

impl LockError {
    fn of_write(key: &DaemonSetKey, error: WriteError) -> Self {
        Self::Write { daemon_set: key.clone(), source: Box::new(error) }
    }
}

/// A DaemonSet's lock. It is renewed in the background; dropping it gives it back as well as can
/// be done without waiting.
pub struct Lock {
    renewal: Arc<Renewal>,
    task: JoinHandle<()>,
}

impl Lock {
    /// Writes, while the lock is fresh.
    pub fn writer(&self) -> Writer {
        Writer::new(Arc::clone(&self.renewal.requests), Arc::clone(&self.renewal.fence))
    }

    /// Whether the server has confirmed the lock recently enough to write. What is not fresh may
    /// become so again, unless it is lost. On a clock that runs through suspends, so a process that
    /// was stopped for long finds its lock stale before it writes again.
    pub fn is_fresh(&self) -> bool {
        self.renewal.fence.is_fresh()
    }

    /// Waits until the lock is known to be gone for good: somebody took it over, or broke it open.
    pub async fn lost(&self) {
        self.renewal.fence.lost().await;
    }

    /// What is noted in the lease under this annotation, such as what failed before.
    pub async fn note(&self, key: &str) -> Option<String> {
        self.renewal.note(key).await
    }

    /// Notes something in the lease, compare-and-swap; `None` takes the note away. Notes outlive
    /// the lock: the lease is never deleted.
    ///
    /// # Errors
    /// The lease cannot be written; [`WriteError::Unlocked`] when it is somebody else's.
    pub async fn set_note(&self, key: &str, value: Option<&str>) -> Result<(), WriteError> {
        self.renewal.set_note(key, value).await
    }

    /// Gives the lock back, after the writes that are under way have ended. Nothing is written
    /// through it any more.
    ///
    /// # Errors
    /// The lease cannot be written; it then runs out by itself.
    pub async fn release(self) -> Result<(), WriteError> {
        self.task.abort();
        self.renewal.release().await
    }

    /// What is left of a lock whose process was killed: nobody renews it or gives it back.
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

    pub(super) async fn break_open(
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
                // Its holder has renewed it in between.
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
