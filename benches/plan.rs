//! How planning grows with the fleet: `cargo bench --bench plan`.
//!
//! Absolute times depend on the machine. The ratio between the rows matters: planning must grow
//! linearly with nodes, and little with DaemonSets that select the same nodes.

#![allow(clippy::unwrap_used, reason = "a bench without input has to stop")]

use daemonset::model::{
    ClusterInfo, ControllerRef, Coverage, DaemonSet, DaemonSetKey, DaemonSetSpec, DaemonSetStatus,
    DesiredDaemonSet, Labels, ManagedBy, Node, NodeReadiness, Place, Pod, PodPhase, PodReadiness,
    PodTarget, Snapshot,
};
use divan::Bencher;
use jiff::Timestamp;
use planner::plan::{Input, plan};
use serde_json::{Value, json};

fn main() {
    divan::main();
}

const DAEMON_SETS: usize = 20;

#[divan::bench(args = [500, 5_000, 50_000], sample_count = 5)]
fn roll_20_daemon_sets(bencher: Bencher<'_, '_>, nodes: usize) {
    let snapshot = snapshot(nodes);
    let desired: Vec<_> = (0..DAEMON_SETS).map(|number| desired(number, "agent:2")).collect();
    bencher.bench(|| plan(Input::of(&snapshot, &desired)));
}

fn spec(number: usize, image: &str) -> Value {
    let labels = json!({ "app": format!("agent-{number}") });
    json!({
        "selector": { "matchLabels": labels },
        "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": "10%" } },
        "template": {
            "metadata": { "labels": labels },
            "spec": {
                "nodeSelector": { "kubernetes.io/os": "linux" },
                "containers": [{ "name": "agent", "image": image }],
            },
        },
    })
}

fn desired(number: usize, image: &str) -> DesiredDaemonSet {
    let raw = spec(number, image);
    DesiredDaemonSet {
        key: DaemonSetKey::new("agents", format!("agent-{number}")),
        labels: Labels::default(),
        annotations: Labels::default(),
        spec: serde_json::from_value::<DaemonSetSpec>(raw.clone()).unwrap(),
        raw: json!({ "spec": raw }).into(),
        written: json!({ "spec": raw }).into(),
        place: Place { path: "bench.yaml".into(), line: 1, column: 1 },
        managed_by: ManagedBy::DaemonSetController,
        policy: None,
        loosened: None,
    }
}

fn live(number: usize) -> DaemonSet {
    let desired = desired(number, "agent:1");
    DaemonSet {
        uid: format!("uid-{}", desired.key).into(),
        key: desired.key,
        managed_by: ManagedBy::DaemonSetController,
        generation: 1,
        labels: desired.labels,
        annotations: desired.annotations,
        created: None,
        terminating: false,
        spec: desired.spec,
        status: DaemonSetStatus::default(),
        raw: desired.raw,
    }
}

fn node(number: usize) -> Node {
    let zone = format!("zone-{}", number % 3);
    Node {
        name: format!("node-{number:05}").into(),
        uid: format!("uid-node-{number}").into(),
        labels: [("kubernetes.io/os", "linux"), ("topology.kubernetes.io/zone", zone.as_str())]
            .into_iter()
            .collect(),
        taints: Box::default(),
        unschedulable: false,
        readiness: NodeReadiness::Ready,
        conditions: Box::default(),
        allocatable: Labels::default(),
        created: None,
    }
}

fn pod(owner: &DaemonSet, node: &Node) -> Pod {
    let name = format!("{}-{}", owner.key.name, node.name);
    Pod {
        namespace: owner.key.namespace.clone(),
        uid: format!("uid-{name}").into(),
        name: name.into(),
        labels: [("app", owner.key.name.as_str()), ("controller-revision-hash", "old")]
            .into_iter()
            .collect(),
        controller: Some(
            ControllerRef {
                kind: "DaemonSet".into(),
                name: owner.key.name.as_str().into(),
                uid: owner.uid.clone(),
            }
            .into(),
        ),
        target: PodTarget::Bound(node.name.clone()),
        phase: PodPhase::Running,
        readiness: PodReadiness::Ready { since: None },
        created: None,
        terminating: false,
        restarts: 0,
        containers_changed: None,
        container_failure: None,
        unready: None,
    }
}

fn snapshot(nodes: usize) -> Snapshot {
    let nodes: Vec<Node> = (0..nodes).map(node).collect();
    let daemon_sets: Vec<DaemonSet> = (0..DAEMON_SETS).map(live).collect();
    let pods = daemon_sets.iter().flat_map(|owner| nodes.iter().map(move |node| pod(owner, node)));
    let mut snapshot = Snapshot {
        unreadable: Vec::new(),
        cluster: ClusterInfo::default(),
        observed_at: Timestamp::UNIX_EPOCH,
        pods: pods.collect(),
        nodes,
        daemon_sets,
        revisions: Vec::new(),
        namespaces: Vec::new(),
        services: Vec::new(),
        leases: Vec::new(),
        priority_classes: std::collections::BTreeMap::new(),
        approvals: std::collections::BTreeMap::new(),
        records_beside: std::collections::BTreeSet::new(),
        coverage: Coverage {
            scope: None,
            managed_fields: false,
            namespaces: false,
            services: false,
            leases: false,
            records: false,
            masked: None,
        },
    };
    snapshot.sort();
    snapshot
}
