//! What a rollout under a policy notes on its Lease, before anything is done on the ground of it: that
//! it begins, how far its steps are, that it waits, and its end. Nothing else is remembered between
//! runs. Not here: how far the steps are (`steps`), and when a note is needed.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::decision::{Decision, Flow, Halt};
use super::effect::Effect;
use super::outcome::Attempt;
use super::request::RequestState;
use super::task::Target;
use super::task::with_template;
use super::view::of_template;
use crate::digest::template_digest;
use crate::plan::{PauseState, PausedRollout};
use crate::steps::{WaitsFor, needs_note};
use daemonset::controller::limits::allows_surge;
use daemonset::model::{Approval, DaemonSet, PolicySpec, StepsNote, Time};

impl<'w> Decision<'_, 'w> {
    /// Finds out, before anything is written, whether what was noted about rollouts of this template
    /// is lost: there is no note, but a revision with the template.
    pub(super) fn look_for_note(&mut self, template: &Value, live: &DaemonSet) {
        if self.state.is_note_lost.is_none() {
            let claimed = self.observed.revisions_of(live);
            let was_rolled_out = !of_template(template, &claimed).1.is_empty();
            self.state.is_note_lost = Some(self.state.note.is_none() && was_rolled_out);
        }
    }

    /// Notes what has become of the steps, before anything is done on the ground of it.
    pub(super) fn note_steps(
        &mut self,
        note: &StepsNote,
        policy: &PolicySpec,
        live: &DaemonSet,
    ) -> Flow<()> {
        if !needs_note(policy) {
            return self.note_other_template(live);
        }
        // The end is noted already (`roll`): nothing begins again.
        if self.state.noting.has_ended {
            return Ok(());
        }
        let mut wanted = note.clone();
        wanted.started_at.get_or_insert_with(|| self.first_write(&wanted.template));
        wanted.from = wanted.from.or_else(|| self.state.from.clone());
        wanted.replaces = self.interrupted_surge(&wanted.template);
        let (before, approvals) = (self.state.note.as_ref(), &self.state.approvals);
        wanted.approvals_void_before = if before.is_none() && self.state.is_note_lost == Some(true)
        {
            Some(self.now)
        } else {
            StepsNote::void_before(before, &wanted.template, approvals)
        };
        self.note(wanted)
    }

    /// Notes that a rollout begins, before the write, if this run may be killed after it: of a surge,
    /// because it has no pause that would say what the last good template is; and if a rollout of
    /// another template is noted, which ends with the write.
    pub(super) fn note_beginning(
        &mut self,
        target: &Target,
        live: &'w DaemonSet,
        has_pause: bool,
    ) -> Flow<()> {
        let is_needed = if has_pause {
            self.is_other_noted(target.template.raw())
        } else {
            allows_surge(target.declared.strategy())
        };
        if !is_needed {
            return Ok(());
        }
        let note = self.if_live(target, live, |steps| steps.note.clone());
        self.note_steps(&note, &self.policy(), &with_template(live, target))
    }

    /// Drops the steps of an earlier rollout of the target that has ended, before the target is written
    /// again: once it is live, they would count, also for a run after this one.
    pub(super) fn drop_ended_steps(&mut self, target: &Target, is_live: bool) -> Flow<()> {
        let Some(note) = self.state.note.clone().filter(|note| !note.steps.is_empty()) else {
            return Ok(());
        };
        let template = template_digest(target.template.raw());
        if note.template != template || note.steps_count(&template, is_live) {
            return Ok(());
        }
        self.note(StepsNote { steps: BTreeMap::new(), ..note })
    }

    /// Notes that the rollout waits before its first node.
    pub(super) fn note_waiting(&mut self, target: &Target, waits_for: &[WaitsFor]) -> Flow<()> {
        let note = self.waiting_for(&template_digest(target.template.raw()), waits_for);
        self.note(note)
    }

    /// The note of a rollout that waits for this.
    pub(super) fn waiting_for(&mut self, template: &str, waits_for: &[WaitsFor]) -> StepsNote {
        let (before, approvals) = (self.state.note.as_ref(), &self.state.approvals);
        let live = self.observed.daemon_set;
        let mut note = waiting_note(before, live, template, approvals, self.now);
        // Also of checks that are not asked for now: a window may have closed since.
        self.recall_unknown(&mut note);
        let unknown_since = self.state.checks.unknown_since.clone();
        // Text, times and numbers: it cannot fail.
        let value = |wait| serde_json::to_value(wait).unwrap_or_default();
        // Of a rollout that has begun, the pause says it; a roll has none.
        let is_said = note.waits_since.is_none() && !self.is_roll();
        let held_by = waits_for.iter().filter(|wait| wait.check.is_some() && !is_said);
        let held_by = held_by.map(value).collect();
        StepsNote { unknown_since, held_by, ..note }
    }

    /// Ends what is noted about the wait of an `apply`, which is done now: its pods are replaced by `roll`.
    pub(super) fn note_no_wait(&mut self, live: &DaemonSet) -> Flow<()> {
        let waits = |note: &&StepsNote| note.waits_since.is_some() && note.started_at.is_none();
        let note = self.state.note.as_ref().filter(waits);
        match note.filter(|note| is_of(Some(note), live.spec.template.raw())).cloned() {
            Some(note) => self.note(StepsNote {
                waits_since: None,
                held_by: Vec::new(),
                unknown_since: BTreeMap::new(),
                ..note
            }),
            None => Ok(()),
        }
    }

    /// Whether something is noted about a rollout of another template.
    fn is_other_noted(&self, template: &Value) -> bool {
        let Some(note) = &self.state.note else { return false };
        let is_empty =
            note.started_at.is_none() && note.waits_since.is_none() && note.steps.is_empty();
        !is_empty && !is_of(Some(note), template)
    }

    /// If the policy needs no note, only ends what is noted about another template: if that one comes
    /// back, its rollout begins again.
    fn note_other_template(&mut self, live: &DaemonSet) -> Flow<()> {
        if !self.is_other_noted(live.spec.template.raw()) {
            return Ok(());
        }
        self.note(StepsNote { approvals_void_before: Some(self.now), ..StepsNote::default() })
    }

    /// Notes the end of a rollout: it is done, or it has failed. Its approvals are used up. The
    /// steps that are done stay so, unless it has failed.
    pub(super) fn note_end(&mut self, has_failed: bool) -> Flow<()> {
        let sent = self.state.noting.sent.clone();
        let has_answer = sent.is_none();
        let Some(note) = sent.or_else(|| self.state.note.clone()) else { return Ok(()) };
        if has_answer && note.started_at.is_none() && note.waits_since.is_none() {
            return Ok(());
        }
        self.state.noting.has_ended = true;
        let ended = StepsNote { approvals_void_before: Some(self.now), ..StepsNote::default() };
        let ended = if has_failed {
            ended
        } else {
            StepsNote { template: note.template, steps: note.steps, ..ended }
        };
        self.note(ended)
    }

    /// Sets the note, and waits until that is done.
    pub(super) fn note(&mut self, wanted: StepsNote) -> Flow<()> {
        // A note without an answer may have arrived.
        if self.state.noting.sent.is_none() && self.state.note.as_ref() == Some(&wanted) {
            return Ok(());
        }
        let request = self.state.noting.request;
        self.may_go(request, Attempt::Note)?;
        self.state.noting.request = RequestState::Out;
        self.state.noting.sent = Some(wanted.clone());
        self.push(Effect::Note(Box::new(wanted)));
        Err(Halt::Wait)
    }

    /// Whether a surge of the live template has noted its beginning, and not its end: it has no pause that
    /// would say so. Any other rollout without a pause was complete, also if its run was killed before it
    /// noted that.
    pub(super) fn is_interrupted(&self, live: &DaemonSet) -> bool {
        is_interrupted_surge(self.state.note.as_ref(), live)
    }

    /// The time at which the target was first written, if it is live and paused since; else now. Pods
    /// that were created since then are of this rollout: their creation has whole seconds, too.
    fn first_write(&self, template: &str) -> Timestamp {
        let is_target = |live: &&DaemonSet| template_digest(live.spec.template.raw()) == template;
        let live = self.observed.daemon_set.filter(is_target);
        let pause = live.and_then(PausedRollout::readable);
        let pause = pause.filter(|pause| pause.state == PauseState::Paused);
        let now = Time::from(self.now).into();
        pause.map_or(now, |pause| pause.since.min(now))
    }

    /// Digest of the live template, if it is that of an interrupted surge and not this template.
    fn interrupted_surge(&self, template: &str) -> Option<String> {
        let note = self.state.note.as_ref().filter(|note| note.from.is_some())?;
        let live = template_digest(self.observed.daemon_set?.spec.template.raw());
        (live != template && note.is_unfinished(&live)).then_some(live)
    }
}

