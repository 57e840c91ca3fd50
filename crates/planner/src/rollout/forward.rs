//! The rollout of the target: write it, paused if pods must be replaced; record the provenance;
//! replace pods in waves; restore the strategy.
//!
//! The live object shows which of these are done: what is in place is not written again. A
//! change by another client ends the run. Not here: the actions after a failure (`failure`).

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::decision::{Decision, Flow, Halt, is_template};
use super::effect::Effect;
use super::next_deletes::{self, Replacer};
use super::notes::{is_of, started_at};
use super::observed_cluster::ObservedCluster;
use super::outcome::{Attempt, Interference, Outcome};
use super::pace::Paced;
use super::request::Purpose;
use super::request::RequestState;
use super::restart::is_restarted;
use super::state::{AllowedActions, Stall};
use super::task::{Provenance, Target};
use super::view::{NodeView, PodState, RolloutView, count, of_template};
use crate::annotations::{PLAN_DIGEST_ANNOTATION, ROLLOUT_ANNOTATION};
use crate::extent::Extent;
use crate::plan::{PauseState, PausedRollout, Wave, goes_back_from, restored_at};
use daemonset::controller::history::hash_of;
use daemonset::controller::limits::allows_surge;
use daemonset::controller::revision_data::{Matching, matches};
use daemonset::model::{DaemonSet, ManagedBy, Pod, Revision, RevisionRef, Time, UpdateStrategy};

