//! Steps, domains and waits in a rollout: what happens when nothing may begin for now.
//!
//! A run does what may be done now. Then it waits itself (`--wait`), or it ends: with the last good
//! template live again, paused, so that a node that joins or a pod that is recreated gets what is
//! proven. The next run writes the target again and continues. Not here: which nodes may begin
//! ([`steps`](crate::steps)), and what is noted (`notes`).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::decision::{Decision, Flow, Halt, is_template};
use super::effect::Effect;
use super::new_pods;
use super::notes::started_at;
use super::outcome::{FailureCause, Interference, Outcome, Overdue, PodFailure};
use super::progress::Report;
use super::request::Purpose;
use super::request::RequestState;
use super::share::in_rollout;
use super::state::{Course, Creates};
use super::task::{Provenance, Target, with_template};
use super::view::{NodeView, PodState, RolloutView};
use crate::classification::restarts_too_often;
use crate::digest::template_digest;
use crate::intermediate::Intermediate;
use crate::plan::{PauseState, PausedRollout};
use crate::shared::{ShareCourse, Siblings};
use crate::steps::{
    ApprovalRules, Evaluation, NodeUpdate, StepNode, StepsInput, WaitKind, WaitsFor,
    approved_steps, evaluate, needs_note,
};
use daemonset::controller::history::hash_of;
use daemonset::controller::limits::allows_surge;
use daemonset::model::{
    Calendar, DaemonSet, NodeName, OnFailure, Pod, PodReadiness, PolicySpec, StepsNote, Time,
    UpdateStrategy, WhileWaiting,
};

