//! The output of `status -o json`: the state of DaemonSets, without any manifest. Both counters are
//! shown: those of upstream, and those by stricter rules.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::coded::Coded;
use super::daemon_set::{Rollout, RolloutRequest, pause_of, rollout, strategy};
use super::daemon_set_view::DaemonSetView;
use super::document::{Action, ApiVersion, ClusterSummary, Counters, NodePlan, Warning};
use super::lock::LockStatus;
use super::nodes::Described;
use super::pause::{PausedRollout, as_declared, waits_since};
use super::policy_progress::{PolicyProgress, rolled_out};
use super::reason::Reason;
use super::{health, policy_progress, warnings};
use daemonset::controller::Owner;
use daemonset::controller::node_pods::Fleet;
use daemonset::model::{
    DaemonSet, DaemonSetKey, DaemonSetName, Labels, NamespaceName, NodeName, Pod, PolicySpec,
    RolloutPolicy, Snapshot,
};

/// The status of the DaemonSets of a cluster, with the reasons why nodes are not up to date.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Status")]
pub struct StatusReport {
    /// Version of this document's format.
    pub api_version: ApiVersion,
    /// Always `Status`.
    pub kind: StatusKind,
    /// The cluster, and the time of its snapshot.
    pub cluster: ClusterSummary,
    /// One entry per DaemonSet, ordered by namespace and name.
    pub daemon_sets: Vec<DaemonSetStatusReport>,
    /// Warnings.
    pub warnings: Vec<Warning>,
}

/// Kind of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StatusKind {
    /// A status.
    Status,
}

/// Status of one DaemonSet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DaemonSetStatusReport {
    /// `metadata.namespace`.
    pub namespace: NamespaceName,
    /// `metadata.name`.
    pub name: DaemonSetName,
    /// `metadata.generation`: grows with each change of the spec.
    pub generation: i64,
    /// `status.observedGeneration`: the generation of the reported counters.
    pub observed_generation: i64,
    /// The counters in the object's `status`, which kubectl prints.
    pub reported: Counters,
    /// The same counters computed from nodes and pods by stricter rules: a terminating pod is not
    /// available, and only a pod with the hash label of the template is updated.
    pub counted: Counters,
    /// `spec.template.spec.nodeSelector` as kubectl prints it: `disk=ssd,zone=a`, or `<none>`.
    pub node_selector: String,
    /// Age of the object in seconds at the time of the snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<i64>,
    /// The rollout that `ds-apply` has paused or aborted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<PausedRollout>,
    /// The time since which the rollout waits, if it does and that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_since: Option<Timestamp>,
    /// The nodes that pull the images of their new pods before the old ones are replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pulling: Vec<NodeName>,
    /// How far the rollout is by its policy; none if no policy is at hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<PolicyProgress>,
    /// Its lock: held by a run of `ds-apply` in progress, or left over with an expired lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<LockStatus>,
    /// The nodes that are not up to date or not available, ordered by name. While paused, outdated
    /// pods stay.
    pub obstacles: Vec<NodeObstacles>,
}

/// A node that is not up to date or not available.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeObstacles {
    /// Name of the node.
    pub node: NodeName,
    /// Reasons; the first one is the main one.
    pub reasons: Vec<Coded<Reason>>,
}

/// Returns the status of the DaemonSets in the snapshot that `wanted` accepts.
pub fn status(snapshot: &Snapshot, wanted: impl Fn(&DaemonSetKey) -> bool) -> StatusReport {
    status_under(snapshot, wanted, |_| None)
}

