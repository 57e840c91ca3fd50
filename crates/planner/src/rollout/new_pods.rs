//! Which new pods have failed. A pod fails if it is not available in time (the policy's
//! `progressDeadline`, 10 minutes), has a reason that does not pass by itself for 30 s
//! ([`GRACE`]), restarts more often than `maxRestarts` (3), or does not exist. A pod that is Ready
//! in time gets `minReadySeconds` on top; an old pod has its grace period and the deadline to end.
//!
//! Only Ready nodes that should run a pod are checked; a NotReady node says nothing about the
//! template, nor does a pod that failed before the rollout (`failing_before`). Not here: the
//! consequences (`failure`; in `roll` and `step`, `roll`).

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::outcome::PodFailure;
use super::state::{Awaited, Creates, GRACE, Pods, Waiting};
use super::view::{NodeView, PodState, RolloutView};
use crate::classification::{has_failed_permanently, progress_deadline, restarts_too_often};
use crate::plan::not_available;
use daemonset::model::{NodeName, Pod, PolicySpec};

/// Whether a node without an available pod may have one soon: it is Ready, and its pod, if there is
/// one, has no permanent failure.
pub(super) fn may_become_available(node_view: &NodeView<'_>) -> bool {
    let may_come = match node_view.pod_state {
        PodState::UpdatedAvailable(pod)
        | PodState::UpdatedUnavailable(pod)
        | PodState::Outdated(pod) => !has_failed_permanently(pod),
        PodState::Several { updated, outdated } => {
            [updated, outdated].into_iter().flatten().any(|pod| !has_failed_permanently(pod))
        }
        PodState::Terminating(_) | PodState::Ended(_) | PodState::Empty => node_view.is_desired(),
    };
    node_view.is_ready() && may_come
}

/// Whether the new pod of a node says anything about the template.
pub(super) fn is_judged(node_view: &NodeView<'_>) -> bool {
    node_view.is_desired() && node_view.is_ready() && !node_view.failed_before
}

/// The new pods that have failed, and when to look again.
#[derive(Debug, Default)]
pub(super) struct NewPodsReport {
    /// Failures by node.
    pub failed: BTreeMap<NodeName, PodFailure>,
    /// The earliest time at which the result may change, if the cluster does not.
    pub next: Option<Timestamp>,
}

/// Checks every node, and remembers since when each waits. A node on which no pod may be created yet
/// is skipped. `started_at` is the start of the rollout, by earlier runs too.
pub(super) fn check(
    view: &RolloutView<'_>,
    pods: &mut Pods,
    creates: &Creates,
    policy: &PolicySpec,
    started_at: Option<Timestamp>,
) -> NewPodsReport {
    let report = NewPodsReport::default();
    let mut judge = Judge { view, policy, now: view.now, started_at, report };
    let mut waiting = BTreeMap::new();
    for node_view in view.node_views.iter().filter(|node_view| is_judged(node_view)) {
        let (what, pod) = match node_view.pod_state {
            PodState::Outdated(_) | PodState::Several { updated: None, outdated: _ } => continue,
            PodState::UpdatedAvailable(pod) => {
                judge.restarts(node_view, pod);
                pods.failing_since.remove(&pod.uid);
                continue;
            }
            PodState::UpdatedUnavailable(pod)
            | PodState::Several { updated: Some(pod), outdated: _ }
                if view.is_available(pod) =>
            {
                judge.restarts(node_view, pod);
                continue;
            }
            PodState::UpdatedUnavailable(pod)
            | PodState::Several { updated: Some(pod), outdated: _ }
            | PodState::Ended(pod) => (Awaited::Pod, Some(pod)),
            PodState::Terminating(_) => (Awaited::Departure, None),
            PodState::Empty if !creates.may(&node_view.node.name) => continue,
            PodState::Empty => (Awaited::Pod, None),
        };
        let name = &node_view.node.name;
        let known = pods.waiting.get(name).filter(|waiting| waiting.what == what);
        let begun = || judge.begin(pod).max(pods.begin.unwrap_or(Timestamp::MIN));
        let since = known.map_or_else(begun, |waiting| waiting.since);
        waiting.insert(name.clone(), Waiting { since, what });
        judge.judge(node_view, since, pods);
        let available_at = pod.and_then(|pod| view.available_at(pod));
        judge.look_again(available_at);
    }
    pods.waiting = waiting;
    let Judge { report, .. } = judge;
    report
}

struct Judge<'s, 'a> {
    view: &'s RolloutView<'a>,
    policy: &'s PolicySpec,
    now: Timestamp,
    /// Start of the rollout, if it is noted.
    started_at: Option<Timestamp>,
    report: NewPodsReport,
}

impl Judge<'_, '_> {
    /// The start of the wait of a node that was not waiting before: the creation of its new pod,
    /// unless that is too long ago. An older pod was available before, or is from an earlier
    /// rollout.
    fn begin(&self, pod: Option<&Pod>) -> Timestamp {
        let created = pod.and_then(|pod| pod.created).filter(|created| *created <= self.now);
        created
            .filter(|created| created.duration_until(self.now) <= self.deadline())
            .map_or(self.now, Timestamp::from)
    }

