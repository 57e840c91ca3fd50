//! The program as its user runs it: on a live cluster, and on a recording made with kubectl.

use std::fs;
use std::io::Write as _;
use std::process::Command;
use std::time::Duration;

use assert_cmd::cargo::cargo_bin;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::harness::{Component, ControlPlane, FakeNode, wait_for};

const SOON: Duration = Duration::from_mins(1);

const AGENT: &str = "
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: default}
spec:
  selector: {matchLabels: {app: agent}}
  updateStrategy: {rollingUpdate: {maxUnavailable: 30%}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers: [{name: agent, image: 'registry.example.com/agent:1'}]
";

#[test]
fn live_and_recorded_clusters_have_the_same_digest() {
    let plane = ControlPlane::start();
    plane.create_nodes(FakeNode::many("node", 7));
    plane.create_nodes([FakeNode::new("gpu-1").taint("gpu", "true", "NoSchedule")]);
    plane.apply_yaml(AGENT);
    let available = || {
        let path = "-o=jsonpath={.status.numberAvailable}";
        plane.kubectl(&["get", "daemonset", "agent", path])
    };
    wait_for("available pods", SOON, "7".to_owned(), available);
    plane.stop_component(Component::ControllerManager);
    plane.stop_component(Component::Kwok);

    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let newer = AGENT.replace("agent:1", "agent:2");
    fs::write(file("manifest.yaml"), newer).unwrap();
    for (name, format) in [("s.json", "json"), ("s.yaml", "yaml")] {
        let recorded = plane.kubectl(&[
            "get",
            "nodes,pods,daemonsets,controllerrevisions,namespaces,services,leases",
            "-A",
            "--show-managed-fields",
            &format!("--output={format}"),
        ]);
        fs::write(file(name), recorded).unwrap();
    }
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&fs::read(file("s.json")).unwrap()).unwrap();
    fs::write(file("s.json.gz"), packed.finish().unwrap()).unwrap();

    let kubeconfig = plane.kubeconfig_path().display().to_string();
    let plan = |cluster: [&str; 2]| {
        let mut program = Command::new(cargo_bin!("ds-plan"));
        program.args(["-f", &file("manifest.yaml"), "-o", "json"]).args(cluster);
        let done = program.output().unwrap();
        assert!(done.status.success(), "{cluster:?}: {done:?}");
        serde_json::from_slice::<Value>(&done.stdout).unwrap()
    };
    let live = plan(["--kubeconfig", &kubeconfig]);
    assert_eq!(live["totals"]["replace"], 7);
    let own = Command::new(cargo_bin!("ds-plan"))
        .args(["snapshot", "--kubeconfig", &kubeconfig, "--out", &file("own.json.gz")])
        .output()
        .unwrap();
    assert!(own.status.success(), "{own:?}");
    for name in ["s.json", "s.yaml", "s.json.gz", "own.json.gz"] {
        let recorded = plan(["--snapshot", &file(name)]);
        assert_eq!(recorded["digest"], live["digest"], "{name}");
    }
}
