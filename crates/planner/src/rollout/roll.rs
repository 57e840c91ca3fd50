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
use super::task::Goal;
use super::view::RolloutView;
use crate::digest::template_digest;
use crate::extent::Extent;
use crate::plan::PausedRollout;
use crate::steps::{Evaluation, WaitsFor, needs_note};
use daemonset::model::{DaemonSet, NodeName, PolicySpec, StepsNote, UpdateStrategy};

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
            // No end either: `roll` waits for the last soak, and asks the gates.
            Paced::PartDone => Halt::End(Outcome::Done),
            Paced::Stalled(why) => Halt::paused(why),
            Paced::MayNotBegin(waits_for) => {
                let waits_itself = self.waits_itself(&waits_for);
                // Approvals count from the first note.
                if !waits_itself || !is_of(self.state.note.as_ref(), template) {
                    self.note_roll_waits(template, &waits_for)?;
                }
                if waits_itself { Halt::Wait } else { Halt::End(self.waiting(waits_for)) }
            }
            Paced::Failed(failed) => {
                self.state.course = Course::Failed(failed.clone());
                return self.after_failed_roll(failed, Some(live));
            }
        })
    }

    pub(super) fn is_roll(&self) -> bool {
        matches!(self.task.goal, Goal::Roll(_))
    }

    /// What is to be noted about the steps. What a roll waits for stays noted as long as it waits.
    pub(super) fn progress_to_note(&self, evaluation: &Evaluation<'_>) -> StepsNote {
        let Evaluation { note, waits_for, .. } = evaluation;
        let before = self.state.note.as_ref().filter(|before| before.template == note.template);
        let before = before.filter(|_| self.is_roll() && !waits_for.is_empty());
        let held_by = before.map(|before| before.held_by.clone()).unwrap_or_default();
        StepsNote { held_by, ..note.clone() }
    }

    /// Whether `roll` or `step` has not replaced a pod yet, and no step is complete without.
    pub(super) fn is_before_first_delete(
        &self,
        view: &RolloutView<'_>,
        note: &StepsNote,
        policy: &PolicySpec,
    ) -> bool {
        self.is_roll()
            && needs_note(policy)
            && view.outdated() > 0
            && note.started_at.is_none()
            && note.steps.is_empty()
    }

    /// Notes what `roll` waits for: there is no pause that would say it.
    fn note_roll_waits(&mut self, template: &Value, waits_for: &[WaitsFor]) -> Flow<()> {
        if !needs_note(&self.task.policy) {
            return Ok(());
        }
        let is_note_lost = self.state.note.is_none() && self.state.is_note_lost == Some(true);
        let mut note = self.waiting_for(&template_digest(template), waits_for);
        if is_note_lost {
            // From now on, the next approval counts.
            note.approvals_void_before = Some(self.now);
        }
        self.note(note)
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
