//! From manifests and a real control plane to a plan, as the program does it.

use std::fs;
use std::path::Path;

use cluster::{self, ConnectOptions, LiveCluster, Scope, read_recorded_from};
use daemonset::model::{DesiredDaemonSet, ManifestFile, Snapshot};
use jiff::Timestamp;
use planner::plan::{Detail, Input, Plan, ShownValues, plan};
use serde_json::Value;

use crate::harness::ControlPlane;

/// Connects to the cluster as `ds-plan` does without `--snapshot`.
pub(crate) async fn connect(plane: &ControlPlane) -> LiveCluster {
    let options =
        ConnectOptions { kubeconfig: Some(plane.kubeconfig_path()), ..ConnectOptions::default() };
    cluster::connect(&options).await.unwrap()
}

/// The whole cluster now.
pub(crate) async fn live(plane: &ControlPlane) -> Snapshot {
    // The fallback clock for servers that do not send their time; this server does.
    let clock = Timestamp::UNIX_EPOCH;
    connect(plane).await.snapshot(&Scope::All, clock).await.unwrap()
}

/// The cluster as recorded by kubectl.
pub(crate) fn recorded_by_kubectl(plane: &ControlPlane) -> Snapshot {
    let json = plane.kubectl(&[
        "get",
        "nodes,pods,daemonsets,controllerrevisions,namespaces,services,leases",
        "--all-namespaces",
        "--output=json",
        "--show-managed-fields",
    ]);
    read_recorded_from(json.as_bytes(), "kubectl.json").unwrap()
}

/// The DaemonSets in a folder's files.
pub(crate) fn desired_in(folder: &Path) -> Vec<DesiredDaemonSet> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = paths
        .map(|path| ManifestFile {
            path: path.display().to_string().into(),
            bytes: fs::read(path).unwrap(),
        })
        .collect();
    read(&files)
}

/// Objects as one text, one document each.
pub(crate) fn documents(objects: &[Value]) -> String {
    objects.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n")
}

/// The DaemonSets in one text.
pub(crate) fn desired_of(yaml: &str) -> Vec<DesiredDaemonSet> {
    read(&[ManifestFile { path: "test.yaml".into(), bytes: yaml.as_bytes().to_vec() }])
}

fn read(files: &[ManifestFile]) -> Vec<DesiredDaemonSet> {
    let options = manifest::Options {
        default_namespace: "default".into(),
        validate: manifest::FieldValidation::Strict,
        policies: None,
        every_file: false,
        not_objects: manifest::NotObjects::Reject,
    };
    manifest::read(files, &options).unwrap().daemon_sets
}

/// The plan, with every node in it.
pub(crate) fn planned(snapshot: &Snapshot, desired: &[DesiredDaemonSet]) -> Plan {
    plan(Input {
        detail: Detail { all_nodes: true, show_values: ShownValues::None },
        ..Input::of(snapshot, desired)
    })
}
