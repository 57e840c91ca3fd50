//! The output of `ds-plan checks -o json`: what the checks of policies answer now, and how often
//! each would have passed. Pure: the caller asks, with the questions made here.
//!
//! Unlike in a rollout, where a gate is judged over a whole step, the answer is that of the newest
//! sample: what happened before is in the numbers of [`over`].

mod observed;
mod over;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{CheckAnswer, CheckReason, SampleValue, judge};
use crate::plan::{Action, ApiVersion, ClusterSummary, Coded, DaemonSetPlan, Warning};
use daemonset::model::{
    Bound, Check, CheckKind, CheckQuestion, CheckResponse, CheckSeries, DaemonSetKey,
    DaemonSetName, NamespaceName, NodeName, PolicySpec, PrometheusCheck,
};

pub use observed::Answering;
pub use over::SampleCounts;

/// Samples before the newest one that are asked for, to show where the value comes from.
const SAMPLES_BEFORE: u32 = 30;

/// The answers of the checks of policies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckReport {
    /// Version of this document's format.
    pub api_version: ApiVersion,
    /// Always `CheckReport`.
    pub kind: CheckReportKind,
    /// The cluster, and the time of its snapshot.
    pub cluster: ClusterSummary,
    /// The DaemonSets whose policies have checks, ordered by namespace and name.
    pub daemon_sets: Vec<DaemonSetChecks>,
    /// Warnings.
    pub warnings: Vec<Warning>,
}

/// Kind of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CheckReportKind {
    /// A report about checks.
    CheckReport,
}

/// The checks of one DaemonSet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DaemonSetChecks {
    /// `metadata.namespace`.
    pub namespace: NamespaceName,
    /// `metadata.name`.
    pub name: DaemonSetName,
    /// Number of nodes that `{{nodes}}` stands for.
    pub nodes: usize,
    /// Number of nodes that `{{others}}` stands for.
    pub others: usize,
    /// Whether a rollout is under way. If not, both stand for all nodes.
    pub is_rolling_out: bool,
    /// Its checks, preconditions first, in the order of the policy.
    pub checks: Vec<AskedCheck>,
}

/// A check and its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AskedCheck {
    /// Its name.
    pub check: String,
    /// What it is for.
    pub role: CheckRole,
    /// What it asks, and its bounds.
    pub asks: String,
    /// The answer of the newest sample.
    pub answer: CheckVerdict,
    /// Why it does not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Coded<CheckReason>>,
    /// Number of series.
    pub series: usize,
    /// The worst value at each time, among all series; empty for what has no values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<CheckPoint>,
    /// Smallest value that passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<Bound>,
    /// Largest value that passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Bound>,
    /// Each series, the worst first, such as one for each node; empty if there is only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<SeriesValues>,
    /// How often it would have passed (`--over`); none for what is only known when it is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<SampleCounts>,
}

/// What a check is for.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum CheckRole {
    /// It must pass before a node begins.
    Precondition,
    /// Updated nodes must keep it.
    Gate,
}

/// The answer of a check, without its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CheckVerdict {
    /// It passes.
    Pass,
    /// It fails.
    Fail,
    /// It is unknown.
    Unknown,
}

/// A value and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckPoint {
    /// The time.
    pub at: Timestamp,
    /// The value.
    pub value: SampleValue,
}

/// A series of several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesValues {
    /// Its labels, as `name=value`.
    pub labels: Vec<String>,
    /// Its worst value.
    pub worst: SampleValue,
    /// Its last value.
    pub last: SampleValue,
}

/// The nodes that the placeholders of a query stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckedNodes {
    /// `{{nodes}}`
    pub nodes: Vec<NodeName>,
    /// `{{others}}`
    pub others: Vec<NodeName>,
    /// Whether some nodes are updated, and some are not.
    pub is_rolling_out: bool,
}

