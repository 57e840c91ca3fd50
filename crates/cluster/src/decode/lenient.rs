//! Tolerates extreme values that the API server accepts in a status but no kubelet writes: a
//! timestamp in the year 9999, a negative count. They are clamped, so that one object does not make
//! all others unreadable.

use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;
use serde::de::{Deserializer, Error, Visitor};

/// The earliest accepted time, `0001-01-01T00:00:00Z`: the zero time of the API.
const EARLIEST: i64 = -62_135_596_800;

/// The latest accepted time, `9000-01-01T00:00:00Z`: adding up to `u32::MAX` seconds (136 years)
/// to it gives a valid time.
const LATEST: i64 = 221_845_392_000;

/// Decodes an optional timestamp (RFC 3339).
pub(crate) fn moment<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Timestamp>, D::Error> {
    deserializer.deserialize_option(Moment)
}

/// Whether a time was not clamped.
pub(super) fn is_plausible(moment: &Timestamp) -> bool {
    (EARLIEST + 1..LATEST).contains(&moment.as_second())
}

/// Parses a timestamp, and clamps it to the accepted range.
pub(crate) fn clamped(text: &str) -> Result<Timestamp, jiff::Error> {
    let [earliest, latest] = [EARLIEST, LATEST].map(Timestamp::from_second);
    match text.parse::<Timestamp>() {
        Ok(moment) => Ok(moment.clamp(earliest?, latest?)),
        // The last day of 9999, which in UTC may be in the year 10000.
        Err(_) if is_beyond(text) => latest,
        Err(error) => Err(error),
    }
}

/// The time at these seconds since 1970, clamped to the accepted range. `None` is the zero time of
/// the API, which JSON has as `null`.
pub(super) fn from_seconds(seconds: i64) -> Option<Timestamp> {
    if seconds == EARLIEST {
        return None;
    }
    Timestamp::from_second(seconds.clamp(EARLIEST, LATEST)).ok()
}

fn is_beyond(text: &str) -> bool {
    let year = text.split_once('-').map(|(year, _)| year);
    year.is_some_and(|year| {
        (4..=6).contains(&year.len()) && year.parse().is_ok_and(|year: u32| year >= 9999)
    })
}

/// Decodes a count; a negative one becomes zero.
pub(crate) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    deserializer.deserialize_any(Count)
}

struct Moment;

impl<'de> Visitor<'de> for Moment {
    type Value = Option<Timestamp>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a timestamp")
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        clamped(text).map(Some).map_err(E::custom)
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Self::Value, E> {
        self.visit_str(&Cow::from(text))
    }
}

struct Count;

impl Visitor<'_> for Count {
    type Value = u32;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a count")
    }

    fn visit_unit<E>(self) -> Result<u32, E> {
        Ok(0)
    }

    fn visit_u64<E>(self, count: u64) -> Result<u32, E> {
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }

    fn visit_i64<E>(self, count: i64) -> Result<u32, E> {
        Ok(u32::try_from(count.max(0)).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_clamped() {
        for (text, want) in [
            ("2026-01-02T03:04:05Z", Some("2026-01-02T03:04:05Z")),
            ("2026-01-02T03:04:05.123456+02:00", Some("2026-01-02T01:04:05.123456Z")),
            ("9999-12-31T23:59:59Z", Some("9000-01-01T00:00:00Z")),
            ("10000-01-01T11:59:59Z", Some("9000-01-01T00:00:00Z")),
            ("9998-01-01T00:00:00Z", Some("9000-01-01T00:00:00Z")),
            ("0000-01-01T00:00:00Z", Some("0001-01-01T00:00:00Z")),
            ("0001-01-01T00:00:00Z", Some("0001-01-01T00:00:00Z")),
            ("yesterday", None),
            ("", None),
            ("9999", None),
        ] {
            let got = clamped(text).ok();
            assert_eq!(got.map(|it| it.to_string()).as_deref(), want, "{text}");
            if let Some(moment) = got {
                let most = jiff::SignedDuration::from_secs(u32::MAX.into());
                assert!(moment.checked_add(most).is_ok() && moment.checked_sub(most).is_ok());
            }
        }
    }

    #[test]
    fn counts_are_never_negative() {
        for (json, want) in [
            ("7", Some(7)),
            ("-5", Some(0)),
            ("-2147483648", Some(0)),
            ("99999999999", Some(u32::MAX)),
            ("null", Some(0)),
            ("1.5", None),
            ("\"7\"", None),
        ] {
            let got = count(&mut serde_json::Deserializer::from_str(json)).ok();
            assert_eq!(got, want, "{json}");
        }
    }
}
