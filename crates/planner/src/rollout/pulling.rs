//! A decision's part in pulling images before pods are replaced (`prePull` of the policy): what is
//! decided ([`Pulls`]) becomes requests, reports, waits, and the end of a run.
//!
//! Before the first pod, images come before the write of the target: if they are missing, nothing
//! has changed at all.
//!
//! [`Pulls`]: super::pulls::Pulls

use std::collections::BTreeSet;

use super::decision::{Decision, Flow, Halt, is_template};
use super::effect::Effect;
use super::next_deletes::{self, Replacer};
use super::outcome::PauseReason;
use super::progress::Report;
use super::pulls::{PullInput, PullRequests};
use super::request::NewPuller;
use super::task::{Target, with_template};
use super::view::{NodeView, RolloutView, count};
use crate::extent::Extent;
use crate::pre_pull::{TemplateImages, puller, revisions_with};
use crate::steps::{Evaluation, WaitKind, WaitsFor};
use daemonset::controller::limits::allows_surge;
use daemonset::model::{DaemonSet, NodeName, PodName, PolicySpec, PrePull, Uid, UpdateStrategy};

/// What pulls mean for a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pulling {
    /// What may begin is decided as usual, but for the nodes whose images are not there.
    Continue,
    /// A node was dropped, or has its images, just now: everything is decided again. A soak that the node
    /// ends is noted as over before its pod is deleted.
    Again,
}

