//! The fake kubelets (`stages/*.yaml`): pods behave as their image or their node selects.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::harness::{Component, ControlPlane, FakeNode, wait_for, wait_until};

const SOON: Duration = Duration::from_mins(1);

/// A pod that is bound to a node from the start, so no scheduler is needed.
fn pod(name: &str, image: &str, node: &str, annotations: &str) -> String {
    format!(
        "
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: default, annotations: {{{annotations}}}}}
spec:
  nodeName: {node}
  terminationGracePeriodSeconds: 600
  containers: [{{name: main, image: '{image}'}}]
"
    )
}

/// Each pod's phase, readiness and the reason why its container waits or has ended.
fn fates(plane: &ControlPlane) -> BTreeMap<String, String> {
    let fields = [
        ".metadata.name",
        ".status.phase",
        ".status.conditions[?(@.type==\"Ready\")].status",
        ".status.containerStatuses[0].state.*.reason",
    ];
    let fields = fields.map(|field| format!("{{{field}}}")).join(" ");
    let output = format!("--output=jsonpath={{range .items[*]}}{fields}{{\"\\n\"}}{{end}}");
    plane
        .kubectl(&["get", "pods", &output])
        .lines()
        .map(|line| line.trim_end().split_once(' ').unwrap_or((line, "")))
        .map(|(name, fate)| (name.to_owned(), fate.to_owned()))
        .collect()
}

/// Waits until a pod has the expected state.
#[track_caller]
fn expect(plane: &ControlPlane, pod: &str, fate: &str) {
    wait_for(pod, SOON, Some(fate.to_owned()), || fates(plane).remove(pod));
}

#[test]
fn pods_behave_as_their_image_or_node_selects() {
    let plane = ControlPlane::builder().without(Component::Scheduler).start();
    plane.create_nodes([FakeNode::new("n1"), FakeNode::new("n2-bad")]);
    let pods = [
        pod("good", "registry:5000/agent:v1", "n1", ""),
        pod("bad", "agent:v2-bad", "n1", ""),
        pod("bad-node", "agent:v1", "n2-bad", ""),
        pod("crash", "agent:crash", "n1", ""),
        pod("done", "agent:done", "n1", ""),
        pod("fail", "agent:v3-fail", "n1", ""),
    ];
    plane.apply_yaml(&pods.concat());
    expect(&plane, "good", "Running True");
    expect(&plane, "bad", "Pending False ImagePullBackOff");
    expect(&plane, "bad-node", "Pending False ImagePullBackOff");
    expect(&plane, "crash", "Running False CrashLoopBackOff");
    expect(&plane, "done", "Succeeded False Completed");
    expect(&plane, "fail", "Failed False Error");
    let restarts = "--output=jsonpath={.status.containerStatuses[0].restartCount}";
    wait_for("the count of crashes", SOON, "2", || {
        plane.kubectl(&["get", "pod", "crash", restarts])
    });
}

/// Only minimum durations are asserted: a busy machine may be late, but never early.
#[test]
fn pods_are_delayed_by_their_annotations() {
    let plane = ControlPlane::builder()
        .without(Component::Scheduler)
        .without(Component::ControllerManager)
        .start();
    plane.create_nodes([FakeNode::new("n1")]);
    let pods = [
        pod("quick", "agent:v1", "n1", ""),
        pod("stubborn", "agent:v1", "n1", "terminate-after: grace"),
        pod("late", "agent:v1", "n1", "ready-after: 3s"),
    ];
    let start = Instant::now();
    plane.apply_yaml(&pods.concat());
    expect(&plane, "late", "Running True");
    assert!(start.elapsed() >= Duration::from_secs(3), "pod late was ready too early");

    let start = Instant::now();
    plane.kubectl(&["delete", "pod", "quick", "--wait=false"]);
    plane.kubectl(&["delete", "pod", "stubborn", "--wait=false", "--grace-period=5"]);
    wait_until("pod quick ends, with ten minutes of grace left", SOON, || {
        !fates(&plane).contains_key("quick")
    });
    wait_until("pod stubborn ends", SOON, || !fates(&plane).contains_key("stubborn"));
    // The server rounds timestamps to a second.
    assert!(start.elapsed() >= Duration::from_secs(4), "pod stubborn ended too early");
}

#[test]
fn a_node_goes_down_and_comes_back() {
    let plane = ControlPlane::builder().without(Component::Scheduler).start();
    plane.create_nodes([FakeNode::new("n1")]);
    let taints =
        || plane.kubectl(&["get", "node", "n1", "--output=jsonpath={.spec.taints[*].key}"]);
    wait_until("the node is ready", SOON, || taints().is_empty());
    plane.kubectl(&["label", "node", "n1", "kubelet=down"]);
    wait_until("the node is tainted", SOON, || taints().contains("node.kubernetes.io/not-ready"));
    plane.kubectl(&["label", "node", "n1", "kubelet-"]);
    wait_until("the node is ready again", SOON, || taints().is_empty());
}
