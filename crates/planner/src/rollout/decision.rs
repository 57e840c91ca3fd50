//! One decision of a run: the next effects, a wait, or the end of the run.
//!
//! This module has the reasons to stop that apply to every goal, and the end of a run. Each stage
//! of a goal either finds its result in place and continues with the next stage, or requests an
//! effect and waits. Not here: the goals (`forward`, `failure`, `roll`), the pods to delete
//! (`next_deletes`), the failures (`new_pods`).

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::effect::Effect;
use super::event::Failure;
use super::observed_cluster::ObservedCluster;
use super::outcome::{Attempt, ControllerWork, Ending, Outcome, PauseReason};
use super::progress::Report;
use super::request::{Purpose, RequestState};
use super::state::{AllowedActions, Course, State, Stop};
use super::task::{Goal, Task};
use super::view::{NodeView, RolloutView, count};
use crate::plan::PausedRollout;
use crate::shared::{NodeShare, ShareCourse};
use daemonset::controller::revision_data::{Matching, data_for, matches};
use daemonset::model::{DaemonSet, NodeName, UpdateStrategy};

/// Interval between decisions while the observed state may be old.
const BLIND_INTERVAL: SignedDuration = SignedDuration::from_secs(1);

/// Minimum time for which the watches may not be current before a run pauses. Deadlines of pods are
/// suspended meanwhile, so a short one does not shorten it.
const BLIND_TIMEOUT: SignedDuration = SignedDuration::from_mins(10);

/// Time for which the observed state may be old before the reason is reported: watches are often opened again
/// within seconds.
const BLIND_REPORT_DELAY: SignedDuration = SignedDuration::from_secs(30);

/// The reason why a decision goes no further.
#[derive(Debug)]
pub(super) enum Halt {
    /// The run waits for a change, or for the answer to a request.
    Wait,
    /// The run ends.
    End(Outcome),
}

impl Halt {
    /// The run ends, and the rollout is paused.
    pub(super) fn paused(why: PauseReason) -> Self {
        Self::End(Outcome::Paused { why })
    }

    /// The run ends, because the DaemonSet is gone.
    pub(super) fn gone() -> Self {
        Self::End(Outcome::Gone { replaced_by: None })
    }
}

pub(super) type Flow<T> = Result<T, Halt>;

/// One decision: its context, with the effects so far.
pub(super) struct Decision<'s, 'w> {
    pub state: &'s mut State,
    pub observed: &'s ObservedCluster<'w>,
    pub task: Arc<Task>,
    pub now: Timestamp,
    pub effects: Vec<Effect>,
    wake: Option<Timestamp>,
    /// Whether it found a stall.
    pub is_stalled: bool,
    /// What the run does, and what it has to do with the nodes of a shared budget, if it has
    /// evaluated the policy.
    pub shared_nodes: Option<(ShareCourse, BTreeMap<NodeName, NodeShare>)>,
}

/// The effects to perform now.
pub(super) fn effects(
    state: &mut State,
    observed: &ObservedCluster<'_>,
    now: Timestamp,
) -> Vec<Effect> {
    let task = Arc::clone(&state.task);
    let is_observed = observed.is_current || state.is_interrupted();
    state.writing.replaces_template &= state.writing.request == RequestState::Out || !is_observed;
    state.allowed_actions = match (state.allowed_actions, state.is_interrupted()) {
        (AllowedActions::None, _) => AllowedActions::None,
        (
            AllowedActions::CreateOnly
            | AllowedActions::Reconcile
            | AllowedActions::ReconcileAndSurge,
            true,
        ) => AllowedActions::CreateOnly,
        (
            AllowedActions::CreateOnly
            | AllowedActions::Reconcile
            | AllowedActions::ReconcileAndSurge,
            false,
        ) => AllowedActions::Reconcile,
    };
    let mut decision = Decision {
        state,
        observed,
        task,
        now,
        effects: Vec::new(),
        wake: None,
        is_stalled: false,
        shared_nodes: None,
    };
    let halt = decision.resume().unwrap_or_else(|halt| halt);
    if !decision.is_stalled {
        decision.state.stall = None;
    }
    decision.share();
    decision.finish(halt)
}

