//! The end of a run whose time is over (`--timeout`). What the run itself replaces is paused
//! already. A surge is not: it is paused first, because the controller would continue it, and nobody
//! would watch the new pods.

use jiff::SignedDuration;

use super::decision::{Decision, Flow, Halt, is_template};
use super::event::Failure;
use super::forward::is_outdated_for;
use super::observed_cluster::{is_older_version, resource_version};
use super::outcome::{Attempt, Outcome, PauseReason};
use super::request::{Purpose, RequestState};
use super::state::Course;
use super::task::{Goal, Target};
use crate::plan::PauseState;
use daemonset::controller::limits::allows_surge;
use daemonset::model::{DaemonSet, ManagedBy};

/// Time for pausing a surge, after the timeout is noticed.
const PAUSE_TIMEOUT: SignedDuration = SignedDuration::from_secs(30);

impl<'w> Decision<'_, 'w> {
    pub(super) fn is_timed_out(&self) -> bool {
        self.task.deadline.is_some_and(|deadline| self.now >= deadline)
    }

    /// Ends a rollout whose time is over, unless a surge can still be paused. An abort, a wait and a
    /// rollback come to their own end.
    pub(super) fn leave_in_time(&mut self) -> Flow<()> {
        if !self.is_timed_out() {
            return Ok(());
        }
        if self.state.course != Course::Forward {
            return Ok(());
        }
        if !self.would_surge_on() {
            return Err(Halt::paused(PauseReason::Timeout));
        }
        if self.state.is_interrupted() {
            return Err(Halt::End(self.interrupted()));
        }
        let limit = *self.state.timed_out.get_or_insert(self.now) + PAUSE_TIMEOUT;
        if self.now < limit {
            self.wake_at(Some(limit));
            return Ok(());
        }
        let message = "the run timed out, and could not pause the DaemonSet: the controller may \
                       continue its surge";
        let failure = Failure::Unknown { message: message.to_owned() };
        Err(Halt::End(Outcome::Failed { request: Attempt::Write, failure }))
    }

    /// Pauses the surge, as soon as the last write of the target is answered and observed.
    pub(super) fn pause_surge(&mut self, target: &Target, live: &'w DaemonSet) -> Flow<Halt> {
        self.appeared(live)?;
        if !self.is_surging(target, live) {
            return Ok(Halt::Wait);
        }
        if self.state.from.is_none() {
            self.state.from = self.came_from(target, live, None);
        }
        let pause = self.new_pause(target, PauseState::Paused, self.state.from.clone());
        Ok(self.write_pause(Purpose::Pause, target, live, pause))
    }

    /// Whether the DaemonSet controller may continue a surge of the target after this run: by what is
    /// observed, or by the last write, as long as that is not.
    fn would_surge_on(&self) -> bool {
        let (Goal::Apply(target), Some(live)) = (&self.task.goal, self.observed.daemon_set) else {
            return false;
        };
        // The in-process controller ends with the run.
        if live.managed_by == ManagedBy::DsApply || !allows_surge(target.declared.strategy()) {
            return false;
        }
        let writing = &self.state.writing;
        let last_lets_surge = match writing.last {
            Some(Purpose::Apply) => !writing.paused,
            Some(Purpose::RestoreStrategy) => true,
            Some(Purpose::Pause | Purpose::AddFailedGate | Purpose::Abort | Purpose::Wait)
            | None => false,
        };
        let is_newer = |version: &str| is_older_version(resource_version(live), version);
        let is_answered = writing.request == RequestState::Idle;
        if is_answered && writing.version.as_ref().is_some_and(|it| is_newer(&it.resource_version))
        {
            return last_lets_surge;
        }
        (!is_answered && last_lets_surge) || self.is_surging(target, live)
    }

    /// Whether the controller surges by the live object, and has pods left to replace.
    fn is_surging(&self, target: &Target, live: &DaemonSet) -> bool {
        let template = target.template.raw();
        is_template(live, template)
            && allows_surge(&live.spec.update_strategy)
            && is_outdated_for(template, live, self.observed)
    }
}
