//! Requests: when one may be made, and what a write carries.

use std::sync::Arc;

use serde_json::Value;

use super::decide::{Flow, Pause, Step, is_template};
use super::effect::{Effect, Precondition, Purpose, Write};
use super::event::Failure;
use super::outcome::{Attempt, Held, Outcome};
use super::progress::Report;
use super::state::{Failing, Request};
use super::task::{Provenance, Target};
use super::world::{is_older, resource_version};
use crate::model::DaemonSet;
use crate::plan::Hold;
use crate::planted::planted;

impl Step<'_, '_> {
    /// Writes the DaemonSet as `target` has it, but for what is given.
    pub(super) fn write(
        &mut self,
        purpose: Purpose,
        target: &Target,
        live: Option<&DaemonSet>,
        template: Option<Arc<Value>>,
        hold: Option<Hold>,
        provenance: Option<Provenance>,
    ) -> Pause {
        let strategy = match &hold {
            Some(_) => serde_json::json!({"type": "OnDelete"}),
            None => planted!(
                target.declared.value().clone(),
                "another strategy is given back" => serde_json::json!({"type": "RollingUpdate"})
            ),
        };
        let is_target = |live| is_template(live, target.template.raw());
        self.send(Write {
            precondition: live.map_or(Precondition::Absent, unchanged),
            live: live.map(|live| Arc::clone(&live.raw)),
            keeps_template: match purpose {
                Purpose::GiveBack | Purpose::Hold => true,
                Purpose::Apply => live.is_some_and(is_target),
                Purpose::Park => false,
            },
            purpose,
            written: Arc::clone(&target.written),
            template,
            strategy,
            hold,
            provenance,
        })
    }

    pub(super) fn send(&mut self, write: Write) -> Pause {
        let request = match self.state.writing.request {
            // There is nothing to wait for: what stood in the way is seen.
            Request::RetryAt(_) if self.is_overcome(&write.precondition) => {
                Request::RetryAt(self.now)
            }
            request => request,
        };
        if let Err(pause) = self.may_go(request, Attempt::Write) {
            return pause;
        }
        self.state.writing.request = Request::Out;
        self.state.writing.against = Some(write.precondition.clone());
        self.state.writing.last = Some(write.purpose);
        self.state.writing.sent.insert(write.purpose);
        self.report(Report::Writing(write.purpose));
        self.effects.push(Effect::Write(Box::new(write)));
        Pause::Wait
    }

    /// Whether the last write was refused for a version that this one leaves behind.
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
            Precondition::Unchanged { resource_version: before, .. } => is_older(before, seen),
        }
    }

    /// Whether a request may be made now. One that has come to nothing for too long ends the run.
    pub(super) fn may_go(&mut self, request: Request, attempt: Attempt) -> Flow<()> {
        match request {
            Request::Idle => Ok(()),
            Request::Out => Err(Pause::Wait),
            Request::RetryAt(at) if self.now < at => {
                self.wake_at(Some(at));
                Err(Pause::Wait)
            }
            Request::RetryAt(_) => match &self.state.failing {
                Some(Failing { since, request, failure, last: _ }) if *request == attempt => {
                    let waited = self.now.duration_since(*since);
                    if waited < self.patience() {
                        return Ok(());
                    }
                    let (request, failure) = (*request, failure.clone());
                    let why = Held::NoAnswer { request, failure, seconds: waited.as_secs() };
                    Err(Pause::End(Outcome::Held { why }))
                }
                Some(_) | None => Ok(()),
            },
        }
    }
}

/// The live object as it was just looked at.
pub(super) fn unchanged(live: &DaemonSet) -> Precondition {
    let resource_version = resource_version(live).to_owned();
    Precondition::Unchanged { uid: live.uid.clone(), resource_version }
}