impl<'w> Decision<'_, 'w> {
    /// Rolls out the target.
    pub(super) fn apply(&mut self, target: &Target, live: Option<&'w DaemonSet>) -> Flow<Halt> {
        let Some(live) = live else { return Ok(self.create(target)) };
        if self.is_timed_out() {
            return self.pause_surge(target, live);
        }
        self.find_failing_before(target, live);
        self.look_for_note(target.template.raw(), live);
        if !self.is_done(Purpose::Apply) {
            self.state.allowed_actions = AllowedActions::None;
            if let Some(failed) = self.failed_while_waiting(target, live) {
                return self.after_failure(target, Some(live), failed);
            }
            // After a write whose answer is lost, the target may be live, though it is not observed.
            let may_be_live = self.state.writing.sent.contains(&Purpose::Apply);
            if !may_be_live && let Some(waits_for) = self.not_yet(target, live)? {
                if self.lacks_images_for(&waits_for) {
                    return Ok(Halt::paused(self.not_pulled()));
                }
                return self.wait_to_begin(target, live, waits_for);
            }
            if self.state.cause.is_some() && self.fails_while_waiting(target, live).is_some() {
                return self.after_failure(target, Some(live), BTreeMap::new());
            }
            self.pull_first(target, live)?;
            self.put_in_place(target, live)?;
        }
        self.appeared(live)?;
        self.reconcile();
        let replacer = self.as_written(target, live)?;
        let view = self.look(live);
        self.state.creates = self.may_create(target, &view);
        self.controller_has_observed(&view)?;
        self.revision_is_annotated(&view)?;
        if *target.declared.strategy() == UpdateStrategy::OnDelete {
            self.filled(&view)?;
            self.note_no_wait(live)?;
            return Ok(Halt::End(Outcome::Done));
        }
        self.take_up(target, &view, replacer)?;
        match self.pace(&view, replacer) {
            Paced::Wait => {
                let surges = allows_surge(target.declared.strategy());
                if surges && matches!(replacer, Replacer::Controller) {
                    self.state.allowed_actions = AllowedActions::ReconcileAndSurge;
                }
                Ok(Halt::Wait)
            }
            Paced::Failed(failed) if rolls_nothing(target, &view, replacer) => {
                Ok(self.paused_by_failure(failed, None))
            }
            Paced::Failed(failed) => self.after_failure(target, Some(live), failed),
            Paced::Stalled(why) => Ok(Halt::paused(why)),
            Paced::MayNotBegin(waits_for) => self.wait_to_continue(target, live, waits_for),
            // Only `step` is for a part.
            Paced::Clean | Paced::PartDone => match replacer {
                Replacer::Run(_) | Replacer::RunBeforeSurge => {
                    Ok(self.restore_strategy(target, &view))
                }
                Replacer::Controller => {
                    self.forget(target.template.raw())?;
                    self.note_end(false)?;
                    Ok(Halt::End(Outcome::Done))
                }
            },
        }
    }

    /// Sends the first write, unless the live object is already as it would be after it.
    pub(super) fn put_in_place(&mut self, target: &Target, live: &'w DaemonSet) -> Flow<()> {
        let outdated = is_outdated_for(target.template.raw(), live, self.observed);
        let declared = target.declared.strategy();
        let pause = PausedRollout::readable(live);
        if self.state.from.is_none() {
            self.state.from = self.came_from(target, live, pause.as_ref());
        }
        let paced = is_paced(target) || (outdated && self.deletes_before_surge(target, live));
        let same_template = is_template(live, target.template.raw());
        if target.uid.is_none() && !same_template {
            let change = self.another_template(live, target.template.raw());
            return Err(Halt::End(Outcome::Stale { change, paused: pause.is_some() }));
        }
        let standing = match &pause {
            Some(pause) => {
                paced
                    && pause.state == PauseState::Paused
                    && pause.failed_gate.is_none()
                    && pause.declared == *target.declared.value()
            }
            None => {
                live.spec.update_strategy == *declared
                    && live.annotations.get(ROLLOUT_ANNOTATION).is_none()
                    && !(paced && outdated)
            }
        };
        if same_template && standing && !target.changes {
            self.state.writing.done.insert(Purpose::Apply);
            self.state.writing.paused |= pause.is_some();
            return Ok(());
        }
        let from = self.state.from.clone();
        // Its last gates may not have passed yet.
        let has_waited = pause.as_ref().is_some_and(|it| it.state == PauseState::Waiting);
        let resumed = pause.filter(|it| same_template && it.state == PauseState::Paused);
        // What has failed already (a gate, the time) is judged under the pause, too.
        let is_paused = paced && (outdated || has_waited || self.state.cause.is_some());
        let pause = is_paused.then(|| self.new_pause(target, PauseState::Paused, from));
        // A rollout that is resumed began when it was paused first.
        let since = resumed.map(|it| it.since);
        let pause = pause.map(|it| PausedRollout { since: since.unwrap_or(it.since), ..it });
        if outdated {
            self.note_beginning(target, live, pause.is_some())?;
        }
        self.drop_ended_steps(target, same_template)?;
        Err(self.write_target(target, Some(live), pause))
    }

    /// Outdated pods that appear next to a target without a pause are replaced by the DaemonSet
    /// controller. With the in-process controller nothing would replace them: the run pauses the
    /// DaemonSet and replaces them itself.
    fn take_up(
        &mut self,
        target: &Target,
        view: &RolloutView<'w>,
        replacer: Replacer<'_>,
    ) -> Flow<()> {
        let is_old = |node_view: &NodeView<'_>| {
            node_view.is_ready() && matches!(node_view.pod_state, PodState::Outdated(_))
        };
        let unpaced = match (replacer, view.live.managed_by) {
            (Replacer::Controller, ManagedBy::DsApply) => is_paced(target),
            (Replacer::Controller, ManagedBy::DaemonSetController)
            | (Replacer::Run(_) | Replacer::RunBeforeSurge, _) => false,
        };
        if unpaced && view.node_views.iter().any(is_old) {
            return self.put_in_place(target, view.live);
        }
        Ok(())
    }

    /// Creates the DaemonSet. It adopts orphaned pods; where the plan replaces some of them, it is
    /// created paused: the controller would consider them updated by their generation, or replace
    /// them by its own rules.
    fn create(&mut self, target: &Target) -> Halt {
        // With a surge, the waves of steps before the last have no surge.
        let deletes = |wave: &Wave| is_paced(target) || wave.max_surge == 0;
        let replaces = *target.declared.strategy() != UpdateStrategy::OnDelete
            && self.task.waves.iter().any(deletes);
        let pause = replaces.then(|| self.new_pause(target, PauseState::Paused, None));
        self.write_target(target, None, pause)
    }

    pub(super) fn write_target(
        &mut self,
        target: &Target,
        live: Option<&DaemonSet>,
        pause: Option<PausedRollout>,
    ) -> Halt {
        let provenance = Some(self.task.provenance.clone());
        // An attempt before this one, that came to nothing, may have had a pause.
        self.state.writing.paused = pause.is_some();
        self.write(Purpose::Apply, target, live, None, pause, provenance)
    }

    /// The revision to roll back to: that of the pause, else that of the live template; if that is the
    /// target and not complete, the newest one of outdated pods, of those that have not failed if there
    /// are any.
    pub(super) fn came_from(
        &self,
        target: &Target,
        live: &'w DaemonSet,
        pause: Option<&PausedRollout>,
    ) -> Option<RevisionRef> {
        if let Some(from) = pause.and_then(|pause| pause.from.clone()) {
            return Some(from);
        }
        // A surge that was interrupted has no pause.
        if self.is_interrupted(live) {
            return self.state.note.as_ref()?.from.clone();
        }
        let claimed = self.observed.revisions_of(live);
        let is_in_progress = is_template(live, target.template.raw())
            && (pause.is_some() || !self.was_complete(live, &claimed));
        let from = if is_in_progress {
            let pods = self.observed.pods_of(live);
            let is_other = |revision: &&&Revision| {
                !matches(target.template.raw(), &revision.data, Matching::Tolerant)
                    && pods.iter().any(|pod| !pod.terminating && pod.has_hash(&hash_of(revision)))
            };
            let others = claimed.iter().filter(is_other);
            others.max_by_key(|it| (!self.has_failed_at(it), it.number)).copied()
        } else {
            of_template(live.spec.template.raw(), &claimed).1.pop()
        };
        from.map(RevisionRef::from)
    }

    /// Whether an earlier run has rolled out the live template, which has no pause: its revision has the
    /// provenance, and either its end is known, or no more nodes are outdated than may have been not Ready
    /// then. Of another client's rollout, or one that another client has continued, it is not known that
    /// it was good.
    fn was_complete(&self, live: &'w DaemonSet, claimed: &[&Revision]) -> bool {
        let revision = of_template(live.spec.template.raw(), claimed).1.pop();
        let is_ours = |it: &Revision| it.annotations.get(PLAN_DIGEST_ANNOTATION).is_some();
        let strategy = &live.spec.update_strategy;
        // Without its note, a surge may have been interrupted.
        let is_known = !allows_surge(strategy) || self.state.note.is_some();
        if *strategy == UpdateStrategy::OnDelete || !is_known || !revision.is_some_and(is_ours) {
            return false;
        }
        let view = self.look(live);
        if self.has_ended(&view) {
            return true;
        }
        let is_outdated = |it: &&NodeView<'_>| matches!(it.pod_state, PodState::Outdated(_));
        let outdated = count(view.node_views.iter().filter(is_outdated));
        let skippable = self.task.policy.skip_unready_nodes.of(view.desired);
        outdated <= skippable + view.allowed
    }

    /// Whether the end of the rollout of the live template is known, however many nodes were not Ready
    /// then: from its note, or, if the note is lost, because only `ds-apply` has written the strategy: it
    /// ends a pause, which a surge does not have, at the end. An outdated pod that was created later would be
    /// of another client's rollout.
    fn has_ended(&self, view: &RolloutView<'_>) -> bool {
        let live = view.live;
        let note = self.state.note.as_ref();
        let note = note.filter(|note| is_of(Some(note), live.spec.template.raw()));
        let note = note.filter(|note| !note.is_under_way(&note.template));
        let noted = note.and_then(|note| note.approvals_void_before);
        let had_pause = !allows_surge(&live.spec.update_strategy);
        let restored = || had_pause.then(|| restored_at(live)).flatten();
        let Some(end) = noted.or_else(restored) else { return false };
        let mut outdated = view.node_views.iter().filter_map(NodeView::outdated_pod);
        outdated.all(|pod| pod.created.is_some_and(|created| Timestamp::from(created) <= end))
    }

    pub(super) fn new_pause(
        &self,
        target: &Target,
        state: PauseState,
        from: Option<RevisionRef>,
    ) -> PausedRollout {
        let Provenance { commit, plan_digest, change_cause: _, by } = self.task.provenance.clone();
        let declared = target.declared.value().clone();
        // Whole seconds, as everywhere in Kubernetes.
        let started = started_at(self.state.note.as_ref(), target.template.raw());
        let live = self.observed.daemon_set;
        let failed = live.and_then(|live| goes_back_from(live, target.template.raw()));
        let since = Time::from(started.unwrap_or(self.now)).into();
        PausedRollout {
            state,
            declared,
            plan_digest,
            from,
            since,
            commit,
            by,
            failed,
            target: None,
            waits_for: Vec::new(),
            failed_gate: None,
        }
    }

    /// Checks that the live object is still as it was written, and returns the actor that replaces
    /// pods.
    pub(super) fn as_written(
        &mut self,
        target: &Target,
        live: &DaemonSet,
    ) -> Flow<Replacer<'static>> {
        let found = PausedRollout::of(live);
        let paused = live.spec.update_strategy == UpdateStrategy::OnDelete
            && *target.declared.strategy() != UpdateStrategy::OnDelete;
        let stale = |change| Err(Halt::End(Outcome::Stale { change, paused }));
        if !is_template(live, target.template.raw()) {
            return stale(self.another_template(live, target.template.raw()));
        }
        let Ok(found) = found else { return stale(Interference::Pause) };
        match found.map(|pause| pause.state) {
            Some(PauseState::Paused) => {
                self.state.writing.paused = true;
                Ok(if allows_surge(target.declared.strategy()) {
                    Replacer::RunBeforeSurge
                } else {
                    Replacer::Run(&Extent::All)
                })
            }
            Some(PauseState::Aborted | PauseState::Waiting) => stale(Interference::Pause),
            None if live.spec.update_strategy != *target.declared.strategy() => {
                stale(Interference::Strategy)
            }
            None => {
                let writing = &self.state.writing;
                let ours = !writing.paused || writing.sent.contains(&Purpose::RestoreStrategy);
                let resumed = self
                    .look(live)
                    .node_views
                    .iter()
                    .any(|node_view| node_view.outdated_pod().is_some_and(Pod::is_ready));
                if ours || !resumed {
                    Ok(Replacer::Controller)
                } else {
                    stale(Interference::Strategy)
                }
            }
        }
    }

    /// The live template is another one than `wanted`.
    pub(super) fn another_template(&self, live: &DaemonSet, wanted: &Value) -> Interference {
        let claimed = self.observed.revisions_of(live);
        let revision = of_template(live.spec.template.raw(), &claimed).1.pop();
        Interference::Template {
            revision: revision.map(|revision| revision.name.clone()),
            restarted: is_restarted(live, wanted),
        }
    }

    /// Annotates the revision with the provenance, unless it is there.
    pub(super) fn revision_is_annotated(&mut self, view: &RolloutView<'_>) -> Flow<()> {
        let Some(revision) = view.revisions.last() else { return Ok(()) };
        if self.state.annotated || self.task.provenance.is_on(&revision.annotations) {
            return Ok(());
        }
        let request = self.state.annotating;
        self.may_go(request, Attempt::Annotate)?;
        self.state.annotating = RequestState::Out;
        self.effects
            .push(Effect::Annotate { revision: revision.name.clone(), uid: revision.uid.clone() });
        Err(Halt::Wait)
    }

    /// Restores the declared strategy, once no Ready outdated pod remains: the controller would
    /// replace it by its own rules at once. A surge is meant to.
    pub(super) fn restore_strategy(&mut self, target: &Target, view: &RolloutView<'_>) -> Halt {
        let nodes = next_deletes::ready_on_unready_nodes(view).len();
        if nodes > 0 && !allows_surge(target.declared.strategy()) {
            let what = Stall::OldPods { nodes };
            return match self.stalled(what) {
                Some(seconds) => Halt::paused(Self::why_paused(view, &[], what, seconds)),
                None => Halt::Wait,
            };
        }
        let provenance = Some(self.task.provenance.clone());
        self.write(Purpose::RestoreStrategy, target, Some(view.live), None, None, provenance)
    }
}

