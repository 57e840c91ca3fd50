//! Time zones by their IANA name, from the database in the program. A policy means the same in a
//! container without tzdata, and on a machine whose tzdata is old.
//!
//! Names are those that a `CronJob` accepts (upstream: `validateTimeZone`): never `Local`, and in
//! the case of the database.

use std::fmt;

use jiff::tz::{TimeZone, TimeZoneDatabase};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Names are shorter than this; longer ones are not compared with all others.
const MAX_LENGTH: usize = 64;

/// A time zone, and its IANA name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct TimeZoneName {
    name: String,
    zone: TimeZone,
}

/// A text that names no time zone.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParseTimeZoneError {
    /// There is no text.
    #[error("the time zone is empty: leave it out for UTC")]
    Empty,
    /// It would differ from machine to machine.
    #[error("`{0}` depends on the machine: write the IANA name, such as Europe/Berlin")]
    Local(String),
    /// No time zone has this name.
    #[error("`{name}` is not the IANA name of a time zone{}", advice(nearest.as_deref()))]
    Unknown {
        /// The text.
        name: String,
        /// The name that was probably meant.
        nearest: Option<String>,
    },
    /// It is longer than any name.
    #[error("a time zone of {0} bytes: IANA names, such as Europe/Berlin, are shorter")]
    TooLong(usize),
}

fn advice(nearest: Option<&str>) -> String {
    match nearest {
        Some(nearest) => format!(": did you mean `{nearest}`?"),
        None => " such as Europe/Berlin".to_owned(),
    }
}

impl TimeZoneName {
    /// The rules of the time zone.
    pub fn zone(&self) -> &TimeZone {
        &self.zone
    }
}

impl Default for TimeZoneName {
    fn default() -> Self {
        Self { name: "UTC".to_owned(), zone: TimeZone::UTC }
    }
}

impl TryFrom<String> for TimeZoneName {
    type Error = ParseTimeZoneError;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        if name.is_empty() {
            return Err(ParseTimeZoneError::Empty);
        }
        if name.len() > MAX_LENGTH {
            return Err(ParseTimeZoneError::TooLong(name.len()));
        }
        if name.eq_ignore_ascii_case("local") {
            return Err(ParseTimeZoneError::Local(name));
        }
        let database = TimeZoneDatabase::bundled();
        match database.get(&name) {
            // The database ignores case, and has a time zone for *unknown*, which has no name.
            Ok(zone) if zone.iana_name() == Some(&name) => Ok(Self { name, zone }),
            Ok(_) | Err(_) => {
                let nearest = nearest(&database, &name);
                Err(ParseTimeZoneError::Unknown { name, nearest })
            }
        }
    }
}

/// The name that is written like this one but for its case, or for its continent; else the most
/// similar one, if not more than a quarter of the characters differ.
fn nearest(database: &TimeZoneDatabase, name: &str) -> Option<String> {
    let wanted = name.to_ascii_lowercase().replace(' ', "_");
    let likeness = database.available().filter_map(|known| {
        let lower = known.as_str().to_ascii_lowercase();
        let distance = if lower.rsplit('/').next() == Some(&wanted) {
            0
        } else {
            strsim::damerau_levenshtein(&lower, &wanted)
        };
        (distance * 4 <= wanted.len()).then(|| (distance, known.as_str().to_owned()))
    });
    likeness.min().map(|(_, known)| known)
}

impl From<TimeZoneName> for String {
    fn from(name: TimeZoneName) -> Self {
        name.name
    }
}

/// `Europe/Berlin`.
impl fmt::Display for TimeZoneName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
