//! What stands between a holder and the cluster: nothing is sent unless the lock was confirmed
//! recently enough, and only so much at a time.
//!
//! A lease does not fence by itself: a holder that was stopped, suspended or cut off does not know
//! that another has taken over. So the age of the lease is looked at right before each request,
//! on a clock that runs through suspends. What a stale holder can still add are the requests that
//! were under way, of which there are few at a time; a taker waits until they have timed out.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit, watch};

use super::{Clock, decide};

/// How many requests may be under way.
const AT_ONCE: u32 = 16;

/// How the lock stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Confirmed by the server; at this moment the request for it had not been sent yet.
    Held { confirmed: Duration },
    /// Somebody else has it, or it was given back: never again.
    Lost,
}

/// Lets requests pass while the lock is fresh.
#[derive(Debug)]
pub(in crate::cluster) struct Fence {
    clock: Clock,
    /// How long a lease lasts.
    lease: Duration,
    standing: watch::Sender<Standing>,
    passages: Semaphore,
}

impl Fence {
    /// A lock that was confirmed by a request sent at `confirmed`.
    pub(super) fn new(clock: Clock, lease: Duration, confirmed: Duration) -> Arc<Self> {
        Arc::new(Self {
            clock,
            lease,
            standing: watch::Sender::new(Standing::Held { confirmed }),
            passages: Semaphore::new(AT_ONCE as usize),
        })
    }

    /// Waits for its turn, then passes if the lock is fresh; a request is under way until the
    /// passage is dropped.
    pub(in crate::cluster) async fn pass(&self) -> Option<SemaphorePermit<'_>> {
        let passage = self.passages.acquire().await.ok()?;
        self.is_fresh().then_some(passage)
    }

    /// How long a lease lasts.
    pub(super) fn lease(&self) -> Duration {
        self.lease
    }

    /// The time by which freshness is told.
    pub(super) fn now(&self) -> Duration {
        self.clock.now()
    }

    /// Whether the lock was confirmed recently enough.
    pub(super) fn is_fresh(&self) -> bool {
        match *self.standing.borrow() {
            Standing::Held { confirmed } => {
                decide::is_fresh(confirmed, self.clock.now(), self.lease)
            }
            Standing::Lost => false,
        }
    }

    /// Whether it is known that the lock is gone for good.
    pub(super) fn is_lost(&self) -> bool {
        *self.standing.borrow() == Standing::Lost
    }

    /// Waits until the lock is known to be gone for good.
    pub(super) async fn lost(&self) {
        // The sender is `self`, so there is always one.
        let _ = self.standing.subscribe().wait_for(|standing| *standing == Standing::Lost).await;
    }

    /// A request sent at `sent` has confirmed the lock. What is lost stays so.
    pub(super) fn confirm(&self, sent: Duration) {
        self.standing.send_if_modified(|standing| match standing {
            Standing::Held { confirmed } => {
                *confirmed = sent.max(*confirmed);
                true
            }
            Standing::Lost => false,
        });
    }

    /// Nothing passes any more.
    pub(super) fn close(&self) {
        self.standing.send_replace(Standing::Lost);
    }

    /// Waits until nothing is under way.
    pub(super) async fn drained(&self) {
        // The semaphore is never closed.
        let _ = self.passages.acquire_many(AT_ONCE).await;
    }
}
