//! `managedBy: ds-apply` on a real control plane without a DaemonSet controller: the run is the
//! controller, and a ledger stands for the DaemonSet.

use std::process::Output;

use serde_json::Value;

use crate::harness::{ControlPlane, FakeNode, stdout};

const NODES: usize = 7;

/// A DaemonSet `agent` of this image, and lines of its `spec`, with the policy that says who
/// manages it.
fn manifest(namespace: &str, image: &str, spec: &str) -> String {
    format!(
        "
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: agent, namespace: {namespace}}}
spec:
  selector: {{matchLabels: {{app: agent}}}}
{spec}
  template:
    metadata: {{labels: {{app: agent}}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{{name: agent, image: 'cr.example/agent:{image}'}}]
---
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {{name: ours}}
spec: {{selects: {{names: [{namespace}/agent]}}, managedBy: ds-apply}}
"
    )
}

fn told(output: &Output) -> String {
    format!("{}\n{}\n{}", output.status, stdout(output), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn spike() {
    let plane = ControlPlane::builder().without_controller("daemonset-controller").start();
    plane.create_nodes(FakeNode::many("node-", NODES));
    plane.kubectl(&["create", "namespace", "ours"]);
    let apply = |image: &str, flags: &[&str]| {
        let manifest =
            manifest("ours", image, "  updateStrategy: {rollingUpdate: {maxUnavailable: 2}}");
        let arguments = [&["--yes", "-f", "agent.yaml"], flags].concat();
        let output = plane.ds_apply(&arguments, &[("agent.yaml", &manifest)]).run();
        println!("==== apply {image}\n{}", told(&output));
        output
    };
    let plan = |arguments: &[&str], image: &str| {
        let manifest =
            manifest("ours", image, "  updateStrategy: {rollingUpdate: {maxUnavailable: 2}}");
        let output = plane.ds_plan(arguments, &[("agent.yaml", &manifest)]);
        println!("==== {arguments:?}\n{}", told(&output));
    };
    apply("v1", &[]);
    println!("{}", plane.kubectl(&["-n", "ours", "get", "pods,controllerrevisions", "-o", "wide"]));
    println!("{}", plane.kubectl(&["-n", "ours", "get", "cm", "ds-plan-agent", "-o", "yaml"]));
    plan(&["-f", "agent.yaml"], "v1");
    plan(&["-f", "agent.yaml"], "v2");
    apply("v2", &[]);
    plan(&["status", "ours/agent"], "v1");
    plan(&["history", "ours/agent"], "v1");
    plan(&["drift", "-f", "agent.yaml"], "v2");
    println!("{}", plane.kubectl(&["-n", "ours", "get", "pods,controllerrevisions", "-o", "wide"]));
    let output = plane.ds_apply(&["undo", "ours/agent", "--yes"], &[]).run();
    println!("==== undo\n{}", told(&output));
    plan(&["history", "ours/agent"], "v1");
    panic!("look");
}
