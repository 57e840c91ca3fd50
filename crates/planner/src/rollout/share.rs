//! What a run has to do with the nodes of a shared budget, for the runs of the other DaemonSets.
//!
//! Not here: what follows from it ([`shared`](crate::shared)).

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use super::checks::Checked;
use super::decision::Decision;
use super::observed_cluster::ObservedCluster;
use super::state::{Course, State};
use super::task::{ClusterChecks, Goal, Provenance, Task};
use super::view::{NodeView, RolloutView};
use crate::digest::is_of_template;
use crate::extent::Extent;
use crate::plan::{PauseState, PausedRollout};
use crate::shared::{NodeShare, Share, ShareCourse, Siblings};
use crate::steps::{Evaluation, WaitsFor};
use daemonset::controller::revision_data::template_of;
use daemonset::model::{DaemonSet, DaemonSetKey, NodeName, PolicySpec};

type Nodes = BTreeMap<NodeName, NodeShare>;

/// The state of a run that only observes a DaemonSet.
pub fn observing(policy: &PolicySpec) -> State {
    State::new(Task {
        goal: Goal::Roll(Extent::All),
        policy: policy.clone(),
        waves: Vec::new(),
        provenance: Provenance::default(),
        deadline: None,
        allow_mass_eviction: false,
        failed_templates: BTreeSet::new(),
        note: None,
        approvals: BTreeMap::new(),
        node_seconds: None,
        has_pullers: false,
        cluster_checks: ClusterChecks::Observed,
        wait_until: None,
    })
}

/// The share of a DaemonSet that this run does not roll out, or no longer: only its disturbed nodes count.
/// `state` is the last one of its rollout, if it had one, which knows where pods were deleted.
pub fn counted(
    daemon_set: &DaemonSetKey,
    observed: &ObservedCluster<'_>,
    state: &State,
    now: Timestamp,
) -> Share {
    let nodes = observed.daemon_set.map(|live| as_it_is(live, observed, state, now));
    Share {
        daemon_set: daemon_set.clone(),
        course: ShareCourse::Counted,
        nodes: nodes.unwrap_or_default(),
    }
}

/// The nodes without anything about a rollout but what is lost by it: while it waits, its pods are those of
/// the template that waits, not of the last good one, which is live.
fn as_it_is(
    live: &DaemonSet,
    observed: &ObservedCluster<'_>,
    state: &State,
    now: Timestamp,
) -> Nodes {
    let waiting = waiting_template(live, observed);
    let template = waiting.as_ref().unwrap_or(live.spec.template.raw());
    let view = RolloutView::updated_by(template, live, observed, state, now);
    let share = |node_view: &NodeView<'_>| NodeShare {
        is_desired: node_view.is_desired(),
        is_disturbed: is_disturbed(node_view),
        ..NodeShare::default()
    };
    view.node_views.iter().map(|it| (it.node.name.clone(), share(it))).collect()
}

/// The template of the rollout that waits, if one does.
fn waiting_template(live: &DaemonSet, observed: &ObservedCluster<'_>) -> Option<Value> {
    let pause = PausedRollout::readable(live).filter(|it| it.state == PauseState::Waiting)?;
    let waiting = pause.target?;
    let revisions = observed.revisions_of(live);
    let revision = revisions.into_iter().find(|it| is_of_template(it, &waiting))?;
    template_of(&revision.data)
}

/// Whether a node counts against a shared budget. A Ready one where no pod may start lacks none, while its
/// pod goes; one that is not Ready, and counts, is lost after its update.
fn is_disturbed(node_view: &NodeView<'_>) -> bool {
    node_view.is_unavailable() && (node_view.is_desired() || !node_view.is_ready())
}

/// The nodes as the rollout of the view's template sees them, which waits for this.
pub(super) fn in_rollout(
    view: &RolloutView<'_>,
    evaluation: &Evaluation<'_>,
    waits_for: &[WaitsFor],
) -> Nodes {
    let share = |(at, node_view): (usize, &NodeView<'_>)| {
        let share = NodeShare {
            is_desired: node_view.is_desired(),
            is_disturbed: is_disturbed(node_view),
            is_updated: node_view.pod_state.is_updated(),
            is_outdated: node_view.has_outdated_pod() && node_view.is_ready(),
            is_in_flight: node_view.is_in_flight(),
            may_begin: evaluation.may_begin_after(at, waits_for),
            restarts: node_view.outdated_pod().map_or(0, |pod| pod.restarts),
        };
        (node_view.node.name.clone(), share)
    };
    view.node_views.iter().enumerate().map(share).collect()
}

