//! Maintenance windows of a policy: when nodes may begin, and when they may not.
//!
//! A window opens at the times of a cron expression, in a named time zone, for a duration. What is
//! open at an instant is in `calendar`; the instants at which a window opens, and what a change to
//! summer time does to them, in `one_window`. Pure: the time is an argument, and time zones come
//! from the program and not from the machine.

mod calendar;
mod one_window;
mod schedule;
#[cfg(test)]
mod tests;
mod time_zone;

pub use calendar::{Calendar, Opening, Openings, WindowState};
pub use schedule::{FieldError, FieldName, FieldProblem, ParseScheduleError, Schedule};
pub use time_zone::{ParseTimeZoneError, TimeZoneName};

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

/// Maximum number of windows of a policy: the work for a calendar grows with it.
const MAX_WINDOWS: usize = 20;

/// A maintenance window: nodes begin only while one is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Window {
    /// The times at which it opens: a cron expression with the five fields minute, hour, day of
    /// month, month and day of week, such as `0 2 * * TUE-THU`. It must open at least every 35 days.
    pub schedule: Schedule,
    /// Time for which it stays open, from `1m` to `168h`, such as `3h` or `1h30m`. This is elapsed
    /// time, also in a night when the clocks change.
    pub duration: WindowDuration,
    /// Time zone of the schedule by its IANA name, such as `Europe/Berlin`. Default: `UTC`.
    #[serde(default)]
    pub time_zone: TimeZoneName,
}

/// Time for which a window stays open: from one minute to seven days.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct WindowDuration(u32);

/// A period in which no window is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, try_from = "WrittenExclusion")]
#[schemars(!try_from)]
pub struct Exclusion {
    /// Its beginning, such as `2026-12-18T00:00:00Z`.
    pub from: Timestamp,
    /// Its end, which is not part of it.
    pub to: Timestamp,
    /// The reason, which is shown to those who wait.
    pub reason: String,
}

/// An exclusion before it is known that it begins before it ends.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WrittenExclusion {
    #[serde(deserialize_with = "timestamp")]
    from: Timestamp,
    #[serde(deserialize_with = "timestamp")]
    to: Timestamp,
    reason: String,
}

impl Window {
    /// Reads the list of a policy's windows, which is limited. For `deserialize_with`.
    pub fn list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Self>, D::Error> {
        let windows = Vec::<Self>::deserialize(deserializer)?;
        if windows.len() > MAX_WINDOWS {
            let error = format!("{} windows: at most {MAX_WINDOWS} are allowed", windows.len());
            return Err(de::Error::custom(error));
        }
        Ok(windows)
    }
}

impl WindowDuration {
    /// The shortest one, in seconds.
    const SHORTEST: u32 = 60;
    /// The longest one, in seconds.
    const LONGEST: u32 = 7 * 24 * 60 * 60;

    /// Its length, in seconds.
    pub fn seconds(self) -> u32 {
        self.0
    }
}

impl TryFrom<String> for WindowDuration {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let error = || format!("`{text}` is not a duration such as 90s, 10m or 1h30m");
        let duration: SignedDuration = text.parse().map_err(|_| error())?;
        if duration.subsec_nanos() != 0 {
            return Err(format!("`{text}` is not a whole number of seconds"));
        }
        match u32::try_from(duration.as_secs()) {
            Ok(seconds @ Self::SHORTEST..=Self::LONGEST) => Ok(Self(seconds)),
            Ok(_) | Err(_) => Err(format!("`{text}` is not between 1m and 168h (seven days)")),
        }
    }
}

impl From<WindowDuration> for String {
    fn from(duration: WindowDuration) -> Self {
        duration.to_string()
    }
}

impl TryFrom<WrittenExclusion> for Exclusion {
    type Error = String;

    fn try_from(written: WrittenExclusion) -> Result<Self, Self::Error> {
        let WrittenExclusion { from, to, reason } = written;
        if from < to {
            Ok(Self { from, to, reason })
        } else {
            Err(format!("`from` ({from}) is not before `to` ({to})"))
        }
    }
}

fn timestamp<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|_| {
        de::Error::custom(format!(
            "`{text}` is not a time such as 2026-12-18T00:00:00Z or 2026-12-18T00:00:00+01:00"
        ))
    })
}

/// `0 2 * * TUE-THU for 3h, Europe/Berlin`.
impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { schedule, duration, time_zone } = self;
        write!(f, "{schedule} for {duration}, {time_zone}")
    }
}

/// `1h 30m`.
impl fmt::Display for WindowDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", SignedDuration::from_secs(self.0.into()))
    }
}

/// `2026-12-18T00:00:00Z to 2027-01-04T00:00:00Z: freeze`.
impl fmt::Display for Exclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, reason } = self;
        write!(f, "{from} to {to}: {reason}")
    }
}
