//! A cluster of three nodes, and a DaemonSet for it; small enough to read in a golden file.

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

/// A DaemonSet that can run on every node of [`cluster`] except `gpu-1`.
pub const AGENT: &str = "\
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: agent
  namespace: logging
  labels: {tier: node}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers:
        - name: agent
          image: registry.example/agent:1
";

/// A recording of nodes `node-1`, `node-2` and `gpu-1`, which has a taint; without DaemonSets and
/// pods.
pub fn cluster() -> Value {
    let node = |name: &str, spec: Value| {
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name, "uid": format!("uid-{name}"), "labels": {"kubernetes.io/hostname": name},
                "creationTimestamp": "2026-01-01T00:00:00Z"
            },
            "spec": spec,
            "status": {
                "conditions": [{
                    "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:01:00Z"
                }],
                "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}
            }
        })
    };
    let namespace = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "uid": format!("uid-{name}")},
            "status": {"phase": "Active"}
        })
    };
    json!({"apiVersion": "v1", "kind": "List", "items": [
        node("node-1", json!({})),
        node("node-2", json!({})),
        node("gpu-1", json!({"taints": [{"key": "gpu", "effect": "NoSchedule"}]})),
        namespace("kube-system"),
        namespace("default"),
        namespace("logging"),
        {
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "kubernetes", "namespace": "default"},
            "spec": {"clusterIP": "10.96.0.1"}
        },
        {
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "node-1", "namespace": "kube-node-lease"}
        },
    ]})
}

/// A sandbox with the cluster in `cluster.json` and the DaemonSet in `agent.yaml`.
pub fn sandbox() -> Sandbox {
    let cluster = cluster().to_string();
    Sandbox::with(&[("cluster.json", cluster.as_str()), ("agent.yaml", AGENT)])
}

/// The cluster, with the DaemonSet of `manifest` in it as the API server serves it, its revision,
/// and an updated and available pod on each of `nodes`.
pub fn cluster_with(manifest: &str, nodes: &[&str]) -> Value {
    let manifest: Value = serde_yaml::from_str(manifest).unwrap();
    let mut live = manifest::default_daemon_set(manifest).unwrap();
    let namespace = live["metadata"]["namespace"].clone();
    let name = live["metadata"]["name"].clone();
    live["metadata"]["uid"] = "uid-agent".into();
    live["metadata"]["generation"] = 1.into();
    live["metadata"]["creationTimestamp"] = "2026-01-01T00:02:00Z".into();
    let pods = nodes.len();
    live["status"] = json!({
        "observedGeneration": 1, "desiredNumberScheduled": 2, "currentNumberScheduled": pods,
        "numberReady": pods, "updatedNumberScheduled": pods, "numberAvailable": pods,
        "numberUnavailable": 2 - pods
    });
    let template = &live["spec"]["template"];
    let mut labels = template["metadata"]["labels"].clone();
    labels["controller-revision-hash"] = "abc".into();
    let owner = json!([{
        "apiVersion": "apps/v1", "kind": "DaemonSet", "name": name, "uid": "uid-agent",
        "controller": true
    }]);
    let mut items = vec![json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1,
        "metadata": {
            "name": "agent-abc", "namespace": namespace, "uid": "uid-abc", "labels": labels,
            "ownerReferences": owner
        },
        "data": daemonset::controller::revision_data::data_for(template)
    })];
    for node in nodes {
        items.push(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": format!("agent-{node}"), "namespace": namespace,
                "uid": format!("uid-agent-{node}"), "labels": labels, "ownerReferences": owner,
                "creationTimestamp": "2026-01-01T00:03:00Z"
            },
            "spec": {"nodeName": node},
            "status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:04:00Z"}
            ]}
        }));
    }
    items.push(live);
    let mut cluster = cluster();
    cluster["items"].as_array_mut().unwrap().extend(items);
    cluster
}

/// The items of `cluster` of that kind.
pub fn of_kind<'a>(cluster: &'a mut Value, kind: &str) -> impl Iterator<Item = &'a mut Value> {
    cluster["items"].as_array_mut().unwrap().iter_mut().filter(move |item| item["kind"] == kind)
}
