//! The next action of a rollout that ends in a surge: before it, and while the controller surges.

use super::{Next, Replacement};
use crate::rollout::outcome::ControllerWork;
use crate::rollout::request::Delete;
use crate::rollout::state::{Stall, State};
use crate::rollout::view::RolloutView;
use crate::steps::{Evaluation, WaitKind};
use daemonset::controller::limits::allows_surge;

/// The next action while the controller replaces pods. In a surge under a policy, it must not begin
/// more nodes when a window closes or an approval is missing; and the last step may soak.
pub(super) fn watch(view: &RolloutView<'_>, state: &State, steps: &Evaluation<'_>) -> Next {
    let outdated = view.outdated();
    let waits = |kinds: &[WaitKind]| {
        let surges = allows_surge(&view.live.spec.update_strategy);
        let waits = steps.waits_for.iter().filter(|wait| surges && kinds.contains(&wait.kind));
        waits.cloned().collect::<Vec<_>>()
    };
    let checks = [WaitKind::Gate, WaitKind::Precondition, WaitKind::Unknown];
    let begins = waits(&[&[WaitKind::Window, WaitKind::Approval], &checks[..]].concat());
    let ends = waits(&[&[WaitKind::Soak], &checks[..]].concat());
    if outdated > 0 && !begins.is_empty() {
        Next::MayNotBegin(begins)
    } else if !state.pods.waiting.is_empty() {
        Next::Wait { until: None }
    } else if outdated > 0 {
        Next::Stalled(Stall::Controller(ControllerWork::Roll { outdated }))
    } else if !ends.is_empty() && has_begun(state, steps) {
        Next::MayNotBegin(ends)
    } else {
        Next::NothingLeft
    }
}

/// Whether a rollout of this template was noted: the creation of a DaemonSet has no steps.
fn has_begun(state: &State, steps: &Evaluation<'_>) -> bool {
    let note = state.note.as_ref().filter(|note| note.template == steps.note.template);
    note.is_some_and(|note| note.started_at.is_some())
}

impl Replacement<'_, '_> {
    /// The next action in a rollout whose last step is a surge of the controller. What has begun ends
    /// before that.
    pub(super) fn next_before_surge(&self) -> Next {
        if !self.steps.is_last() {
            return self.next();
        }
        let retries: Vec<Delete> = self.retries().take(self.requests()).collect();
        if !retries.is_empty() {
            return Next::Delete(retries);
        }
        if !self.state.pods.waiting.is_empty() || self.state.deletes_out() > 0 {
            return Next::Wait { until: None };
        }
        if let Some(next) = self.waits_for_images() {
            return next;
        }
        match self.steps.waits_for.as_slice() {
            // The controller would surge there, too, and fail.
            [] if self.lacks_images() => Next::NotPulled,
            [] => Next::NothingLeft,
            waits_for => Next::MayNotBegin(waits_for.to_vec()),
        }
    }
}
