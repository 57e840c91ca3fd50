//! The checks of a story's policy, and what the world answers to them: own times at which each passes,
//! fails or is unknown, by the cluster's clock.
//!
//! Not here: who asks (`asking`), and what the program may do then (`step_laws`).

use daemonset::model::{
    CheckEndpoint, CheckQuestion, CheckResponse, CheckSeries, Series, Unanswered,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::dice::Dice;

/// The condition of nodes that a check may look at: `False` is well.
pub(crate) const BROKEN: &str = "Broken";

/// The checks of a policy.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Checks {
    pub(crate) preconditions: Vec<CheckRule>,
    pub(crate) gates: Vec<CheckRule>,
    /// The times, in seconds after the beginning, at which a node says that it is broken, or not, or
    /// no more whether.
    pub(crate) conditions: Vec<(u64, String, Option<bool>)>,
    /// Seconds until an answer arrives.
    pub(crate) latency: u64,
    /// The second, since 1970, to which all times are relative.
    pub(crate) start: i64,
}

/// One check.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CheckRule {
    pub(crate) name: String,
    pub(crate) asks: Asks,
    /// In seconds, as all times.
    pub(crate) interval: i64,
    pub(crate) delay: i64,
    pub(crate) allow: usize,
    pub(crate) unknown_for: i64,
    /// What is true from each second after the beginning on; before the first one, it passes.
    truth: Vec<(i64, Truth)>,
}

/// Whom a check asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    /// One series, of all the time.
    Prometheus,
    /// How it is at the moment.
    Http,
    /// Nobody: it looks at the condition of nodes.
    Nodes,
}

/// What is measured at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Truth {
    Pass,
    Fail,
    /// Nothing is measured, and never will be for this time.
    Unmeasured,
    /// The endpoint does not answer; what it measures meanwhile passes, and later answers contain it.
    Unreachable,
}

/// What an answer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    Fail,
    Unknown,
}

impl Checks {
    /// Random ones, for nodes with these names.
    pub(crate) fn random(names: &[String], start: i64, dice: &mut Dice) -> Self {
        let gates = dice.between(0, 2);
        let preconditions = dice.between(u64::from(gates == 0), 2);
        let all = |kind: &str, count: u64, dice: &mut Dice| -> Vec<CheckRule> {
            let name = |at: u64| format!("{kind}{at}");
            (0..count).map(|at| CheckRule::random(name(at), kind == "gate", dice)).collect()
        };
        let mut checks = Self {
            preconditions: all("precondition", preconditions, dice),
            gates: all("gate", gates, dice),
            conditions: Vec::new(),
            // Answers that count for ten seconds have to overlap.
            latency: dice.pick(&[0, 0, 1, 3]),
            start,
        };
        let changes = if checks.looks_at_nodes() { dice.between(0, 5) } else { 0 };
        for _ in 0..changes {
            let latest = dice.pick(&[60, 400, 3_000]);
            let at = dice.between(1, latest);
            let status = dice.pick(&[Some(true), Some(true), None]);
            let name = dice.pick(names);
            checks.conditions.push((at, name.clone(), status));
            let lasts = dice.pick(&[8, 40, 300, 5_000]);
            checks.conditions.push((at + lasts, name, Some(false)));
        }
        checks.conditions.sort_by_key(|(at, ..)| *at);
        if dice.one_in(5) {
            checks.pass_always();
        }
        checks
    }