impl<'w> Decision<'_, 'w> {
    /// The policy in force: after a failure, only its budgets.
    pub(super) fn policy(&self) -> Cow<'static, PolicySpec> {
        let policy = &self.task.policy;
        Cow::Owned(if self.is_forward() { policy.clone() } else { policy.budgets() })
    }

    /// The nodes of this view as the steps see them. `live` is the live object, also if the view is
    /// of another template.
    pub(super) fn step_nodes<'v>(
        &self,
        view: &'v RolloutView<'_>,
        live: &'w DaemonSet,
    ) -> Vec<StepNode<'v>> {
        let intermediate = self.intermediate(live);
        let siblings = self.observed.siblings;
        // Under a pause, or another template, the controller removes the new pods of a surge.
        let continues_surges = allows_surge(&live.spec.update_strategy)
            && is_template(live, view.live.spec.template.raw());
        let lacking = self.lacking_images(view);
        let step_node = |it: &NodeView<'v>| {
            let node = step_node(it, &intermediate, siblings, continues_surges);
            let is_outdated = matches!(node.update, NodeUpdate::Outdated { .. });
            StepNode { lacks_images: is_outdated && lacking.contains(&it.node.name), ..node }
        };
        view.node_views.iter().map(step_node).collect()
    }

    /// Evaluates the steps for these nodes. `target` is the template that is rolled out.
    pub(super) fn evaluated<'v>(
        &self,
        nodes: &'v [StepNode<'v>],
        policy: &'v PolicySpec,
        live: &DaemonSet,
    ) -> Evaluation<'v> {
        // Only notes and approvals name the template.
        let template = if needs_note(policy) {
            template_digest(live.spec.template.raw())
        } else {
            String::new()
        };
        let note = self.state.note.as_ref();
        let given = Some(&self.state.approvals);
        let uid = Some(&live.uid);
        let is_note_lost = note.is_none() && self.state.is_note_lost == Some(true);
        let rules = ApprovalRules { template: &template, note, is_note_lost, now: self.now };
        let approved = approved_steps(policy, uid, given, rules);
        let node_seconds = self.task.node_seconds.unwrap_or(policy.progress_deadline.0);
        // With a shared budget, a node is finished after all of them.
        let rollouts = self.observed.siblings.map_or(1, Siblings::rollouts);
        evaluate(&StepsInput {
            nodes,
            policy,
            calendar: &Calendar::of(&policy.windows, &policy.exclusions),
            template: &template,
            is_target_live: self
                .observed
                .daemon_set
                .is_none_or(|it| is_template(it, live.spec.template.raw())),
            note,
            approved: &approved,
            gates_passed: &self.state.checks.gates_passed(policy),
            now: self.now,
            node_seconds: node_seconds.saturating_mul(rollouts),
        })
    }

    /// The intermediate versions. The last good one is that of the rollout's start.
    fn intermediate(&self, live: &DaemonSet) -> Intermediate {
        let all = self.observed.revisions.iter();
        let mut in_namespace = all.filter(|it| it.namespace == live.key.namespace);
        let Some(from) = &self.state.from else {
            return Intermediate::failed(in_namespace.filter(|it| self.has_failed_at(it)));
        };
        let last_good = in_namespace.find(|revision| revision.name == from.name);
        last_good.map_or_else(Intermediate::none, |it| Intermediate::AllBut(hash_of(it)))
    }

    /// How long the rollout has taken, waiting included, if that is longer than the policy allows.
    pub(super) fn overdue(&self, policy: &PolicySpec, live: &DaemonSet) -> Option<Overdue> {
        let allowed = policy.max_duration?;
        let started = started_at(self.state.note.as_ref(), live.spec.template.raw())?;
        let seconds = self.now.duration_since(started).as_secs();
        (seconds > i64::from(allowed.0)).then_some(Overdue { seconds, allowed: allowed.0 })
    }

    /// What is waited for before anything of the target is written; none if some node may begin, or
    /// the target is live already.
    pub(super) fn not_yet(
        &mut self,
        target: &Target,
        live: &'w DaemonSet,
    ) -> Flow<Option<Vec<WaitsFor>>> {
        let Ok(pause) = PausedRollout::of(live) else { return Ok(None) };
        let is_waiting = pause.as_ref().is_some_and(|pause| pause.state == PauseState::Waiting);
        if is_template(live, target.template.raw()) && !is_waiting {
            return Ok(None);
        }
        if self.state.from.is_none() {
            self.state.from = self.came_from(target, live, pause.as_ref());
        }
        let after = with_template(live, target);
        let view = RolloutView::of(&after, &self.observed.on(None), self.state, self.now);
        // A pod that has failed is judged first.
        if self.may_have_failed(&view) {
            return Ok(None);
        }
        let policy = self.policy();
        if let Some(overdue) = self.overdue(&policy, &after) {
            self.state.cause = Some(FailureCause::Overdue(overdue));
            return Ok(None);
        }
        let nodes = self.step_nodes(&view, live);
        let mut evaluation = self.evaluated(&nodes, &policy, &after);
        let checked = self.ask_checks(&nodes, &mut evaluation, &policy, &after);
        if checked.has_failed {
            return Ok(None);
        }
        let mut waits_for = checked.lasting(&evaluation);
        if waits_for.is_empty() && !checked.is_asking() {
            // It would be put back at once.
            let stopped = |siblings: &Siblings| siblings.stopped(evaluation.current_step());
            waits_for.extend(self.observed.siblings.and_then(stopped));
        }
        if waits_for.is_empty() && !checked.is_asking() {
            return Ok(None);
        }
        if self.observed.siblings.is_some() && !checked.is_asking() {
            let course = ShareCourse::Waiting(waits_for.clone());
            self.shared_nodes =
                Some((course, in_rollout(&view, &evaluation, &evaluation.waits_for)));
        }
        // A soak that begins only now, because the note was lost or the step before has just ended,
        // would begin again in each run, and at each look while a check is asked. Of a rollout that has
        // not begun, nothing is noted.
        let waiting = pause.filter(|_| is_waiting);
        let has_begun = self.has_begun(&evaluation.note.template, waiting.as_ref());
        if has_begun || !evaluation.note.steps.is_empty() {
            self.note_steps(&evaluation.note, &policy, &after)?;
        } else if self.state.note.is_none()
            && self.state.is_note_lost == Some(true)
            && waits_for.iter().any(|wait| wait.kind == WaitKind::Approval)
        {
            // From now on, the next approval counts.
            self.note(StepsNote { approvals_void_before: Some(self.now), ..StepsNote::default() })?;
        }
        if checked.is_asking() { Err(Halt::Wait) } else { Ok(Some(waits_for)) }
    }

    /// Whether a new pod may have failed: it is not available, or has restarted too often.
    fn may_have_failed(&self, view: &RolloutView<'_>) -> bool {
        let policy = &self.task.policy;
        let is_pending = |node_view: &NodeView<'_>| {
            let pod = node_view.pod_state.only_updated();
            pod.is_some_and(|pod| !view.is_available(pod) || pod.restarts > policy.max_restarts)
        };
        view.node_views.iter().filter(|it| new_pods::is_judged(it)).any(is_pending)
    }

    /// Whether the rollout of this template has begun, by its note, or by the pause while it waits.
    fn has_begun(&self, template: &str, waiting: Option<&PausedRollout>) -> bool {
        match &self.state.note {
            Some(noted) => noted.has_begun(template),
            // The note is lost; the pause is not.
            None => waiting.is_some_and(|pause| pause.target.as_deref() == Some(template)),
        }
    }

    /// The pause of a rollout that waits, if it is aborted without writing the target again.
    pub(super) fn fails_while_waiting(
        &self,
        target: &Target,
        live: &DaemonSet,
    ) -> Option<PausedRollout> {
        let pause = PausedRollout::readable(live)?;
        let rolls_back = match self.task.policy.on_failure {
            OnFailure::Abort | OnFailure::Rollback => pause.state == PauseState::Waiting,
            OnFailure::Pause => false,
        };
        (rolls_back && !is_template(live, target.template.raw())).then_some(pause)
    }

    /// The pods that have failed by their restarts since the rollout began to wait: then the last good
    /// template, which is live, stays so, and the target is not written again. To pause instead, the
    /// target has to be live.
    pub(super) fn failed_while_waiting(
        &mut self,
        target: &Target,
        live: &'w DaemonSet,
    ) -> Option<BTreeMap<NodeName, PodFailure>> {
        let pause = self.fails_while_waiting(target, live)?;
        let after = with_template(live, target);
        let view = RolloutView::of(&after, &self.observed.on(None), self.state, self.now);
        let policy = &self.task.policy;
        let restarted = |node_view: &NodeView<'_>| {
            node_view.pod_state.only_updated().is_some_and(|pod| pod.restarts > policy.max_restarts)
        };
        if !view.node_views.iter().any(restarted) {
            return None;
        }
        self.state.from = self.came_from(target, live, Some(&pause));
        let failed = self.failed_new_pods(&view);
        (!failed.is_empty()).then_some(failed)
    }

    /// Whether the declared strategy has a surge, but the step in progress is not the last one, or
    /// may not begin, or the rollout has failed: then this run replaces its pods by deletes, under a
    /// pause, if any. The controller would surge on any nodes.
    pub(super) fn deletes_before_surge(&self, target: &Target, live: &'w DaemonSet) -> bool {
        if !allows_surge(target.declared.strategy()) {
            return false;
        }
        if self.state.cause.is_some() || self.has_failed_before_surge(target, live) {
            return true;
        }
        // A surge begins only when nothing is waited for: pods that are not available yet let the
        // target be written in a closed window, too, to judge them.
        self.if_live(target, live, |steps| !steps.is_last() || !steps.waits_for.is_empty())
    }

    /// Whether a new pod has restarted too often, and no surge is in progress that would be judged as it
    /// is.
    fn has_failed_before_surge(&self, target: &Target, live: &'w DaemonSet) -> bool {
        let is_live = is_template(live, target.template.raw());
        if is_live && allows_surge(&live.spec.update_strategy) {
            return false;
        }
        let (policy, after) = (&self.task.policy, with_template(live, target));
        let view = RolloutView::of(&after, &self.observed.on(None), self.state, self.now);
        let started = started_at(self.state.note.as_ref(), target.template.raw());
        let has_failed = |node_view: &NodeView<'_>| {
            let pod = node_view.pod_state.only_updated();
            pod.is_some_and(|pod| restarts_too_often(pod, self.now, policy, started))
        };
        view.node_views.iter().filter(|it| new_pods::is_judged(it)).any(has_failed)
    }

    /// The steps as they will be when the target is live.
    pub(super) fn if_live<T>(
        &self,
        target: &Target,
        live: &'w DaemonSet,
        look: impl FnOnce(&Evaluation<'_>) -> T,
    ) -> T {
        let (policy, after) = (self.policy(), with_template(live, target));
        let view = RolloutView::of(&after, &self.observed.on(None), self.state, self.now);
        let nodes = self.step_nodes(&view, live);
        look(&self.evaluated(&nodes, &policy, &after))
    }

    /// Nothing may begin, and nothing of the target is live: the run waits, or ends without a write.
    pub(super) fn wait_to_begin(
        &mut self,
        target: &Target,
        live: &'w DaemonSet,
        waits_for: Vec<WaitsFor>,
    ) -> Flow<Halt> {
        let pause = PausedRollout::readable(live);
        let state = pause.as_ref().map(|pause| pause.state);
        // The template of a run that was killed may be live, or one that waits: it has shown nothing yet.
        let is_unproven = match &pause {
            Some(PausedRollout { state: PauseState::Paused, .. }) => true,
            Some(PausedRollout { state: PauseState::Waiting, target, .. }) => {
                *target == Some(template_digest(live.spec.template.raw()))
            }
            Some(PausedRollout { state: PauseState::Aborted, .. }) => false,
            None => self.is_interrupted(live),
        };
        if self.waits_itself(&waits_for) {
            if !is_unproven {
                self.reconcile();
            }
            return Ok(Halt::Wait);
        }
        if is_unproven || state == Some(PauseState::Waiting) {
            return self.put_back(target, Some(live), waits_for);
        }
        self.note_waiting(target, &waits_for)?;
        Ok(self.end_waiting(waits_for))
    }

    /// The run ends, and the rollout waits.
    fn end_waiting(&mut self, waits_for: Vec<WaitsFor>) -> Halt {
        self.reconcile();
        Halt::End(self.waiting(waits_for))
    }

    /// Nothing more may begin for now: the run waits, or puts the last good template back and ends.
    pub(super) fn wait_to_continue(
        &mut self,
        target: &Target,
        live: &'w DaemonSet,
        waits_for: Vec<WaitsFor>,
    ) -> Flow<Halt> {
        if self.waits_itself(&waits_for) {
            if live.spec.update_strategy == UpdateStrategy::OnDelete {
                return Ok(Halt::Wait);
            }
            // The controller would continue its surge meanwhile.
            let pause = self.new_pause(target, PauseState::Paused, self.state.from.clone());
            return Ok(self.write_pause(Purpose::Pause, target, live, pause));
        }
        self.put_back(target, Some(live), waits_for)
    }

    /// Whether the run itself waits, because it may (`--wait`) for long enough.
    pub(super) fn waits_itself(&mut self, waits_for: &[WaitsFor]) -> bool {
        let Some(limit) = self.task.wait_until else { return false };
        let end = waits_for.iter().map(|wait| wait.until.unwrap_or(limit)).max().unwrap_or(limit);
        if self.now >= limit || end > limit || self.unknown_for_too_long(waits_for).is_some() {
            return false;
        }
        self.wake_at(Some(end));
        if waits_for.iter().any(|wait| wait.kind.needs_person()) {
            self.read_approvals();
        }
        let shown = &self.state.shown.waits_for;
        let is_shown = shown.len() == waits_for.len()
            && shown.iter().zip(waits_for).all(|(shown, wait)| shown.is_like(wait));
        if !is_shown {
            self.state.shown.waits_for = waits_for.to_vec();
            self.report(Report::WaitingFor(waits_for.to_vec()));
        }
        true
    }

    /// Reads the approvals again, at an interval.
    fn read_approvals(&mut self) {
        match self.state.reading_approvals {
            RequestState::Out => {}
            RequestState::RetryAt(at) if self.now < at => self.wake_at(Some(at)),
            RequestState::Idle | RequestState::RetryAt(_) => {
                self.state.reading_approvals = RequestState::Out;
                self.push(Effect::ReadApprovals);
            }
        }
    }

    /// Puts the last good template back, paused, unless the policy wants the target to stay, or it
    /// cannot be put back; then ends.
    pub(super) fn put_back(
        &mut self,
        target: &Target,
        live: Option<&'w DaemonSet>,
        waits_for: Vec<WaitsFor>,
    ) -> Flow<Halt> {
        self.state.course = Course::Waiting(waits_for.clone());
        let live = live.ok_or_else(Halt::gone)?;
        self.appeared(live)?;
        let is_target = is_template(live, target.template.raw());
        if !is_target {
            self.state.creates = Creates::All;
        }
        let found = PausedRollout::readable(live);
        let last_good = match self.task.policy.while_waiting {
            WhileWaiting::Target if is_target => None,
            WhileWaiting::Target | WhileWaiting::LastGood => {
                self.good(target, live, &BTreeMap::new()).ok()
            }
        };
        let stays = last_good.as_ref().is_some_and(|good| {
            // A template that has failed is never written again: what is live stays.
            (is_target || !good.is_live(live)) && self.has_failed(&good.template)
        });
        if stays && !is_target && found.is_some() {
            // That of an earlier rollout, which is paused.
            self.note_waiting(target, &waits_for)?;
            return Ok(self.end_waiting(waits_for));
        }
        let good = last_good.filter(|_| !stays);
        let is_good = good.as_ref().is_some_and(|good| good.is_live(live));
        let on_delete = live.spec.update_strategy == UpdateStrategy::OnDelete;
        let stale = |change| Ok(Halt::End(Outcome::Stale { change, paused: on_delete }));
        // Before the target is written, that of an earlier run may be live.
        let is_begun = found.is_some() || self.is_interrupted(live);
        let is_ours = is_begun && good.is_some() && !self.is_done(Purpose::Apply);
        if !is_target && !is_good && !is_ours {
            return stale(self.another_template(live, target.template.raw()));
        }
        let stands = |pause: &PausedRollout| {
            pause.state == PauseState::Waiting && pause.waits_for == waits_for
        };
        if found.as_ref().is_some_and(stands) && (is_good || good.is_none()) {
            return Ok(self.end_waiting(waits_for));
        }
        if self.is_done(Purpose::Wait) {
            return stale(Interference::Pause);
        }
        let from = self.state.from.clone();
        let pause = self.new_pause(target, PauseState::Waiting, from);
        let digest = template_digest(target.template.raw());
        let pause = PausedRollout { waits_for, target: Some(digest), ..pause };
        let (template, provenance) = match &good {
            Some(good) => {
                (Some(Arc::clone(&good.template)), Provenance::of(&good.revision.annotations))
            }
            None => (None, self.task.provenance.clone()),
        };
        let written =
            self.write(Purpose::Wait, target, Some(live), template, Some(pause), Some(provenance));
        Ok(written)
    }
}

