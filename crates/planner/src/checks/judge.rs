//! From an answer to pass, fail or unknown.

use std::cmp::Reverse;

use jiff::Timestamp;

use super::reason::{CheckReason, SampleValue};
use daemonset::model::{
    Check, CheckKind, CheckQuestion, CheckResponse, CheckSeries, EmptyAnswer, HttpCheck, PodsCheck,
    PrometheusCheck, Series, Unanswered,
};

/// Maximum length of a text from others that is kept, in characters.
const MAX_TEXT: usize = 300;

/// One point in ten may be missing.
const MISSING_OF: usize = 10;

/// The answer of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckAnswer {
    /// It passes.
    Pass,
    /// It fails.
    Fail(CheckReason),
    /// It is unknown, which is neither.
    Unknown(CheckReason),
}

/// Judges what came back from a question. `failed_before` is the number of samples that have failed
/// before this one, for what is only known at the moment of asking.
pub fn judge(
    check: &Check,
    question: &CheckQuestion,
    response: &CheckResponse,
    failed_before: u32,
) -> CheckAnswer {
    let wrong_kind = || CheckAnswer::Unknown(CheckReason::unanswered("an answer of another kind"));
    match (&check.kind, response) {
        (_, CheckResponse::Unanswered(Unanswered { message })) => {
            CheckAnswer::Unknown(CheckReason::unanswered(short(message)))
        }
        (CheckKind::Prometheus(prometheus), CheckResponse::Series(found)) => {
            judge_series(check, prometheus, question, found)
        }
        // Only a rehearsal answers checks that the cluster answers otherwise.
        (
            CheckKind::Http(HttpCheck { .. })
            | CheckKind::Command(_)
            | CheckKind::NodeConditions(_)
            | CheckKind::Pods(PodsCheck { .. }),
            CheckResponse::Sample { at, is_expected, detail },
        ) => {
            if *is_expected || failed_before < check.allow {
                return CheckAnswer::Pass;
            }
            CheckAnswer::Fail(CheckReason::NotExpected {
                detail: short(detail),
                at: *at,
                failed: failed_before.saturating_add(1),
                allowed: check.allow,
            })
        }
        (CheckKind::Prometheus(_), CheckResponse::Sample { .. })
        | (
            CheckKind::Http(_)
            | CheckKind::Command(_)
            | CheckKind::NodeConditions(_)
            | CheckKind::Pods(_),
            CheckResponse::Series(_),
        ) => wrong_kind(),
    }
}

/// In this order: what says that the answer is incomplete, what proves a failure, what leaves
/// doubt.
fn judge_series(
    check: &Check,
    prometheus: &PrometheusCheck,
    question: &CheckQuestion,
    found: &CheckSeries,
) -> CheckAnswer {
    let CheckSeries { step, series, warnings } = found;
    if let Some((first, others)) = warnings.split_first() {
        let reason = CheckReason::Warnings { first: short(first), others: others.len() };
        return CheckAnswer::Unknown(reason);
    }
    if series.iter().all(|series| series.points.is_empty()) {
        return match prometheus.empty {
            EmptyAnswer::Unknown => CheckAnswer::Unknown(CheckReason::Empty),
            EmptyAnswer::Pass => CheckAnswer::Pass,
            EmptyAnswer::Fail => CheckAnswer::Fail(CheckReason::Empty),
        };
    }
    if let Some(reason) = out_of_bounds(check, prometheus, series) {
        return CheckAnswer::Fail(reason);
    }
    let is_nan = |series: &Series| series.points.iter().find(|(_, value)| value.is_nan()).copied();
    if let Some((series, (at, _))) =
        series.iter().find_map(|series| Some((series, is_nan(series)?)))
    {
        return CheckAnswer::Unknown(CheckReason::NotANumber { series: name(series), at });
    }
    match missing(series, question, *step) {
        Some(reason) => CheckAnswer::Unknown(reason),
        None => CheckAnswer::Pass,
    }
}

/// The worst of the series that are out of bounds more often than allowed. A value that is not a
/// number is in doubt, not out of bounds.
fn out_of_bounds(
    check: &Check,
    prometheus: &PrometheusCheck,
    series: &[Series],
) -> Option<CheckReason> {
    let PrometheusCheck { min, max, .. } = prometheus;
    let is_out = |value: f64| {
        min.is_some_and(|min| value < min.value()) || max.is_some_and(|max| value > max.value())
    };
    let outside = |series: &Series| {
        let mut outside = series.points.iter().filter(|(_, value)| is_out(*value));
        (outside.clone().count(), outside.next_back().copied())
    };
    let allowed = usize::try_from(check.allow).unwrap_or(usize::MAX);
    let mut bad: Vec<_> = series
        .iter()
        .filter_map(|series| match outside(series) {
            (failed, Some(last)) if failed > allowed => Some((series, failed, last)),
            (_, Some(_) | None) => None,
        })
        .collect();
    bad.sort_by_key(|(series, failed, _)| (Reverse(*failed), series.labels.clone()));
    let (worst, failed, (at, value)) = *bad.first()?;
    Some(CheckReason::OutOfBounds {
        series: name(worst),
        value: SampleValue(value),
        at,
        min: *min,
        max: *max,
        failed,
        samples: worst.points.len(),
        allowed: check.allow,
        others: bad.len() - 1,
    })
}

/// The first series with too many gaps. A series may begin late, as that of a pod does, if another
/// one has the time before; from its begin on, it has to stay.
fn missing(series: &[Series], question: &CheckQuestion, step: u32) -> Option<CheckReason> {
    let until = question.until;
    let first = |series: &Series| series.points.first().map(|(at, _)| *at);
    let expected =
        |from: Timestamp| usize::try_from(periods(from, until, step)).unwrap_or(usize::MAX) + 1;
    let too_many = |missing: usize, expected: usize| missing * MISSING_OF > expected;
    let earliest = series.iter().filter_map(first).min()?;
    let late = usize::try_from(periods(question.from, earliest, step)).unwrap_or(usize::MAX);
    if too_many(late, expected(question.from)) {
        let expected = expected(question.from);
        return Some(CheckReason::Missing { series: String::new(), missing: late, expected });
    }
    series.iter().find_map(|series| {
        let first = first(series)?;
        // Of the earliest one, what is missing before it counts together with its gaps.
        let expected = expected(if first == earliest { question.from } else { first });
        let missing = expected.saturating_sub(series.points.len());
        let reason = || CheckReason::Missing { series: name(series), missing, expected };
        too_many(missing, expected).then(reason)
    })
}

/// Number of whole steps between two times.
fn periods(from: Timestamp, until: Timestamp, step: u32) -> u64 {
    let seconds = u64::try_from(until.duration_since(from).as_secs()).unwrap_or(0);
    seconds / u64::from(step.max(1))
}

fn name(series: &Series) -> String {
    short(&series.labels.join(", "))
}

/// The beginning of a text from others.
fn short(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
