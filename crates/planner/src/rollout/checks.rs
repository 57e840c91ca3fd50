//! The checks of a policy in a rollout: when they are asked, how long an answer counts, and what
//! follows from it.
//!
//! Gates are sampled while updated nodes exist; one that fails, fails the rollout. Preconditions are
//! asked before a node begins; one that fails lets the rollout wait. An answer counts for the
//! check's `interval` after the question, or after it came if that took longer, and for the step in
//! progress. While one that is needed is missing or
//! unknown, nothing is deleted. A run that is started again asks anew. Not here: what an answer
//! means ([`checks`](crate::checks)); a rollback, which asks nothing; checks that the observed
//! cluster answers (`observed_checks`).

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::decision::Decision;
use super::effect::Effect;
use super::outcome::{FailedGate, FailureCause, Outcome, PauseReason};
use crate::checks::{CheckAnswer, CheckFinding, CheckReason};
use crate::plan::PausedRollout;
use crate::shared::ShareCourse;
use crate::steps::{Evaluation, Sampled, StepNode, WaitKind, WaitsFor};
use crate::time::{later, next_whole_second};
use daemonset::model::{Check, CheckQuestion, DaemonSet, NodeName, PolicySpec, StepsNote};

/// What the checks say now.
#[derive(Debug, Default)]
pub(super) struct Checked {
    missing: Missing,
    /// Whether the missing answers are waited for, as the last of what the evaluation waits for.
    adds_wait: bool,
    /// Whether a gate has failed.
    pub has_failed: bool,
}

/// Whether an answer that is needed is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Missing {
    /// None is.
    #[default]
    None,
    /// Each of the missing ones was a pass until a moment ago, and is asked for again.
    AskedAgain,
    /// Nothing is known.
    Unknown,
}

impl Checked {
    /// Whether an answer that is needed is missing: nothing may begin, and nothing ends.
    pub(super) fn is_asking(&self) -> bool {
        self.missing != Missing::None
    }

    /// What the others of a shared budget may count on. While nothing is known, no node may begin;
    /// that is no reason for them to go ahead. A pass counts for them while it is asked for again:
    /// DaemonSets whose checks are slow might never have all answers at the same time.
    pub(super) fn course(&self, evaluation: &Evaluation<'_>) -> ShareCourse {
        match self.waits_for(evaluation) {
            _ if self.missing == Missing::Unknown => ShareCourse::Starting,
            [] => ShareCourse::Rolling,
            waits_for => ShareCourse::Waiting(waits_for.to_vec()),
        }
    }

    /// What keeps nodes from beginning, apart from answers that are only asked for again.
    pub(super) fn waits_for<'e>(&self, evaluation: &'e Evaluation<'_>) -> &'e [WaitsFor] {
        let all = &evaluation.waits_for[..];
        let again = self.adds_wait && self.missing == Missing::AskedAgain;
        &all[..all.len() - usize::from(again)]
    }

    /// What is waited for, unless it may be over with the next answer.
    pub(super) fn lasting(&self, evaluation: &Evaluation<'_>) -> Vec<WaitsFor> {
        if self.is_asking() { Vec::new() } else { evaluation.waits_for.clone() }
    }
}

/// One check as it is now.
pub(super) enum Now {
    /// It has answered, and the answer counts.
    Answered(CheckAnswer, Timestamp),
    /// Its first sample is due at this time.
    Due(Timestamp),
    /// It is being asked, or is about to be.
    Asking(Missing),
}

