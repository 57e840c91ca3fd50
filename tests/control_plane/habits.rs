//! kubectl's habits on a real API server: names and namespaces, impersonation, the log of requests,
//! `--dry-run`, and waiting for a rollout where `kubectl rollout status` refuses.

use std::process::{Command, Output};

use assert_cmd::cargo::cargo_bin;

use crate::harness::{ControlPlane, FakeNode, stdout};

const AGENT: &str = "
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: default}
spec:
  selector: {matchLabels: {app: agent}}
  updateStrategy: {type: STRATEGY}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: 'agent:VERSION'}]}
";

fn agent(strategy: &str, version: &str) -> String {
    AGENT.replace("STRATEGY", strategy).replace("VERSION", version)
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn plane() -> ControlPlane {
    let plane = ControlPlane::start();
    plane.create_nodes(FakeNode::many("node", 3));
    plane.apply_yaml(&agent("RollingUpdate", "1"));
    plane.wait_until_rolled_out("agent", 3);
    plane
}

#[test]
fn names_and_namespaces_are_those_of_kubectl() {
    let plane = plane();
    let status = |arguments: &[&str]| plane.ds_plan(&[&["status"], arguments].concat(), &[]);
    for arguments in [
        &[][..],
        &["agent"],
        &["ds/agent"],
        &["daemonset.apps/agent"],
        &["default/agent"],
        &["agent", "-n", "default"],
    ] {
        let shown = stdout(&status(arguments));
        let theirs = plane.kubectl(&["get", "daemonset", "agent"]);
        let header = theirs.lines().next().unwrap().trim_end();
        assert_eq!(shown.lines().next().unwrap(), header, "{arguments:?}");
    }
    let shown = stdout(&status(&["-A"]));
    let theirs = plane.kubectl(&["get", "daemonset", "-A"]);
    assert_eq!(shown.lines().next().unwrap(), theirs.lines().next().unwrap().trim_end());
    assert_eq!(stdout(&status(&["-n", "kube-system"])), "No DaemonSets found.\n");
    assert_eq!(status(&["agent", "-n", "kube-system"]).status.code(), Some(1));
    assert_eq!(status(&["agent", "-A"]).status.code(), Some(64));
}

#[test]
fn a_rollout_is_waited_for_where_kubectl_refuses() {
    let plane = plane();
    let wait = ["status", "agent", "--watch", "--exit", "--timeout", "60s"];
    let done = plane.ds_plan(&wait, &[]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    assert!(stdout(&done).ends_with("default/agent complete: 3 nodes up to date\n"));
    plane.apply_yaml(&agent("OnDelete", "2"));
    let theirs = plane.try_kubectl(&["rollout", "status", "daemonset/agent"]);
    assert_eq!(theirs.status.code(), Some(1));
    let refusal = "error: rollout status is only available for RollingUpdate strategy type\n";
    assert_eq!(stderr(&theirs), refusal);
    let ours = plane.ds_plan(&wait, &[]);
    assert_eq!(ours.status.code(), Some(4), "{}", stderr(&ours));
    assert!(
        stdout(&ours).ends_with(
            "default/agent strategy OnDelete, and no run is in progress: 3 outdated pods stay\n"
        ),
        "{}",
        stdout(&ours)
    );
}

#[test]
fn requests_are_logged_and_made_as_another_user() {
    let plane = plane();
    let logged = stderr(&plane.ds_plan(&["status", "-v"], &[]));
    let request = "GET /apis/apps/v1/namespaces/default/daemonsets?limit=500 200 in ";
    assert!(logged.contains(request), "{logged}");
    assert!(!logged.to_lowercase().contains("bearer"), "{logged}");
    let forbidden = plane.ds_plan(&["status", "--as", "nobody", "--as-group", "nobodies"], &[]);
    assert_eq!(forbidden.status.code(), Some(1));
    assert!(stderr(&forbidden).starts_with("error: not permitted: list nodes"), "{forbidden:?}");
    let slow = plane.ds_plan(&["status", "--request-timeout", "0"], &[]);
    assert_eq!(slow.status.code(), Some(0));
}

#[test]
fn a_dry_run_writes_nothing() {
    let plane = ControlPlane::builder().audit().start();
    plane.create_nodes(FakeNode::many("node", 3));
    let manifest = agent("RollingUpdate", "1");
    let files: &[(&str, &str)] = &[("agent.yaml", &manifest)];
    let done = plane.ds_apply(&["-f", "agent.yaml", "--dry-run"], files).run();
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    assert!(stdout(&done).contains("Revisions: 1 new"), "{}", stdout(&done));
    assert!(stderr(&done).ends_with("dry run: nothing was changed\n"), "{}", stderr(&done));
    assert_eq!(plane.kubectl(&["get", "daemonsets,leases", "-n", "default", "-o=name"]), "");
}

/// What the script of bash gets for the last word of a line.
fn completed(plane: &ControlPlane, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let done = Command::new(cargo_bin!("ds-plan"))
        .arg("--")
        .args(&words)
        .env("KUBECONFIG", plane.kubeconfig_path())
        .env("DS_PLAN_COMPLETE", "bash")
        .env("_CLAP_IFS", " ")
        .env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string())
        .output()
        .unwrap();
    assert_eq!(stderr(&done), "", "{line}");
    stdout(&done)
}

#[test]
fn names_are_completed_from_the_cluster() {
    let plane = plane();
    assert_eq!(completed(&plane, "ds-plan status -n kube-n"), "kube-node-lease");
    let names = completed(&plane, "ds-plan status ds/");
    assert_eq!(names, "ds/agent");
    let names = completed(&plane, "ds-plan explain default/");
    assert_eq!(names, "default/agent");
}
