//! Random DaemonSets on random nodes: the nodes on which `ds-plan` plans to create a pod are the
//! ones on which the real controller then creates one.
//!
//! Only the test sets taints: the admission plugin and the controller that do are disabled. Without
//! a scheduler and a kubelet, a pod stays as the controller created it.

mod census;
mod shapes;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use daemonset::model::Snapshot;
use k8s_openapi::api::apps::v1::DaemonSet;
use planner::plan::{Action, ActionTotals, Coded, Plan, Reason, status};
use serde_json::Value;

use crate::controller::{self, counters, key, node_of, owner_of, pods, settle};
use crate::harness::{Component, ControlPlane, kubernetes, wait_until_async};
use crate::planning::{desired_of, documents, live, planned};
use census::Census;
use shapes::{NAMESPACES, comparing, daemon_sets, nodes};

const SOON: Duration = Duration::from_mins(2);

/// The nodes that get a pod, by DaemonSet.
type Creates = BTreeMap<String, BTreeSet<String>>;

#[tokio::test(flavor = "multi_thread")]
async fn the_controller_creates_pods_where_the_plan_does() {
    if !kubernetes::since(35, "the gate TaintTolerationComparisonOperators") {
        return;
    }
    let plane = ControlPlane::builder()
        .without(Component::Scheduler)
        .without(Component::Kwok)
        .without(Component::ControllerManager)
        .without_admission("TaintNodesByCondition")
        .without_controller("node-lifecycle-controller")
        .without_controller("taint-eviction-controller")
        .without_controller("pod-garbage-collector-controller")
        // Disabled in the controller, so the operators exist but never match.
        .flag(Component::ApiServer, "--feature-gates=TaintTolerationComparisonOperators=true")
        .start();
    plane.create_nodes(nodes());
    create_namespaces(&plane);
    let manifests = documents(&daemon_sets());
    create(&plane, &manifests);
    create(&plane, &documents(&comparing()));

    let desired = desired_of(&manifests);
    let before = live(&plane).await;
    let plan = planned(&before, &desired);

    plane.start_component(Component::ControllerManager);
    wait_until_async("the controller creates all pods", SOON, async || {
        controller::daemon_sets(&plane).await.iter().all(is_complete)
    })
    .await;
    settle(&plane).await;

    let created = created(&plane).await;
    let without_manifests = creates_by_status(&before);
    assert_same(&creates_by_plan(&plan), &created, &manifests);
    assert_same(&without_manifests, &created, &manifests);
    assert_eq!(without_manifests.len(), daemon_sets().len() + comparing().len());

    let after = planned(&live(&plane).await, &desired);
    let nothing_to_do = ActionTotals { keep: after.totals.actions.keep, ..ActionTotals::default() };
    assert_eq!(after.totals.actions, nothing_to_do);
    let counters = counters(&plane).await;
    for daemon_set in &after.daemon_sets {
        let key = format!("{}/{}", daemon_set.namespace, daemon_set.name);
        assert_eq!(daemon_set.status, counters.get(&key).copied(), "{key}");
    }
    Census::of(&before).assert_interesting();
}

fn create_namespaces(plane: &ControlPlane) {
    for (name, annotations) in NAMESPACES {
        plane.kubectl(&["create", "namespace", name]);
        for (key, value) in annotations {
            plane.kubectl(&["annotate", "namespace", name, &format!("{key}={value}")]);
        }
    }
}

fn create(plane: &ControlPlane, manifests: &str) {
    plane.kubectl_stdin(&["create", "--filename=-"], manifests);
}

/// Whether the controller reports a pod on every desired node.
fn is_complete(daemon_set: &DaemonSet) -> bool {
    daemon_set.status.as_ref().is_some_and(|status| {
        status.observed_generation == daemon_set.metadata.generation
            && status.current_number_scheduled == status.desired_number_scheduled
    })
}

/// The nodes with pods, by DaemonSet.
async fn created(plane: &ControlPlane) -> Creates {
    let daemon_sets = controller::daemon_sets(plane).await;
    let mut creates: Creates = daemon_sets.iter().map(|it| (key(it), BTreeSet::new())).collect();
    for pod in pods(plane).await {
        let (owner, node) = (owner_of(&pod).unwrap(), node_of(&pod).unwrap());
        let new = creates.get_mut(&owner).unwrap().insert(node.clone());
        assert!(new, "{owner} has two pods on {node}");
    }
    creates
}

fn creates_by_plan(plan: &Plan) -> Creates {
    let daemon_sets = plan.daemon_sets.iter().map(|it| {
        let nodes = it.nodes.iter().filter(|node| node.action == Action::Create);
        let nodes = nodes.map(|node| node.name.to_string());
        (format!("{}/{}", it.namespace, it.name), nodes.collect())
    });
    daemon_sets.collect()
}

/// The missing pods according to `status`, which needs no manifest.
fn creates_by_status(snapshot: &Snapshot) -> Creates {
    let daemon_sets = status(snapshot, |_| true).daemon_sets.into_iter().map(|it| {
        let missing = |reason: &Coded<Reason>| reason.reason == Reason::NoPod;
        let nodes = it.obstacles.into_iter().filter(|node| node.reasons.iter().any(missing));
        let nodes = nodes.map(|node| node.node.to_string());
        (format!("{}/{}", it.namespace, it.name), nodes.collect())
    });
    daemon_sets.collect()
}

/// Panics with every DaemonSet whose nodes differ.
fn assert_same(planned: &Creates, created: &Creates, manifests: &str) {
    let mut report = String::new();
    for (key, planned) in planned {
        let created = &created[key];
        for (nodes, what) in [
            (planned - created, "planned, but not created"),
            (created - planned, "created, but not planned"),
        ] {
            if !nodes.is_empty() {
                writeln!(report, "{key}: {what} on {nodes:?}").unwrap();
            }
        }
    }
    if report.is_empty() {
        return;
    }
    for document in manifests.lines().filter(|line| *line != "---") {
        let name: Value = serde_json::from_str(document).unwrap();
        let name = name["metadata"]["name"].as_str().unwrap();
        if report.contains(&format!("/{name}:")) {
            writeln!(report, "{document}").unwrap();
        }
    }
    panic!("the controller and the plan differ:\n{report}");
}
