//! What the images of new pods mean for the next deletes, if the policy wants them pulled before: the
//! nodes whose images come next, and what a run does while they are missing.

use super::{Next, Outdated, Replacement, Replacer};
use crate::extent::Extent;
use crate::rollout::state::State;
use crate::rollout::view::RolloutView;
use crate::steps::{Evaluation, WaitKind};

/// The nodes that begin next, in their order, as far as the policy is concerned: what is decided about
/// their images comes before that about their pods. Before a surge, these are all that are left. As
/// positions in the view.
pub(in crate::rollout) fn to_begin<'s, 'a>(
    view: &'s RolloutView<'a>,
    state: &'s State,
    replacer: Replacer<'s>,
    steps: &'s Evaluation<'s>,
) -> Vec<usize> {
    let (extent, surges) = match replacer {
        Replacer::Controller => return Vec::new(),
        Replacer::Run(extent) => (extent, false),
        Replacer::RunBeforeSurge => (&Extent::All, steps.is_last()),
    };
    let replacement = Replacement::of(view, state, extent, steps, None);
    let mut next: Vec<Outdated<'s, 'a>> = match surges {
        true if steps.waits_for.is_empty() => replacement.outdated_in_scope().collect(),
        true => Vec::new(),
        false => replacement.policy_lets_begin().collect(),
    };
    // As they are replaced: pods that serve nobody come first.
    next.sort_by_key(|outdated| (steps.waves[outdated.at], view.is_available(outdated.pod)));
    next.into_iter().take(replacement.left).map(|outdated| outdated.at).collect()
}

impl Replacement<'_, '_> {
    /// The next action if nodes wait for their images, or too many did not get them.
    pub(super) fn waits_for_images(&self) -> Option<Next> {
        let pulls = &self.state.pulls;
        // A step of which no other node is Ready does not become so.
        let is_stuck = || {
            let waits_for = &self.steps.waits_for;
            waits_for.iter().any(|wait| wait.kind == WaitKind::ReadyNode) && self.lacks_images()
        };
        if pulls.is_over || is_stuck() {
            Some(Next::NotPulled)
        } else {
            (pulls.is_pulling && self.left > 0).then_some(Next::Wait { until: None })
        }
    }

    /// Whether a node of this run keeps its old pod, because it did not get the images.
    pub(super) fn lacks_images(&self) -> bool {
        self.view.node_views.iter().any(|node_view| {
            let name = &node_view.node.name;
            self.extent.may_include(name)
                && self.state.is_dropped(name)
                && node_view.has_outdated_pod()
        })
    }
}
