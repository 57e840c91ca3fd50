//! Tests of the harness: its servers work, and it leaves no processes or files behind.

use std::env;
use std::fs;
use std::panic;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::ListParams;

use crate::harness::{
    Component, ControlPlane, FakeNode, kubernetes, wait_for, wait_until, wait_until_async,
};

/// The timeout for what an idle machine does in a second or two.
const SOON: Duration = Duration::from_mins(1);

/// A DaemonSet named `agent`; the last word of its image selects how its pods behave.
fn agent(image: &str) -> String {
    format!(
        "
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: agent, namespace: default}}
spec:
  selector: {{matchLabels: {{app: agent}}}}
  template:
    metadata: {{labels: {{app: agent}}}}
    spec:
      tolerations: [{{operator: Exists}}]
      containers: [{{name: agent, image: '{image}'}}]
"
    )
}

/// One field of each pod of `agent`, by a JSON path.
fn pods(plane: &ControlPlane, path: &str) -> Vec<String> {
    let output = format!("--output=jsonpath={{range .items[*]}}{{{path}}}{{'\\n'}}{{end}}");
    let text = plane.kubectl(&["get", "pods", "--selector=app=agent", &output]);
    text.lines().map(str::to_owned).collect()
}

/// The number of ready pods of `agent`, by its status.
fn ready(plane: &ControlPlane) -> String {
    plane.kubectl(&["get", "ds", "agent", "--output=jsonpath={.status.numberReady}"])
}

#[tokio::test]
async fn a_daemon_set_on_twenty_nodes_becomes_ready() {
    let plane = ControlPlane::start();
    let version = format!("Server Version: v1.{}.", kubernetes::version().minor);
    assert!(plane.kubectl(&["version"]).contains(&version));
    let special = FakeNode::new("tainted")
        .label("pool", "gpu")
        .annotation("note", "by hand")
        .taint("gpu", "yes", "NoSchedule")
        .allocatable("cpu", "64")
        .cordoned();
    plane.create_nodes(FakeNode::many("node", 19));
    plane.create_nodes([special]);
    plane.apply_yaml(&agent("agent:v1"));

    let agents: Api<DaemonSet> = Api::default_namespaced(plane.client());
    wait_until_async("20 pods are ready", SOON, async || {
        let status = agents.get("agent").await.unwrap().status;
        status.is_some_and(|it| it.number_ready == 20 && it.desired_number_scheduled == 20)
    })
    .await;

    let nodes: Api<Node> = Api::all(plane.client());
    assert_eq!(nodes.list(&ListParams::default()).await.unwrap().items.len(), 20);
    let tainted = nodes.get("tainted").await.unwrap();
    let (spec, status) = (tainted.spec.unwrap(), tainted.status.unwrap());
    assert_eq!(spec.unschedulable, Some(true));
    assert!(spec.taints.unwrap().iter().any(|it| it.key == "gpu"));
    assert_eq!(status.allocatable.unwrap()["cpu"].0, "64");
}

#[test]
fn nothing_happens_while_the_controllers_are_stopped() {
    let plane = ControlPlane::builder().without(Component::Scheduler).start();
    plane.stop_component(Component::ControllerManager);
    assert!(!plane.runs(Component::ControllerManager));
    plane.create_nodes(FakeNode::many("node", 2));
    plane.apply_yaml(&agent("agent:v1"));
    thread::sleep(Duration::from_secs(2));
    assert_eq!(pods(&plane, ".metadata.name"), [""; 0]);

    plane.start_component(Component::ControllerManager);
    wait_for("the count of pods", SOON, 2, || pods(&plane, ".metadata.name").len());
    assert_eq!(ready(&plane), "0", "there is no scheduler");
    plane.start_component(Component::Scheduler);
    wait_for("the count of ready pods", SOON, "2", || ready(&plane));
}

#[test]
fn the_store_and_the_api_server_survive_a_crash() {
    let plane = ControlPlane::builder()
        .without(Component::ControllerManager)
        .without(Component::Scheduler)
        .without(Component::Kwok)
        .start();
    plane.create_nodes(FakeNode::many("node", 3));
    plane.kill_component(Component::ApiServer);
    plane.kill_component(Component::Etcd);
    assert!(!plane.try_kubectl(&["get", "nodes"]).status.success());

    plane.start_component(Component::Etcd);
    plane.start_component(Component::ApiServer);
    assert_eq!(plane.kubectl(&["get", "nodes", "--output=name"]).lines().count(), 3);

    plane.signal_component(Component::ApiServer, "STOP");
    let frozen = plane.try_kubectl(&["get", "nodes", "--request-timeout=1s"]);
    assert!(!frozen.status.success(), "a frozen server answered");
    plane.signal_component(Component::ApiServer, "CONT");
    plane.kubectl(&["get", "nodes"]);
}

