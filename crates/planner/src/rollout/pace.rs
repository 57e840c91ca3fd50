//! Replaces pods, or watches the controller replace them, and judges the new ones.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::decision::{Decision, Flow, Halt};
use super::effect::Effect;
use super::new_pods;
use super::next_deletes::{self, Next, Replacer, Shared};
use super::notes;
use super::outcome::{Attempt, FailureCause, Outcome, PauseReason, PodFailure, Replaced};
use super::progress::{Arrival, Report};
use super::pulling::Pulling;
use super::request::Delete;
use super::request::RequestState;
use super::share::in_progress;
use super::state::{Awaited, Creates, Stall, State, Waiting};
use super::task::{Goal, Target};
use super::timeouts::without_pod;
use super::view::{PodState, RolloutView};
use crate::plan::Reason;
use crate::shared::{Share, ShareCourse, Slots};
use crate::steps::{DomainProgress, Evaluation, WaitKind, WaitsFor, with_unavailable};
use daemonset::controller::limits::allows_surge;
use daemonset::model::{ManagedBy, NodeName, Ramp, UpdateStrategy};

/// The state of the replacement of pods.
pub(super) enum Paced {
    /// In progress.
    Wait,
    /// Complete.
    Clean,
    /// The part of this run is complete (`step`); the rollout still waits for something.
    PartDone,
    /// These new pods have failed, by node; none if a gate or a time limit of the policy has
    /// (`State::cause`).
    Failed(BTreeMap<NodeName, PodFailure>),
    /// Stalled for longer than the timeout.
    Stalled(PauseReason),
    /// The policy lets no more nodes begin for now.
    MayNotBegin(Vec<WaitsFor>),
}

impl From<Halt> for Paced {
    /// Something that comes before the next pod halts.
    fn from(halt: Halt) -> Self {
        match halt {
            Halt::End(Outcome::Paused { why }) => Self::Stalled(why),
            Halt::End(_) | Halt::Wait => Self::Wait,
        }
    }
}

impl Decision<'_, '_> {
    /// Replaces pods, or watches the controller replace them, and judges the new ones.
    pub(super) fn pace(&mut self, view: &RolloutView<'_>, replacer: Replacer<'_>) -> Paced {
        self.judge_and_replace(view, replacer).unwrap_or_else(Paced::from)
    }

    fn judge_and_replace(&mut self, view: &RolloutView<'_>, replacer: Replacer<'_>) -> Flow<Paced> {
        let failed = self.failed_new_pods(view);
        self.report_progress(view);
        self.report_lost_ready(view, replacer);
        if !failed.is_empty() {
            return Ok(Paced::Failed(failed));
        }
        let mut policy = self.policy();
        let is_to_note = self.is_to_note(view, replacer);
        if !is_to_note {
            // Pods that are only created make no rollout that could fail.
            policy = Cow::Owned(policy.without_checks());
        }
        let nodes = self.step_nodes(view, view.live);
        let mut evaluation = self.evaluated(&nodes, &policy, view.live);
        let checked = self.ask_checks(&nodes, &mut evaluation, &policy, view.live);
        // Else its beginning is noted before the first delete: `maxDuration` counts from then.
        let is_begun = !self.is_before_first_delete(view, &evaluation.note, &policy);
        if is_to_note && is_begun {
            self.note_steps(&self.progress_to_note(&evaluation), &policy, view.live)?;
        }
        if checked.has_failed {
            return Ok(Paced::Failed(BTreeMap::new()));
        }
        // When all steps are done, nothing is late any more.
        let overdue = evaluation.current.and_then(|_| self.overdue(&policy, view.live));
        if let Some(overdue) = overdue {
            self.state.cause = Some(FailureCause::Overdue(overdue));
            return Ok(Paced::Failed(BTreeMap::new()));
        }
        // Which nodes begin next is not known before the answer: no pull begins or is abandoned.
        if !checked.is_asking() && self.pull(view, replacer, &policy, &evaluation) == Pulling::Again
        {
            return Ok(Paced::Wait);
        }
        let next = match self.observed.siblings {
            None => next_deletes::next(view, self.state, replacer, &evaluation, None),
            Some(siblings) => {
                let (course, nodes) = in_progress(view, (&evaluation, &checked), siblings);
                self.shared_nodes = Some((course, nodes.clone()));
                let (daemon_set, course) = (siblings.daemon_set.clone(), ShareCourse::Rolling);
                let own = Share { daemon_set, course, nodes };
                let slots = Slots::of(&own, siblings);
                let shared = Shared { slots: &slots, takes_turns: self.is_forward() };
                next_deletes::next(view, self.state, replacer, &evaluation, Some(shared))
            }
        };
        if matches!(next, Next::Delete(_)) {
            if waits_for_check(&evaluation) {
                return Ok(Paced::Wait); // not even a delete that is sent again
            }
            if is_to_note && !is_begun {
                self.note_steps(&evaluation.note, &policy, view.live)?;
            }
        }
        self.perform(next, view, &evaluation, checked.is_asking())
    }