impl<'w> Decision<'_, 'w> {
    /// Runs all stages in order, up to the first that halts.
    fn resume(&mut self) -> Flow<Halt> {
        self.leave_at_once()?;
        self.leave_in_time()?;
        self.see()?;
        let task = Arc::clone(&self.task);
        let live = self.find()?;
        self.wind_down(live)?;
        self.state.allowed_actions = match task.goal {
            Goal::Apply(_) => self.state.allowed_actions,
            // The live template stays.
            Goal::RollBack | Goal::Roll(_) | Goal::Release { .. } | Goal::RemovePullers => {
                AllowedActions::Reconcile
            }
        };
        match (&task.goal, self.state.course.clone()) {
            (Goal::Apply(target), Course::Forward) => self.apply(target, live),
            (Goal::Apply(target), Course::Failed(failed)) => {
                self.after_failure(target, live, failed)
            }
            (Goal::Apply(target), Course::Waiting(waits_for)) => {
                self.put_back(target, live, waits_for)
            }
            (Goal::RollBack, _) => self.resume_rollback(live),
            (Goal::Roll(extent), Course::Forward) => self.roll(extent, live),
            (Goal::Roll(_), Course::Waiting(waits_for)) => Ok(Halt::End(self.waiting(waits_for))),
            (Goal::Roll(_), Course::Failed(failed)) => self.after_failed_roll(failed, live),
            (Goal::Release { written }, _) => self.release(written, live),
            // The end of each run removes them.
            (Goal::RemovePullers, _) => Ok(Halt::End(Outcome::Done)),
        }
    }

    /// Stops for reasons that do not depend on the cluster.
    fn leave_at_once(&self) -> Flow<()> {
        let outcome = if let Some((request, failure)) = &self.state.fatal {
            self.refused(*request, failure.clone())
        } else if matches!(self.state.stop, Some(Stop::LockLost { .. })) {
            Outcome::LockLost
        } else if self.state.stop == Some(Stop::InterruptedTwice) {
            self.interrupted()
        } else {
            return Ok(());
        };
        Err(Halt::End(outcome))
    }

    /// The outcome after a rejected request: paused if outdated pods wait for a run to replace
    /// them, failed otherwise.
    fn refused(&self, request: Attempt, failure: Failure) -> Outcome {
        let on_delete = |live: &DaemonSet| live.spec.update_strategy == UpdateStrategy::OnDelete;
        // The write may not be observed yet.
        let is_paused = self.state.writing.paused && self.is_done(Purpose::Apply);
        let waits = is_paused || self.observed.daemon_set.is_some_and(on_delete);
        if waits && !self.is_done(Purpose::RestoreStrategy) {
            Outcome::Paused { why: PauseReason::Refused { request, failure } }
        } else {
            Outcome::Failed { request, failure }
        }
    }

    /// Waits while the observed state may be old.
    fn see(&mut self) -> Flow<()> {
        if self.observed.is_current {
            self.state.shown.not_observed = false;
            if let Some(since) = self.state.blind.take() {
                self.state.sees_again(since, self.now);
            }
            return Ok(());
        }
        if self.state.stop == Some(Stop::Interrupted) {
            return Err(Halt::End(self.interrupted()));
        }
        self.wake_at(Some(self.now + BLIND_INTERVAL));
        // A stall from before may continue; it is only not observed.
        self.is_stalled = true;
        let since = *self.state.blind.get_or_insert(self.now);
        let waited = self.now.duration_since(since);
        let failure = self.observed.failure.map(str::to_owned);
        if waited < self.timeout().max(BLIND_TIMEOUT) {
            self.report_not_observed(waited, failure);
            return Err(Halt::Wait);
        }
        Err(Halt::paused(PauseReason::Blind { seconds: waited.as_secs(), failure }))
    }

    /// Reports why the cluster cannot be observed, once each time.
    fn report_not_observed(&mut self, waited: SignedDuration, failure: Option<String>) {
        if let Some(failure) = failure.filter(|_| waited >= BLIND_REPORT_DELAY)
            && !std::mem::replace(&mut self.state.shown.not_observed, true)
        {
            self.report(Report::NotObserved { failure });
        }
    }

    /// The live object, if it is that of this run; `None` if it is still to be created.
    fn find(&mut self) -> Flow<Option<&'w DaemonSet>> {
        let Some(live) = self.observed.daemon_set else {
            let planned = self.task.goal.target().is_none_or(|target| target.uid.is_some());
            if self.state.seen || planned {
                return Err(Halt::gone());
            }
            if self.is_done(Purpose::Apply) {
                return Err(self.stalled_for(ControllerWork::Appear));
            }
            return Ok(None);
        };
        let known = self.state.uid.get_or_insert_with(|| live.uid.clone());
        if *known != live.uid {
            let replaced_by = Some(live.uid.clone());
            return Err(Halt::End(Outcome::Gone { replaced_by }));
        }
        if live.terminating {
            return Err(Halt::gone());
        }
        self.state.seen = true;
        Ok(Some(live))
    }

    /// After the first interrupt: starts nothing, but waits for the replacements of deleted pods.
    fn wind_down(&mut self, live: Option<&'w DaemonSet>) -> Flow<()> {
        if self.state.stop != Some(Stop::Interrupted) {
            return Ok(());
        }
        let Some(live) = live else { return Err(Halt::End(self.interrupted())) };
        let view = self.look(live);
        let failed = self.failed_new_pods(&view);
        let waits = |node_view: &NodeView<'_>| {
            let name = &node_view.node.name;
            node_view.is_desired()
                && node_view.is_ready()
                && self.state.pods.replacing.contains_key(name)
                // A node that no longer waits: another client has changed the template.
                && self.state.pods.waiting.contains_key(name)
                && !failed.contains_key(name)
        };
        let in_flight = count(view.node_views.iter().filter(|node_view| waits(node_view)));
        if in_flight == 0 {
            return Err(Halt::End(self.interrupted()));
        }
        if !std::mem::replace(&mut self.state.shown.stopping, true) {
            self.report(Report::Stopping { in_flight });
        }
        Err(Halt::Wait)
    }

    /// The outcome of an interrupted run.
    pub(super) fn interrupted(&self) -> Outcome {
        let is_paused = |live: &DaemonSet| matches!(PausedRollout::of(live), Ok(Some(_)));
        // The write may not be observed yet.
        let is_written = self.state.writing.paused && self.is_done(Purpose::Apply);
        let paused = is_written || self.observed.daemon_set.is_some_and(is_paused);
        // The answer of the server may be lost, so the pause may have ended.
        let may_be_restored = self.state.writing.sent.contains(&Purpose::RestoreStrategy);
        Outcome::Interrupted { paused: paused && !may_be_restored }
    }

    /// Whether the run may end: all requests are answered, and its pullers are removed.
    fn may_end(&mut self, outcome: &Outcome) -> bool {
        let is_done = *outcome == Outcome::LockLost || self.pullers_are_removed();
        is_done && !self.state.awaits_answers()
    }

    pub(super) fn look(&self, live: &'w DaemonSet) -> RolloutView<'w> {
        RolloutView::of(live, self.observed, self.state, self.now)
    }

    /// The live template stays: from now on, nodes without a pod get one.
    pub(super) fn reconcile(&mut self) {
        self.state.allowed_actions = AllowedActions::Reconcile;
    }

    pub(super) fn wake_at(&mut self, at: Option<Timestamp>) {
        self.wake = self.wake.into_iter().chain(at).min();
    }

    pub(super) fn report(&mut self, report: Report) {
        self.effects.push(Effect::Report(report));
    }

    pub(super) fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Ends or continues the run. An end waits for the answers to all requests, so that nothing
    /// changes after it.
    fn finish(mut self, halt: Halt) -> Vec<Effect> {
        let leaves = self.state.stop.is_some_and(Stop::leaves);
        match halt {
            Halt::End(outcome) if leaves || self.may_end(&outcome) => {
                self.state.finished = true;
                let live = self
                    .observed
                    .daemon_set
                    .filter(|live| Some(&live.uid) == self.state.uid.as_ref());
                let left = live.map(|live| self.look(live).left()).unwrap_or_default();
                let replaced = std::mem::take(&mut self.state.pods.replaced);
                self.effects.push(Effect::Finish(Box::new(Ending { outcome, replaced, left })));
            }
            Halt::End(_) | Halt::Wait => {
                self.wake_at(self.task.deadline.filter(|at| *at > self.now));
                self.effects.extend(self.wake.map(Effect::WakeAt));
            }
        }
        self.effects
    }
}

/// Whether the live template equals this one, also if an older server wrote it differently.
pub(super) fn is_template(live: &DaemonSet, template: &Value) -> bool {
    matches(live.spec.template.raw(), &data_for(template), Matching::Tolerant)
}