#[test]
fn a_user_has_exactly_its_rbac_permissions() {
    let plane = ControlPlane::builder()
        .without(Component::ControllerManager)
        .without(Component::Scheduler)
        .without(Component::Kwok)
        .user("planner", &["readers"])
        .audit()
        .start();
    plane.kubectl(&["create", "clusterrole", "read", "--verb=get,list", "--resource=nodes"]);
    plane.kubectl(&[
        "create",
        "clusterrolebinding",
        "read",
        "--clusterrole=read",
        "--group=readers",
    ]);
    let kubeconfig = format!("--kubeconfig={}", plane.kubeconfig_of("planner").display());
    plane.kubectl(&["get", "nodes", &kubeconfig]);
    plane.create_nodes([FakeNode::new("one")]);
    let refused = plane.try_kubectl(&["delete", "node", "one", &kubeconfig]);
    let complaint = String::from_utf8_lossy(&refused.stderr);
    assert!(complaint.contains("User \"planner\" cannot delete"), "{complaint}");

    let denied = |event: &serde_json::Value| {
        event["user"]["username"] == "planner"
            && event["verb"] == "delete"
            && event["responseStatus"]["code"] == 403
    };
    assert!(plane.audit_log().iter().any(denied), "the audit log has no such line");
}

#[test]
fn options_reach_the_servers() {
    let plane = ControlPlane::builder()
        .without(Component::Scheduler)
        .without(Component::Kwok)
        .without_controller("daemonset-controller")
        .with_controller("deployment-controller")
        .with_admission("PodNodeSelector")
        .without_admission("TaintNodesByCondition")
        .flag(Component::ApiServer, "--service-cluster-ip-range=10.99.0.0/24")
        .start();
    let arguments = processes(plane.folder()).join("\n");
    for expected in [
        "--enable-admission-plugins=PodNodeSelector",
        "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
        "--service-cluster-ip-range=10.99.0.0/24",
    ] {
        assert!(arguments.contains(expected), "{expected} is not in {arguments}");
    }
    assert!(!arguments.contains("daemonset-controller"), "{arguments}");
    assert!(arguments.contains("deployment-controller"), "{arguments}");
    plane.create_nodes([FakeNode::new("one")]);
    let taints = plane.kubectl(&["get", "node", "one", "--output=jsonpath={.spec.taints}"]);
    assert_eq!(taints, "", "without the plugin no taint is added");
}

/// The command lines of the processes that work in `folder`, including the shells around them.
fn processes(folder: &Path) -> Vec<String> {
    let output = Command::new("ps").args(["-A", "-ww", "-o", "args="]).output();
    let output = output.expect("`ps` (of procps) lists processes");
    let folder = folder.to_str().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().filter(|line| line.contains(folder)).map(str::to_owned).collect()
}

#[test]
fn no_process_outlives_a_control_plane() {
    let plane = ControlPlane::start();
    let folder = plane.folder().to_owned();
    assert!(processes(&folder).len() >= Component::ALL.len());
    drop(plane);
    assert_eq!(processes(&folder), [""; 0]);
    assert!(!folder.exists(), "the folder is still there");
}

#[test]
fn no_process_outlives_a_panic() {
    let folder = panic::catch_unwind(|| {
        let plane = ControlPlane::builder().without(Component::Kwok).start();
        panic::resume_unwind(Box::new(plane.folder().to_owned()));
    });
    let folder = folder.unwrap_err().downcast::<std::path::PathBuf>().unwrap();
    assert_eq!(processes(&folder), [""; 0]);
}

/// Set for the process that `no_process_outlives_a_killed_test` starts and kills: the file to which
/// that process writes the path of its folder.
const VICTIM: &str = "DS_PLAN_TEST_VICTIM_TELLS";

#[test]
fn no_process_outlives_a_killed_test() {
    let notes = tempfile::tempdir().unwrap();
    let note = notes.path().join("folder");
    let mut victim = Command::new(env::current_exe().unwrap())
        .args(["--exact", "smoke::a_victim_starts_and_keeps_running", "--ignored"])
        .env(VICTIM, &note)
        .env("TMPDIR", notes.path()) // this folder is removed, and the process's own with it
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the victim has started its control plane", SOON * 3, || note.exists());
    let folder = fs::read_to_string(note).unwrap();
    let folder = Path::new(&folder);
    assert!(processes(folder).len() >= Component::ALL.len());
    victim.kill().unwrap();
    victim.wait().unwrap();
    wait_until("the servers are gone", Duration::from_secs(10), || processes(folder).is_empty());
}

#[test]
#[ignore = "not a test: the process that another test kills"]
fn a_victim_starts_and_keeps_running() {
    let Some(note) = env::var_os(VICTIM) else {
        return;
    };
    let plane = ControlPlane::start();
    let draft = Path::new(&note).with_extension("draft");
    fs::write(&draft, plane.folder().to_str().unwrap()).unwrap();
    fs::rename(draft, note).unwrap();
    thread::sleep(Duration::from_mins(10));
}
