//! The fence of a lock: sends a request only if the lock was renewed recently enough, and limits
//! the number of requests in flight.
//!
//! A lease does not fence by itself: a holder that was stopped, suspended or disconnected does not
//! know that another run has taken the lock. So the age of the lease is checked right before each
//! request, on a clock that counts suspends, and again each time that the request makes progress:
//! one that still waits for a connection when the lease expires is not sent. Only the few requests
//! in flight of a stale holder can still arrive; the next holder waits until they have timed out.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit, watch};

use super::{Clock, decide};

/// The limit of requests in flight.
const AT_ONCE: u32 = 16;

/// How often the age of the lease is checked while a request is in flight.
const ATTENTION: Duration = Duration::from_secs(1);

/// The state of the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LockState {
    /// Renewed; `confirmed` is when the request for it was sent.
    Held { confirmed: Duration },
    /// Being released: nothing new is sent; requests in flight may finish.
    Released,
    /// Another run has it, or it was released by force. Final.
    Lost,
}

/// Allows requests while the lock is fresh.
#[derive(Debug)]
pub(crate) struct Fence {
    clock: Clock,
    /// The lease duration.
    lease: Duration,
    state: watch::Sender<LockState>,
    passages: Semaphore,
}

impl Fence {
    /// The fence of a lock that was renewed by a request sent at `confirmed`.
    pub(super) fn new(clock: Clock, lease: Duration, confirmed: Duration) -> Arc<Self> {
        Arc::new(Self {
            clock,
            lease,
            state: watch::Sender::new(LockState::Held { confirmed }),
            passages: Semaphore::new(AT_ONCE as usize),
        })
    }