    /// Performs the next action.
    fn perform(
        &mut self,
        next: Next,
        view: &RolloutView<'_>,
        evaluation: &Evaluation<'_>,
        is_asking: bool,
    ) -> Flow<Paced> {
        Ok(match next {
            Next::MayNotBegin(waits_for) if !is_asking => Paced::MayNotBegin(waits_for),
            Next::MayNotBegin(_) | Next::NotKnown => {
                // A stall from before may continue; it is only not known.
                self.is_stalled = true;
                Paced::Wait
            }
            Next::Wait { until } => {
                self.wake_at(until);
                Paced::Wait
            }
            Next::NotPulled => Paced::Stalled(self.not_pulled()),
            Next::NothingLeft => Paced::Clean,
            Next::PartDone => Paced::PartDone,
            Next::Stalled(what) => match self.stalled(what) {
                Some(_) if self.is_forward() && matches!(what, Stall::SharedBudget { .. }) => {
                    let step = evaluation.current_step();
                    Paced::MayNotBegin(vec![WaitsFor::of(WaitKind::SharedBudget, step)])
                }
                Some(seconds) => {
                    Paced::Stalled(Self::why_paused(view, &evaluation.domains, what, seconds))
                }
                None => Paced::Wait,
            },
            Next::Delete(deletes) => {
                for delete in deletes {
                    let request = self.state.pods.deleted.get(&delete.uid).copied();
                    self.may_go(request.unwrap_or(RequestState::Idle), Attempt::Delete)?;
                    self.delete(delete);
                }
                Paced::Wait
            }
        })
    }

    /// Whether the progress of the steps is noted: while this run replaces pods, or the controller
    /// does by a surge. Pods that are only created make no rollout, and the end of `roll` is noted
    /// last.
    fn is_to_note(&self, view: &RolloutView<'_>, replacer: Replacer<'_>) -> bool {
        let template = view.live.spec.template.raw();
        let note = self.state.note.as_ref();
        let is_in_progress = || view.outdated() > 0 || notes::started_at(note, template).is_some();
        match (replacer, &self.task.goal) {
            (Replacer::Controller, _) => {
                allows_surge(&view.live.spec.update_strategy) && is_in_progress()
            }
            (Replacer::Run(_), Goal::Roll(_)) => is_in_progress() || !notes::is_of(note, template),
            (Replacer::Run(_) | Replacer::RunBeforeSurge, _) => true,
        }
    }

    pub(super) fn delete(&mut self, delete: Delete) {
        self.share_delete(&delete.node);
        let pods = &mut self.state.pods;
        if pods.deleted.insert(delete.uid.clone(), RequestState::Out).is_none() {
            pods.count += 1;
        }
        pods.replacing.entry(delete.node.clone()).or_insert(self.now);
        pods.renewed.insert(delete.node.clone());
        if !matches!(delete.reason, Reason::DeletedNotRecreated { .. }) {
            pods.begun.insert(delete.node.clone(), self.now);
        }
        self.report(Report::Deleting(delete.clone()));
        self.effects.push(Effect::Delete(delete));
    }

