//! A paced rollout of one DaemonSet, one step at a time: from what is seen and what is remembered
//! to what is wanted next.
//!
//! [`step`] is the only door. It is level-triggered: whatever the [`Event`], the step looks at the
//! whole [`World`] and decides afresh, so a run that is thrown away and begun anew ends where it
//! would have ended. A [`State`] remembers only what cannot be seen: requests without an answer,
//! pods that were sent a delete, how long a node has waited, which gate has failed.
//!
//! The order of a run: apply and hold in one write ([`Purpose::Apply`]), wait until the controller
//! has seen it and made its one revision, record the provenance there, replace outdated pods within
//! the budget (`waves`), each through the gates (`gate`), give the strategy back, end. When a gate
//! fails: nothing more is deleted, and the policy decides what is written ([`Purpose::Park`]).
//!
//! Not here: sending requests, the lock, guards and preflight, which come before a run.

mod decide;
mod effect;
mod event;
mod failure;
mod forward;
mod gate;
mod outcome;
mod pace;
mod patience;
mod progress;
mod record;
mod refusal;
mod request;
mod roll;
mod sight;
mod state;
mod task;
#[cfg(test)]
mod tests;
mod unseen;
mod waves;
mod world;
pub mod write;

pub use effect::{Cost, Delete, Effect, Precondition, Purpose, Write};
pub use event::{Answer, Event, Failure, Written};
pub use failure::is_on_the_way_back;
pub use outcome::{
    Attempt, ControllerStep, Ending, Held, Interference, NotParked, Outcome, Replaced, RolledBack,
    Trouble,
};
pub use progress::{Progress, Report};
pub use record::Record;
pub use state::{Creates, Leave, State};
pub use task::{Declared, Extent, Goal, Provenance, Target, Task};
pub use world::World;
pub use write::PLAN_DIGEST_ANNOTATION;

use jiff::Timestamp;

/// What a run on this world would write first, if it wants to write the DaemonSet at once: what can
/// be tried out before the run begins. `None` when everything is in place.
///
/// The time that it may take does not count: the run itself sees to that.
pub fn first_write(task: &Task, world: &World<'_>, now: Timestamp) -> Option<Write> {
    let task = Task { deadline: None, ..task.clone() };
    let (_, effects) = step(State::new(task), Event::Look, world, now);
    effects.into_iter().find_map(|effect| match effect {
        Effect::Write(write) => Some(*write),
        Effect::Delete(_)
        | Effect::Record { .. }
        | Effect::Remember { .. }
        | Effect::Forget { .. }
        | Effect::Report(_)
        | Effect::WakeAt(_)
        | Effect::Finish(_) => None,
    })
}

/// One step: takes in what happened, looks at the world, and says what is wanted now.
///
/// The shell feeds every event, and [`Event::Look`] whenever the world has changed (many changes
/// may make one step). Effects are performed in their order; each request is answered once, by a
/// further step. Once [`Effect::Finish`] was given, steps do nothing.
pub fn step(
    mut state: State,
    event: Event,
    world: &World<'_>,
    now: Timestamp,
) -> (State, Vec<Effect>) {
    if state.finished {
        return (state, Vec::new());
    }
    state.note(event, now);
    let effects = decide::decide(&mut state, world, now);
    (state, effects)
}
