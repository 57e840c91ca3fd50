//! Checks that the cluster itself answers: other pods on a node, and the conditions of nodes.

use super::*;

#[test]
fn checks_see_nodes_and_other_pods() {
    side_by_side(&[
        a_node_with_a_gpu_in_use_is_skipped,
        an_agent_that_breaks_its_neighbours_stops_at_the_first_node,
        a_condition_that_turns_bad_after_an_update_aborts,
        a_node_that_is_lost_after_its_update_aborts,
    ]);
}

/// A pod of somebody else, bound to this node.
fn add_pod(plane: &ControlPlane, namespace: &str, name: &str, node: &str, resources: &str) {
    plane.apply_yaml(&format!(
        "apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {namespace}, labels: {{app: {namespace}}}}}
spec:
  nodeName: {node}
  containers: [{{name: main, image: 'cr.example/main:v1', resources: {resources}}}]
"
    ));
    wait_for("a Ready pod", SOON, "True".to_owned(), || {
        let ready = "--output=jsonpath={.status.conditions[?(@.type==\"Ready\")].status}";
        plane.kubectl(&["--namespace", namespace, "get", "pod", name, ready])
    });
}

/// Changes the status of an object, as its kubelet does.
fn patch_status(plane: &ControlPlane, object: &[&str], status: &Value) {
    let patch = format!("--patch={}", json!({"status": status}));
    let flags = ["--subresource=status", "--type=strategic", &patch];
    plane.kubectl(&[&["patch"], object, &flags].concat());
}

/// A condition that has just changed.
fn changed(kind: &str, status: &str) -> Value {
    let now = Timestamp::now().round(jiff::Unit::Second).unwrap().to_string();
    json!({"conditions": [{"type": kind, "status": status, "lastTransitionTime": now}]})
}

/// The others are updated, and that one when the pod has ended.
fn a_node_with_a_gpu_in_use_is_skipped(plane: &ControlPlane) {
    let policy =
        "  preconditions:\n  - {name: gpu, pods: {resource: example.com/gpu, expect: absent}}";
    let staged = Staged::new(plane, "gpu-in-use", 3, policy);
    plane.kubectl(&["create", "namespace", "train"]);
    let gpu = "{requests: {example.com/gpu: 1}, limits: {example.com/gpu: 1}}";
    add_pod(plane, "train", "job", "gpu-in-use-01", gpu);
    let said = "check gpu: pod train/job on node gpu-in-use-01 is there";
    ends(&staged.run("v2", &[]), 8, &["waiting: step rest waits for a precondition since ", said]);
    let others = ["gpu-in-use-00", "gpu-in-use-02"].map(str::to_owned);
    assert_eq!(staged.nodes_with("v2"), others.into());
    staged.is_waiting(&staged.live());
    let status = plane.ds_plan(&["status", "gpu-in-use/agent"], &[]);
    ends(&status, 0, &[said]);
    let explain = |node| plane.ds_plan(&["explain", "gpu-in-use/agent", node], &[]);
    ends(&explain("gpu-in-use-01"), 0, &[said]);
    assert!(!output_text(&explain("gpu-in-use-00")).contains("check gpu"));
    let checks = ["checks", "-f", "agent.yaml"];
    let asked = plane.ds_plan(&checks, &[("agent.yaml", &staged.version("v2"))]);
    ends(&asked, 4, &["precondition gpu: fail: pod train/job on node gpu-in-use-01 is there"]);
    // The run that waits itself takes no slot, and continues when the pod has ended.
    let run = staged.fleet.start(&staged.version("v2"), &["--wait=10m"]);
    wait_until("the run has begun", SOON, || {
        let lease = staged.fleet.json(&["get", "lease", "ds-plan-agent"]);
        lease["spec"]["holderIdentity"].as_str().is_some_and(|holder| !holder.is_empty())
    });
    thread::sleep(Duration::from_secs(3));
    // Nothing may begin, so nothing is written.
    assert_eq!((&*staged.live().image, staged.nodes_with("v2").len()), ("v1", 2));
    let job = ["--namespace", "train", "pod", "job"];
    patch_status(plane, &job, &json!({"phase": "Succeeded"}));
    ends(&run.wait(), 0, &["done"]);
    staged.is_complete("v2");
}