/// Whether nothing changes and no pod is outdated. Nodes without a pod get theirs, which is
/// watched, but there is no rollout that could fail: a failed pod is reported, the DaemonSet is not
/// paused, and the template is not recorded as failed.
fn rolls_nothing(target: &Target, view: &RolloutView<'_>, replacer: Replacer<'_>) -> bool {
    match replacer {
        Replacer::Controller => {
            !target.changes && !view.node_views.iter().any(NodeView::has_outdated_pod)
        }
        Replacer::Run(_) | Replacer::RunBeforeSurge => false,
    }
}

/// Whether any pod that is not terminating has a different template than this one.
pub(super) fn is_outdated_for(
    template: &Value,
    live: &DaemonSet,
    observed: &ObservedCluster<'_>,
) -> bool {
    let revisions = observed.revisions_of(live);
    let (templates, _) = of_template(template, &revisions);
    let pods = observed.pods_of(live);
    pods.into_iter().any(|pod| !pod.terminating && !templates.is_updated(pod))
}

/// Whether this run replaces all pods: neither the user (`OnDelete`) nor the controller with a
/// surge.
fn is_paced(target: &Target) -> bool {
    let declared = target.declared.strategy();
    *declared != UpdateStrategy::OnDelete && !allows_surge(declared)
}
