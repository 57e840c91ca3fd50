//! What an event or an answer changes in the state of a run, and when a request that came to nothing
//! is sent again.

use jiff::{SignedDuration, Timestamp};

use super::{CreateFailure, Failing, GRACE, Pods, RequestState, State, Stop};
use crate::rollout::event::{Answer, Event, Failure, Written};
use crate::rollout::outcome::Attempt;
use crate::rollout::refusal::is_refusal;
use crate::rollout::request::Purpose;
use daemonset::model::Uid;

/// Delay before a failed request is retried.
const RETRY: SignedDuration = SignedDuration::from_secs(2);

/// Delay before a write is retried after a conflict: until the other client's write is observed.
/// The DaemonSet controller, which writes the status after each pod, is such a client.
const OVERTAKEN: SignedDuration = SignedDuration::from_millis(200);

/// Time after a failed request after which another failure starts a new series.
const FORGOTTEN: SignedDuration = SignedDuration::from_secs(120);

/// Interval at which approvals are read while the run waits for one.
const READ_AGAIN: SignedDuration = SignedDuration::from_secs(10);

/// Attempts to remember a failed template, or to forget it.
const REMEMBER_ATTEMPTS: u32 = 3;

impl Pods {
    /// Takes a `FailedCreate` event. A transient failure does not hide a recent rejection.
    fn receive_create_failed(&mut self, message: String, now: Timestamp) {
        let refused = is_refusal(&message);
        let stands =
            |failure: &CreateFailure| failure.refused && now.duration_since(failure.at) < GRACE;
        if refused || !self.create_failed.as_ref().is_some_and(stands) {
            self.create_failed = Some(CreateFailure { at: now, message, refused });
        }
    }
}

impl State {
    /// Takes an event without a decision, for events that arrive faster than the cluster can be
    /// evaluated: the next [`step`](super::step) decides on all of them.
    pub fn receive(&mut self, event: Event, now: Timestamp) {
        match event {
            Event::Observed => {}
            Event::Answer(answer) => self.receive_answer(answer, now),
            Event::CreateFailed { message } => self.pods.receive_create_failed(message, now),
            Event::Interrupt => {
                let stop = match self.stop {
                    None => Stop::Interrupted,
                    Some(Stop::Interrupted | Stop::InterruptedTwice) => Stop::InterruptedTwice,
                    Some(Stop::LockLost { .. }) => Stop::LockLost { interrupted: true },
                };
                self.stop = Some(stop);
            }
            Event::LockLost => {
                self.stop = Some(Stop::LockLost { interrupted: self.is_interrupted() });
            }
        }
    }

    fn receive_answer(&mut self, answer: Answer, now: Timestamp) {
        match answer {
            Answer::Written(result) => self.receive_written(result, now),
            Answer::Deleted { uid, result } => self.receive_deleted(uid, result, now),
            Answer::Annotated { revision: _, result } => {
                self.annotating = match result {
                    Ok(()) => {
                        self.failing = None;
                        self.annotated = true;
                        RequestState::Idle
                    }
                    Err(failure) => self.came_to_nothing(Attempt::Annotate, failure, now),
                };
            }
            Answer::Remembered(result) => {
                self.remembering.attempts += 1;
                self.remembering.done =
                    result.is_ok() || self.remembering.attempts >= REMEMBER_ATTEMPTS;
                self.remembering.request = RequestState::RetryAt(now + RETRY);
            }
            Answer::Approvals(read) => {
                self.approvals = read.unwrap_or_else(|| std::mem::take(&mut self.approvals));
                self.reading_approvals = RequestState::RetryAt(now + READ_AGAIN);
            }
            Answer::Checked { question, response } => {
                self.checks.receive(&self.task.policy, &question, &response, now);
            }
            Answer::PullerCreated { node, result } => {
                if let Err(failure) = result.as_ref()
                    && failure.is_permanent()
                {
                    self.fatal = Some((Attempt::Pull, failure.clone()));
                }
                self.pulls.receive_created(node, result, now);
            }
            Answer::PullerRemoved { uid, result } => self.pulls.receive_removed(&uid, &result, now),
            Answer::Noted(Ok(())) => {
                self.failing = None;
                self.note = self.noting.sent.take();
                self.noting.request = RequestState::Idle;
            }
            Answer::Noted(Err(failure)) => {
                self.noting.request = self.came_to_nothing(Attempt::Note, failure, now);
            }
        }
    }

    fn receive_written(&mut self, result: Result<Written, Failure>, now: Timestamp) {
        match result {
            Ok(written) => {
                self.writing.request = RequestState::Idle;
                self.writing.done.extend(self.writing.last);
                self.uid.get_or_insert_with(|| written.uid.clone());
                self.writing.version = Some(written);
                self.failing = None;
            }
            Err(failure)
                if self.writing.last == Some(Purpose::AddFailedGate)
                    && (failure.is_permanent() || matches!(failure, Failure::Unknown { .. })) =>
            {
                // The gate is named by the outcome, too, which must not become another one.
                self.writing.request = RequestState::Idle;
                self.writing.done.insert(Purpose::AddFailedGate);
            }
            Err(failure) => {
                self.writing.request = self.came_to_nothing(Attempt::Write, failure, now);
            }
        }
    }

    fn receive_deleted(&mut self, uid: Uid, result: Result<(), Failure>, now: Timestamp) {
        match result {
            // Deleted by this run or by another client: the pod is gone or terminating.
            Ok(()) | Err(Failure::Gone) => {
                self.failing = None;
                self.pods.deleted.insert(uid, RequestState::Idle);
            }
            // Usually another pod has its name now, and nothing is repeated. While it is there, it is.
            Err(failure @ (Failure::Conflict | Failure::Unknown { .. })) => {
                let retry = self.came_to_nothing(Attempt::Delete, failure, now);
                self.pods.deleted.insert(uid, retry);
            }
            Err(
                failure @ (Failure::Forbidden { .. }
                | Failure::Refused { .. }
                | Failure::ChangesTemplate),
            ) => {
                // The node keeps its entry in `replacing` until an available pod is observed on it.
                self.pods.deleted.remove(&uid);
                self.fatal = Some((Attempt::Delete, failure));
            }
        }
    }

    /// The next state of a failed request: retried later, or never.
    fn came_to_nothing(
        &mut self,
        request: Attempt,
        failure: Failure,
        now: Timestamp,
    ) -> RequestState {
        let delay = if failure == Failure::Conflict { OVERTAKEN } else { RETRY };
        if failure.is_permanent() {
            self.fatal = Some((request, failure));
        } else {
            let before = self.failing.as_ref().filter(|failing| {
                failing.request == request && now.duration_since(failing.last) < FORGOTTEN
            });
            let since = before.map_or(now, |failing| failing.since);
            self.failing = Some(Failing { since, last: now, request, failure });
        }
        RequestState::RetryAt(now + delay)
    }
}
