//! Whom a run asks the checks of its policy: their endpoints; in a rehearsal, the fault file and
//! recorded answers; on an embedded cluster of the caller, whom that names.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use checks::Client;
use daemonset::model::{
    Bound, CheckEndpoint, CheckKind, CheckQuestion, CheckResponse, CheckSeries, PolicySpec,
    PrometheusCheck, RehearsedAnswer, RehearsedCheck, Series, Unanswered,
};
use executor::{Ask, Asked};
use planner::check_answers::CheckAnswers;
use planner::rollout::ClusterChecks;

/// The answers of checks in a rehearsal.
#[derive(Clone, Debug)]
pub(super) struct RehearsedChecks {
    /// Those of the fault file. A check that is neither there nor recorded passes.
    pub answers: Vec<RehearsedCheck>,
    /// Those that `ds-plan checks --record` has saved.
    pub recorded: Option<Arc<CheckAnswers>>,
    /// The beginning of the rehearsal.
    pub start: Timestamp,
}

/// Whom the runs of a session ask.
#[derive(Clone)]
pub(super) enum CheckSource {
    /// The endpoints that the policies name.
    Endpoints(Arc<Client>),
    /// The files of a rehearsal: no request is sent.
    Rehearsed(RehearsedChecks),
    /// Whoever the caller of a run on its own cluster names.
    Given(Arc<dyn Ask>),
}

impl CheckSource {
    /// Who answers the checks about nodes and other pods.
    pub(super) fn of_cluster(&self) -> ClusterChecks {
        match self {
            Self::Endpoints(_) | Self::Given(_) => ClusterChecks::Observed,
            Self::Rehearsed(_) => ClusterChecks::Asked,
        }
    }

    /// Whom a run under this policy asks.
    pub(super) fn asker(&self, policy: &PolicySpec) -> Arc<dyn Ask> {
        match self {
            Self::Endpoints(client) => Arc::new(Endpoints(Arc::clone(client))),
            Self::Rehearsed(checks) => {
                Arc::new(Rehearsal { checks: checks.clone(), policy: policy.clone() })
            }
            Self::Given(ask) => Arc::clone(ask),
        }
    }
}

/// Asks the endpoints.
struct Endpoints(Arc<Client>);

impl Ask for Endpoints {
    fn ask<'a>(&'a self, question: &'a CheckQuestion) -> Asked<'a> {
        Box::pin(self.0.ask(question))
    }
}

/// Answers by the files of a rehearsal.
struct Rehearsal {
    checks: RehearsedChecks,
    policy: PolicySpec,
}

impl Ask for Rehearsal {
    fn ask<'a>(&'a self, question: &'a CheckQuestion) -> Asked<'a> {
        Box::pin(std::future::ready(self.respond(question)))
    }
}

impl Rehearsal {
    fn respond(&self, question: &CheckQuestion) -> CheckResponse {
        let CheckQuestion { name, endpoint, until, .. } = question;
        let RehearsedChecks { answers, recorded, start } = &self.checks;
        if let Some(recorded) = recorded
            && !answers.iter().any(|answer| answer.check == *name)
            && let Some(response) = recorded.answer(question, *start)
        {
            return response;
        }
        let now = self.answer_at(name, *until);
        match (endpoint, now) {
            (_, RehearsedAnswer::Unknown) => unanswered("unknown by the fault file"),
            (CheckEndpoint::Prometheus { .. }, RehearsedAnswer::Pass | RehearsedAnswer::Fail) => {
                CheckResponse::Series(self.series(question))
            }
            (
                CheckEndpoint::Http { .. } | CheckEndpoint::Command(_) | CheckEndpoint::Cluster,
                answer,
            ) => {
                let is_expected = answer == RehearsedAnswer::Pass;
                let detail = if is_expected { "passes" } else { "fails" };
                let detail = format!("{detail} by the fault file");
                CheckResponse::Sample { at: *until, is_expected, detail }
            }
        }
    }

    /// One series with a point for each sample; while nobody answers, nothing is measured.
    fn series(&self, question: &CheckQuestion) -> CheckSeries {
        let (name, step) = (&question.name, question.step());
        let point = |at| Some((at, self.value(name, self.answer_at(name, at))?));
        let points = question.times(step).filter_map(point).collect();
        let series = Series { labels: Vec::new(), points };
        CheckSeries { step, series: vec![series], warnings: Vec::new() }
    }

    /// A value that passes or fails by the bounds of the policy.
    fn value(&self, check: &str, answer: RehearsedAnswer) -> Option<f64> {
        let mut all = self.policy.checks();
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
