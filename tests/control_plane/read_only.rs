//! `ds-plan` writes nothing with any command: it runs under a read-only role, and the API server's
//! audit log contains only reads of it.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use crate::harness::{ControlPlane, FakeNode, shown_yaml, stdout, wait_for, wait_until};

const SOON: Duration = Duration::from_mins(1);

const AGENT: &str = "
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: default}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: 'agent:1'}]}
";

/// A policy that asks for an approval, so that approvals are read, and has a check.
const POLICY: &str = "---
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: careful}
spec:
  selects: {names: [default/agent]}
  steps: [{name: half, nodes: 2, approve: true}]
  gates: [{name: well, command: ['true']}]
";

/// Every command, and its exit code on a manifest that differs from the live object.
const COMMANDS: [(&[&str], i32); 17] = [
    (&["plan", "-f", "agent.yaml", "--detailed-exitcode"], 2),
    (&["plan", "-f", "agent.yaml", "-o", "json", "--all-nodes", "--show-values"], 0),
    (&["plan", "-f", "agent.yaml", "--out", "plan.json"], 0),
    (&["diff", "-f", "agent.yaml", "--detailed-exitcode"], 2),
    (&["diff", "-f", "agent.yaml", "-o", "yaml"], 0),
    (&["drift", "-f", "agent.yaml"], 3),
    (&["drift", "-f", "agent.yaml", "-o", "json"], 3),
    (&["explain", "default/agent", "node-000"], 0),
    (&["status"], 0),
    (&["history"], 0),
    (&["history", "default/agent", "--revision", "1"], 0),
    (&["snapshot", "--out", "cluster.json.gz"], 0),
    // No program runs without `--allow-commands`.
    (&["checks", "-f", "agent.yaml"], 8),
    // These read no cluster, so the flags of one are refused.
    (&["show", "plan.json"], 64),
    (&["schema", "drift"], 64),
    (&["completions", "bash"], 64),
    (&["man"], 64),
];

/// The commands that the help lists.
fn known_commands(plane: &ControlPlane) -> BTreeSet<String> {
    let help = stdout(&plane.ds_plan(&["--help"], &[]));
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names = list.lines().filter(|line| !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

#[test]
fn every_command_only_reads() {
    let plane = ControlPlane::builder().user("ops", &[]).audit().start();
    plane.create_nodes(FakeNode::many("node", 3));
    plane.apply_yaml(AGENT);
    plane.apply_yaml(&shown_yaml("ClusterRole"));
    plane.kubectl(&["create", "clusterrolebinding", "ops", "--clusterrole=ds-plan", "--user=ops"]);
    let available =
        || plane.kubectl(&["get", "daemonset", "agent", "-o=jsonpath={.status.numberAvailable}"]);
    wait_for("available pods", SOON, "3".to_owned(), available);
    // The API server's authorizer sees a new role with a delay.
    wait_until("the role to take effect", SOON, || {
        plane.ds_plan_as("ops", &["status"], &[]).status.success()
    });

    let newer = format!("{}{POLICY}", AGENT.replace("agent:1", "agent:2"));
    let tried: BTreeSet<String> = COMMANDS.iter().map(|(line, _)| line[0].to_owned()).collect();
    assert_eq!(tried, known_commands(&plane), "a command without a test");
    for (line, code) in COMMANDS {
        let output = plane.ds_plan_as("ops", line, &[("agent.yaml", &newer)]);
        assert_eq!(output.status.code(), Some(code), "{line:?}: {output:?}");
    }

    let log = plane.audit_log();
    let ours: Vec<&Value> = log.iter().filter(|event| event["user"]["username"] == "ops").collect();
    assert!(ours.len() > COMMANDS.len(), "only {} requests", ours.len());
    let verbs: BTreeSet<&str> = ours.iter().map(|event| event["verb"].as_str().unwrap()).collect();
    assert_eq!(verbs, BTreeSet::from(["get", "list"]));
    let refused: Vec<_> = ours.iter().filter(|it| it["responseStatus"]["code"] == 403).collect();
    assert!(refused.is_empty(), "the role is not sufficient: {refused:#?}");
    let approvals = |it: &&Value| it["objectRef"]["name"] == "ds-plan-agent-approvals";
    assert!(ours.iter().copied().any(|it| approvals(&it)), "approvals are read");
}