    fn deadline(&self) -> SignedDuration {
        progress_deadline(self.policy)
    }

    fn judge(&mut self, node_view: &NodeView<'_>, since: Timestamp, pods: &mut Pods) {
        match node_view.pod_state {
            PodState::UpdatedUnavailable(pod)
            | PodState::Several { updated: Some(pod), outdated: _ } => {
                self.permanent_failure(node_view, pod, pods);
                self.restarts(node_view, pod);
                self.too_late(node_view, pod, since);
            }
            PodState::Ended(pod) => self.too_late(node_view, pod, since),
            PodState::Terminating(pod) => match self.view.spared_at(pod, pods) {
                // Its delete may never have been executed.
                Some(at) => self.look_again(Some(at)),
                None => self.still_terminating(node_view, pod, since),
            },
            PodState::Empty => self.no_pod(node_view, since, pods),
            PodState::UpdatedAvailable(_)
            | PodState::Outdated(_)
            | PodState::Several { updated: None, outdated: _ } => {}
        }
    }

    /// Fails if the pod is not available by the deadline. A Ready pod gets `minReadySeconds` on
    /// top.
    fn too_late(&mut self, node_view: &NodeView<'_>, pod: &Pod, since: Timestamp) {
        let min_ready = self.view.min_ready;
        let proving = if pod.is_ready() { min_ready } else { 0 };
        let limit = self.deadline() + SignedDuration::from_secs(proving.into());
        self.after(node_view, since, limit, |seconds| PodFailure::TooLate {
            pod: pod.name.clone(),
            seconds,
            reason: not_available(pod, min_ready),
        });
    }

    fn permanent_failure(&mut self, node_view: &NodeView<'_>, pod: &Pod, pods: &mut Pods) {
        if pod.is_ready() {
            pods.failing_since.remove(&pod.uid);
            return;
        }
        if !has_failed_permanently(pod) {
            return;
        }
        let since = *pods.failing_since.entry(pod.uid.clone()).or_insert(self.now);
        let min_ready = self.view.min_ready;
        self.after(node_view, since, GRACE, |seconds| PodFailure::Permanent {
            pod: pod.name.clone(),
            seconds,
            reason: not_available(pod, min_ready),
        });
    }

    /// Fails if the pod restarted more often than allowed, available in between or not.
    fn restarts(&mut self, node_view: &NodeView<'_>, pod: &Pod) {
        if restarts_too_often(pod, self.now, self.policy, self.started_at) {
            let pod_failure = PodFailure::Restarts {
                pod: pod.name.clone(),
                restarts: pod.restarts,
                allowed: self.policy.max_restarts,
            };
            self.fail(node_view, pod_failure);
        }
    }

    fn still_terminating(&mut self, node_view: &NodeView<'_>, pod: &Pod, since: Timestamp) {
        let template = self.view.live.spec.template.raw();
        let grace = template.pointer("/spec/terminationGracePeriodSeconds");
        let grace = grace.and_then(serde_json::Value::as_u64).and_then(|it| u32::try_from(it).ok());
        let limit = self.deadline() + SignedDuration::from_secs(grace.unwrap_or(30).into());
        self.after(node_view, since, limit, |seconds| PodFailure::StillTerminating {
            pod: pod.name.clone(),
            seconds,
        });
    }

    /// Fails if no pod is created. When the controller reports that the server rejects it,
    /// [`GRACE`] is the limit.
    fn no_pod(&mut self, node_view: &NodeView<'_>, since: Timestamp, pods: &Pods) {
        let failure = pods.create_failure(since);
        let refused = failure.is_some_and(|failure| failure.refused);
        let limit = if refused { GRACE.min(self.deadline()) } else { self.deadline() };
        self.after(node_view, since, limit, |seconds| PodFailure::NoPod {
            seconds,
            message: failure.map(|failure| failure.message.clone()),
        });
    }

    /// Fails when `limit` is over, else remembers when that will be.
    fn after(
        &mut self,
        node_view: &NodeView<'_>,
        since: Timestamp,
        limit: SignedDuration,
        pod_failure: impl FnOnce(i64) -> PodFailure,
    ) {
        let waited = self.now.duration_since(since);
        if waited >= limit {
            self.fail(node_view, pod_failure(waited.as_secs()));
        } else {
            self.look_again(Some(since + limit));
        }
    }

    /// Requests another check at this time.
    fn look_again(&mut self, at: Option<Timestamp>) {
        self.report.next = self.report.next.into_iter().chain(at).min();
    }

    /// Adds a failure; the first one of a node stays.
    fn fail(&mut self, node_view: &NodeView<'_>, pod_failure: PodFailure) {
        self.report.failed.entry(node_view.node.name.clone()).or_insert(pod_failure);
    }
}