/// The same with the policies at hand: how far each rollout is by its policy.
pub fn status_under(
    snapshot: &Snapshot,
    wanted: impl Fn(&DaemonSetKey) -> bool,
    policy: impl Fn(&DaemonSetKey) -> Option<Arc<RolloutPolicy>>,
) -> StatusReport {
    let templates = snapshot.daemon_sets.iter().map(|live| &live.spec.template.placement);
    let fleet = Fleet::seen_by(&snapshot.nodes, templates);
    let mut notes = warnings::of_cluster(snapshot);
    let live = snapshot.daemon_sets.iter().filter(|live| wanted(&live.key));
    let daemon_sets = live
        .map(|live| {
            let (pause, unreadable) = pause_of(Some(live));
            let live = &*as_declared(live, pause.as_ref());
            let daemon_set_view =
                DaemonSetView::of(Owner::from(live), Some(live), snapshot, &fleet)
                    .while_paused(pause.is_some());
            notes.extend(unreadable);
            notes.append(&mut warnings::about(
                &daemon_set_view,
                Some(live),
                snapshot,
                &BTreeMap::new(),
            ));
            let report = budget_view(live, pause, &daemon_set_view, snapshot);
            let policy = policy(&live.key);
            let progress = policy.map(|policy| progress(live, &policy, snapshot));
            DaemonSetStatusReport { progress, ..report }
        })
        .collect();
    StatusReport {
        api_version: ApiVersion::V1Alpha1,
        kind: StatusKind::Status,
        cluster: ClusterSummary::from(snapshot),
        daemon_sets,
        warnings: notes,
    }
}

/// How far the rollout is by its policy.
fn progress(live: &DaemonSet, policy: &RolloutPolicy, snapshot: &Snapshot) -> PolicyProgress {
    let target = rolled_out(live, &policy.spec, snapshot);
    let templates = [&*target, live].map(|it| &it.spec.template.placement);
    let fleet = Fleet::seen_by(&snapshot.nodes, templates);
    policy_progress::progress(live, &target, policy, snapshot, &fleet, Described::Busy).2
}

fn budget_view(
    live: &DaemonSet,
    pause: Option<PausedRollout>,
    daemon_set_view: &DaemonSetView<'_>,
    snapshot: &Snapshot,
) -> DaemonSetStatusReport {
    let untouched = live.terminating.then_some(Reason::DaemonSetTerminating);
    let strategy = strategy(&daemon_set_view.view());
    let request = RolloutRequest {
        strategy,
        policy: &PolicySpec::default(),
        shared_budget: None,
        siblings: &BTreeMap::new(),
        untouched,
        node_seconds: 0,
        described: Described::Busy,
        live: Some(live),
        snapshot,
        now: snapshot.observed_at,
    };
    let Rollout { nodes, .. } = rollout(daemon_set_view, request);
    let age = live.created.map(|created| snapshot.observed_at.duration_since(created).as_secs());
    let lock = snapshot.lock_holder(&live.key);
    DaemonSetStatusReport {
        namespace: live.key.namespace.clone(),
        name: live.key.name.clone(),
        generation: live.generation,
        observed_generation: live.status.observed_generation,
        reported: Counters::from(live.status),
        counted: counted(daemon_set_view),
        node_selector: selector_text(&live.spec.template.placement.node_selector),
        age_seconds: age,
        waits_since: pause.as_ref().and_then(|pause| waits_since(live, pause)),
        pause,
        pulling: pulling(live, snapshot),
        progress: None,
        lock: lock.map(|holder| LockStatus::of(holder, snapshot.observed_at)),
        obstacles: nodes.into_iter().filter_map(|node| obstacles(daemon_set_view, node)).collect(),
    }
}

/// The nodes with a puller that is not through, by name.
fn pulling(live: &DaemonSet, snapshot: &Snapshot) -> Vec<NodeName> {
    let pullers = snapshot.pullers(&live.key).filter(|pod| !pod.terminating && !pod.is_terminal());
    let mut nodes: Vec<NodeName> = pullers.filter_map(|pod| pod.node().cloned()).collect();
    nodes.sort();
    nodes
}

/// The reasons why a node is not up to date or not available: its action and its pod failures.
fn obstacles(daemon_set_view: &DaemonSetView<'_>, mut plan: NodePlan) -> Option<NodeObstacles> {
    if plan.action == Action::Keep {
        plan.reasons = Arc::default();
    }
    health::add_ailments(daemon_set_view, &mut plan);
    let NodePlan { name: node, reasons, .. } = plan;
    (!reasons.is_empty()).then(|| NodeObstacles { node, reasons: reasons.to_vec() })
}

/// Computes the counters by the stricter rules.
pub(super) fn counted(daemon_set_view: &DaemonSetView<'_>) -> Counters {
    let view = daemon_set_view.view();
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
        counters.updated += any(&|pod| daemon_set_view.target.templates.is_updated(pod));
        counters.available += any(&|pod| health::is_available(daemon_set_view, pod));
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