    /// Lets all of them pass at any time.
    pub(crate) fn pass_always(&mut self) {
        self.conditions.clear();
        let rules = self.preconditions.iter_mut().chain(&mut self.gates);
        rules.for_each(|rule| rule.truth.clear());
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &CheckRule> {
        self.preconditions.iter().chain(&self.gates)
    }

    /// Whether any looks at the condition of nodes.
    pub(crate) fn looks_at_nodes(&self) -> bool {
        self.all().any(|rule| rule.asks == Asks::Nodes)
    }

    /// Whether all of them pass at any time.
    pub(crate) fn always_pass(&self) -> bool {
        let passes = |rule: &CheckRule| rule.truth.iter().all(|(_, truth)| *truth == Truth::Pass);
        self.all().all(passes) && self.conditions.is_empty()
    }

    /// The check of a question.
    pub(crate) fn rule(&self, name: &str) -> Option<&CheckRule> {
        self.all().find(|rule| *rule.name == *name)
    }

    /// Adds them to the `spec` of a policy.
    pub(crate) fn add_to(&self, spec: &mut Value) {
        let json = |rules: &[CheckRule]| rules.iter().map(CheckRule::json).collect::<Vec<_>>();
        spec["preconditions"] = json(&self.preconditions).into();
        spec["gates"] = json(&self.gates).into();
    }

    /// What the world answers to a question that it gets at this time.
    pub(crate) fn response(&self, question: &CheckQuestion, now: Timestamp) -> CheckResponse {
        let nobody = || {
            let message = "nobody answers".to_owned();
            CheckResponse::Unanswered(Unanswered { message })
        };
        let Some(rule) = self.rule(&question.name) else { return nobody() };
        match (&question.endpoint, rule.truth(now, self.start)) {
            (_, Truth::Unreachable) => nobody(),
            (CheckEndpoint::Prometheus { .. }, _) => {
                let step = question.step();
                let value = |at| match rule.truth(at, self.start) {
                    Truth::Pass | Truth::Unreachable => Some((at, 0.5)),
                    Truth::Fail => Some((at, 2.0)),
                    Truth::Unmeasured => None,
                };
                let points = question.times(step).filter_map(value).collect();
                let series = vec![Series { labels: vec!["of=all".to_owned()], points }];
                CheckResponse::Series(CheckSeries { step, series, warnings: Vec::new() })
            }
            (_, Truth::Unmeasured) => nobody(),
            (_, truth) => {
                let is_expected = truth == Truth::Pass;
                let detail = if is_expected { "status 200" } else { "status 503" }.to_owned();
                CheckResponse::Sample { at: question.until, is_expected, detail }
            }
        }
    }

    /// What that answer says, by the words of the policy. `failed_before` is the number of samples of
    /// this run that have failed.
    pub(crate) fn verdict(
        &self,
        question: &CheckQuestion,
        now: Timestamp,
        failed_before: usize,
    ) -> Verdict {
        let Some(rule) = self.rule(&question.name) else { return Verdict::Unknown };
        let truth = rule.truth(now, self.start);
        match (rule.asks, truth) {
            (_, Truth::Unreachable) | (Asks::Http, Truth::Unmeasured) => Verdict::Unknown,
            (Asks::Prometheus | Asks::Nodes, _) => rule.verdict_of_points(question, self.start),
            (Asks::Http, Truth::Fail) if failed_before >= rule.allow => Verdict::Fail,
            (Asks::Http, Truth::Fail | Truth::Pass) => Verdict::Pass,
        }
    }

    /// Whether a sample fails that is taken at this time.
    pub(crate) fn sample_fails(&self, question: &CheckQuestion, now: Timestamp) -> bool {
        let rule = self.rule(&question.name).filter(|rule| rule.asks == Asks::Http);
        rule.is_some_and(|rule| rule.truth(now, self.start) == Truth::Fail)
    }
}

impl CheckRule {
    fn random(name: String, is_gate: bool, dice: &mut Dice) -> Self {
        use Asks::{Http, Nodes, Prometheus};
        let (asks, delays) = if is_gate {
            ([Prometheus, Prometheus, Prometheus, Http, Nodes], &[0, 0, 30, 120][..])
        } else {
            ([Prometheus, Prometheus, Http, Http, Nodes], &[0][..])
        };
        let mut rule = Self {
            name,
            asks: dice.pick(&asks),
            interval: dice.pick(&[10, 30, 60]),
            delay: dice.pick(delays),
            allow: dice.pick(&[0, 0, 1, 2]),
            unknown_for: dice.pick(&[60, 600, 3_600]),
            truth: Vec::new(),
        };
        // Only one sample of these counts.
        if rule.asks == Nodes || (rule.asks == Http && !is_gate) {
            rule.allow = 0;
        }
        if rule.asks == Nodes {
            return rule;
        }
        let mut at = 0;
        for _ in 0..dice.between(0, 12) {
            let (truth, lasts) = match dice.between(0, 11) {
                0..=4 => (Truth::Pass, dice.pick(&[20, 60, 200, 700, 2_500])),
                // A gate that fails for long ends every rollout.
                5 | 6 if is_gate => (Truth::Fail, dice.pick(&[5, 30, 100, 200])),
                5..=7 if !is_gate => (Truth::Fail, dice.pick(&[5, 60, 400])),
                5..=8 => (Truth::Unmeasured, dice.pick(&[5, 20, 100, 900])),
                _ => (Truth::Unreachable, dice.pick(&[5, 40, 200, 900, 5_000])),
            };
            rule.truth.push((at, truth));
            at += lasts;
        }
        rule.truth.push((at, Truth::Pass));
        rule
    }

    /// As in the policy.
    fn json(&self) -> Value {
        let seconds = |number: i64| format!("{number}s");
        let mut check = json!({
            "name": self.name, "interval": seconds(self.interval),
            "unknownFor": seconds(self.unknown_for),
        });
        if self.allow > 0 {
            check["allow"] = self.allow.into();
        }
        if self.delay > 0 {
            check["delay"] = seconds(self.delay).into();
        }
        match self.asks {
            Asks::Prometheus => {
                check["prometheus"] =
                    json!({"address": "https://prom.example", "query": "errors", "max": 1});
            }
            Asks::Http => check["http"] = json!({"url": "https://quiet.example/health"}),
            Asks::Nodes => check["nodeConditions"] = json!({BROKEN: "False"}),
        }
        check
    }

    fn truth(&self, at: Timestamp, start: i64) -> Truth {
        let second = at.as_second() - start;
        let since = self.truth.iter().rev().find(|(from, _)| *from <= second);
        since.map_or(Truth::Pass, |(_, truth)| *truth)
    }

    fn verdict_of_points(&self, question: &CheckQuestion, start: i64) -> Verdict {
        let truths: Vec<Truth> =
            question.times(question.step()).map(|at| self.truth(at, start)).collect();
        let count = |wanted| truths.iter().filter(|truth| **truth == wanted).count();
        let missing = count(Truth::Unmeasured);
        if missing == truths.len() {
            Verdict::Unknown
        } else if count(Truth::Fail) > self.allow {
            Verdict::Fail
        } else if missing * 10 > truths.len() {
            Verdict::Unknown
        } else {
            Verdict::Pass
        }
    }
}
