//! Virtual time: a tokio clock that is stopped while any task has work to do, and jumps to the next
//! timer when none has. An hour of rollout takes a moment.
//!
//! Everything in a rehearsal uses it: the embedded cluster, the age of leases, and each sleep of
//! the program. Not here: the scheduled work (`controllers`).

use std::io;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use daemonset::model::Time;

/// The clock of an embedded cluster: a wall clock with a given start that advances with virtual
/// time.
#[derive(Clone, Copy, Debug)]
pub struct VirtualClock {
    start: Timestamp,
    origin: Instant,
}

impl VirtualClock {
    /// A clock that reads `start` now. Call it on virtual time ([`on_virtual_time`]).
    pub fn starting_at(start: Timestamp) -> Self {
        Self { start, origin: Instant::now() }
    }

    /// The current time of the cluster.
    pub fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.elapsed()).unwrap_or(SignedDuration::MAX);
        self.start.saturating_add(elapsed).unwrap_or(Timestamp::MAX)
    }

    /// The time at which the clock started.
    pub fn start(&self) -> Timestamp {
        self.start
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.origin.elapsed()
    }

    /// Waits until the clock reads `at`.
    pub async fn reach(&self, at: Timestamp) {
        let wait = Duration::try_from(at.duration_since(self.start)).unwrap_or_default();
        tokio::time::sleep_until(self.origin + wait).await;
    }

    /// The clock for leases: they age in virtual time.
    pub fn for_leases(self) -> cluster::Clock {
        cluster::Clock::new(move || self.elapsed())
    }
}

/// A time as Kubernetes writes it.
pub(crate) fn whole_second(time: impl Into<Time>) -> String {
    time.into().to_string()
}

/// Runs `work` to its end on virtual time, on this thread.
///
/// # Errors
/// The tokio runtime cannot be created.
pub fn on_virtual_time<W: Future>(work: W) -> io::Result<W::Output> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    Ok(runtime.block_on(work))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_passes_when_all_tasks_are_idle() {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let hour = Duration::from_hours(1);
        let (shown, aged) = on_virtual_time(async {
            let clock = VirtualClock::starting_at(start);
            let leases = clock.for_leases();
            let before = leases.now();
            tokio::time::sleep(hour).await;
            clock.reach(start).await;
            (clock.now(), leases.now().saturating_sub(before))
        })
        .unwrap();
        assert_eq!((shown, aged), (start + hour, hour));
    }
}
