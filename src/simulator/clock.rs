//! Virtual time: a tokio clock that stands still while anybody has work to do, and jumps to the
//! next timer when nobody has. An hour of rollout takes a blink.
//!
//! Everything in a rehearsal goes by it: the embedded cluster, the age of leases, and each sleep of
//! the program under test. Not here: what is done when (`controllers`).

use std::io;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::cluster;

/// The clock of an embedded cluster: a wall clock that began at some moment and has gone on by the
/// virtual time since.
#[derive(Clone, Copy, Debug)]
pub struct VirtualClock {
    start: Timestamp,
    origin: Instant,
}

impl VirtualClock {
    /// A clock that shows `start` now. To be called on virtual time ([`on_virtual_time`]).
    pub fn starting_at(start: Timestamp) -> Self {
        Self { start, origin: Instant::now() }
    }

    /// What it shows.
    pub fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.elapsed()).unwrap_or(SignedDuration::MAX);
        self.start.saturating_add(elapsed).unwrap_or(Timestamp::MAX)
    }

    /// What it showed at the beginning.
    pub fn start(&self) -> Timestamp {
        self.start
    }

    /// How long it has run.
    pub fn elapsed(&self) -> Duration {
        self.origin.elapsed()
    }

    /// Waits until it shows that.
    pub async fn reach(&self, at: Timestamp) {
        let wait = Duration::try_from(at.duration_since(self.start)).unwrap_or_default();
        tokio::time::sleep_until(self.origin + wait).await;
    }

    /// The clock that leases are measured with: they age in virtual time.
    pub fn for_leases(self) -> cluster::Clock {
        cluster::Clock::new(move || self.elapsed())
    }
}

/// Runs `work` to its end on virtual time, on this thread.
///
/// # Errors
/// There can be no runtime.
pub fn on_virtual_time<W: Future>(work: W) -> io::Result<W::Output> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    Ok(runtime.block_on(work))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_passes_when_nobody_has_work() {
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