impl CheckedNodes {
    /// Those of a plan with all nodes: the updated ones, and those that are not. Outside of a
    /// rollout, both are all nodes: a query that compares them then has an answer, too.
    pub fn of(plan: &DaemonSetPlan) -> Self {
        let of_action = |is_wanted: fn(Action) -> bool| -> Vec<NodeName> {
            let wanted = plan.nodes.iter().filter(|node| is_wanted(node.action));
            wanted.filter(|node| !node.pods.is_empty()).map(|node| node.name.clone()).collect()
        };
        let nodes = of_action(|action| action == Action::Keep);
        let others = of_action(|action| action != Action::Keep);
        if !nodes.is_empty() && !others.is_empty() {
            return Self { nodes, others, is_rolling_out: true };
        }
        let mut all = [nodes, others].concat();
        all.sort();
        Self { nodes: all.clone(), others: all, is_rolling_out: false }
    }
}

/// A check to ask, for a report.
#[derive(Clone, Debug)]
pub struct ToAsk<'a> {
    /// What it is for.
    pub role: CheckRole,
    /// The check.
    pub check: &'a Check,
    /// The question; `None` if the cluster answers it.
    pub question: Option<CheckQuestion>,
}

/// The checks of a policy, with their questions about the time until `now`: so long as `over`, else
/// some samples.
pub fn to_ask<'a>(
    policy: &'a PolicySpec,
    daemon_set: &DaemonSetKey,
    nodes: &CheckedNodes,
    now: Timestamp,
    over: Option<SignedDuration>,
) -> Vec<ToAsk<'a>> {
    let roles =
        [(CheckRole::Precondition, &policy.preconditions), (CheckRole::Gate, &policy.gates)];
    let checks =
        roles.into_iter().flat_map(|(role, checks)| checks.iter().map(move |it| (role, it)));
    checks
        .map(|(role, check)| {
            let length = over.unwrap_or(check.interval.duration() * SAMPLES_BEFORE.cast_signed());
            let question = (!check.is_of_cluster()).then(|| CheckQuestion {
                name: check.name.clone(),
                endpoint: check.endpoint(),
                daemon_set: daemon_set.clone(),
                nodes: nodes.nodes.clone(),
                others: nodes.others.clone(),
                from: now.saturating_sub(length).unwrap_or(now),
                until: now,
                interval: check.interval,
            });
            ToAsk { role, check, question }
        })
        .collect()
}

impl ToAsk<'_> {
    /// The check with its answer. `counted`: how often it would have passed is counted.
    pub fn asked(&self, response: Option<&CheckResponse>, counted: bool) -> AskedCheck {
        let Self { role, check, question } = self;
        let answer = match (question, response) {
            (Some(question), Some(response)) => {
                let (question, response) = newest(question, response);
                judge(check, &question, &response, 0)
            }
            (Some(_) | None, _) => {
                CheckAnswer::Unknown(CheckReason::unanswered("only known during a rollout"))
            }
        };
        let (answer, reason) = match answer {
            CheckAnswer::Pass => (CheckVerdict::Pass, None),
            CheckAnswer::Fail(reason) => (CheckVerdict::Fail, Some(reason.into())),
            CheckAnswer::Unknown(reason) => (CheckVerdict::Unknown, Some(reason.into())),
        };
        let found = match response {
            Some(CheckResponse::Series(found)) => Some(found),
            Some(CheckResponse::Sample { .. } | CheckResponse::Unanswered(_)) | None => None,
        };
        let counts = question.as_ref().zip(found).filter(|_| counted);
        let (min, max) = bounds(check);
        AskedCheck {
            min,
            max,
            each: found.map(|found| each(check, found)).unwrap_or_default(),
            check: check.name.clone(),
            role: *role,
            asks: check.kind.to_string(),
            answer,
            reason,
            series: found.map_or(0, |found| found.series.len()),
            points: found.map(|found| worst_points(check, found)).unwrap_or_default(),
            over: counts.map(|(question, found)| over::counts(check, question, found)),
        }
    }
}

/// The part of a question and of its answer that is about the newest sample.
fn newest(question: &CheckQuestion, response: &CheckResponse) -> (CheckQuestion, CheckResponse) {
    let CheckResponse::Series(found) = response else {
        return (question.clone(), response.clone());
    };
    let newest = over::sample(found, question.until);
    (at_only(question, question.until), CheckResponse::Series(newest))
}

/// The question about one time.
fn at_only(question: &CheckQuestion, at: Timestamp) -> CheckQuestion {
    CheckQuestion { from: at, until: at, ..question.clone() }
}

