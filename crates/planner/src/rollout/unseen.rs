//! Time during which the watches were not current does not count against deadlines: every wait is
//! prolonged by it.
//!
//! The controllers and kubelets did not reach the server either, and retry with a back-off that
//! grows to about the length of the outage (client-go: `ItemExponentialFailureRateLimiter`). Waits
//! for them are prolonged by that time as well.

use jiff::{SignedDuration, Timestamp};

use super::state::{Pods, State};

/// Maximum of that additional time in one run. Without it, a run whose watches keep failing would
/// wait indefinitely.
const CATCHING_UP: SignedDuration = SignedDuration::from_mins(10);

impl State {
    /// Prolongs every wait that began before the watches became current again, at `now`; they were
    /// not current since `blind`.
    pub(super) fn sees_again(&mut self, blind: Timestamp, now: Timestamp) {
        let Pods { waiting, failing_since, create_failed, begin, catching_up, .. } = &mut self.pods;
        let extra = now.duration_since(blind).min(CATCHING_UP - *catching_up);
        *catching_up += extra;
        let seen = |at: &mut Timestamp| *at += unseen(*at, blind, now);
        let caught_up = |at: &mut Timestamp| {
            let unseen = unseen(*at, blind, now);
            *at += unseen + unseen.min(extra);
        };
        for waiting in waiting.values_mut() {
            caught_up(&mut waiting.since);
        }
        failing_since.values_mut().for_each(seen);
        if let Some(failure) = create_failed {
            seen(&mut failure.at);
        }
        *begin = Some(now + extra);
        if let Some((since, _)) = &mut self.stall {
            caught_up(since);
        }
        if let Some(failing) = &mut self.failing {
            seen(&mut failing.since);
            seen(&mut failing.last);
        }
    }
}

/// The part of the time from `blind` to `now` that is after `at`.
fn unseen(at: Timestamp, blind: Timestamp, now: Timestamp) -> SignedDuration {
    now.duration_since(at.max(blind)).max(SignedDuration::ZERO)
}
