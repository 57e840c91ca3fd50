//! The times in objects, small: a cluster has hundreds of thousands.

use std::cmp::Ordering;
use std::fmt;
use std::num::NonZeroU32;

use jiff::{SignedDuration, Timestamp};

/// A time as API servers store it (`metav1.Time`): in whole seconds. One that may be missing takes
/// four bytes, an optional [`Timestamp`] 24. Times before 1970 and after 2106, which no cluster has
/// seen, are taken as the nearest that it can be.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(NonZeroU32);

impl Time {
    /// The time from this one until a later one; negative if that is earlier.
    pub fn duration_until(self, later: Timestamp) -> SignedDuration {
        later.duration_since(self.into())
    }
}

impl From<Timestamp> for Time {
    /// Leaves out the fraction of a second.
    fn from(time: Timestamp) -> Self {
        let second = u32::try_from(time.as_second().max(0)).unwrap_or(u32::MAX);
        Self(NonZeroU32::MIN.saturating_add(second))
    }
}

impl From<Time> for Timestamp {
    fn from(time: Time) -> Self {
        Self::from_second(i64::from(time.0.get()) - 1).unwrap_or(Self::UNIX_EPOCH)
    }
}

impl PartialEq<Timestamp> for Time {
    fn eq(&self, other: &Timestamp) -> bool {
        Timestamp::from(*self) == *other
    }
}

impl PartialOrd<Timestamp> for Time {
    fn partial_cmp(&self, other: &Timestamp) -> Option<Ordering> {
        Timestamp::from(*self).partial_cmp(other)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Timestamp::from(*self).fmt(f)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_its_whole_seconds() {
        let (first, last) = ("1970-01-01T00:00:00Z", "2106-02-07T06:28:14Z");
        for (text, want) in [
            ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
            ("2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05Z"),
            (first, first),
            ("1969-12-31T23:59:59Z", first),
            ("-009999-01-02T01:59:59Z", first),
            (last, last),
            ("2106-02-07T06:28:15Z", last),
            ("9999-12-30T22:00:00Z", last),
        ] {
            let time = Time::from(text.parse::<Timestamp>().unwrap());
            assert_eq!((time.to_string(), format!("{time:?}")), (want.to_owned(), want.to_owned()));
            assert_eq!(time, Timestamp::from(time));
        }
        assert_eq!(size_of::<Option<Time>>(), 4);
    }
}
