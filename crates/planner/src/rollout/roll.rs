//! Goals that apply no target: replace pods by pods of the live template, or restore the declared
//! strategy.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::decision::{Decision, Flow, Halt};
use super::next_deletes::Replacer;
use super::notes::is_of;
use super::outcome::{Interference, Outcome, PodFailure};
use super::pace::Paced;
use super::request::{Purpose, Write};
use super::send::unchanged;
use super::state::Course;
use crate::extent::Extent;
use crate::plan::PausedRollout;
use daemonset::model::{DaemonSet, NodeName, UpdateStrategy};

impl<'w> Decision<'_, 'w> {
    /// Replaces pods by pods of the live template, without writing the DaemonSet.
    pub(super) fn roll(&mut self, extent: &Extent, live: Option<&'w DaemonSet>) -> Flow<Halt> {
        let live = live.ok_or_else(Halt::gone)?;
        let paused = PausedRollout::of(live).is_ok_and(|pause| pause.is_some());
        let stale = |change| Ok(Halt::End(Outcome::Stale { change, paused }));
        if live.spec.update_strategy != UpdateStrategy::OnDelete {
            return stale(Interference::Strategy);
        }
        let template = live.spec.template.raw();
        let began = self.state.template.get_or_insert_with(|| Arc::new(template.clone()));
        if **began != *template {
            let began = Arc::clone(began);
            return stale(self.another_template(live, &began));
        }
        self.look_for_note(template, live);
        let view = self.look(live);
        self.controller_has_observed(&view)?;
        Ok(match self.pace(&view, Replacer::Run(extent)) {
            Paced::Wait => Halt::Wait,
            Paced::Clean => {
                // A part of the nodes is no end: its approvals still count.
                if view.outdated() == 0 {
                    self.forget(template)?;
                    self.note_end(false)?;
                }
                Halt::End(Outcome::Done)
            }
            Paced::Stalled(why) => Halt::paused(why),
            Paced::MayNotBegin(waits_for) if self.waits_itself(&waits_for) => Halt::Wait,
            Paced::MayNotBegin(waits_for) => Halt::End(self.waiting(waits_for)),
            Paced::Failed(failed) => {
                self.state.course = Course::Failed(failed.clone());
                return self.after_failed_roll(failed, Some(live));
            }
        })
    }

    /// The rollout of the live template has failed, and that is its end: the template is recorded on the
    /// lock, and the next run, which needs `--retry`, begins another rollout. That one needs its own
    /// approvals, and its gates and time count from its own begin.
    pub(super) fn after_failed_roll(
        &mut self,
        failed: BTreeMap<NodeName, PodFailure>,
        live: Option<&DaemonSet>,
    ) -> Flow<Halt> {
        let live = live.ok_or_else(Halt::gone)?;
        // Another client may have applied another one since.
        let rolled = self.state.template.clone();
        self.remember(rolled.as_deref().unwrap_or_else(|| live.spec.template.raw()))?;
        let is_noted = is_of(self.state.note.as_ref(), live.spec.template.raw());
        if is_noted || self.state.noting.sent.is_some() {
            self.note_end(true)?;
        }
        Ok(self.paused_by_failure(failed, None))
    }

    /// Restores the declared strategy, whatever the controller then does.
    pub(super) fn release(
        &mut self,
        written: &Arc<Value>,
        live: Option<&'w DaemonSet>,
    ) -> Flow<Halt> {
        let live = live.ok_or_else(Halt::gone)?;
        self.appeared(live)?;
        match PausedRollout::of(live) {
            Ok(None) => Ok(Halt::End(Outcome::Done)),
            Err(_) => {
                let change = Interference::Pause;
                Ok(Halt::End(Outcome::Stale { change, paused: true }))
            }
            Ok(Some(pause)) => Ok(self.send(Write {
                precondition: unchanged(live),
                live: Some(Arc::clone(&live.raw)),
                keeps_template: true,
                purpose: Purpose::RestoreStrategy,
                written: Arc::clone(written),
                template: None,
                strategy: pause.declared,
                pause: None,
                provenance: None,
            })),
        }
    }
}
