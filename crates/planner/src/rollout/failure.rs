//! The rollout after new pods or a gate of the policy have failed: abort (restore the last good
//! template, paused) or pause. No pod is deleted, except those that a rollback replaces.
//!
//! The template is restored *before* the failed one is recorded: a run that dies in between starts
//! again with the same template and fails again, instead of being rejected while the bad template
//! is live.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::decision::{Decision, Flow, Halt, is_template};
use super::effect::Effect;
use super::forward::is_outdated_for;
use super::new_pods;
use super::next_deletes::Replacer;
use super::observed_cluster::ObservedCluster;
use super::outcome::{
    Attempt, FailureCause, Interference, NotAborted, Outcome, PauseReason, PodFailure, RolledBack,
};
use super::pace::Paced;
use super::request::Purpose;
use super::request::RequestState;
use super::restart::is_template_but_for_restart;
use super::state::{Course, Creates};
use super::task::{Provenance, Target};
use super::view::{NodeView, count};
use crate::checks::CheckFinding;
use crate::digest::template_digest;
use crate::extent::Extent;
use crate::plan::{PauseState, PausedRollout};
use daemonset::controller::placement::judge;
use daemonset::controller::revision_data::{Matching, matches, template_of};
use daemonset::model::{
    DaemonSet, NodeName, OnFailure, Pod, PodPlacement, PodTemplate, Revision, RevisionRef,
    UpdateStrategy,
};

/// The revision to roll back to, with its template.
pub(super) struct Good<'w> {
    pub revision: &'w Revision,
    pub template: Arc<Value>,
    placement: PodPlacement,
}

impl Good<'_> {
    /// Whether its template is live, but for a restart.
    pub(super) fn is_live(&self, live: &DaemonSet) -> bool {
        is_template_but_for_restart(live, &self.template)
    }
}

/// The revision that is live after an abort, and the digest of the failed template; `None` if the
/// DaemonSet is not aborted.
fn aborted(live: &DaemonSet) -> Option<(RevisionRef, String)> {
    match PausedRollout::readable(live)? {
        PausedRollout {
            state: PauseState::Aborted,
            from: Some(from),
            failed: Some(failed),
            ..
        } => Some((from, failed)),
        PausedRollout {
            state: PauseState::Aborted | PauseState::Paused | PauseState::Waiting,
            ..
        } => None,
    }
}

/// Whether a rollout of the template with this digest is aborted and pods of it are left: the case
/// for [`Goal::RollBack`](super::Goal::RollBack), which completes a rollback.
pub fn is_rolling_back(observed: &ObservedCluster<'_>, failed: &str) -> bool {
    let Some(live) = observed.daemon_set else { return false };
    if aborted(live).is_none_or(|(_, digest)| digest != failed) {
        return false;
    }
    is_outdated_for(live.spec.template.raw(), live, observed)
}

