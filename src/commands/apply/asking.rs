//! Whom a run asks the checks of its policy: in a rehearsal, the fault file.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use daemonset::model::{
    Bound, CheckEndpoint, CheckKind, CheckQuestion, CheckResponse, CheckSeries, PolicySpec,
    PrometheusCheck, RehearsedAnswer, RehearsedCheck, Series, Unanswered,
};
use executor::{Ask, Asked};

/// Largest number of points of a series, as Prometheus is asked for.
const MAX_POINTS: i64 = 1_000;

/// The answers of checks in a rehearsal, from its fault file.
#[derive(Clone, Debug)]
pub(super) struct RehearsedChecks {
    /// The answers that are not a pass.
    pub answers: Vec<RehearsedCheck>,
    /// The beginning of the rehearsal.
    pub start: Timestamp,
}

/// Whom a run under this policy asks.
pub(super) fn asker(rehearsed: Option<&RehearsedChecks>, policy: &PolicySpec) -> Arc<dyn Ask> {
    match rehearsed {
        Some(checks) => Arc::new(FaultFile { checks: checks.clone(), policy: policy.clone() }),
        None => Arc::new(Nobody),
    }
}

/// Answers nothing.
struct Nobody;

impl Ask for Nobody {
    fn ask<'a>(&'a self, _: &'a CheckQuestion) -> Asked<'a> {
        Box::pin(std::future::ready(unanswered("checks are only asked in rehearsals yet")))
    }
}

/// Answers by the fault file of a rehearsal; a check that is not in it passes.
struct FaultFile {
    checks: RehearsedChecks,
    policy: PolicySpec,
}

impl Ask for FaultFile {
    fn ask<'a>(&'a self, question: &'a CheckQuestion) -> Asked<'a> {
        Box::pin(std::future::ready(self.respond(question)))
    }
}

impl FaultFile {
    fn respond(&self, question: &CheckQuestion) -> CheckResponse {
        let CheckQuestion { name, endpoint, until, .. } = question;
        let now = self.answer_at(name, *until);
        match (endpoint, now) {
            (_, RehearsedAnswer::Unknown) => unanswered("unknown by the fault file"),
            (CheckEndpoint::Prometheus { .. }, RehearsedAnswer::Pass | RehearsedAnswer::Fail) => {
                CheckResponse::Series(self.series(question))
            }
            (CheckEndpoint::Http { .. } | CheckEndpoint::Command(_), answer) => {
                let is_expected = answer == RehearsedAnswer::Pass;
                let detail = if is_expected { "passes" } else { "fails" };
                let detail = format!("{detail} by the fault file");
                CheckResponse::Sample { at: *until, is_expected, detail }
            }
        }
    }

    /// One series with a point for each sample; while nobody answers, nothing is measured.
    fn series(&self, question: &CheckQuestion) -> CheckSeries {
        let CheckQuestion { name, from, until, interval, .. } = question;
        let seconds = until.duration_since(*from).as_secs().max(0);
        let step = i64::from(interval.0).max(1).max(seconds.div_euclid(MAX_POINTS) + 1);
        let times = (0..=seconds / step).map(|n| *from + SignedDuration::from_secs(n * step));
        let points = times.filter_map(|at| Some((at, self.value(name, self.answer_at(name, at))?)));
        let series = Series { labels: Vec::new(), points: points.collect() };
        let step = u32::try_from(step).unwrap_or(u32::MAX);
        CheckSeries { step, series: vec![series], warnings: Vec::new() }
    }

    /// A value that passes or fails by the bounds of the policy.
    fn value(&self, check: &str, answer: RehearsedAnswer) -> Option<f64> {
        let mut all = self.policy.preconditions.iter().chain(&self.policy.gates);
        let CheckKind::Prometheus(PrometheusCheck { min, max, .. }) =
            &all.find(|it| it.name == check)?.kind
        else {
            return None;
        };
        let (min, max) = (min.map(Bound::value), max.map(Bound::value));
        match answer {
            RehearsedAnswer::Pass => min.or(max),
            RehearsedAnswer::Fail => match (min, max) {
                (_, Some(max)) => Some(max + max.abs().max(1.0)),
                (Some(min), None) => Some(min - min.abs().max(1.0)),
                (None, None) => None,
            },
            RehearsedAnswer::Unknown => None,
        }
    }

    fn answer_at(&self, check: &str, at: Timestamp) -> RehearsedAnswer {
        let elapsed = Duration::try_from(at.duration_since(self.checks.start));
        let elapsed = elapsed.unwrap_or(Duration::ZERO);
        RehearsedCheck::answer_at(&self.checks.answers, check, elapsed)
    }
}

fn unanswered(message: &str) -> CheckResponse {
    CheckResponse::Unanswered(Unanswered { message: message.to_owned() })
}
