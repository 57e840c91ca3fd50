//! The decisions of a lock's holder and of the runs that wait for it, as pure functions.
//!
//! Clocks of two machines are never compared: a waiting run measures on its own clock how long the
//! lease has not changed, the holder how long ago its lease was renewed.

use std::time::Duration;

use super::lease::LiveLease;

/// The next step of taking a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// The lease does not exist: create it.
    Create,
    /// It is free, or its holder has not renewed it for long enough: become its holder.
    Take,
    /// Another run holds it; it may be taken after this time if it does not change.
    Wait(Duration),
}

/// The next step for a lease that has not changed for `unchanged` on our clock.
///
/// The lease duration and one request have to pass: the holder's last request may have been sent
/// at the very end of the lease. A lease counts for no longer than `longest`, our own duration: no
/// run of `ds-apply` uses a longer one, and any client that may write leases in the namespace
/// could create one that never expires.
pub(super) fn claim(
    live: Option<&LiveLease>,
    identity: &str,
    unchanged: Duration,
    (longest, request): (Duration, Duration),
) -> Move {
    let Some(live) = live else { return Move::Create };
    // Already ours: the answer to our own write was lost.
    if live.holder.is_empty() || live.holder == identity {
        return Move::Take;
    }
    let lease = live.lease.min(longest);
    let timeout = lease + request;
    match timeout.checked_sub(unchanged) {
        None | Some(Duration::ZERO) => Move::Take,
        Some(rest) => Move::Wait(rest),
    }
}

/// Whether a lease that was renewed by a request sent at `confirmed` still allows to send a
/// request. A third of the lease is kept as a reserve between this check and the sending.
pub(super) fn is_fresh(confirmed: Duration, now: Duration, lease: Duration) -> bool {
    now.saturating_sub(confirmed) < lease * 2 / 3
}

/// Whether a lease that was renewed by a request sent at `confirmed` has expired: requests in
/// flight are cancelled.
pub(super) fn is_over(confirmed: Duration, now: Duration, lease: Duration) -> bool {
    now.saturating_sub(confirmed) >= lease
}

/// Whether the lease is still ours. A new version of it may be: after a renewal whose answer was
/// lost, or when another client labels the lease.
pub(super) fn is_ours(live: Option<&LiveLease>, identity: &str) -> bool {
    live.is_some_and(|live| live.holder == identity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use daemonset::model::Labels;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn held_by(holder: &str) -> LiveLease {
        LiveLease {
            holder: holder.to_owned(),
            lease: seconds(15),
            transitions: 0,
            since: None,
            renewed: None,
            uid: "lease".to_owned(),
            version: "1".to_owned(),
            annotations: Labels::default(),
        }
    }

    fn lasting(lease: u64) -> LiveLease {
        LiveLease { lease: seconds(lease), ..held_by("other") }
    }

    #[test]
    fn when_a_lease_may_be_taken() {
        let wait = |rest| Move::Wait(seconds(rest));
        for (case, live, unchanged, want) in [
            ("it does not exist", None, 0, Move::Create),
            ("released", Some(held_by("")), 0, Move::Take),
            ("our own answer was lost", Some(held_by("me")), 0, Move::Take),
            ("seen for the first time", Some(held_by("other")), 0, wait(25)),
            ("a lease that never expires", Some(lasting(u64::MAX)), 0, wait(25)),
            ("the same, not renewed", Some(lasting(i32::MAX as u64)), 25, Move::Take),
            ("a shorter lease", Some(lasting(2)), 0, wait(12)),
            ("expired, but not its last request", Some(held_by("other")), 15, wait(10)),
            ("one second before the end", Some(held_by("other")), 24, wait(1)),
            ("expired", Some(held_by("other")), 25, Move::Take),
            ("expired long ago", Some(held_by("other")), 1_000, Move::Take),
        ] {
            let limits = (seconds(15), seconds(10));
            let got = claim(live.as_ref(), "me", seconds(unchanged), limits);
            assert_eq!(got, want, "{case}");
        }
    }

    #[test]
    fn a_lock_is_fresh_for_two_thirds_of_its_lease() {
        for (confirmed, now, fresh) in [
            (100, 100, true),
            (100, 109, true),
            (100, 110, false),
            (100, 115, false),
            // After a long suspend.
            (100, 30_000, false),
            // A clock that goes back, which the real one never does.
            (100, 99, true),
        ] {
            assert_eq!(is_fresh(seconds(confirmed), seconds(now), seconds(15)), fresh, "{now}");
        }
    }

    #[test]
    fn no_holder_sends_while_another_may_take() {
        // The holder sends its last request just before the lock is stale; it ends within the
        // request timeout. The other run read the last renewal as early as possible.
        let (lease, request) = (seconds(15), seconds(10));
        for age in 0..60 {
            let may_send = is_fresh(Duration::ZERO, seconds(age), lease);
            let under_way_until = seconds(age) + request;
            let limits = (lease, request);
            let taken = claim(Some(&held_by("other")), "me", under_way_until, limits);
            assert!(!may_send || taken != Move::Take, "sent at {age} s");
        }
    }

    #[test]
    fn a_lease_is_ours_whatever_its_version() {
        assert!(is_ours(Some(&held_by("me")), "me"));
        assert!(!is_ours(Some(&held_by("other")), "me"));
        assert!(!is_ours(Some(&held_by("")), "me"));
        assert!(!is_ours(None, "me"));
    }
}
