//! The lock of a DaemonSet: one run at a time, by a Lease in its namespace (upstream:
//! `coordination.k8s.io`, as in leader election).
//!
//! Every write to the lease is compare-and-swap on its resource version. A run that waits for the
//! lock measures on its own clock how long the lease has not changed; clocks of two machines are
//! never compared. The fence decides whether the holder may still send requests. Not here: the
//! writes done under the lock.

pub(super) mod clock;
mod decide;
pub(super) mod fence;
mod lease;
mod options;
mod renewal;
mod take;

use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::task::JoinHandle;

pub use clock::Clock;
pub use lease::{Holder, LiveLease};
pub use options::{LockError, LockOptions, LockWait};

pub(super) use lease::{HOLDER_ANNOTATION, LeaseSpec, lock_holder};

pub(super) use fence::Fence;

use self::renewal::Renewal;
use self::take::Taker;
use super::WriteError;
use super::request::{REQUEST_LIMIT, Requests};
use daemonset::model::DaemonSetKey;

/// Attempts to release a lock by force when its holder renews it in between.
const RENEWED: u32 = 3;

/// A DaemonSet's lock. It is renewed in the background. Dropping it releases it on a best-effort
/// basis; call [`release`](Self::release) to wait for that.
pub struct Lock {
    renewal: Arc<Renewal>,
    task: JoinHandle<()>,
}

impl Lock {
    /// Whether the lock was renewed recently enough to write. A stale lock becomes fresh again when
    /// it is renewed, unless it is lost. Measured on a clock that counts suspends, so a process
    /// that was stopped for long finds its lock stale before it writes again.
    pub fn is_fresh(&self) -> bool {
        self.renewal.fence.is_fresh()
    }

    /// The error of the last renewal, if it failed.
    pub fn failure(&self) -> Option<String> {
        self.renewal.failure().map(|failure| format!("cannot renew the lock: {failure}"))
    }

    /// Waits until the lock is lost: another run took it, or a user released it by force.
    pub async fn lost(&self) {
        self.renewal.fence.lost().await;
    }

    /// Waits until one of these locks is lost; returns its key. Without locks, it never returns.
    pub async fn first_lost<'l, K>(locks: impl IntoIterator<Item = (K, &'l Arc<Self>)>) -> K {
        let lost = async |(key, lock): (K, &'l Arc<Self>)| {
            lock.lost().await;
            key
        };
        let mut lost: FuturesUnordered<_> = locks.into_iter().map(lost).collect();
        match lost.next().await {
            Some(key) => key,
            None => std::future::pending().await,
        }
    }

    /// The value of an annotation of the lease, such as the templates that failed before.
    pub async fn note(&self, key: &str) -> Option<String> {
        self.renewal.note(key).await
    }

    /// `metadata.uid` of the lease; empty if the server did not return it.
    pub(super) async fn uid(&self) -> String {
        self.renewal.uid().await
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

    pub(super) fn requests(&self) -> Arc<Requests> {
        Arc::clone(&self.renewal.requests)
    }

    pub(super) fn fence(&self) -> Arc<Fence> {
        Arc::clone(&self.renewal.fence)
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
    ) -> Result<Option<LiveLease>, LockError> {
        let mut attempts = 0;
        loop {
            let Some(live) = requests.lease(key).await?.filter(LiveLease::is_held) else {
                return Ok(None);
            };
            attempts += 1;
            match Self::break_open_as(requests, key, &live).await {
                Ok(()) => return Ok(Some(live)),
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
        seen: &LiveLease,
    ) -> Result<(), LockError> {
        let broken = requests.patch_lease(key, &lease::released(seen), REQUEST_LIMIT).await;
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
