//! Time in which nobody could see what happened counts against no deadline: what waited before it
//! waits on after it, as if it had not been.
//!
//! Who acts in the cluster did not reach the server either, and tries again after a pause that has
//! grown with every attempt, to about as long as the server was away (client-go:
//! `ItemExponentialFailureRateLimiter`). What waits for others gets that time as well.

use jiff::{SignedDuration, Timestamp};

use super::state::{Pods, State};

/// So much time to come back is given to others in one run, or one that sees the cluster only now and
/// then would wait for ever.
const CATCHING_UP: SignedDuration = SignedDuration::from_mins(10);

impl State {
    /// What happens can be seen again, after it could not since `blind`: every wait that began before
    /// that is prolonged.
    pub(super) fn sees_again(&mut self, blind: Timestamp, now: Timestamp) {
        let Pods { waiting, troubled, create_failed, begin, catching_up, .. } = &mut self.pods;
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
        troubled.values_mut().for_each(seen);
        if let Some(said) = create_failed {
            seen(&mut said.at);
        }
        *begin = Some(now + extra);
        if let Some((since, _)) = &mut self.standstill {
            caught_up(since);
        }
        if let Some(failing) = &mut self.failing {
            seen(&mut failing.since);
            seen(&mut failing.last);
        }
    }
}

/// How much of the time from `blind` to `now` comes after a moment.
fn unseen(at: Timestamp, blind: Timestamp, now: Timestamp) -> SignedDuration {
    now.duration_since(at.max(blind)).max(SignedDuration::ZERO)
}