impl Decision<'_, '_> {
    /// Asks the checks whose answers are needed. What keeps nodes from beginning is added to the
    /// evaluation, and since when a check is unknown, to its note.
    pub(super) fn ask_checks(
        &mut self,
        nodes: &[StepNode<'_>],
        evaluation: &mut Evaluation<'_>,
        policy: &PolicySpec,
        live: &DaemonSet,
    ) -> Checked {
        if policy.preconditions.is_empty() && policy.gates.is_empty() {
            return Checked::default();
        }
        self.recall_unknown(&mut evaluation.note);
        let began = evaluation.sampled.and_then(|sampled| sampled.began);
        let mut asking = Asking {
            decision: self,
            nodes,
            evaluation,
            began,
            updated: names(nodes, |node| node.is_gated(began)),
            others: names(nodes, |node| !node.is_gated(began) && node.is_desired),
            live,
            questions: Vec::new(),
            failed: None,
            missing: Missing::None,
            found: Vec::new(),
        };
        asking.gates(policy);
        asking.preconditions(policy);
        let Asking { decision, evaluation, questions, failed, missing, found, updated, .. } =
            asking;
        if !questions.is_empty() {
            decision.push(Effect::Ask(questions));
        }
        let has_failed = failed.is_some();
        if let Some(finding) = failed {
            let gate = FailedGate { finding, nodes: updated };
            decision.state.cause = Some(FailureCause::Gate(Box::new(gate)));
        }
        // What the gates answered says more than that they are waited for.
        if !found.is_empty() {
            evaluation.waits_for.retain(|wait| wait.kind != WaitKind::Gate);
        }
        evaluation.waits_for.extend(found);
        let finishes = || (0..nodes.len()).any(|at| may_be_replaced(nodes, evaluation, at));
        let adds_wait = missing != Missing::None && (evaluation.waits_for.is_empty() || finishes());
        if adds_wait {
            let step = evaluation.current_step().to_owned();
            evaluation.waits_for.push(WaitsFor::check(WaitKind::Gate, &step, None));
        }
        Checked { missing, adds_wait, has_failed }
    }

    /// Sets since when checks are unknown, as far as this run knows, or the note or the pause of an earlier
    /// one: the note of a rollout that another commit has replaced says nothing about this template.
    pub(super) fn recall_unknown(&mut self, note: &mut StepsNote) {
        if !std::mem::replace(&mut self.state.checks.has_recalled, true) {
            let pause = self.observed.daemon_set.and_then(PausedRollout::readable);
            let pause = pause.filter(|pause| pause.target.as_ref() == Some(&note.template));
            let waits = pause.into_iter().flat_map(|pause| pause.waits_for);
            let unknown = waits.filter(|wait| wait.kind == WaitKind::Unknown);
            let unknown = unknown.filter_map(|wait| wait.check).map(|it| (it.check, it.since));
            let noted = note.unknown_since.iter().map(|(check, since)| (check.clone(), *since));
            let known: BTreeSet<_> = self.task.policy.checks().map(|it| it.name.clone()).collect();
            let all = unknown.chain(noted).filter(|(check, _)| known.contains(check));
            self.state.checks.unknown_since.extend(all);
        }
        note.unknown_since.clone_from(&self.state.checks.unknown_since);
    }

    /// The outcome of a run that waits: paused, if a check has been unknown for too long.
    pub(super) fn waiting(&self, waits_for: Vec<WaitsFor>) -> Outcome {
        match self.unknown_for_too_long(&waits_for) {
            Some(why) => Outcome::Paused { why },
            None => Outcome::Waiting { waits_for },
        }
    }

    /// The check that has been unknown for longer than its `unknownFor`.
    pub(super) fn unknown_for_too_long(&self, waits_for: &[WaitsFor]) -> Option<PauseReason> {
        let policy = &self.task.policy;
        let unknown = waits_for.iter().filter(|wait| wait.kind == WaitKind::Unknown);
        unknown.filter_map(|wait| wait.check.as_ref()).find_map(|finding| {
            let check = policy.checks().find(|check| check.name == finding.check)?;
            let allowed = check.unknown_for.0;
            let seconds = self.now.duration_since(finding.since).as_secs();
            (seconds > i64::from(allowed)).then(|| {
                let finding = finding.clone();
                PauseReason::CheckUnknown { finding, seconds, allowed }
            })
        })
    }
}

/// The context of asking.
pub(super) struct Asking<'a, 's, 'w, 'e> {
    pub(super) decision: &'a mut Decision<'s, 'w>,
    pub(super) nodes: &'a [StepNode<'a>],
    pub(super) evaluation: &'a mut Evaluation<'e>,
    /// The begin of the rollout, if it is known.
    pub(super) began: Option<Timestamp>,
    /// The nodes that gates are about, also where no pod may start any more.
    updated: Vec<NodeName>,
    /// The other desired nodes.
    others: Vec<NodeName>,
    pub(super) live: &'a DaemonSet,
    questions: Vec<CheckQuestion>,
    failed: Option<CheckFinding>,
    missing: Missing,
    /// What keeps nodes from beginning.
    found: Vec<WaitsFor>,
}