    /// Waits for a permit, and returns it if the lock is fresh. A request counts as in flight until
    /// the permit is dropped.
    pub(crate) async fn pass(&self) -> Option<SemaphorePermit<'_>> {
        let passage = self.passages.acquire().await.ok()?;
        self.is_fresh().then_some(passage)
    }

    /// The lease duration.
    pub(super) fn lease(&self) -> Duration {
        self.lease
    }

    /// The time of the clock that measures freshness.
    pub(super) fn now(&self) -> Duration {
        self.clock.now()
    }

    /// Whether the lock was renewed recently enough.
    pub(super) fn is_fresh(&self) -> bool {
        match *self.state.borrow() {
            LockState::Held { confirmed } => {
                decide::is_fresh(confirmed, self.clock.now(), self.lease)
            }
            LockState::Released | LockState::Lost => false,
        }
    }

    /// Whether the lock is released or lost.
    pub(super) fn is_gone(&self) -> bool {
        match *self.state.borrow() {
            LockState::Held { .. } => false,
            LockState::Released | LockState::Lost => true,
        }
    }

    /// Runs `work` under the lock. Cancels it (`None`) as soon as the lock is lost or its lease has
    /// expired. Checked before each poll, so that a process that was stopped in the middle sends
    /// nothing when it continues.
    pub(crate) async fn unless_over<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let (mut work, mut over) = (pin!(work), pin!(self.over()));
        poll_fn(|context| {
            if self.is_over() || over.as_mut().poll(context).is_ready() {
                return Poll::Ready(None);
            }
            work.as_mut().poll(context).map(Some)
        })
        .await
    }

    /// Waits until the lock is lost or its lease has expired.
    async fn over(&self) {
        while !self.is_over() {
            let _ = tokio::time::timeout(ATTENTION, self.lost()).await;
        }
    }

    /// Whether requests in flight have to be cancelled.
    fn is_over(&self) -> bool {
        match *self.state.borrow() {
            LockState::Held { confirmed } => {
                decide::is_over(confirmed, self.clock.now(), self.lease)
            }
            LockState::Released => false,
            LockState::Lost => true,
        }
    }

    /// Waits until the lock is lost.
    pub(crate) async fn lost(&self) {
        // Cannot fail: `self` owns the sender.
        let _ = self.state.subscribe().wait_for(|state| *state == LockState::Lost).await;
    }

    /// Records that a request sent at `sent` has renewed the lock. A lost lock stays lost.
    pub(super) fn confirm(&self, sent: Duration) {
        self.state.send_if_modified(|state| match state {
            LockState::Held { confirmed } => {
                *confirmed = sent.max(*confirmed);
                true
            }
            LockState::Released | LockState::Lost => false,
        });
    }

    /// Marks the lock as lost: nothing is sent, and requests in flight are cancelled.
    pub(super) fn lose(&self) {
        self.state.send_replace(LockState::Lost);
    }

    /// Marks the lock as being released: nothing new is sent. A lost lock stays lost.
    pub(super) fn close(&self) {
        self.state.send_if_modified(|state| match state {
            LockState::Held { .. } => {
                *state = LockState::Released;
                true
            }
            LockState::Released | LockState::Lost => false,
        });
    }

    /// Waits until no request is in flight.
    pub(super) async fn drained(&self) {
        // The semaphore is never closed.
        let _ = self.passages.acquire_many(AT_ONCE).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A clock that a test sets, and a fence of 15 s that was renewed at 100 s.
    fn fence() -> (Arc<Mutex<u64>>, Arc<Fence>) {
        let time = Arc::new(Mutex::new(100));
        let read = Arc::clone(&time);
        let clock = Clock::new(move || Duration::from_secs(*read.lock().unwrap()));
        (time, Fence::new(clock, Duration::from_secs(15), Duration::from_secs(100)))
    }

    #[tokio::test]
    async fn nothing_passes_while_the_lock_is_stale() {
        let (time, fence) = fence();
        assert!(fence.pass().await.is_some());
        *time.lock().unwrap() = 110;
        assert!(fence.pass().await.is_none());
        // Renewed by a request that was sent at 108 s.
        fence.confirm(Duration::from_secs(108));
        assert!(fence.pass().await.is_some());
        // A late answer to an older request changes nothing.
        fence.confirm(Duration::from_secs(101));
        assert!(fence.pass().await.is_some());
    }

    #[tokio::test]
    async fn a_lost_lock_stays_lost() {
        let (_, fence) = fence();
        fence.lose();
        fence.confirm(Duration::from_secs(100));
        fence.close();
        assert!(fence.is_gone() && fence.pass().await.is_none());
        fence.lost().await;
    }

    #[tokio::test(start_paused = true)]
    async fn requests_in_flight_are_cancelled_with_the_lock() {
        let work = || tokio::time::sleep(Duration::from_secs(5));
        // The age of the lease when the work begins and when it continues, and another event.
        for (case, ages, what, done) in [
            ("in time", (0, 5), "", true),
            ("in the last third of the lease", (9, 14), "", true),
            ("too late", (9, 15), "", false),
            ("a process that was stopped", (0, 9_000), "", false),
            ("renewed meanwhile", (9, 15), "confirm", true),
            ("lost", (0, 5), "lose", false),
            ("released", (0, 5), "close", true),
        ] {
            let (time, fence) = fence();
            *time.lock().unwrap() = 100 + ages.0;
            let changed = async {
                tokio::time::sleep(Duration::from_millis(500)).await;
                *time.lock().unwrap() = 100 + ages.1;
                match what {
                    "confirm" => fence.confirm(Duration::from_secs(114)),
                    "lose" => fence.lose(),
                    "close" => fence.close(),
                    _ => {}
                }
            };
            let (got, ()) = futures::join!(fence.unless_over(work()), changed);
            assert_eq!(got.is_some(), done, "{case}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_sent_after_the_lease_has_expired() {
        let (time, fence) = fence();
        // Stopped while it waits for a connection, which is ready when it continues.
        let mut sent = false;
        let work = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            sent = true;
        };
        let stopped = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            *time.lock().unwrap() = 200;
        };
        assert_eq!(futures::join!(fence.unless_over(work), stopped).0, None);
        assert!(!sent);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_in_flight_are_limited_and_drained() {
        let (time, fence) = fence();
        let mut passages = Vec::new();
        for _ in 0..AT_ONCE {
            passages.push(fence.pass().await.unwrap());
        }
        let moment = Duration::from_millis(1);
        assert!(tokio::time::timeout(moment, fence.pass()).await.is_err(), "over the limit");
        assert!(tokio::time::timeout(moment, fence.drained()).await.is_err());
        // A request that waits for a permit until the lock is stale is not sent.
        let waiting = async {
            let passage = fence.pass().await;
            passage.is_some()
        };
        let freed = async {
            tokio::task::yield_now().await;
            *time.lock().unwrap() = 200;
            passages.clear();
        };
        assert!(!futures::join!(waiting, freed).0);
        tokio::time::timeout(moment, fence.drained()).await.unwrap();
    }
}