impl<'w> Decision<'_, 'w> {
    /// New pods, or a gate of the policy, have failed: by policy, abort with the last good template,
    /// or pause.
    pub(super) fn after_failure(
        &mut self,
        target: &Target,
        live: Option<&'w DaemonSet>,
        failed: BTreeMap<NodeName, PodFailure>,
    ) -> Flow<Halt> {
        let has_failed = matches!(self.state.course, Course::Failed(_));
        if !has_failed && self.task.policy.on_failure == OnFailure::Rollback {
            self.state.pods.begun.clear();
        }
        self.state.course = Course::Failed(failed.clone());
        let live = live.ok_or_else(Halt::gone)?;
        self.appeared(live)?;
        if !is_template(live, target.template.raw()) {
            self.state.creates = Creates::All;
        }
        let good = match self.task.policy.on_failure {
            OnFailure::Pause => return self.stay(target, live, failed, None),
            OnFailure::Abort | OnFailure::Rollback => self.good(target, live, &failed),
        };
        let is_target = |good: &Good<'_>| {
            matches(target.template.raw(), &good.revision.data, Matching::Tolerant)
        };
        match good {
            Ok(good) if is_target(&good) => {
                self.stay(target, live, failed, Some(NotAborted::IsLastGood))
            }
            Ok(good) if self.has_failed(&good.template) && !good.is_live(live) => {
                let RevisionRef { name, number } = RevisionRef::from(good.revision);
                self.stay(target, live, failed, Some(NotAborted::HasFailed { name, number }))
            }
            Ok(good) => {
                self.abort(target, live, &good)?;
                self.reconcile();
                self.remember(target.template.raw())?;
                self.note_end(true)?;
                Ok(self.roll_back(live, &good, failed))
            }
            Err(why) => self.stay(target, live, failed, Some(why)),
        }
    }

    /// Completes the rollback of an earlier run, which aborted the DaemonSet and has not replaced
    /// all failed pods.
    pub(super) fn resume_rollback(&mut self, live: Option<&'w DaemonSet>) -> Flow<Halt> {
        let live = live.ok_or_else(Halt::gone)?;
        let stale = |change| Ok(Halt::End(Outcome::Stale { change, paused: true }));
        let Some((from, digest)) = aborted(live) else { return stale(Interference::Pause) };
        let good = match self.at(&from, live) {
            Ok(good) if good.is_live(live) => good,
            Ok(good) => return stale(self.another_template(live, &good.template)),
            Err(_) => return stale(self.another_template(live, live.spec.template.raw())),
        };
        self.remember_or_forget(Effect::Remember { digest })?;
        Ok(self.roll_back(live, &good, BTreeMap::new()))
    }

    /// The last good template, if it can be restored.
    pub(super) fn good(
        &self,
        target: &Target,
        live: &'w DaemonSet,
        failed: &BTreeMap<NodeName, PodFailure>,
    ) -> Result<Good<'w>, NotAborted> {
        let from = self.state.from.as_ref().ok_or(NotAborted::NothingBefore)?;
        let good = self.at(from, live)?;
        if is_template(live, target.template.raw()) && !self.task.allow_mass_eviction {
            self.would_evict(live, &good.placement, failed)?;
        }
        Ok(good)
    }

    /// Reads the template of a revision.
    fn at(&self, from: &RevisionRef, live: &DaemonSet) -> Result<Good<'w>, NotAborted> {
        let gone = || NotAborted::RevisionGone { name: from.name.clone(), number: from.number };
        let claimed = self.observed.revisions_of(live);
        let revision = claimed.into_iter().find(|it| it.name == from.name).ok_or_else(gone)?;
        let template = template_of(&revision.data).ok_or_else(gone)?;
        let parsed = PodTemplate::from_json(template.clone()).map_err(|_| gone())?;
        Ok(Good { revision, template: Arc::new(template), placement: parsed.placement })
    }

    /// Refuses a rollback after which the controller would evict more pods at once than may be
    /// unavailable.
    ///
    /// A pod that is not available yet counts too: it may be Ready by the time of the write. A
    /// failed pod does not, unless it is Ready and only too young, perhaps by a wrong clock.
    fn would_evict(
        &self,
        live: &'w DaemonSet,
        good: &PodPlacement,
        failed: &BTreeMap<NodeName, PodFailure>,
    ) -> Result<(), NotAborted> {
        let view = self.look(live);
        let may_stay = |node_view: &&NodeView<'_>| judge(good, node_view.node).may_stay;
        let evicted: Vec<_> =
            view.node_views.iter().filter(|node_view| !may_stay(node_view)).collect();
        let serving = count(evicted.iter().filter(|node_view| node_view.has_available_pod));
        let may_serve = |node_view: &NodeView<'_>| match failed.get(&node_view.node.name) {
            None => new_pods::may_become_available(node_view),
            Some(PodFailure::TooLate { .. }) => {
                node_view.pod_state.only_updated().is_some_and(Pod::is_ready)
            }
            Some(
                PodFailure::Permanent { .. }
                | PodFailure::Restarts { .. }
                | PodFailure::NoPod { .. }
                | PodFailure::StillTerminating { .. },
            ) => false,
        };
        let is_to_come =
            |node_view: &&&NodeView<'_>| !node_view.has_available_pod && may_serve(node_view);
        let to_come = count(evicted.iter().filter(is_to_come));
        let (pods, allowed) = (serving + to_come, view.allowed);
        if pods > allowed { Err(NotAborted::WouldEvict { pods, to_come, allowed }) } else { Ok(()) }
    }

    /// Restores the good template, paused, unless that is done already.
    fn abort(&mut self, target: &Target, live: &DaemonSet, good: &Good<'_>) -> Flow<()> {
        let found = PausedRollout::readable(live);
        let is_aborted = found.is_some_and(|pause| pause.state == PauseState::Aborted);
        let is_good = good.is_live(live);
        if is_good && is_aborted {
            return Ok(());
        }
        let on_delete = live.spec.update_strategy == UpdateStrategy::OnDelete;
        let stale = |change| Err(Halt::End(Outcome::Stale { change, paused: on_delete }));
        if !is_good && !is_template(live, target.template.raw()) {
            return stale(self.another_template(live, target.template.raw()));
        }
        if self.is_done(Purpose::Abort) {
            return stale(Interference::Pause);
        }
        let from = RevisionRef::from(good.revision);
        let failed = Some(template_digest(target.template.raw()));
        let pause = self.new_pause(target, PauseState::Aborted, Some(from));
        let pause = PausedRollout { failed, failed_gate: self.failed_gate(), ..pause };
        let provenance = Some(Provenance::of(&good.revision.annotations));
        let template = Some(Arc::clone(&good.template));
        Err(self.write(Purpose::Abort, target, Some(live), template, Some(pause), provenance))
    }

    /// Whether a template was recorded as failed before this run.
    pub(super) fn has_failed(&self, template: &Value) -> bool {
        let failed = &self.task.failed_templates;
        !failed.is_empty() && failed.contains(template_digest(template).as_str())
    }

    /// Whether the template of a revision was.
    pub(super) fn has_failed_at(&self, revision: &Revision) -> bool {
        // Each decision of a roll asks this, and mostly none is recorded.
        !self.task.failed_templates.is_empty()
            && template_of(&revision.data).is_some_and(|template| self.has_failed(&template))
    }

    /// Records the failed template on the lock. After some attempts the run continues without: the
    /// pause annotation records it too. `roll` has no pause: then the next one tries it again.
    pub(super) fn remember(&mut self, template: &Value) -> Flow<()> {
        let digest = template_digest(template);
        self.remember_or_forget(Effect::Remember { digest })
    }

    /// Removes the record of a failed template that is now rolled out completely. After some
    /// attempts it stays, and `--retry` is needed once more.
    pub(super) fn forget(&mut self, template: &Value) -> Flow<()> {
        if !self.has_failed(template) {
            return Ok(());
        }
        let digest = template_digest(template);
        self.remember_or_forget(Effect::Forget { digest })
    }

    fn remember_or_forget(&mut self, effect: Effect) -> Flow<()> {
        let remembering = self.state.remembering;
        if remembering.done {
            return Ok(());
        }
        self.may_go(remembering.request, Attempt::Remember)?;
        self.state.remembering.request = RequestState::Out;
        self.push(effect);
        Err(Halt::Wait)
    }

    /// Ends aborted; with `onFailure: rollback`, after the failed pods are replaced too.
    fn roll_back(
        &mut self,
        live: &'w DaemonSet,
        good: &Good<'_>,
        failed: BTreeMap<NodeName, PodFailure>,
    ) -> Halt {
        let to = good.revision.name.clone();
        let cause = self.state.cause.clone();
        let aborted =
            |failed, rolled_back| Halt::End(Outcome::Aborted { failed, to, rolled_back, cause });
        match self.task.policy.on_failure {
            OnFailure::Abort | OnFailure::Pause => return aborted(failed, None),
            OnFailure::Rollback => {}
        }
        if self.is_timed_out() {
            let why = Box::new(PauseReason::Timeout);
            return aborted(failed, Some(RolledBack::Stopped(why)));
        }
        let view = self.look(live);
        let paced = match self.controller_has_observed(&view) {
            Ok(()) => self.pace(&view, Replacer::Run(&Extent::All)),
            Err(halt) => Paced::from(halt),
        };
        match paced {
            // A rollback waits for nothing but budgets.
            Paced::Wait | Paced::MayNotBegin(_) => Halt::Wait,
            Paced::Clean | Paced::PartDone => aborted(failed, Some(RolledBack::Fully)),
            Paced::Failed(again) => aborted(failed, Some(RolledBack::Failed(again))),
            Paced::Stalled(why) => aborted(failed, Some(RolledBack::Stopped(Box::new(why)))),
        }
    }

    /// The gate that has failed.
    fn failed_gate(&self) -> Option<Box<CheckFinding>> {
        let gate = self.state.cause.as_ref().and_then(FailureCause::gate);
        gate.map(|gate| Box::new(gate.finding.clone()))
    }

    /// Adds the gate that has failed to a pause that is there already: `status` shows it.
    fn add_failed_gate(&mut self, target: &Target, live: &DaemonSet) -> Flow<()> {
        let gate = self.failed_gate();
        let found = PausedRollout::readable(live);
        let lacks_it = |pause: &PausedRollout| {
            pause.state == PauseState::Paused && gate.is_some() && pause.failed_gate != gate
        };
        let Some(pause) = found.filter(lacks_it) else { return Ok(()) };
        if self.is_done(Purpose::AddFailedGate) || !is_template(live, target.template.raw()) {
            return Ok(());
        }
        let pause = PausedRollout { failed_gate: gate, ..pause };
        Err(self.write_pause(Purpose::AddFailedGate, target, live, pause))
    }

    /// Writes a pause of the live template.
    pub(super) fn write_pause(
        &mut self,
        purpose: Purpose,
        target: &Target,
        live: &DaemonSet,
        pause: PausedRollout,
    ) -> Halt {
        let provenance = Some(self.task.provenance.clone());
        self.write(purpose, target, Some(live), None, Some(pause), provenance)
    }

    /// Pauses where it is, so that the controller replaces no more pods either.
    fn stay(
        &mut self,
        target: &Target,
        live: &DaemonSet,
        failed: BTreeMap<NodeName, PodFailure>,
        not_aborted: Option<NotAborted>,
    ) -> Flow<Halt> {
        if live.spec.update_strategy != UpdateStrategy::OnDelete {
            if !is_template(live, target.template.raw()) {
                let change = self.another_template(live, target.template.raw());
                return Ok(Halt::End(Outcome::Stale { change, paused: false }));
            }
            let from = self.state.from.clone();
            let pause = self.new_pause(target, PauseState::Paused, from);
            let pause = PausedRollout { failed_gate: self.failed_gate(), ..pause };
            return Ok(self.write_pause(Purpose::Pause, target, live, pause));
        }
        self.reconcile();
        self.add_failed_gate(target, live)?;
        self.remember(target.template.raw())?;
        self.note_end(true)?;
        Ok(self.paused_by_failure(failed, not_aborted))
    }

    /// The end of a run that leaves a failed rollout paused.
    pub(super) fn paused_by_failure(
        &self,
        failed: BTreeMap<NodeName, PodFailure>,
        not_aborted: Option<NotAborted>,
    ) -> Halt {
        let cause = self.state.cause.clone();
        Halt::paused(PauseReason::Failed { failed, not_aborted, cause })
    }
}
