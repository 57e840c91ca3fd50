//! What a lock's holder and its takers decide, as functions of plain values.
//!
//! No two machines' clocks are compared: a taker measures on its own clock how long a record has
//! not changed, a holder how long ago its own was confirmed.

use std::time::Duration;

use super::record::LeaseRecord;

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
/// very end of the lease.
pub(super) fn claim(
    record: Option<&LeaseRecord>,
    identity: &str,
    unchanged: Duration,
    request: Duration,
) -> Move {
    let Some(record) = record else { return Move::Create };
    // Ours already: the answer to our own write was lost.
    if record.holder.is_empty() || record.holder == identity {
        return Move::Take;
    }
    let patience = record.lease + request;
    match patience.checked_sub(unchanged) {
        None | Some(Duration::ZERO) => Move::Take,
        Some(rest) => Move::Wait(rest),
    }
}

/// Whether a lease that was confirmed by a request sent at `confirmed` still allows to send one.
///
/// A third of the lease is kept back, for what lies between asking and sending.
pub(super) fn is_fresh(confirmed: Duration, now: Duration, lease: Duration) -> bool {
    now.saturating_sub(confirmed) < lease * 2 / 3
}

/// Whether the lease is still ours. Another version of it may be: a renewal whose answer was lost,
/// or somebody's label.
pub(super) fn is_ours(record: Option<&LeaseRecord>, identity: &str) -> bool {
    record.is_some_and(|record| record.holder == identity)
}
