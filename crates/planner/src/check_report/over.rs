//! How often a check would have passed: each sample judged by itself.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::at_only;
use crate::checks::{CheckAnswer, SampleValue, judge};
use crate::words::{agree, count, grouped};
use daemonset::model::{Check, CheckQuestion, CheckResponse, CheckSeries, Series};

/// How many samples of a range pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SampleCounts {
    /// Time of the first sample.
    pub from: Timestamp,
    /// Time of the last sample.
    pub until: Timestamp,
    /// Number of samples.
    pub samples: usize,
    /// Number of those that pass.
    pub passed: usize,
    /// Number of those that fail.
    pub failed: usize,
    /// Number of those that are unknown.
    pub unknown: usize,
}

/// Judges each sample by itself; how many may fail in a step does not matter here.
pub(super) fn counts(check: &Check, question: &CheckQuestion, found: &CheckSeries) -> SampleCounts {
    let check = Check { allow: 0, ..check.clone() };
    let mut at_each = by_time(found);
    let from = question.times(found.step).next().unwrap_or(question.until);
    let mut counts =
        SampleCounts { from, until: question.until, samples: 0, passed: 0, failed: 0, unknown: 0 };
    for at in question.times(found.step) {
        let series = at_each.remove(&at.as_second()).unwrap_or_default();
        let sample = CheckSeries { step: found.step, series, warnings: found.warnings.clone() };
        let response = CheckResponse::Series(sample);
        counts.samples += 1;
        match judge(&check, &at_only(question, at), &response, 0) {
            CheckAnswer::Pass => counts.passed += 1,
            CheckAnswer::Fail(_) => counts.failed += 1,
            CheckAnswer::Unknown(_) => counts.unknown += 1,
        }
    }
    counts
}

/// What a range has at one time.
pub(super) fn sample(found: &CheckSeries, at: Timestamp) -> CheckSeries {
    let series = by_time(found).remove(&at.as_second()).unwrap_or_default();
    CheckSeries { step: found.step, series, warnings: found.warnings.clone() }
}

/// The series of each second, with the one point that they have there.
fn by_time(found: &CheckSeries) -> BTreeMap<i64, Vec<Series>> {
    let mut at_each: BTreeMap<i64, Vec<Series>> = BTreeMap::new();
    for series in &found.series {
        for point in &series.points {
            let one = Series { labels: series.labels.clone(), points: vec![*point] };
            at_each.entry(point.0.as_second()).or_default().push(one);
        }
    }
    at_each
}

impl SampleCounts {
    /// What is remarkable: a check that never passes, or always does. Its code, and a sentence.
    pub(super) fn verdict(
        &self,
        check: &str,
        asks: &str,
        worst: Option<SampleValue>,
    ) -> Option<(&'static str, String)> {
        let Self { from, until: _, samples, passed, failed, unknown } = self;
        let worst = worst.map(|value| format!("; the worst value is {value}")).unwrap_or_default();
        if *passed == 0 {
            let (are, failed) = (agree(*unknown, "is", "are"), grouped(*failed));
            let message = format!(
                "check {check} ({asks}) never passes: of {} since {from}, {failed} fail and {} {are} \
                 unknown{worst}",
                count(*samples, "sample"),
                grouped(*unknown),
            );
            return Some(("checkNeverPasses", message));
        }
        (passed == samples).then(|| {
            let message = format!(
                "check {check} ({asks}) always passes: all {} since {from}{worst}; make sure that a \
                 bad version would fail it",
                count(*samples, "sample"),
            );
            ("checkAlwaysPasses", message)
        })
    }
}
