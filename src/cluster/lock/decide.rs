//! What a lock's holder and its takers decide, as functions of plain values.
//!
//! No two machines' clocks are compared: a taker measures on its own clock how long a record has
//! not changed, a holder how long ago its own was confirmed.

use std::time::Duration;

use super::record::LeaseRecord;
use crate::planted::planted;

/// What to do about a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// There is none: create it.
    Create,
    /// It is free, or its holder has not been heard of for long enough: write ourselves into it.
    Take,
    /// Somebody holds it; it may be taken after this time, if the record does not change.
    Wait(Duration),
}

/// What to do about a lease whose record was seen, and was the same for `unchanged` on our clock.
///
/// A taker waits out the lease and one request: the holder's last one may have been sent at the
/// very end of the lease. No lease counts for longer than `longest`, ours: a run of `ds-apply` has
/// none, and whoever may write leases in the namespace could make one that lasts for ever.
pub(super) fn claim(
    record: Option<&LeaseRecord>,
    identity: &str,
    unchanged: Duration,
    (longest, request): (Duration, Duration),
) -> Move {
    let Some(record) = record else { return Move::Create };
    // Ours already: the answer to our own write was lost.
    if record.holder.is_empty() || record.holder == identity {
        return Move::Take;
    }
    let lease = record.lease.min(longest);
    let patience = planted!(lease + request, "a lock is taken that is held" => Duration::ZERO);
    match patience.checked_sub(unchanged) {
        None | Some(Duration::ZERO) => Move::Take,
        Some(rest) => Move::Wait(rest),
    }
}

/// Whether a lease that was confirmed by a request sent at `confirmed` still allows to send one.
///
/// A third of the lease is kept back, for what lies between asking and sending.
pub(super) fn is_fresh(confirmed: Duration, now: Duration, lease: Duration) -> bool {
    let is_fresh = now.saturating_sub(confirmed) < lease * 2 / 3;
    planted!(is_fresh, "a stale holder writes on" => true)
}

/// Whether a lease that was confirmed by a request sent at `confirmed` has run out: what was begun
/// under it is given up.
pub(super) fn is_over(confirmed: Duration, now: Duration, lease: Duration) -> bool {
    now.saturating_sub(confirmed) >= lease
}

/// Whether the lease is still ours. Another version of it may be: a renewal whose answer was lost,
/// or somebody's label.
pub(super) fn is_ours(record: Option<&LeaseRecord>, identity: &str) -> bool {
    record.is_some_and(|record| record.holder == identity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Labels;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn held_by(holder: &str) -> LeaseRecord {
        LeaseRecord {
            holder: holder.to_owned(),
            lease: seconds(15),
            transitions: 0,
            since: None,
            renewed: None,
            version: "1".to_owned(),
            annotations: Labels::default(),
        }
    }

    fn lasting(lease: u64) -> LeaseRecord {
        LeaseRecord { lease: seconds(lease), ..held_by("other") }
    }

    #[test]
    fn when_a_lease_may_be_taken() {
        let wait = |rest| Move::Wait(seconds(rest));
        for (case, record, unchanged, want) in [
            ("there is none", None, 0, Move::Create),
            ("given back", Some(held_by("")), 0, Move::Take),
            ("our own answer was lost", Some(held_by("me")), 0, Move::Take),
            ("seen for the first time", Some(held_by("other")), 0, wait(25)),
            ("one that lasts for ever", Some(lasting(u64::MAX)), 0, wait(25)),
            ("the same, not renewed", Some(lasting(i32::MAX as u64)), 25, Move::Take),
            ("a shorter one", Some(lasting(2)), 0, wait(12)),
            ("the lease is over, its last request is not", Some(held_by("other")), 15, wait(10)),
            ("a second is left", Some(held_by("other")), 24, wait(1)),
            ("all over", Some(held_by("other")), 25, Move::Take),
            ("long over", Some(held_by("other")), 1_000, Move::Take),
        ] {
            let limits = (seconds(15), seconds(10));
            let got = claim(record.as_ref(), "me", seconds(unchanged), limits);
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
            // After a night's sleep.
            (100, 30_000, false),
            // A clock that goes back is not ours to judge; it never does.
            (100, 99, true),
        ] {
            assert_eq!(is_fresh(seconds(confirmed), seconds(now), seconds(15)), fresh, "{now}");
        }
    }

    #[test]
    fn no_holder_sends_while_another_may_take() {
        // The last request of a holder: sent just before the lock is stale, answered or given up
        // within the limit of a request. The first moment for a taker who saw the last renewal as
        // early as it can be seen.
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
