//! A paced rollout of one DaemonSet as a pure state machine: each decision takes the observed
//! cluster and the state of the run, and returns the next effects: requests, reports, and when to decide again.
//!
//! [`decide`] is the only entry point. It is level-triggered: whatever the [`Event`], it
//! evaluates the whole [`ObservedCluster`], so a run that is started again reaches the same end. A [`State`]
//! contains only what cannot be observed: pending requests, pods that were sent a delete, how long
//! a node has waited, which pods have failed, what checks have answered.
//!
//! The order of a run: apply and pause in one write ([`Purpose::Apply`]), wait until the controller
//! has observed it and exactly one ControllerRevision has its template, annotate that with the provenance,
//! replace outdated pods within the budget (`next_deletes`) while the new ones stay available
//! (`new_pods`) and the gates of the policy hold (`checks`), restore the strategy, end. When a new pod or a
//! gate fails, no more pods are deleted, and the policy decides what is written ([`Purpose::Abort`]).
//!
//! Not here: sending requests, the lock, guards and preflight, which come before a run.
//!
//! A run that is killed and started again resumes the rollout; the tests discard the state at
//! random. A pod that was sent a delete counts as deleted from then on, however old the observation
//! is, so a late watch never loosens the budget. The last good template is put back before the
//! failed one is recorded. A run that dies in between and is started again fails again. If the record came
//! first, the next run would be refused because of it, and the bad template would stay live.
//!
//! The preflight sends, as a dry run, the first write that the run would send (`first_write`): one
//! decision on the snapshot. If conflicts are forced, the resulting object is first tried as a
//! patch, so that ownership does not move before all of it is accepted. A refusal for a missing
//! permission, later in the run, is an outcome like any other (`PauseReason::Refused`) while the
//! live strategy is `OnDelete`.

mod answered_checks;
mod checks;
mod decision;
mod effect;
mod event;
mod failing_before;
mod failure;
mod forward;
mod headline;
mod new_pods;
mod next_deletes;
mod notes;
mod notification;
mod observed_checks;
mod observed_cluster;
mod outcome;
mod pace;
mod progress;
mod pulling;
mod pulls;
mod refusal;
mod request;
mod restart;
mod roll;
mod run_event;
mod run_history;
mod send;
mod share;
mod state;
mod steps;
mod task;
#[cfg(test)]
mod tests;
mod timed_out;
mod timeouts;
mod unseen;
mod view;

pub mod write;

pub use crate::extent::Extent;
pub use effect::Effect;
pub use event::{Answer, Event, Failure, Written};
pub use failure::is_rolling_back;
pub use notes::waiting_note;
pub use notification::{Secrets, notification};
pub use observed_cluster::ObservedCluster;
pub use outcome::{
    Attempt, ControllerWork, Ending, FailedGate, FailureCause, Interference, NotAborted, NotPulled,
    Outcome, Overdue, PauseReason, PodFailure, Replaced, RolledBack,
};
pub use progress::{Arrival, Progress, Report};
pub use request::{Cost, Delete, NewPuller, Precondition, Purpose, Write};
pub use run_event::{PodEvidence, ReplacedNode, RunEvent, RunEventData, RunEventKind};
pub use run_history::RunHistory;
pub use share::{counted, observing};
pub use state::{AllowedActions, Creates, State};
pub use task::{ClusterChecks, Declared, Goal, Provenance, Target, Task};

use jiff::Timestamp;

use daemonset::model::PolicySpec;

/// The first write of a run on this cluster, for a dry run before the run begins. `None` when the
/// DaemonSet needs no write.
///
/// The deadline and the checks of the task are ignored, and the images that come before; the run
/// itself looks at them. A note that comes before the write is taken as made.
pub fn first_write(task: &Task, observed: &ObservedCluster<'_>, now: Timestamp) -> Option<Write> {
    let policy = PolicySpec { pre_pull: None, ..task.policy.without_checks() };
    let task = Task { deadline: None, policy, ..task.clone() };
    let (state, effects) = decide(State::new(task), Event::Observed, observed, now);
    let is_note = |effect: &Effect| matches!(effect, Effect::Note(_));
    let effects = if effects.iter().any(is_note) {
        decide(state, Event::Answer(Answer::Noted(Ok(()))), observed, now).1
    } else {
        effects
    };
    effects.into_iter().find_map(|effect| match effect {
        Effect::Write(write) => Some(*write),
        Effect::Delete(_)
        | Effect::Annotate { .. }
        | Effect::Remember { .. }
        | Effect::Forget { .. }
        | Effect::Note(_)
        | Effect::ReadApprovals
        | Effect::Ask(_)
        | Effect::CreatePuller(_)
        | Effect::RemovePuller { .. }
        | Effect::Report(_)
        | Effect::WakeAt(_)
        | Effect::Finish(_) => None,
    })
}

/// One decision: takes the event, evaluates the cluster and returns the effects to perform now.
///
/// The caller passes every event, and [`Event::Observed`] whenever the cluster has changed (one
/// decision may cover many changes). Effects are performed in order; each request is answered once,
/// by an event of a further decision. After [`Effect::Finish`], decisions have no effects.
pub fn decide(
    mut state: State,
    event: Event,
    observed: &ObservedCluster<'_>,
    now: Timestamp,
) -> (State, Vec<Effect>) {
    if state.finished {
        return (state, Vec::new());
    }
    state.receive(event, now);
    let effects = decision::effects(&mut state, observed, now);
    (state, effects)
}
