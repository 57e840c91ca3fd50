//! Why a check has not passed.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::words::count;
use daemonset::model::Bound;

/// A value of a series, which may be infinite or not a number: in JSON a text, as Prometheus writes
/// it.
#[derive(Clone, Copy, Debug, JsonSchema)]
#[schemars(with = "String")]
pub struct SampleValue(pub f64);

/// By its bits, so that a reason equals itself.
impl PartialEq for SampleValue {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for SampleValue {}

impl fmt::Display for SampleValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            value if value == f64::INFINITY => f.write_str("+Inf"),
            value if value == f64::NEG_INFINITY => f.write_str("-Inf"),
            value => write!(f, "{value}"),
        }
    }
}

impl Serialize for SampleValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SampleValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(|_| de::Error::custom(format!("`{text}` is not a number")))
    }
}

/// Why a check has not passed, with every number that its sentence prints. Text in it may come from
/// others: escape it before it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "code", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum CheckReason {
    /// A series is out of bounds more often than allowed.
    OutOfBounds {
        /// The labels of the series; empty if it has none.
        series: String,
        /// The last value out of bounds.
        value: SampleValue,
        /// Its time.
        at: Timestamp,
        /// Smallest value that passes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<Bound>,
        /// Largest value that passes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<Bound>,
        /// Number of its samples out of bounds.
        failed: usize,
        /// Number of its samples.
        samples: usize,
        /// Number of samples that may fail.
        allowed: u32,
        /// Number of other series that are out of bounds more often than allowed, too.
        others: usize,
    },
    /// A request or program has not answered as expected.
    NotExpected {
        /// What it has answered.
        detail: String,
        /// The time of the answer.
        at: Timestamp,
        /// Number of samples that have failed.
        failed: u32,
        /// Number of samples that may fail.
        allowed: u32,
    },
    /// The query has no series, and the policy says that it fails then.
    NothingFound,
    /// There is no answer.
    Unanswered {
        /// Why.
        message: String,
    },
    /// The server says that its answer may be incomplete.
    Warnings {
        /// The first warning.
        first: String,
        /// Number of the others.
        others: usize,
    },
    /// The query has no series.
    Empty,
    /// A series has a sample that is not a number.
    NotANumber {
        /// The labels of the series; empty if it has none.
        series: String,
        /// Time of the sample.
        at: Timestamp,
    },
    /// Samples are missing.
    Missing {
        /// The labels of the series; empty if it has none.
        series: String,
        /// Number of missing samples.
        missing: usize,
        /// Number of samples that there should be.
        expected: usize,
    },
}

impl CheckReason {
    /// The reason if there is no answer.
    pub fn unanswered(message: impl Into<String>) -> Self {
        Self::Unanswered { message: message.into() }
    }
}

impl fmt::Display for CheckReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfBounds { series, value, at, min, max, failed, samples, allowed, others } => {
                write!(f, "{value} at {at}")?;
                match (min, max) {
                    (Some(min), Some(max)) => write!(f, ", from {min} to {max} allowed")?,
                    (Some(min), None) => write!(f, ", at least {min} allowed")?,
                    (None, Some(max)) => write!(f, ", at most {max} allowed")?,
                    (None, None) => {}
                }
                of_series(f, series)?;
                write!(f, " ({failed} of {} failed, {allowed} may", count(*samples, "sample"))?;
                if *others > 0 {
                    write!(f, "; {} more like it", count(*others, "series"))?;
                }
                f.write_str(")")
            }
            Self::NotExpected { detail, at, failed, allowed } => {
                write!(f, "{detail} at {at} ({} failed, {allowed} may)", count(*failed, "sample"))
            }
            Self::NothingFound | Self::Empty => f.write_str("the query has no series"),
            Self::Unanswered { message } => f.write_str(message),
            Self::Warnings { first, others } => {
                write!(f, "the answer may be incomplete: {first}")?;
                if *others > 0 {
                    write!(f, " and {}", count(*others, "more warning"))?;
                }
                Ok(())
            }
            Self::NotANumber { series, at } => {
                write!(f, "not a number at {at}")?;
                of_series(f, series)
            }
            Self::Missing { series, missing, expected } => {
                write!(f, "{missing} of {} missing", count(*expected, "sample"))?;
                of_series(f, series)
            }
        }
    }
}

fn of_series(f: &mut fmt::Formatter<'_>, series: &str) -> fmt::Result {
    if series.is_empty() { Ok(()) } else { write!(f, ", of {{{series}}}") }
}
