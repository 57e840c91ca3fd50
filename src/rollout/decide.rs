//! One decision: what is wanted now, or why nothing is, or how it ends.
//!
//! Here are the reasons to stop whatever the goal, and the end. Each step of a goal either finds
//! what it is about in place and lets the next one go on, or says what is wanted and pauses. Not
//! here: the goals (`forward`, `failure`, `roll`), whom to delete (`waves`), what has failed
//! (`gate`).

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::effect::{Effect, Purpose};
use super::event::Failure;
use super::outcome::{Attempt, ControllerStep, Ending, Held, Outcome};
use super::progress::Report;
use super::sight::{Kubelet, Sight, Spot};
use super::state::{Course, Leave, State, Stop};
use super::task::{Goal, Task};
use super::world::World;
use crate::controller::revision_data::{Matching, data_for, matches};
use crate::model::{DaemonSet, UpdateStrategy};
use crate::planted::planted;

/// How long until the next look, while what is seen may be old.
const BLIND_PAUSE: SignedDuration = SignedDuration::from_secs(1);

/// How long at least what happens may be out of sight before a run gives up. Deadlines of pods do
/// not count meanwhile, so the shortest of them says nothing about it.
const BLIND_PATIENCE: SignedDuration = SignedDuration::from_mins(10);

/// Why a step goes no further.
#[derive(Debug)]
pub(super) enum Pause {
    /// Something is on its way, or a request was made.
    Wait,
    /// It is over.
    End(Outcome),
}

pub(super) type Flow<T> = Result<T, Pause>;

/// One step in the making.
pub(super) struct Step<'s, 'w> {
    pub state: &'s mut State,
    pub world: &'s World<'w>,
    pub task: Arc<Task>,
    pub now: Timestamp,
    pub effects: Vec<Effect>,
    wake: Option<Timestamp>,
    /// Whether something was found that does not move.
    pub stands: bool,
}

/// Decides what is wanted now.
pub(super) fn decide(state: &mut State, world: &World<'_>, now: Timestamp) -> Vec<Effect> {
    let task = Arc::clone(&state.task);
    state.leave = match (state.leave, state.is_interrupted()) {
        (Leave::Nothing, _) => Leave::Nothing,
        (Leave::Fill | Leave::Upkeep | Leave::Surge, true) => Leave::Fill,
        (Leave::Fill | Leave::Upkeep | Leave::Surge, false) => Leave::Upkeep,
    };
    let mut step = Step { state, world, task, now, effects: Vec::new(), wake: None, stands: false };
    let pause = step.go_on().unwrap_or_else(|pause| pause);
    if !step.stands {
        step.state.standstill = None;
    }
    step.finish(pause)
}

