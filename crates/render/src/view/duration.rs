//! Durations for people.

use jiff::SignedDuration;

/// A duration, rounded to its precision.
pub(crate) fn roughly(seconds: u64) -> String {
    let rounded = match seconds {
        0..=59 => seconds,
        60..=599 => seconds.next_multiple_of(10),
        600..=7199 => seconds.next_multiple_of(60),
        _ => seconds.next_multiple_of(600),
    };
    let span = SignedDuration::from_secs(i64::try_from(rounded).unwrap_or(i64::MAX));
    format!("{span:#}")
}
