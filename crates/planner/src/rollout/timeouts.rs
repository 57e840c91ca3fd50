//! Stalls: conditions that a run waits for while nothing changes, and their timeouts.

use jiff::SignedDuration;

use super::decision::{Decision, Flow, Halt};
use super::observed_cluster::{is_older_version, resource_version};
use super::outcome::{ControllerWork, PauseReason};
use super::progress::Report;
use super::request::Purpose;
use super::state::GRACE;
use super::state::Stall;
use super::view::{NodeView, PodState, RolloutView};
use crate::classification::progress_deadline;
use daemonset::model::{DaemonSet, ManagedBy, NodeName};

impl Decision<'_, '_> {
    /// Waits until the observed object is as new as the last write.
    pub(super) fn appeared(&mut self, live: &DaemonSet) -> Flow<()> {
        match &self.state.writing.version {
            Some(written)
                if is_older_version(resource_version(live), &written.resource_version) =>
            {
                Err(self.stalled_for(ControllerWork::Appear))
            }
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn is_done(&self, purpose: Purpose) -> bool {
        self.state.writing.done.contains(&purpose)
    }

    /// Waits until the controller has observed the live object and has one revision of its
    /// template. Pods that are deleted earlier might be recreated with the previous template.
    pub(super) fn controller_has_observed(&mut self, view: &RolloutView<'_>) -> Flow<()> {
        let generation = view.live.generation;
        let observed = view.live.status.observed_generation;
        let work = match view.revisions.as_slice() {
            _ if observed < generation => ControllerWork::Observe { generation, observed },
            [] => ControllerWork::MakeRevision,
            [revision] => {
                if self.state.shown.revision.as_ref() != Some(&revision.name) {
                    self.state.shown.revision = Some(revision.name.clone());
                    self.report(Report::Revision(revision.name.clone()));
                }
                return Ok(());
            }
            several => ControllerWork::DropDuplicates { revisions: several.len() },
        };
        Err(self.stalled_for(work))
    }

    pub(super) fn timeout(&self) -> SignedDuration {
        progress_deadline(&self.task.policy)
    }

    /// Remembers a stall; returns its duration in seconds once it exceeds the timeout.
    pub(super) fn stalled(&mut self, what: Stall) -> Option<i64> {
        self.is_stalled = true;
        let (since, least) = match self.state.stall {
            Some((since, before)) if !what.is_progress_since(before) => (since, before),
            Some(_) | None => (self.now, what),
        };
        self.state.stall = Some((since, least));
        let waited = self.now.duration_since(since);
        if waited >= self.timeout() {
            return Some(waited.as_secs());
        }
        self.wake_at(Some(since + self.timeout()));
        None
    }

    /// Waits for the controller, up to the timeout.
    pub(super) fn stalled_for(&mut self, work: ControllerWork) -> Halt {
        match self.stalled(Stall::Controller(work)) {
            Some(seconds) => Halt::paused(PauseReason::ControllerStalled { work, seconds }),
            None => Halt::Wait,
        }
    }

    /// Waits until every node has its pod, with the in-process controller: after the run nothing
    /// else creates pods. For `OnDelete`, which checks no gates; the gates wait for pods
    /// themselves. When the server rejects the pods, the run waits only [`GRACE`].
    pub(super) fn filled(&mut self, view: &RolloutView<'_>) -> Flow<()> {
        match view.live.managed_by {
            ManagedBy::DaemonSetController => return Ok(()),
            ManagedBy::DsApply => {}
        }
        let nodes = without_pod(view);
        if nodes.is_empty() {
            return Ok(());
        }
        let waited = self.stalled(Stall::Empty { nodes: nodes.len() });
        let since = self.state.stall.as_ref().map_or(self.now, |(since, _)| *since);
        let failure = self.state.pods.create_failure(since);
        let message = failure.map(|failure| failure.message.clone());
        let refused = failure.is_some_and(|failure| failure.refused);
        let over = refused && self.now.duration_since(since) >= GRACE;
        self.wake_at(refused.then_some(since + GRACE).filter(|at| *at > self.now));
        let seconds = waited.or_else(|| over.then(|| self.now.duration_since(since).as_secs()));
        Err(match seconds {
            None => Halt::Wait,
            Some(seconds) => Halt::paused(PauseReason::NotCreated { nodes, seconds, message }),
        })
    }
}

/// Desired nodes that have no pod, or only a terminating one.
pub(super) fn without_pod(view: &RolloutView<'_>) -> Vec<NodeName> {
    let empty = |node_view: &&NodeView<'_>| match node_view.pod_state {
        PodState::Empty => node_view.is_desired(),
        // The kubelet of a node that is not Ready may never finish the termination.
        PodState::Terminating(_) => node_view.is_desired() && node_view.is_ready(),
        // The failed-pod back-off decides when an ended pod is replaced.
        PodState::UpdatedAvailable(_)
        | PodState::UpdatedUnavailable(_)
        | PodState::Outdated(_)
        | PodState::Several { .. }
        | PodState::Ended(_) => false,
    };
    view.node_views.iter().filter(empty).map(|node_view| node_view.node.name.clone()).collect()
}