    pub(super) fn why_paused(
        view: &RolloutView<'_>,
        domains: &[DomainProgress<'_>],
        what: Stall,
        seconds: i64,
    ) -> PauseReason {
        match what {
            Stall::Controller(work) => PauseReason::ControllerStalled { work, seconds },
            Stall::Budget { unavailable, allowed, outdated: _ } => {
                PauseReason::MaxUnavailableReached { unavailable, allowed, seconds }
            }
            Stall::Domains { unavailable: _, outdated: _ } => {
                let down = with_unavailable(domains);
                let down = down.map(|(name, nodes)| (name.to_owned(), nodes));
                PauseReason::DomainsUnavailable { domains: down.collect(), seconds }
            }
            Stall::SharedBudget { taken, allowed, outdated: _ } => {
                PauseReason::SharedBudgetReached { taken, allowed, seconds }
            }
            Stall::OldPods { nodes: _ } => PauseReason::OldPodsRemain {
                nodes: next_deletes::ready_on_unready_nodes(view),
                seconds,
            },
            Stall::Empty { nodes: _ } => {
                PauseReason::NotCreated { nodes: without_pod(view), seconds, message: None }
            }
        }
    }

    /// Judges the new pods: returns the failures by node, and marks the nodes that have recovered.
    pub(super) fn failed_new_pods(
        &mut self,
        view: &RolloutView<'_>,
    ) -> BTreeMap<NodeName, PodFailure> {
        self.mark_recovered(view);
        self.mark_arrived(view);
        self.mark_had_pod(view);
        let started_at = notes::started_at(self.state.note.as_ref(), view.live.spec.template.raw());
        let State { pods, creates, .. } = &mut *self.state;
        let report = new_pods::check(view, pods, creates, &self.task.policy, started_at);
        self.wake_at(report.next);
        for (node, pod_failure) in &report.failed {
            if self.state.shown.failed.insert(node.clone()) {
                self.report(Report::Failed {
                    node: node.clone(),
                    pod_failure: pod_failure.clone(),
                });
            }
        }
        report.failed
    }

    pub(super) fn mark_recovered(&mut self, view: &RolloutView<'_>) {
        for node_view in &view.node_views {
            let PodState::UpdatedAvailable(pod) = node_view.pod_state else { continue };
            let node = &node_view.node.name;
            let Some(since) = self.state.pods.replacing.remove(node) else { continue };
            let seconds = |until: Timestamp| until.duration_since(since).as_secs();
            // The wait for the new pod began when the old one was gone.
            let gone = self.state.pods.waiting.get(node).filter(|it| it.what == Awaited::Pod);
            let replaced = Replaced {
                node: node.clone(),
                wave: self.state.waves.get(node).copied(),
                seconds: seconds(self.now),
                terminating: gone.map(|waiting| seconds(waiting.since).max(0)),
                restarts: pod.restarts,
            };
            let Replaced { node, seconds, .. } = replaced.clone();
            self.state.pods.replaced.push(replaced);
            self.report(Report::Recovered { node, seconds });
        }
    }

    fn mark_arrived(&mut self, view: &RolloutView<'_>) {
        let pods = &self.state.pods;
        let surges = allows_surge(&view.live.spec.update_strategy);
        let mut arrived = Vec::new();
        for node_view in &view.node_views {
            let PodState::UpdatedAvailable(_) = node_view.pod_state else { continue };
            let node = &node_view.node.name;
            let waited = pods.waiting.get(node).filter(|it| it.what == Awaited::Pod);
            let Some(Waiting { since, .. }) = waited else { continue };
            let how = match (pods.had_pod.contains(node), surges) {
                (false, _) => Arrival::Created,
                (true, true) => Arrival::Surged,
                (true, false) => Arrival::Recreated,
            };
            arrived.push((node.clone(), how, self.now.duration_since(*since).as_secs()));
        }
        for (node, how, seconds) in arrived {
            self.state.pods.arrived.insert(node.clone());
            // The others are reported as recovered.
            if !self.state.pods.renewed.contains(&node) {
                self.report(Report::Arrived { node, how, seconds });
            }
        }
    }

    /// Remembers the nodes that have or had a pod, before the next ones arrive.
    fn mark_had_pod(&mut self, view: &RolloutView<'_>) {
        let had_pod = &mut self.state.pods.had_pod;
        for node_view in view.node_views.iter().filter(|node_view| node_view.has_had_pod()) {
            if !had_pod.contains(&node_view.node.name) {
                had_pod.insert(node_view.node.name.clone());
            }
        }
    }

    /// The nodes on which the in-process controller may create a pod now: those where the run has
    /// deleted one, and as many others, by name, as the ramp has room for. Nodes that are not Ready
    /// come last, and take no room. With `OnDelete`, new pods are not checked, so all may be created
    /// at once; a surge has its own limit.
    pub(super) fn may_create(&self, target: &Target, view: &RolloutView<'_>) -> Creates {
        let unpaced = *target.declared.strategy() == UpdateStrategy::OnDelete
            || allows_surge(target.declared.strategy())
            || view.live.managed_by == ManagedBy::DaemonSetController
            || self.task.policy.ramp == Ramp::None;
        if unpaced {
            return Creates::All;
        }
        let pods = &self.state.pods;
        let (mut ours, mut flying) = (BTreeSet::new(), 0);
        let (mut empty, mut away) = (Vec::new(), Vec::new());
        for node_view in view.node_views.iter().filter(|node_view| node_view.is_desired()) {
            let name = &node_view.node.name;
            match node_view.pod_state {
                _ if pods.replacing.contains_key(name) => {
                    ours.insert(name.clone());
                    flying += u32::from(node_view.is_in_flight());
                }
                PodState::Empty if new_pods::is_judged(node_view) => empty.push(name),
                PodState::Empty => away.push(name),
                PodState::Terminating(_) | PodState::Ended(_) => {
                    ours.insert(name.clone());
                }
                PodState::UpdatedUnavailable(_)
                | PodState::UpdatedAvailable(_)
                | PodState::Outdated(_)
                | PodState::Several { .. } => {
                    flying += u32::from(node_view.is_in_flight());
                }
            }
        }
        let window = self.task.policy.ramp.window(pods.arrived.len(), view.allowed);
        let room = usize::try_from(window.saturating_sub(flying)).unwrap_or(usize::MAX);
        // No pod starts on a node that is not Ready. It must not take the place of one that waits.
        let away = if empty.len() <= room { away } else { Vec::new() };
        ours.extend(empty.into_iter().take(room).chain(away).cloned());
        Creates::Only(ours)
    }

    /// Reports once that many pods became NotReady together, until they recover.
    fn report_lost_ready(&mut self, view: &RolloutView<'_>, replacer: Replacer<'_>) {
        let lost = match replacer {
            Replacer::Run(_) | Replacer::RunBeforeSurge => next_deletes::lost_ready(view),
            Replacer::Controller => None,
        };
        let reported = std::mem::replace(&mut self.state.shown.lost_ready, lost.is_some());
        if let Some(nodes) = lost.filter(|_| !reported) {
            self.report(Report::LostReady { nodes });
        }
    }

    pub(super) fn report_progress(&mut self, view: &RolloutView<'_>) {
        let wave = next_deletes::current(view, self.state);
        let progress = view.progress(wave, &self.state.pods);
        if self.state.shown.progress != Some(progress) {
            self.state.shown.progress = Some(progress);
            self.report(Report::Progress(progress));
        }
    }
}

/// Whether a check is unknown or has not answered, or a precondition has failed.
fn waits_for_check(evaluation: &Evaluation<'_>) -> bool {
    evaluation.waits_for.iter().any(|wait| match wait.kind {
        WaitKind::Precondition | WaitKind::Gate | WaitKind::Unknown => true,
        WaitKind::Soak
        | WaitKind::Approval
        | WaitKind::Window
        | WaitKind::ReadyNode
        | WaitKind::Order
        | WaitKind::SharedBudget => false,
    })
}
