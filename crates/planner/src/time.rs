//! Times, as everywhere in Kubernetes: in whole seconds.

use jiff::{SignedDuration, Timestamp};

/// The next whole second, or the same time if it is one.
pub(crate) fn next_whole_second(at: Timestamp) -> Timestamp {
    let up = i64::from(at.subsec_nanosecond() > 0);
    Timestamp::from_second(at.as_second().saturating_add(up)).unwrap_or(at)
}

/// That many seconds later, or the last time that there is.
pub(crate) fn later(at: Timestamp, seconds: u64) -> Timestamp {
    let by = SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}
