//! Recorded answers of checks (`ds-plan checks --record`), and what a rehearsal is answered from
//! them.
//!
//! A recording is about the time before it was made; a rehearsal is about the time to come. So the
//! beginning of the one is the beginning of the other. After the end of the recording, the answer is unknown.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::checks::SampleValue;
use crate::plan::ApiVersion;
use daemonset::model::{
    CheckQuestion, CheckResponse, CheckSeries, DaemonSetKey, Series, Unanswered,
};

/// Recorded answers of range queries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CheckAnswers {
    /// Version of this document's form.
    pub api_version: ApiVersion,
    /// Always `CheckAnswers`.
    pub kind: CheckAnswersKind,
    /// Start of the recorded time.
    pub from: Timestamp,
    /// End of the recorded time.
    pub until: Timestamp,
    /// One entry per check that has an answer.
    pub answers: Vec<RecordedAnswer>,
}

/// Kind of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CheckAnswersKind {
    /// Answers of checks.
    CheckAnswers,
}

/// The recorded answer of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecordedAnswer {
    /// `NAMESPACE/NAME` of the DaemonSet.
    #[serde(with = "key")]
    #[schemars(with = "String")]
    pub daemon_set: DaemonSetKey,
    /// Name of the check in its policy.
    pub check: String,
    /// Seconds between two points.
    pub step: u32,
    /// The series.
    pub series: Vec<RecordedSeries>,
    /// Warnings of the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A recorded series.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecordedSeries {
    /// Its labels, as `name=value`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Its points, in order of time: Unix time in seconds, and the value.
    #[schemars(with = "Vec<(f64, String)>")]
    pub points: Vec<RecordedPoint>,
}

/// A time and its value, written as Prometheus does: `[1767225600, "0.25"]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedPoint {
    /// The time.
    pub at: Timestamp,
    /// The value.
    pub value: SampleValue,
}

impl Serialize for RecordedPoint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let milliseconds = self.at.as_millisecond();
        if milliseconds % 1000 == 0 {
            return (milliseconds / 1000, self.value).serialize(serializer);
        }
        #[expect(clippy::cast_precision_loss, reason = "a time in milliseconds has 48 bits")]
        let seconds = milliseconds as f64 / 1000.0;
        (seconds, self.value).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RecordedPoint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (seconds, value) = <(f64, SampleValue)>::deserialize(deserializer)?;
        #[expect(clippy::cast_possible_truncation, reason = "what is no time is refused below")]
        let milliseconds = (seconds * 1000.0).round() as i64;
        let at = Timestamp::from_millisecond(milliseconds).map_err(serde::de::Error::custom)?;
        Ok(Self { at, value })
    }
}

mod key {
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    use daemonset::model::DaemonSetKey;

    pub(super) fn serialize<S: Serializer>(key: &DaemonSetKey, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(key)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<DaemonSetKey, D::Error> {
        String::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}

impl RecordedAnswer {
    /// The answer to a question; `None` if it has no series.
    pub fn of(question: &CheckQuestion, response: &CheckResponse) -> Option<Self> {
        let CheckResponse::Series(CheckSeries { step, series, warnings }) = response else {
            return None;
        };
        let point =
            |(at, value): &(Timestamp, f64)| RecordedPoint { at: *at, value: SampleValue(*value) };
        let series = series.iter().map(|Series { labels, points }| RecordedSeries {
            labels: labels.clone(),
            points: points.iter().map(point).collect(),
        });
        Some(Self {
            daemon_set: question.daemon_set.clone(),
            check: question.name.clone(),
            step: *step,
            series: series.collect(),
            warnings: warnings.clone(),
        })
    }
}

impl CheckAnswers {
    /// What the recording answers to a question of a rehearsal that began at `began`; `None` if the
    /// check was not recorded.
    pub fn answer(&self, question: &CheckQuestion, began: Timestamp) -> Option<CheckResponse> {
        let step = question.step();
        let is_it = |answer: &&RecordedAnswer| {
            answer.check == question.name && answer.daemon_set == question.daemon_set
        };
        let recorded = self.answers.iter().find(is_it)?;
        let ago = began.duration_since(self.from);
        if question.until.saturating_sub(ago).is_ok_and(|until| until > self.until) {
            let length = self.until.duration_since(self.from);
            let message = format!("the recorded answers end after {length:#}");
            return Some(CheckResponse::Unanswered(Unanswered { message }));
        }
        let replayed =
            |series: &RecordedSeries| series.replayed(question, step, recorded.step, ago);
        let series = recorded.series.iter().map(replayed);
        Some(CheckResponse::Series(CheckSeries {
            step,
            series: series.filter(|series| !series.points.is_empty()).collect(),
            warnings: recorded.warnings.clone(),
        }))
    }
}

impl RecordedSeries {
    /// The points at the times that a question asks for: each time has the value of the last point
    /// before it that is less than a step of the recording old, as it has in Prometheus.
    fn replayed(
        &self,
        question: &CheckQuestion,
        step: u32,
        recorded: u32,
        ago: SignedDuration,
    ) -> Series {
        let by_time: BTreeMap<Timestamp, SampleValue> =
            self.points.iter().map(|point| (point.at, point.value)).collect();
        let age = SignedDuration::from_secs(recorded.max(1).into());
        let value = |at: Timestamp| {
            let then = at.checked_sub(ago).ok()?;
            let (recorded, value) = by_time.range(..=then).next_back()?;
            (then.duration_since(*recorded) < age).then_some((at, value.0))
        };
        let points = question.times(step).filter_map(value).collect();
        Series { labels: self.labels.clone(), points }
    }
}