/// Here, the neighbours become unready after the new pod has started. An abort does not wait for the
/// end of the soak, which this test never reaches; the run may wait for longer than that, or it would
/// end at once.
fn an_agent_that_breaks_its_neighbours_stops_at_the_first_node(plane: &ControlPlane) {
    let policy = "  steps: [{name: canary, nodes: 1, soak: 1h}]\n  gates:\n  - name: neighbours\n    interval: 2s\n    \
                  pods: {selector: {matchLabels: {app: neighbours}}}";
    let staged = Staged::new(plane, "breaks", 3, policy);
    plane.kubectl(&["create", "namespace", "neighbours"]);
    for at in 0..3 {
        add_pod(plane, "neighbours", &format!("dns-{at}"), &format!("breaks-0{at}"), "{}");
    }
    // They have to be older than the new pods, whose times are in whole seconds.
    thread::sleep(Duration::from_secs(2));
    let run = staged.fleet.start(&staged.version("v2"), &["--wait=2h"]);
    wait_until("the first new pod", SOON, || !staged.nodes_with("v2").is_empty());
    let node = staged.nodes_with("v2").pop_first().unwrap();
    thread::sleep(Duration::from_secs(1));
    let neighbour = format!("dns-{}", &node[node.len() - 1..]);
    let pod = ["--namespace", "neighbours", "pod", &neighbour];
    patch_status(plane, &pod, &changed("Ready", "False"));
    let said = format!("pod neighbours/{neighbour} on node {node} is not Ready since ");
    let nodes = format!("with new pods on 1 node ({node})");
    ends(&run.wait(), 4, &["aborted: gate neighbours failed: ", &said, &nodes]);
    assert_eq!(staged.nodes_with("v2"), [node].into());
    assert_eq!(staged.live().image, "v1");
}

/// The condition is a taint, too: no pod may start on that node any more.
fn a_condition_that_turns_bad_after_an_update_aborts(plane: &ControlPlane) {
    let policy = "  steps: [{name: canary, nodes: 1, soak: 3s}]\n  gates:\n  - name: network\n    \
                  interval: 2s\n    nodeConditions: {NetworkUnavailable: 'False'}";
    let staged = Staged::new(plane, "condition", 3, policy);
    let until = staged.soaks().until();
    let node = staged.nodes_with("v2").pop_first().unwrap();
    patch_status(plane, &["node", &node], &changed("NetworkUnavailable", "True"));
    sleep_past(until);
    let said = format!("node {node} has NetworkUnavailable=True since ");
    ends(&staged.run("v2", &[]), 4, &["aborted: gate network failed: ", &said, ", not False"]);
    assert_eq!(staged.nodes_with("v2"), [node].into());
    assert_eq!(staged.live().image, "v1");
}

/// The node lifecycle controller marks the new pod as not Ready when its kubelet is silent. The gate must
/// not lose sight of the node: another canary would be updated instead.
fn a_node_that_is_lost_after_its_update_aborts(plane: &ControlPlane) {
    let policy = "  steps: [{name: canary, nodes: 1, soak: 3s}]\n  gates:\n  - name: alive\n    \
                  interval: 2s\n    nodeConditions: {Ready: 'True'}";
    let staged = Staged::new(plane, "lost", 3, policy);
    let until = staged.soaks().until();
    let node = staged.nodes_with("v2").pop_first().unwrap();
    plane.kubectl(&["label", "node", &node, "kubelet=down"]);
    wait_for("the node to be unready", SOON, "False".to_owned(), || {
        let ready = "--output=jsonpath={.status.conditions[?(@.type==\"Ready\")].status}";
        plane.kubectl(&["get", "node", &node, ready])
    });
    let pod = staged.pod_on(&node);
    patch_status(plane, &["--namespace=lost", &pod], &changed("Ready", "False"));
    sleep_past(until);
    let said = format!("aborted: gate alive failed: node {node} has Ready=False since ");
    let nodes = format!("with new pods on 1 node ({node})");
    ends(&staged.run("v2", &[]), 4, &[&said, &nodes]);
    assert_eq!(staged.nodes_with("v2"), [node].into());
    assert_eq!(staged.live().image, "v1");
}
