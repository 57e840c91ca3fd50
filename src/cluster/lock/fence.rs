//! What stands between a holder and the cluster: nothing is sent unless the lock was confirmed
//! recently enough, and only so much at a time.
//!
//! A lease does not fence by itself: a holder that was stopped, suspended or cut off does not know
//! that another has taken over. So the age of the lease is looked at right before each request,
//! on a clock that runs through suspends, and again each time that it gets on: one that still waits
//! for a connection when the lease runs out is not sent. What a stale holder can still add are the
//! requests that were under way, of which there are few at a time; a taker waits until they have
//! timed out.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit, watch};

use super::{Clock, decide};

/// How many requests may be under way.
const AT_ONCE: u32 = 16;

/// How often the age of the lease is looked at while a request is under way and nothing happens.
const ATTENTION: Duration = Duration::from_secs(1);

/// How the lock stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Confirmed by the server; at this moment the request for it had not been sent yet.
    Held { confirmed: Duration },
    /// It is being given back: nothing new is sent, and what is under way comes to its end.
    GivenBack,
    /// Somebody else has it, or nobody: never again.
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
            Standing::GivenBack | Standing::Lost => false,
        }
    }

    /// Whether the lock is gone for good, given back or lost.
    pub(super) fn is_gone(&self) -> bool {
        match *self.standing.borrow() {
            Standing::Held { .. } => false,
            Standing::GivenBack | Standing::Lost => true,
        }
    }

    /// Does something that is sent under the lock: given up (`None`) as soon as the lock is known to
    /// be lost, or its lease has run out. Asked each time before the work gets on, so that a process
    /// that was stopped in the middle sends nothing when it goes on.
    pub(in crate::cluster) async fn unless_over<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let (mut work, mut over) = (pin!(work), pin!(self.over()));
        poll_fn(|context| {
            if self.is_over() || over.as_mut().poll(context).is_ready() {
                return Poll::Ready(None);
            }
            work.as_mut().poll(context).map(Some)
        })
        .await
    }

    /// Waits until the lock is lost, or its lease has run out.
    async fn over(&self) {
        while !self.is_over() {
            let _ = tokio::time::timeout(ATTENTION, self.lost()).await;
        }
    }

    /// Whether nothing that was begun under the lock may go on.
    fn is_over(&self) -> bool {
        match *self.standing.borrow() {
            Standing::Held { confirmed } => {
                decide::is_over(confirmed, self.clock.now(), self.lease)
            }
            Standing::GivenBack => false,
            Standing::Lost => true,
        }
    }

    /// Waits until the lock is known to be gone for good.
    pub(in crate::cluster) async fn lost(&self) {
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
            Standing::GivenBack | Standing::Lost => false,
        });
    }

    /// It is not ours any more: nothing passes, and what is under way is given up.
    pub(super) fn lose(&self) {
        self.standing.send_replace(Standing::Lost);
    }

    /// It is to be given back: nothing passes any more. What is lost stays so.
    pub(super) fn close(&self) {
        self.standing.send_if_modified(|standing| match standing {
            Standing::Held { .. } => {
                *standing = Standing::GivenBack;
                true
            }
            Standing::GivenBack | Standing::Lost => false,
        });
    }

    /// Waits until nothing is under way.
    pub(super) async fn drained(&self) {
        // The semaphore is never closed.
        let _ = self.passages.acquire_many(AT_ONCE).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A clock that a test sets, and a fence of 15 s that was confirmed at 100 s.
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
        // Confirmed by a request that was sent at 108 s.
        fence.confirm(Duration::from_secs(108));
        assert!(fence.pass().await.is_some());
        // An older answer that comes late changes nothing.
        fence.confirm(Duration::from_secs(101));
        assert!(fence.pass().await.is_some());
    }

    #[tokio::test]
    async fn what_is_lost_is_never_confirmed_again() {
        let (_, fence) = fence();
        fence.lose();
        fence.confirm(Duration::from_secs(100));
        fence.close();
        assert!(fence.is_gone() && fence.pass().await.is_none());
        fence.lost().await;
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_under_way_is_given_up_with_the_lock() {
        let work = || tokio::time::sleep(Duration::from_secs(5));
        // The age of the lease when the work begins and when it may get on, and what else happens.
        for (case, ages, what, done) in [
            ("in time", (0, 5), "", true),
            ("in the last third of the lease", (9, 14), "", true),
            ("too late", (9, 15), "", false),
            ("a process that was stopped", (0, 9_000), "", false),
            ("renewed meanwhile", (9, 15), "confirm", true),
            ("lost", (0, 5), "lose", false),
            ("given back", (0, 5), "close", true),
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
    async fn nothing_gets_on_once_the_lease_has_run_out() {
        let (time, fence) = fence();
        // Stopped while it waits for a connection, which is there when it goes on.
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
    async fn so_many_pass_at_a_time_and_all_are_waited_for() {
        let (time, fence) = fence();
        let mut passages = Vec::new();
        for _ in 0..AT_ONCE {
            passages.push(fence.pass().await.unwrap());
        }
        let moment = Duration::from_millis(1);
        assert!(tokio::time::timeout(moment, fence.pass()).await.is_err(), "one too many");
        assert!(tokio::time::timeout(moment, fence.drained()).await.is_err());
        // Who waited for its turn until the lock was stale does not pass.
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