fn step_node<'v>(
    node_view: &NodeView<'v>,
    intermediate: &Intermediate,
    siblings: Option<&Siblings>,
    continues_surges: bool,
) -> StepNode<'v> {
    // A surge of the controller has begun there.
    let has_begun = continues_surges && node_view.is_surging();
    let outdated = node_view.outdated_pod().filter(|_| !has_begun);
    let (update, pod) = if let Some(pod) = outdated {
        let is_intermediate = intermediate.has(pod);
        (NodeUpdate::Outdated { is_intermediate }, Some(pod))
    } else if let PodState::UpdatedAvailable(pod) = node_view.pod_state {
        (NodeUpdate::Updated { since: pod.up_since() }, Some(pod))
    } else {
        (NodeUpdate::InProgress, None)
    };
    let was_ready = |pod: &&Pod| matches!(pod.readiness, PodReadiness::NotReady { since: Some(_) });
    let unready_again = || node_view.pod_state.only_updated().filter(was_ready);
    StepNode {
        node: node_view.node,
        is_desired: node_view.is_desired(),
        standing: node_view.node_standing,
        is_unavailable: node_view.is_unavailable(),
        update,
        restarts: pod.map_or(0, |pod| pod.restarts),
        pod_created: match update {
            NodeUpdate::Updated { since: _ } => pod.and_then(|pod| pod.created),
            NodeUpdate::InProgress => {
                unready_again().and_then(|pod| pod.created).or(node_view.lost_since.map(Time::from))
            }
            NodeUpdate::Outdated { .. } => None,
        },
        shared: siblings.map(|it| it.rank(&node_view.node.name)).unwrap_or_default(),
        lacks_images: false,
    }
}
