//! What checks measure, and how a Prometheus or a service answers.

use jiff::{SignedDuration, Timestamp};

use super::Sim;
use daemonset::model::{
    CheckEndpoint, CheckQuestion, CheckResponse, CheckSeries, Series, Unanswered,
};

/// What a check measures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::rollout::tests) enum Measured {
    /// This value.
    Value(f64),
    /// Prometheus is down.
    Down,
}

impl Sim {
    /// What a check measures from now on.
    pub(in crate::rollout::tests) fn measure(&mut self, check: &'static str, measured: Measured) {
        self.values.push((check, self.now(), measured));
    }

    /// What a check measures at a time.
    fn measured(&self, check: &str, at: Timestamp) -> Measured {
        let mut values = self.values.iter().rev();
        let last = values.find(|(name, from, _)| *name == check && *from <= at);
        last.map_or(Measured::Value(1.0), |(_, _, measured)| *measured)
    }

    /// Answers a question as a Prometheus does, or a service.
    pub(in crate::rollout::tests) fn respond(&self, question: &CheckQuestion) -> CheckResponse {
        let CheckQuestion { name, endpoint, from, until, interval, .. } = question;
        if self.measured(name, self.now()) == Measured::Down {
            let message = "it does not answer".to_owned();
            return CheckResponse::Unanswered(Unanswered { message });
        }
        if !matches!(endpoint, CheckEndpoint::Prometheus { .. }) {
            let is_expected = self.measured(name, self.now()) == Measured::Value(1.0);
            let detail = "status 503".to_owned();
            return CheckResponse::Sample { at: self.now(), is_expected, detail };
        }
        let seconds = i64::from(interval.0);
        let count = until.duration_since(*from).as_secs() / seconds;
        let times = (0..=count).map(|n| *from + SignedDuration::from_secs(n * seconds));
        let points = times.filter_map(|at| match self.measured(name, at) {
            Measured::Value(value) => Some((at, value)),
            Measured::Down => None,
        });
        let series = Series { labels: vec!["job=agent".into()], points: points.collect() };
        let series = CheckSeries { step: interval.0, series: vec![series], warnings: vec![] };
        CheckResponse::Series(series)
    }
}