impl Asking<'_, '_, '_, '_> {
    /// Gates are sampled while updated nodes exist.
    fn gates(&mut self, policy: &PolicySpec) {
        let Some(Sampled { since, began: _, soaked_at }) = self.evaluation.sampled else { return };
        for gate in &policy.gates {
            let from = later(since, gate.delay.0.into());
            let now = if self.is_observed(gate) {
                self.observe_gate(gate, from, soaked_at)
            } else {
                self.look(gate, from, soaked_at)
            };
            match now {
                Now::Due(at) => {
                    if soaked_at.is_some() {
                        self.wait(WaitKind::Gate, None, Some(at));
                    }
                }
                Now::Asking(missing) => self.lacks(missing),
                Now::Answered(CheckAnswer::Pass, _) => self.is_known(gate),
                Now::Answered(CheckAnswer::Fail(reason), since) => {
                    self.is_known(gate);
                    let check = gate.name.clone();
                    self.failed.get_or_insert(CheckFinding { check, since, reason });
                }
                Now::Answered(CheckAnswer::Unknown(reason), at) => self.unknown(gate, reason, at),
            }
        }
    }

    /// Preconditions are asked only if a node could begin otherwise, or be finished.
    fn preconditions(&mut self, policy: &PolicySpec) {
        let may_be = |at| may_be_replaced(self.nodes, self.evaluation, at);
        let is_any = (0..self.nodes.len()).any(may_be);
        if !self.found.is_empty() || self.failed.is_some() || !is_any {
            return;
        }
        let candidates = self.candidates();
        for check in &policy.preconditions {
            if self.is_observed(check) {
                self.observe_precondition(check);
                continue;
            }
            let samples = i64::from(check.interval.0) * i64::from(check.allow);
            let now = self.now();
            let from = now.checked_sub(SignedDuration::from_secs(samples)).unwrap_or(now);
            match self.look(check, from, None) {
                Now::Due(_) => self.lacks(Missing::Unknown),
                Now::Asking(missing) => self.lacks(missing),
                Now::Answered(CheckAnswer::Pass, _) => self.is_known(check),
                Now::Answered(CheckAnswer::Fail(reason), since) => {
                    self.is_known(check);
                    let finding = CheckFinding { check: check.name.clone(), since, reason };
                    self.wait(WaitKind::Precondition, Some(finding), None);
                }
                Now::Answered(CheckAnswer::Unknown(reason), at) => self.unknown(check, reason, at),
            }
        }
        self.wait_if_held_back(&candidates);
    }

    /// The answer of a check, if it still counts; else asks it.
    fn look(&mut self, check: &Check, from: Timestamp, after: Option<Timestamp>) -> Now {
        if let Some(early) = self.too_early(from, after) {
            return early;
        }
        let (now, step) = (self.now(), self.evaluation.current_step().to_owned());
        let mut missing = Missing::Unknown;
        let answered = self.decision.state.checks.answered.get(&check.name);
        if let Some(answered) = answered.filter(|it| it.step == step) {
            let ends = answered.counts_until;
            let is_late_enough = after.is_none_or(|after| answered.until >= after);
            if now < ends && is_late_enough {
                let now = Now::Answered(answered.answer.clone(), answered.until);
                self.decision.wake_at(Some(ends));
                return now;
            }
            // After a soak, an answer is the first that counts for it.
            let has_passed = answered.answer == CheckAnswer::Pass && after.is_none();
            let is_known_until = later(ends, check.interval.0.into());
            if has_passed && now < is_known_until {
                missing = Missing::AskedAgain;
                self.decision.wake_at(Some(is_known_until));
            }
        }
        if !self.decision.state.checks.asked.contains_key(&check.name) {
            self.ask(check, from, now, step);
        }
        Now::Asking(missing)
    }