impl<'w> Decision<'_, 'w> {
    /// Pulls the images of the nodes that begin next.
    pub(super) fn pull(
        &mut self,
        view: &RolloutView<'_>,
        replacer: Replacer<'_>,
        policy: &PolicySpec,
        evaluation: &Evaluation<'_>,
    ) -> Pulling {
        let next = next_deletes::to_begin(view, self.state, replacer, evaluation);
        self.pull_to(view, next, policy.pre_pull)
    }

    fn pull_to(
        &mut self,
        view: &RolloutView<'_>,
        next: Vec<usize>,
        pre_pull: Option<PrePull>,
    ) -> Pulling {
        // Without it, only what an earlier run has left is removed.
        let next = if pre_pull.is_some() { self.without_images(view, next) } else { Vec::new() };
        let images = TemplateImages::of(view.live.spec.template.raw());
        let unready = view.node_views.iter().filter(|it| it.is_desired() && !it.is_ready());
        self.state.pulls.skippable = view.skippable;
        self.state.pulls.is_over =
            !self.state.pulls.dropped.is_empty() && count(unready) > view.skippable;
        let requests = self.state.pulls.decide(PullInput {
            next: &next,
            pullers: self.observed.pullers,
            images: &images.digest(),
            pre_pull: pre_pull.unwrap_or_default(),
            now: self.now,
        });
        let is_again = !requests.dropped.is_empty() || !requests.pulled.is_empty();
        self.request_pulls(requests, view.live, pre_pull.unwrap_or_default(), images.count());
        if is_again {
            self.wake_at(Some(self.now));
            return Pulling::Again;
        }
        Pulling::Continue
    }

    /// Before the target is written: waits until the first node has its images, or, where the
    /// controller will surge, all of them.
    pub(super) fn pull_first(&mut self, target: &Target, live: &'w DaemonSet) -> Flow<()> {
        let policy = self.policy();
        let declared = target.declared.strategy();
        // A rollout that has begun continues.
        let is_live = is_template(live, target.template.raw());
        let is_rolling = is_live && live.spec.update_strategy != UpdateStrategy::OnDelete;
        let surges = allows_surge(declared) && !self.deletes_before_surge(target, live);
        let is_first = !is_rolling && (!is_live || surges);
        if policy.pre_pull.is_none() || *declared == UpdateStrategy::OnDelete || !is_first {
            return Ok(());
        }
        let after = with_template(live, target);
        let observed = self.observed.on(None);
        let view = RolloutView::of(&after, &observed, self.state, self.now);
        let nodes = self.step_nodes(&view, live);
        let evaluation = self.evaluated(&nodes, &policy, &after);
        let replacer = if surges { Replacer::RunBeforeSurge } else { Replacer::Run(&Extent::All) };
        let next = next_deletes::to_begin(&view, self.state, replacer, &evaluation);
        let pulling = self.pull(&view, replacer, &policy, &evaluation);
        if pulling == Pulling::Again {
            return Err(Halt::Wait);
        }
        let pulls = &self.state.pulls;
        let has_first = next.iter().any(|at| !pulls.holds_back(&view.node_views[*at].node.name));
        if has_first && !(surges && (pulls.is_pulling || !pulls.dropped.is_empty())) {
            return Ok(());
        }
        if pulls.is_pulling && !pulls.is_over {
            return Err(Halt::Wait);
        }
        if pulls.dropped.is_empty() {
            return Ok(());
        }
        Err(Halt::paused(self.not_pulled()))
    }

    /// The reason to pause for images that are missing.
    pub(super) fn not_pulled(&self) -> PauseReason {
        let (nodes, skippable) = (self.state.pulls.dropped.clone(), self.state.pulls.skippable);
        PauseReason::NotPulled { nodes, skippable }
    }

    /// Whether a step has no Ready node because images are missing: waiting would be in vain.
    pub(super) fn lacks_images_for(&self, waits_for: &[WaitsFor]) -> bool {
        !self.state.pulls.dropped.is_empty()
            && waits_for.iter().any(|wait| wait.kind == WaitKind::ReadyNode)
    }

    /// Requests the removal of all pullers that are left; returns whether there are none.
    pub(super) fn pullers_are_removed(&mut self) -> bool {
        let (requests, is_left) = self.state.pulls.remove_all(self.observed.pullers, self.now);
        self.wake_at(requests.wake);
        self.remove_pullers(requests.remove, requests.left);
        !is_left
    }

    fn request_pulls(
        &mut self,
        requests: PullRequests,
        live: &DaemonSet,
        pre_pull: PrePull,
        images: usize,
    ) {
        let PullRequests { create, remove, left, pulled, dropped, wake } = requests;
        self.wake_at(wake);
        for (node, seconds) in pulled {
            self.report(Report::Pulled { node, seconds });
        }
        for node in dropped {
            if let Some(why) = self.state.pulls.dropped.get(&node).cloned() {
                self.report(Report::NotPulled { node, why });
            }
        }
        self.remove_pullers(remove, left);
        for node in create {
            let pod = puller(&live.key, &live.spec.template, &node, pre_pull);
            self.report(Report::Pulling { node: node.clone(), images });
            self.push(Effect::CreatePuller(Box::new(NewPuller { node, pod })));
        }
    }

    /// Requests the removal of these pullers, of which so many are left and of no use.
    fn remove_pullers(&mut self, remove: Vec<(PodName, Uid)>, left: usize) {
        if left > 0 {
            self.report(Report::RemovingPullers { pods: left });
        }
        for (pod, uid) in remove {
            self.push(Effect::RemovePuller { pod, uid });
        }
    }

    /// The nodes with an outdated pod that cannot begin before they have the images of the new one.
    pub(super) fn lacking_images(&self, view: &RolloutView<'_>) -> BTreeSet<NodeName> {
        if !self.is_forward() || self.task.policy.pre_pull.is_none() {
            return BTreeSet::new();
        }
        let is_outdated = |at: &usize| view.node_views[*at].has_outdated_pod();
        let outdated = (0..view.node_views.len()).filter(is_outdated).collect();
        let without = self.without_images(view, outdated).into_iter();
        without.filter(|node| !self.state.pulls.has_pulled(node)).collect()
    }

    /// The part of these nodes whose pods run without some of the images.
    fn without_images(&self, view: &RolloutView<'_>, next: Vec<usize>) -> Vec<NodeName> {
        let claimed = self.observed.revisions_of(view.live);
        let with_images = revisions_with(view.live.spec.template.raw(), &claimed);
        let needs_them = |node_view: &&NodeView<'_>| {
            let pod = node_view.outdated_pod();
            !pod.is_some_and(|pod| with_images.iter().any(|hash| pod.has_hash(hash)))
        };
        let next = next.into_iter().map(|at| &view.node_views[at]);
        next.filter(needs_them).map(|it| it.node.name.clone()).collect()
    }
}
