//! The answers of the checks of a policy in this run, and what is remembered of them.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::checks::{CheckAnswer, judge};
use crate::time::later;
use daemonset::model::{Check, CheckQuestion, CheckResponse, PolicySpec};

/// What the checks have answered in this run.
#[derive(Clone, Debug, Default)]
pub(super) struct Checks {
    /// Questions without an answer yet, by check, with the step in progress.
    pub(super) asked: BTreeMap<String, String>,
    pub(super) answered: BTreeMap<String, Answered>,
    /// The last time at which each check passed, by the step that was in progress: a step that is
    /// done stays so until that is noted.
    passed: BTreeMap<String, BTreeMap<String, Timestamp>>,
    /// Number of samples that have failed, by check: of those that are only known at the moment.
    failed_samples: BTreeMap<String, u32>,
    /// Since when each check is unknown: a run that waits before its first node notes nothing.
    pub(super) unknown_since: BTreeMap<String, Timestamp>,
    /// Whether that has what the pause of an earlier run says.
    pub(super) has_recalled: bool,
}

/// The last answer of a check.
#[derive(Clone, Debug)]
pub(super) struct Answered {
    /// The step that was in progress.
    pub(super) step: String,
    /// The time up to which it tells.
    pub(super) until: Timestamp,
    /// The time up to which it counts: the interval of the check, after that or, if it took longer, after
    /// it came.
    pub(super) counts_until: Timestamp,
    pub(super) answer: CheckAnswer,
}

impl Checks {
    /// Takes an answer.
    pub(super) fn receive(
        &mut self,
        policy: &PolicySpec,
        question: &CheckQuestion,
        response: &CheckResponse,
        now: Timestamp,
    ) {
        let CheckQuestion { name, until, .. } = question;
        let (Some(step), Some(check)) =
            (self.asked.remove(name), policy.checks().find(|check| check.name == *name))
        else {
            return;
        };
        let failed_before = self.failed_samples.entry(name.clone()).or_default();
        let answer = judge(check, question, response, *failed_before);
        if matches!(response, CheckResponse::Sample { is_expected: false, .. }) {
            *failed_before = failed_before.saturating_add(1);
        }
        if answer == CheckAnswer::Pass {
            self.passed.entry(step.clone()).or_default().insert(name.clone(), *until);
        }
        // Also if it is not needed any more: while something else holds the nodes back, none is asked for.
        match answer {
            CheckAnswer::Unknown(_) => {
                self.unknown_since.entry(name.clone()).or_insert(*until);
            }
            CheckAnswer::Pass | CheckAnswer::Fail(_) => {
                self.unknown_since.remove(name);
            }
        }
        let after = |at| later(at, check.interval.0.into());
        let counts_until = if now < after(*until) { after(*until) } else { after(now) };
        self.answered.insert(name.clone(), Answered { step, until: *until, counts_until, answer });
    }

    /// Marks a check as passed; returns whether that is the first time after `after`.
    pub(super) fn mark_passed(
        &mut self,
        step: &str,
        check: &Check,
        at: Timestamp,
        after: Option<Timestamp>,
    ) -> bool {
        let passed = self.passed.entry(step.to_owned()).or_default();
        let before = passed.insert(check.name.clone(), at);
        after.is_some_and(|after| before.is_none_or(|before| before < after))
    }

    /// The last time at which all gates passed, by the step that was in progress.
    pub(super) fn gates_passed(&self, policy: &PolicySpec) -> BTreeMap<String, Timestamp> {
        let all = |by_gate: &BTreeMap<String, Timestamp>| -> Option<Timestamp> {
            let passed = policy.gates.iter().map(|gate| by_gate.get(&gate.name).copied());
            passed.collect::<Option<Vec<Timestamp>>>()?.into_iter().min()
        };
        self.passed
            .iter()
            .filter_map(|(step, by_gate)| Some((step.clone(), all(by_gate)?)))
            .collect()
    }
}
