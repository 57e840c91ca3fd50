//! Windows on a calendar that repeats little: nights in which the clocks change, days that a zone
//! skipped; and laws for random ones, against slow but obvious ways to the same answer.

mod input;
mod laws;
mod openings;

use super::{Calendar, Exclusion, Window};
use jiff::Timestamp;
use serde_json::json;

/// A window from its three fields.
fn window(schedule: &str, duration: &str, zone: &str) -> Window {
    let written = json!({"schedule": schedule, "duration": duration, "timeZone": zone});
    serde_json::from_value(written).unwrap()
}

/// A calendar with this window only.
fn calendar(schedule: &str, duration: &str, zone: &str) -> Calendar {
    Calendar::of(&[window(schedule, duration, zone)], &[])
}

fn exclusion(from: &str, to: &str, reason: &str) -> Exclusion {
    Exclusion { from: at(from), to: at(to), reason: reason.to_owned() }
}

/// An instant in UTC; `2026-10-25 00:30` is enough.
fn at(text: &str) -> Timestamp {
    text.parse::<Timestamp>().unwrap_or_else(|_| format!("{text}Z").parse().unwrap())
}
