//! Updated pods that failed before this rollout began. They say nothing about it: they count as
//! unavailable, but fail no rollout, and the ramp does not wait for them.
//!
//! A pod of this rollout must never be taken for one of them, also not by a run that resumes it:
//! see [`Began`].

use jiff::Timestamp;

use super::decision::{Decision, is_template};
use super::notes::started_at;
use super::task::Target;
use super::view::{NodeView, of_template};
use crate::classification::stays_unready;
use crate::digest::template_digest;
use crate::plan::{PauseState, PausedRollout};
use daemonset::controller::limits::allows_surge;
use daemonset::model::{DaemonSet, Pod, PodReadiness};

/// When the rollout of the target began.
#[derive(Clone, Copy, Debug)]
enum Began {
    /// It begins now: another template is live, or waits, or its own rollout was aborted.
    Now,
    /// The template is live and paused, or waits, since this time.
    At(Timestamp),
    /// The template is live without a pause. The controller may be rolling it out, but pods that
    /// are older than the progress deadline are not judged any more.
    Earlier,
    /// Unknown: the controller may be surging, which needs no pause, or the template is recorded as
    /// failed and tried again.
    Unknown,
}

impl<'w> Decision<'_, 'w> {
    /// Finds the pods that failed before, when the run observes the DaemonSet for the first time.
    pub(super) fn find_failing_before(&mut self, target: &Target, live: &'w DaemonSet) {
        if self.state.pods.failing_before.is_some() {
            return;
        }
        let began = self.began(target, live);
        let revisions = self.observed.revisions_of(live);
        let (templates, _) = of_template(target.template.raw(), &revisions);
        let pods = self.observed.pods_of(live);
        let failing = pods.into_iter().filter(|pod| {
            templates.is_updated(pod) && self.is_failing(pod, live) && self.is_older(pod, began)
        });
        self.state.pods.failing_before = Some(failing.map(|pod| pod.uid.clone()).collect());
    }

    fn began(&self, target: &Target, live: &'w DaemonSet) -> Began {
        let is_live = is_template(live, target.template.raw());
        let started = started_at(self.state.note.as_ref(), target.template.raw());
        match PausedRollout::of(live) {
            _ if self.has_failed(target.template.raw()) => Began::Unknown,
            Ok(Some(pause)) if waits(&pause, target) => started.map_or(Began::Unknown, Began::At),
            Ok(_) if !is_live => Began::Now,
            Ok(Some(PausedRollout {
                state: PauseState::Aborted | PauseState::Waiting, ..
            })) => Began::Now,
            Ok(Some(PausedRollout { state: PauseState::Paused, since, .. })) => {
                Began::At(started.map_or(since, |started| started.min(since)))
            }
            Ok(None) if self.may_surge(target, live) => Began::Unknown,
            Ok(None) => Began::Earlier,
            // The run will end.
            Err(_) => Began::Unknown,
        }
    }

    /// Whether a surge of the live target, which needs no pause, may be in progress: its beginning is
    /// noted and its end is not, or a pod is outdated on a Ready node.
    fn may_surge(&self, target: &Target, live: &'w DaemonSet) -> bool {
        let is_outdated =
            |node_view: &NodeView<'_>| node_view.is_ready() && node_view.has_outdated_pod();
        let is_begun = started_at(self.state.note.as_ref(), target.template.raw()).is_some();
        allows_surge(target.declared.strategy())
            && (is_begun || self.look(live).node_views.iter().any(is_outdated))
    }

    /// Whether a pod stays unready, or is Ready for a moment between two of too many restarts.
    fn is_failing(&self, pod: &Pod, live: &DaemonSet) -> bool {
        let policy = &self.task.policy;
        let wanted = policy.min_ready(&live.spec).first;
        let is_between_restarts =
            || pod.restarts > policy.max_restarts && !pod.has_stayed_up(wanted, self.now);
        stays_unready(pod, self.now, policy) || (pod.is_ready() && is_between_restarts())
    }

    /// Whether a failing pod failed before the rollout began.
    fn is_older(&self, pod: &Pod, began: Began) -> bool {
        let created_before = |at: Timestamp| pod.created.is_some_and(|created| created < at);
        match began {
            Began::Now => true,
            Began::At(at) => {
                let not_ready = match pod.readiness {
                    PodReadiness::NotReady { since } => since.is_none_or(|since| since < at),
                    PodReadiness::Ready { since: _ } => false,
                };
                created_before(at) && not_ready
            }
            Began::Earlier => created_before(self.now - self.timeout()),
            Began::Unknown => false,
        }
    }
}

/// Whether the rollout that waits is that of the target. While another one waits, the target may be
/// live as its last good template.
fn waits(pause: &PausedRollout, target: &Target) -> bool {
    let is_target = |digest: &String| *digest == template_digest(target.template.raw());
    // An earlier version did not name the template.
    pause.state == PauseState::Waiting && pause.target.as_ref().is_none_or(is_target)
}
