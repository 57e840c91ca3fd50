//! Where DaemonSets stand, without any manifest: what `status -o json` prints. The counters are
//! upstream's; where our stricter words give other numbers, both are there.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::coded::Coded;
use super::daemon_set::{Rollout, held, rollout, strategy};
use super::document::{Action, ApiVersion, ClusterSummary, Counters, NodePlan, Warning};
use super::hold::{Hold, as_declared};
use super::lock::LockStanding;
use super::nodes::Described;
use super::reason::Reason;
use super::scene::Scene;
use super::{health, warnings};
use crate::controller::Owner;
use crate::controller::node_pods::Fleet;
use crate::model::{
    DaemonSet, DaemonSetKey, DaemonSetName, Labels, NamespaceName, NodeName, Pod, PolicySpec,
    Snapshot,
};

/// The DaemonSets of a cluster, and what stands in the way of each node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Version of this document's form.
    pub api_version: ApiVersion,
    /// Always `Status`.
    pub kind: StatusKind,
    /// Which cluster was looked at, and when.
    pub cluster: ClusterSummary,
    /// One entry a DaemonSet, ordered by namespace and name.
    pub daemon_sets: Vec<DaemonSetStanding>,
    /// What a careful reader should know.
    pub warnings: Vec<Warning>,
}

/// Kind of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StatusKind {
    /// A status.
    Status,
}

/// Where one DaemonSet stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DaemonSetStanding {
    /// `metadata.namespace`.
    pub namespace: NamespaceName,
    /// `metadata.name`.
    pub name: DaemonSetName,
    /// `metadata.generation`: grows with each change of the spec.
    pub generation: i64,
    /// Generation that the controller's counters speak of.
    pub observed_generation: i64,
    /// The counters in the object's `status`, which kubectl prints.
    pub reported: Counters,
    /// The same counters taken from nodes and pods, by the stricter rules: a pod that is
    /// terminating is not available, and only its hash label makes a pod updated.
    pub counted: Counters,
    /// `spec.template.spec.nodeSelector` as kubectl prints it: `disk=ssd,zone=a`, or `<none>`.
    pub node_selector: String,
    /// Age of the object in seconds, at the moment observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<i64>,
    /// The rollout that `ds-apply` has begun and not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// Who has its lock: a run of `ds-apply` that is under way, or one that is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<LockStanding>,
    /// The nodes that are not as they should be, ordered by name; under a hold, by the strategy
    /// that was declared.
    pub obstacles: Vec<NodeObstacles>,
}

/// What stands in the way of one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeObstacles {
    /// Name of the node.
    pub node: NodeName,
    /// Why; the first one is the main one.
    pub reasons: Vec<Coded<Reason>>,
}

/// Where the DaemonSets of the snapshot stand that `wanted` accepts.
pub fn status(snapshot: &Snapshot, wanted: impl Fn(&DaemonSetKey) -> bool) -> Status {
    let templates = snapshot.daemon_sets.iter().map(|live| &live.spec.template.placement);
    let fleet = Fleet::seen_by(&snapshot.nodes, templates);
    let mut notes = Vec::from_iter(warnings::about_server(&snapshot.cluster));
    notes.extend(warnings::unreadable::warnings(snapshot));
    let live = snapshot.daemon_sets.iter().filter(|live| wanted(&live.key));
    let daemon_sets = live
        .map(|live| {
            let (hold, unreadable) = held(Some(live));
            let live = &*as_declared(live, hold.as_ref());
            let scene = Scene::of(Owner::from(live), Some(live), snapshot, &fleet);
            notes.extend(unreadable);
            notes.append(&mut warnings::about(&scene, Some(live), snapshot, &BTreeSet::new()));
            standing(live, hold, &scene, snapshot)
        })
        .collect();
    Status {
        api_version: ApiVersion::V1Alpha1,
        kind: StatusKind::Status,
        cluster: ClusterSummary::from(snapshot),
        daemon_sets,
        warnings: notes,
    }
}

fn standing(
    live: &DaemonSet,
    hold: Option<Hold>,
    scene: &Scene<'_>,
    snapshot: &Snapshot,
) -> DaemonSetStanding {
    let untouched = live.terminating.then_some(Reason::DaemonSetTerminating);
    let strategy = strategy(&scene.view());
    let pace = PolicySpec::default();
    let Rollout { nodes, .. } = rollout(scene, strategy, &pace, untouched, Described::Busy);
    let age = live.created.map(|created| snapshot.observed_at.duration_since(created).as_secs());
    let lock = snapshot.lock_holder(&live.key);
    DaemonSetStanding {
        namespace: live.key.namespace.clone(),
        name: live.key.name.clone(),
        generation: live.generation,
        observed_generation: live.status.observed_generation,
        reported: Counters::from(live.status),
        counted: counted(scene),
        node_selector: selector_text(&live.spec.template.placement.node_selector),
        age_seconds: age,
        hold,
        lock: lock.map(|holder| LockStanding::of(holder, snapshot.observed_at)),
        obstacles: nodes.into_iter().filter_map(|node| obstacles(scene, node)).collect(),
    }
}

/// Why a node is not as it should be: what is to be done there, and what ails its pods.
fn obstacles(scene: &Scene<'_>, mut plan: NodePlan) -> Option<NodeObstacles> {
    if plan.action == Action::Keep {
        plan.reasons.clear();
    }
    health::add_ailments(scene, &mut plan);
    let NodePlan { name: node, reasons, .. } = plan;
    (!reasons.is_empty()).then_some(NodeObstacles { node, reasons })
}

/// Counts nodes by the stricter rules.
pub(super) fn counted(scene: &Scene<'_>) -> Counters {
    let view = scene.view();
    let mut counters = Counters::default();
    for (at, placement) in view.placements.iter().enumerate() {
        let pods = view.pods.at(at);
        if !placement.may_start {
            counters.misscheduled += u32::from(!pods.is_empty());
            continue;
        }
        let any = |holds: &dyn Fn(&Pod) -> bool| u32::from(pods.iter().any(|pod| holds(pod)));
        counters.desired += 1;
        counters.current += u32::from(!pods.is_empty());
        counters.ready += any(&|pod| pod.is_ready());
        counters.updated += any(&|pod| scene.target.templates.is_updated(pod));
        counters.available += any(&|pod| health::is_available(scene, pod));
    }
    counters.unavailable = counters.desired - counters.available;
    counters
}

/// A node selector as kubectl prints it.
fn selector_text(selector: &Labels) -> String {
    if selector.is_empty() {
        return "<none>".to_owned();
    }
    let pairs: Vec<String> = selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(",")
}