/// The worst value of all series at each time.
fn worst_points(check: &Check, found: &CheckSeries) -> Vec<CheckPoint> {
    let mut points: Vec<(Timestamp, f64)> =
        found.series.iter().flat_map(|series| series.points.iter().copied()).collect();
    points.sort_by_key(|(at, _)| *at);
    let at_each = points.chunk_by(|(one, _), (other, _)| one == other);
    let worst = at_each.filter_map(|points| {
        let (at, _) = *points.first()?;
        let values = points.iter().map(|(_, value)| *value);
        Some(CheckPoint { at, value: SampleValue(worst(check, values)?) })
    });
    worst.collect()
}

/// The value that is farthest on the wrong side of the bounds, or nearest to it. What is not a
/// number is worse than every number.
pub fn worst(check: &Check, values: impl Iterator<Item = f64>) -> Option<f64> {
    values.max_by(|one, other| by_badness(check, *one, *other))
}

/// The bounds of a check.
fn bounds(check: &Check) -> (Option<Bound>, Option<Bound>) {
    match &check.kind {
        CheckKind::Prometheus(PrometheusCheck { min, max, .. }) => (*min, *max),
        CheckKind::Http(_)
        | CheckKind::Command(_)
        | CheckKind::NodeConditions(_)
        | CheckKind::Pods(_) => (None, None),
    }
}

/// Which of two values is worse; see [`worst`].
fn by_badness(check: &Check, one: f64, other: f64) -> Ordering {
    let (min, max) = bounds(check);
    let excess = |value: f64| {
        let below = min.map_or(f64::NEG_INFINITY, |min| min.value() - value);
        let above = max.map_or(f64::NEG_INFINITY, |max| value - max.value());
        if value.is_nan() { f64::NAN } else { below.max(above) }
    };
    let (one, other) = (excess(one), excess(other));
    match (one.is_nan(), other.is_nan()) {
        (false, false) => one.total_cmp(&other),
        (true, true) => Ordering::Equal,
        (is_nan, _) => is_nan.cmp(&!is_nan),
    }
}

/// The values of each series, the worst first; none if there is only one.
fn each(check: &Check, found: &CheckSeries) -> Vec<SeriesValues> {
    if found.series.len() < 2 {
        return Vec::new();
    }
    let values = found.series.iter().filter_map(|series| {
        let (_, last) = *series.points.last()?;
        let worst = worst(check, series.points.iter().map(|(_, value)| *value))?;
        let (worst, last) = (SampleValue(worst), SampleValue(last));
        Some(SeriesValues { labels: series.labels.clone(), worst, last })
    });
    let mut values: Vec<SeriesValues> = values.collect();
    values.sort_by(|one, other| {
        let worse_first = by_badness(check, other.worst.0, one.worst.0);
        worse_first.then_with(|| one.labels.cmp(&other.labels))
    });
    values
}

/// Warnings about checks that have found nothing in all that time, or nothing else.
pub fn warnings(daemon_set: &DaemonSetKey, check: &Check, asked: &AskedCheck) -> Option<Warning> {
    let counts = asked.over.as_ref().filter(|counts| counts.samples > 0)?;
    let values = asked.points.iter().map(|point| point.value.0);
    let worst = worst(check, values).map(SampleValue);
    let (code, message) = counts.verdict(&asked.check, &asked.asks, worst)?;
    Some(Warning {
        code: code.to_owned(),
        message,
        daemon_set: Some(daemon_set.to_string()),
        nodes: Vec::new(),
    })
}

impl CheckReport {
    /// The most severe answer of all checks: a fail, else unknown, else a pass.
    pub fn verdict(&self) -> CheckVerdict {
        let answers = || self.daemon_sets.iter().flat_map(|it| &it.checks).map(|it| it.answer);
        let is_any = |wanted| answers().any(|answer| answer == wanted);
        if is_any(CheckVerdict::Fail) {
            CheckVerdict::Fail
        } else if is_any(CheckVerdict::Unknown) {
            CheckVerdict::Unknown
        } else {
            CheckVerdict::Pass
        }
    }
}
