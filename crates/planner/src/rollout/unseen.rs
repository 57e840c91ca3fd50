//! Time during which the watches were not current does not count against deadlines: every wait is
//! prolonged by it.
//!
//! The controllers and kubelets did not reach the server either, and try again after a delay that
//! grows. Waits for them are prolonged by that delay as well ([`longest_delay`]).

use jiff::{SignedDuration, Timestamp};

use super::state::{Pods, State};

/// Maximum of that additional time in one run. Without it, a run whose watches keep failing would
/// wait indefinitely.
const CATCHING_UP: SignedDuration = SignedDuration::from_mins(10);

/// The longest delay before a controller or kubelet starts a failed watch again (client-go,
/// `tools/cache/reflector.go`: `defaultBackoffMax`, which `defaultBackoffJitter` doubles).
const LONGEST_WATCH_DELAY: SignedDuration = SignedDuration::from_secs(60);

/// The first delay, doubled in the same way (`defaultBackoffInit`).
const FIRST_WATCH_DELAY: SignedDuration = SignedDuration::from_millis(1_600);

impl State {
    /// Prolongs every wait that began before the watches became current again, at `now`; they were
    /// not current since `blind`.
    pub(super) fn sees_again(&mut self, blind: Timestamp, now: Timestamp) {
        let Pods { waiting, failing_since, create_failed, begin, catching_up, outages, .. } =
            &mut self.pods;
        let outage = now.duration_since(blind);
        *outages += outage;
        let extra = longest_delay(outage, *outages).min(CATCHING_UP - *catching_up);
        *catching_up += extra;
        let seen = |at: &mut Timestamp| *at += unseen(*at, blind, now);
        let caught_up = |at: &mut Timestamp| {
            let prolonged = *at + unseen(*at, blind, now) + extra;
            *at = if *at < now { prolonged } else { (now + extra).max(*at) };
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

/// The longest delay before the controllers and kubelets try again, after an outage, in a run with
/// outages of this length together.
///
/// The delay of a queue's retry is at most as long as the outage (client-go:
/// `ItemExponentialFailureRateLimiter`); that of a watch also counts the outages before
/// (`defaultBackoffReset`).
fn longest_delay(outage: SignedDuration, outages: SignedDuration) -> SignedDuration {
    outage.max((FIRST_WATCH_DELAY + outages * 2).min(LONGEST_WATCH_DELAY))
}
