//! One DaemonSet with its nodes, pods and revisions: the input of all decisions about it, claimed
//! and grouped once.

use std::sync::Arc;

use jiff::Timestamp;

use super::revision::{self, RevisionTarget};
use daemonset::controller::Owner;
use daemonset::controller::claims::Claims;
use daemonset::controller::manage::View;
use daemonset::controller::node_pods::{EndedPods, Fleet, NodePods};
use daemonset::controller::placement::Placement;
use daemonset::controller::updated::CurrentTemplate;
use daemonset::model::{DaemonSet, Pod, Snapshot};

/// One DaemonSet with its nodes, pods and revisions.
pub(super) struct DaemonSetView<'a> {
    /// The DaemonSet, either live or after the apply.
    pub owner: Owner<'a>,
    /// Its pods: claimed, adopted and released.
    pub pods: Arc<Claims<'a, Pod>>,
    /// The revision of its template.
    pub target: RevisionTarget,
    /// Whether its rollout is paused: no outdated pod is replaced, whatever its strategy declares.
    pub is_paused: bool,
    fleet: &'a Fleet<'a>,
    grouped: Arc<NodePods<'a>>,
    placements: Vec<Placement>,
    current: CurrentTemplate,
    now: Timestamp,
}

impl<'a> DaemonSetView<'a> {
    /// Builds the view of `owner` in the snapshot; `live` is the live DaemonSet.
    pub(super) fn of(
        owner: Owner<'a>,
        live: Option<&DaemonSet>,
        snapshot: &'a Snapshot,
        fleet: &'a Fleet<'a>,
    ) -> Self {
        let pods = Claims::of(&owner, snapshot.pods_in(&owner.key.namespace));
        let grouped = NodePods::group(fleet, &pods.claimed, EndedPods::Dropped);
        Self::among(Arc::new(pods), Arc::new(grouped), owner, live, snapshot, fleet)
    }

    /// Builds the view of the live DaemonSet. It shares the pods if both claim the same ones.
    pub(super) fn as_it_is(&self, live: &'a DaemonSet, snapshot: &'a Snapshot) -> Self {
        let owner = Owner::from(live);
        if !owner.claims_as(&self.owner) {
            return Self::of(owner, Some(live), snapshot, self.fleet);
        }
        let (pods, grouped) = (Arc::clone(&self.pods), Arc::clone(&self.grouped));
        Self::among(pods, grouped, owner, Some(live), snapshot, self.fleet)
    }

    fn among(
        pods: Arc<Claims<'a, Pod>>,
        grouped: Arc<NodePods<'a>>,
        owner: Owner<'a>,
        live: Option<&DaemonSet>,
        snapshot: &'a Snapshot,
        fleet: &'a Fleet<'a>,
    ) -> Self {
        let namespace = &owner.key.namespace;
        let in_namespace = snapshot.revisions_in(namespace);
        let revisions = Claims::of(&owner, in_namespace);
        let target = revision::target(&owner, live, &revisions, &pods.claimed, in_namespace);
        Self {
            grouped,
            placements: fleet.placements(&owner.spec.template.placement),
            current: CurrentTemplate::new(target.hash.clone(), owner.template_generation),
            now: snapshot.observed_at,
            owner,
            pods,
            target,
            is_paused: false,
            fleet,
        }
    }

    /// The same as it is until a run continues, if its rollout `is_paused`.
    pub(super) fn while_paused(self, is_paused: bool) -> Self {
        Self { is_paused, ..self }
    }

    /// Pods of another template that the built-in controller counts as updated, because it also
    /// compares the template generation (upstream: `IsPodUpdated`).
    pub(super) fn counted_as_updated(&self) -> impl Iterator<Item = &'a Pod> {
        let templates = &self.target.templates;
        let going = |pod: &Pod| pod.terminating || pod.is_terminal();
        self.pods.claimed.iter().copied().filter(move |pod| {
            self.current.is_updated(pod) && !templates.is_updated(pod) && !going(pod)
        })
    }

    /// The input of the controller.
    pub(super) fn view(&self) -> View<'_, 'a> {
        View {
            owner: self.owner,
            fleet: self.fleet,
            placements: &self.placements,
            pods: &self.grouped,
            current: &self.current,
            now: self.now,
        }
    }
}
