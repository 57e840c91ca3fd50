//! Sends requests: the times at which they may be sent, and the content of a write.

use std::sync::Arc;

use serde_json::Value;

use super::decision::{Decision, Flow, Halt, is_template};
use super::effect::Effect;
use super::event::Failure;
use super::observed_cluster::{is_older_version, resource_version};
use super::outcome::{Attempt, PauseReason};
use super::progress::Report;
use super::request::RequestState;
use super::request::{Precondition, Purpose, Write};
use super::state::Failing;
use super::task::{Provenance, Target};
use crate::plan::PausedRollout;
use daemonset::model::DaemonSet;

impl Decision<'_, '_> {
    /// Writes `target` with the given template, pause and provenance.
    pub(super) fn write(
        &mut self,
        purpose: Purpose,
        target: &Target,
        live: Option<&DaemonSet>,
        template: Option<Arc<Value>>,
        pause: Option<PausedRollout>,
        provenance: Option<Provenance>,
    ) -> Halt {
        let strategy = match &pause {
            Some(_) => serde_json::json!({"type": "OnDelete"}),
            None => target.declared.value().clone(),
        };
        let is_target = |live| is_template(live, target.template.raw());
        let keeps_template = match purpose {
            Purpose::RestoreStrategy | Purpose::Pause | Purpose::AddFailedGate => true,
            Purpose::Apply => live.is_some_and(is_target),
            Purpose::Wait => template.is_none(),
            Purpose::Abort => false,
        };
        let halt = self.send(Write {
            precondition: live.map_or(Precondition::Absent, unchanged),
            live: live.map(|live| Arc::clone(&live.raw)),
            keeps_template,
            purpose,
            written: Arc::clone(&target.written),
            template,
            strategy,
            pause,
            provenance,
        });
        // A run that ends without the write still creates the pods that it has deleted.
        self.state.writing.replaces_template = !keeps_template && matches!(halt, Halt::Wait);
        halt
    }

    pub(super) fn send(&mut self, write: Write) -> Halt {
        let request = match self.state.writing.request {
            // The conflicting write has been observed, so retry at once.
            RequestState::RetryAt(_) if self.is_overcome(&write.precondition) => {
                RequestState::RetryAt(self.now)
            }
            request => request,
        };
        if let Err(halt) = self.may_go(request, Attempt::Write) {
            return halt;
        }
        self.state.writing.request = RequestState::Out;
        self.state.writing.against = Some(write.precondition.clone());
        self.state.writing.last = Some(write.purpose);
        self.state.writing.sent.insert(write.purpose);
        self.report(Report::Writing(write.purpose));
        self.effects.push(Effect::Write(Box::new(write)));
        Halt::Wait
    }

    /// Whether the last write conflicted with an older version than that of this precondition.
    fn is_overcome(&self, precondition: &Precondition) -> bool {
        let Some(Failing { request: Attempt::Write, failure: Failure::Conflict, .. }) =
            self.state.failing
        else {
            return false;
        };
        let (Some(before), Precondition::Unchanged { resource_version: seen, .. }) =
            (&self.state.writing.against, precondition)
        else {
            return false;
        };
        match before {
            Precondition::Absent => true,
            Precondition::Unchanged { resource_version: before, .. } => {
                is_older_version(before, seen)
            }
        }
    }

    /// Whether a request may be sent now. A request that has failed for longer than the timeout
    /// ends the run.
    pub(super) fn may_go(&mut self, request: RequestState, attempt: Attempt) -> Flow<()> {
        match request {
            RequestState::Idle => Ok(()),
            RequestState::Out => Err(Halt::Wait),
            RequestState::RetryAt(at) if self.now < at => {
                self.wake_at(Some(at));
                Err(Halt::Wait)
            }
            RequestState::RetryAt(_) => match &self.state.failing {
                Some(Failing { since, request, failure, last: _ }) if *request == attempt => {
                    let waited = self.now.duration_since(*since);
                    if waited < self.timeout() {
                        return Ok(());
                    }
                    let (request, failure) = (*request, failure.clone());
                    let seconds = waited.as_secs();
                    Err(Halt::paused(PauseReason::NoAnswer { request, failure, seconds }))
                }
                Some(_) | None => Ok(()),
            },
        }
    }
}

/// The precondition that the live object is unchanged.
pub(super) fn unchanged(live: &DaemonSet) -> Precondition {
    let resource_version = resource_version(live).to_owned();
    Precondition::Unchanged { uid: live.uid.clone(), resource_version }
}