/// The course and the nodes of a rollout in progress, for the other DaemonSets of the shared budget. It is
/// `Rolling` in a closed window, too, while it may replace pods on nodes that another DaemonSet has updated.
pub(super) fn in_progress(
    view: &RolloutView<'_>,
    (evaluation, checked): (&Evaluation<'_>, &Checked),
    siblings: &Siblings,
) -> (ShareCourse, Nodes) {
    let waits_for = checked.waits_for(evaluation);
    let mut nodes = in_rollout(view, evaluation, waits_for);
    let mut course = checked.course(evaluation);
    for (at, node_view) in view.node_views.iter().enumerate() {
        let name = &node_view.node.name;
        let Some(here) = nodes.get_mut(name).filter(|here| here.is_outdated) else { continue };
        if evaluation.may_finish_after(at, waits_for) && siblings.rank(name).is_open {
            here.may_begin = true;
            if matches!(course, ShareCourse::Waiting(_)) {
                course = ShareCourse::Rolling;
            }
        }
    }
    (course, nodes)
}

impl Decision<'_, '_> {
    /// Whether the target is rolled out: in a rollback, no node waits for another DaemonSet.
    pub(super) fn is_forward(&self) -> bool {
        match (&self.task.goal, &self.state.course) {
            (Goal::Apply(_) | Goal::Roll(_), Course::Forward | Course::Waiting(_)) => true,
            (Goal::Apply(_) | Goal::Roll(_), Course::Failed(_))
            | (Goal::RollBack | Goal::Release { .. } | Goal::RemovePullers, _) => false,
        }
    }

    /// Updates what the run has to do with the nodes after this decision. `nodes` are those of a decision
    /// that has evaluated the policy; else those before are kept, as far as they do not change.
    pub(super) fn share(&mut self) {
        let Some(siblings) = self.observed.siblings else { return };
        let evaluated = self.shared_nodes.take();
        let before = self.state.share.take();
        let course = match (&self.task.goal, &self.state.course) {
            (Goal::RollBack | Goal::Release { .. } | Goal::RemovePullers, _) => {
                ShareCourse::Counted
            }
            _ if self.state.stop.is_some() => ShareCourse::Stopped,
            (Goal::Apply(_) | Goal::Roll(_), Course::Failed(_)) => ShareCourse::Stopped,
            (Goal::Apply(_) | Goal::Roll(_), Course::Waiting(waits_for)) => {
                ShareCourse::Waiting(waits_for.clone())
            }
            (Goal::Apply(_) | Goal::Roll(_), Course::Forward) => match (&evaluated, &before) {
                (Some((course, _)), _) => course.clone(),
                (None, Some(before)) if self.observed.is_current => before.course.clone(),
                // What it will replace is not known before it has looked again.
                (None, Some(_) | None) => ShareCourse::Starting,
            },
        };
        let nodes = evaluated.map_or_else(|| self.nodes_as_they_are(before), |(_, nodes)| nodes);
        self.state.share = Some(Share { daemon_set: siblings.daemon_set.clone(), course, nodes });
    }

    /// The nodes of the last decision that has evaluated the policy, with what is disturbed now.
    fn nodes_as_they_are(&self, before: Option<Share>) -> Nodes {
        let before = before.map(|share| share.nodes).unwrap_or_default();
        let Some(live) = self.observed.daemon_set else { return before };
        let mut nodes = as_it_is(live, self.observed, self.state, self.now);
        for (name, now) in &mut nodes {
            if let Some(before) = before.get(name) {
                let NodeShare { is_desired, is_disturbed, .. } = *now;
                *now = NodeShare { is_desired, is_disturbed, ..*before };
            }
        }
        nodes
    }

    /// Notes that the pod of a node is deleted by this decision.
    pub(super) fn share_delete(&mut self, node: &NodeName) {
        let nodes = self.shared_nodes.as_mut().map(|(_, nodes)| nodes);
        if let Some(here) = nodes.and_then(|nodes| nodes.get_mut(node)) {
            here.is_disturbed |= here.is_desired;
            here.is_in_flight = here.is_desired;
            here.is_outdated = false;
        }
    }
}