    /// An answer that is needed is missing.
    pub(super) fn lacks(&mut self, missing: Missing) {
        self.missing = self.missing.max(missing);
    }

    /// A check whose first sample is not due, or that has to be asked after a time to come.
    pub(super) fn too_early(&mut self, from: Timestamp, after: Option<Timestamp>) -> Option<Now> {
        let now = self.now();
        if now < from {
            self.decision.wake_at(Some(from));
            return Some(Now::Due(from));
        }
        // Questions have whole seconds: one that is asked in the second in which a soak ends would
        // not be late enough.
        let soon = after.map(next_whole_second).filter(|soon| now < *soon)?;
        self.decision.wake_at(Some(soon));
        Some(Now::Asking(Missing::Unknown))
    }

    fn ask(&mut self, check: &Check, from: Timestamp, until: Timestamp, step: String) {
        self.decision.state.checks.asked.insert(check.name.clone(), step);
        self.questions.push(CheckQuestion {
            name: check.name.clone(),
            endpoint: check.endpoint(),
            daemon_set: self.live.key.clone(),
            nodes: self.updated.clone(),
            others: self.others.clone(),
            from,
            until,
            interval: check.interval,
        });
    }

    pub(super) fn unknown(&mut self, check: &Check, reason: CheckReason, at: Timestamp) {
        let since = self.unknown_since(check, at);
        let finding = CheckFinding { check: check.name.clone(), since, reason };
        self.wait(WaitKind::Unknown, Some(finding), None);
    }

    /// Since when a check is unknown, which is noted.
    pub(super) fn unknown_since(&mut self, check: &Check, at: Timestamp) -> Timestamp {
        let noted = self.evaluation.note.unknown_since.entry(check.name.clone());
        let in_run =
            self.decision.state.checks.unknown_since.entry(check.name.clone()).or_insert(at);
        *in_run = *noted.or_insert(*in_run);
        *in_run
    }

    pub(super) fn is_known(&mut self, check: &Check) {
        self.decision.state.checks.unknown_since.remove(&check.name);
        self.evaluation.note.unknown_since.remove(&check.name);
    }

    pub(super) fn wait(
        &mut self,
        kind: WaitKind,
        finding: Option<CheckFinding>,
        until: Option<Timestamp>,
    ) {
        let wait = WaitsFor::check(kind, self.evaluation.current_step(), finding);
        self.found.push(WaitsFor { until, ..wait });
    }

    /// Adds to what keeps nodes from beginning.
    pub(super) fn wait_for_all(&mut self, waits_for: Vec<WaitsFor>) {
        self.found.extend(waits_for);
    }

    /// The time in whole seconds, as questions have it.
    pub(super) fn now(&self) -> Timestamp {
        let now = self.decision.now;
        Timestamp::from_second(now.as_second()).unwrap_or(now)
    }
}

/// Whether the policy lets the outdated pod of the node at this position be replaced now, apart from checks:
/// the node may begin, or be finished that another DaemonSet of a shared budget has begun.
pub(super) fn may_be_replaced(
    nodes: &[StepNode<'_>],
    evaluation: &Evaluation<'_>,
    at: usize,
) -> bool {
    evaluation.may_begin(at) || (nodes[at].shared.is_open && evaluation.may_finish(at))
}

fn names(nodes: &[StepNode<'_>], is_wanted: impl Fn(&StepNode<'_>) -> bool) -> Vec<NodeName> {
    let wanted = nodes.iter().filter(|node| is_wanted(node));
    wanted.map(|node| node.node.name.clone()).collect()
}