fn is_interrupted_surge(note: Option<&StepsNote>, live: &DaemonSet) -> bool {
    let note = note.filter(|note| note.from.is_some() && allows_surge(&live.spec.update_strategy));
    note.is_some_and(|note| note.is_unfinished(&template_digest(live.spec.template.raw())))
}

/// The note of a run that has to wait before the first node of a rollout of this template. What an
/// interrupted surge that is live came from stays known.
pub fn waiting_note(
    before: Option<&StepsNote>,
    live: Option<&DaemonSet>,
    template: &str,
    approvals: &BTreeMap<String, Approval>,
    now: Timestamp,
) -> StepsNote {
    let surge = live.filter(|live| is_interrupted_surge(before, live));
    let surge = surge.map(|live| template_digest(live.spec.template.raw()));
    let surge = surge.filter(|surge| surge != template);
    StepsNote::waiting(before, template, surge, approvals, now)
}

/// Whether this is noted about a rollout of this template, which may have ended.
pub(super) fn is_of(note: Option<&StepsNote>, template: &Value) -> bool {
    note.is_some_and(|note| note.template == template_digest(template))
}

/// The time since which the rollout of a template has been going on, if that is noted.
pub(super) fn started_at(note: Option<&StepsNote>, template: &Value) -> Option<Timestamp> {
    let note = note.filter(|note| note.started_at.is_some())?;
    (note.template == template_digest(template)).then_some(note.started_at?)
}