impl<'w> Step<'_, 'w> {
    /// The whole of it.
    fn go_on(&mut self) -> Flow<Pause> {
        self.leave_at_once()?;
        self.see()?;
        let task = Arc::clone(&self.task);
        let live = self.find()?;
        self.wind_down(live)?;
        self.state.leave = match task.goal {
            Goal::Apply(_) => self.state.leave,
            // The live template stays.
            Goal::GoBack | Goal::Roll(_) | Goal::Release { .. } => Leave::Upkeep,
        };
        match (&task.goal, self.state.course.clone()) {
            (Goal::Apply(target), Course::Forward) => self.apply(target, live),
            (Goal::Apply(target), Course::Failed(failed)) => self.go_back(target, live, failed),
            (Goal::GoBack, _) => self.go_on_back(live),
            (Goal::Roll(extent), Course::Forward) => self.roll(extent, live),
            (Goal::Roll(_), Course::Failed(failed)) => {
                Ok(Pause::End(Outcome::Held { why: Held::Failed { failed, not_parked: None } }))
            }
            (Goal::Release { written }, _) => self.release(written, live),
        }
    }

    /// Reasons to stop that ask nothing of the world.
    fn leave_at_once(&self) -> Flow<()> {
        let outcome = if let Some((request, failure)) = &self.state.fatal {
            self.refused(*request, failure.clone())
        } else if matches!(self.state.stop, Some(Stop::LockLost { .. })) {
            Outcome::LockLost
        } else if self.state.stop == Some(Stop::InterruptedTwice) {
            Outcome::Interrupted
        } else if self.state.course == Course::Forward && self.is_timed_out() {
            Outcome::Held { why: Held::Timeout }
        } else {
            return Ok(());
        };
        Err(Pause::End(outcome))
    }

    /// The server does not let it go on. Where pods wait for a run to replace them, this is a stop
    /// like any other, and not just an error.
    fn refused(&self, request: Attempt, failure: Failure) -> Outcome {
        let on_delete = |live: &DaemonSet| live.spec.update_strategy == UpdateStrategy::OnDelete;
        // What was written may not be seen yet.
        let is_held = self.state.writing.held && self.is_done(Purpose::Apply);
        let waits = is_held || self.world.daemon_set.is_some_and(on_delete);
        if waits && !self.is_done(Purpose::GiveBack) {
            Outcome::Held { why: Held::Refused { request, failure } }
        } else {
            Outcome::Failed { request, failure }
        }
    }

    /// Nothing is decided on what may be old.
    fn see(&mut self) -> Flow<()> {
        if planted!(self.world.is_current, "decides on what may be old" => true) {
            if let Some(since) = self.state.blind.take() {
                self.state.sees_again(since, self.now);
            }
            return Ok(());
        }
        if self.state.stop == Some(Stop::Interrupted) {
            return Err(Pause::End(Outcome::Interrupted));
        }
        self.wake_at(Some(self.now + BLIND_PAUSE));
        // What stood still before may stand still yet: it is only not seen.
        self.stands = true;
        let since = *self.state.blind.get_or_insert(self.now);
        let waited = self.now.duration_since(since);
        if waited < self.patience().max(BLIND_PATIENCE) {
            return Err(Pause::Wait);
        }
        let why = Held::Blind { seconds: waited.as_secs() };
        Err(Pause::End(Outcome::Held { why }))
    }

    pub(super) fn is_timed_out(&self) -> bool {
        self.task.deadline.is_some_and(|deadline| self.now >= deadline)
    }

    /// The live object, if it is the one that this is about; `None` if it is still to be made.
    fn find(&mut self) -> Flow<Option<&'w DaemonSet>> {
        let Some(live) = self.world.daemon_set else {
            let planned = match &self.task.goal {
                Goal::Apply(target) => target.uid.is_some(),
                Goal::GoBack | Goal::Roll(_) | Goal::Release { .. } => true,
            };
            if self.state.seen || planned {
                return Err(Pause::End(Outcome::Gone { replaced_by: None }));
            }
            if self.is_done(Purpose::Apply) {
                return Err(self.stand_for(ControllerStep::Appear));
            }
            return Ok(None);
        };
        let known = self.state.uid.get_or_insert_with(|| live.uid.clone());
        if *known != live.uid {
            let replaced_by = Some(live.uid.clone());
            return Err(Pause::End(Outcome::Gone { replaced_by }));
        }
        if live.terminating {
            return Err(Pause::End(Outcome::Gone { replaced_by: None }));
        }
        self.state.seen = true;
        Ok(Some(live))
    }

    /// After the first interrupt: nothing is begun; pods that were deleted may come back.
    fn wind_down(&mut self, live: Option<&'w DaemonSet>) -> Flow<()> {
        if self.state.stop != Some(Stop::Interrupted) {
            return Ok(());
        }
        let Some(live) = live else { return Err(Pause::End(Outcome::Interrupted)) };
        let sight = self.look(live);
        let verdict = self.ask_gates(&sight);
        let waits = |spot: &Spot<'_>| {
            let name = &spot.node.name;
            spot.is_desired()
                && spot.kubelet == Kubelet::Ready
                && self.state.pods.replacing.contains_key(name)
                // Where nothing is awaited any more, somebody has another template in place.
                && self.state.pods.waiting.contains_key(name)
                && !verdict.contains_key(name)
        };
        let waits = sight.spots.iter().any(waits);
        Err(if waits { Pause::Wait } else { Pause::End(Outcome::Interrupted) })
    }

    pub(super) fn look(&self, live: &'w DaemonSet) -> Sight<'w> {
        Sight::of(live, self.world, self.state, self.now)
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

    /// An end waits for the answers to all requests, so that nothing happens after it.
    fn finish(mut self, pause: Pause) -> Vec<Effect> {
        let leaves = self.state.stop.is_some_and(Stop::leaves);
        match pause {
            Pause::End(outcome) if leaves || !self.state.awaits_answers() => {
                self.state.finished = true;
                let live =
                    self.world.daemon_set.filter(|live| Some(&live.uid) == self.state.uid.as_ref());
                let left = live.map(|live| self.look(live).left()).unwrap_or_default();
                let replaced = std::mem::take(&mut self.state.pods.replaced);
                let interrupted = self.state.is_interrupted();
                let ending = Ending { outcome, interrupted, replaced, left };
                self.effects.push(Effect::Finish(Box::new(ending)));
            }
            Pause::End(_) | Pause::Wait => {
                self.wake_at(self.task.deadline.filter(|at| *at > self.now));
                self.effects.extend(self.wake.map(Effect::WakeAt));
            }
        }
        self.effects
    }
}

/// Whether the live template is this one, whatever an older server's spelling.
pub(super) fn is_template(live: &DaemonSet, template: &Value) -> bool {
    matches(live.spec.template.raw(), &data_for(template), Matching::Tolerant)
}
