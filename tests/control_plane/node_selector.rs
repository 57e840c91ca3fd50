//! A namespace's node selector that conflicts with a DaemonSet, with its admission plugin enabled:
//! what the plan warns of then happens.

use std::collections::BTreeSet;
use std::time::Duration;

use daemonset::model::NodeName;
use serde_json::Value;

use crate::controller::{node_of, owner_of, pods};
use crate::harness::{ControlPlane, FakeNode, wait_for, wait_until};
use crate::planning::{desired_of, live, planned};

const SOON: Duration = Duration::from_mins(1);

const NAMESPACE: &str = r#"
apiVersion: v1
kind: Namespace
metadata:
  name: fenced
  annotations: {scheduler.alpha.kubernetes.io/node-selector: "disk=ssd"}
"#;

fn daemon_set(name: &str, node_selector: &str) -> String {
    format!(
        r"
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: {name}, namespace: fenced}}
spec:
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      nodeSelector: {{{node_selector}}}
      containers: [{{name: agent, image: agent}}]
"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn the_conflict_in_the_warning_is_the_real_one() {
    let plane = ControlPlane::builder().with_admission("PodNodeSelector").start();
    plane.create_nodes([
        FakeNode::new("fast-1").label("disk", "ssd"),
        FakeNode::new("slow-1").label("disk", "hdd"),
        FakeNode::new("slow-2").label("disk", "hdd"),
    ]);
    // Until its kubelet reports, a node is tainted, and no DaemonSet selects it.
    wait_for("nodes without taints", SOON, String::new(), || {
        plane.kubectl(&["get", "nodes", "--output=jsonpath={.items[*].spec.taints}"])
    });
    plane.apply_yaml(NAMESPACE);
    let manifests = [daemon_set("everywhere", ""), daemon_set("opposite", "disk: hdd")].join("---");

    let plan = planned(&live(&plane).await, &desired_of(&manifests));
    let warned: Vec<(&str, Vec<&str>, bool)> = plan
        .warnings
        .iter()
        .filter(|warning| warning.code == "namespaceNodeSelector")
        .map(|it| {
            let nodes = it.nodes.iter().map(NodeName::as_str).collect();
            (
                it.daemon_set.as_deref().unwrap(),
                nodes,
                it.message.contains("conflicts with the nodeSelector"),
            )
        })
        .collect();
    let slow = vec!["slow-1", "slow-2"];
    assert_eq!(
        warned,
        [("fenced/everywhere", slow.clone(), false), ("fenced/opposite", slow.clone(), true)]
    );

    plane.apply_yaml(&manifests);
    let pending = || {
        let pods = plane.kubectl(&["--namespace=fenced", "get", "pods", "--output=json"]);
        let pods: Value = serde_json::from_str(&pods).unwrap();
        let items = pods["items"].as_array().unwrap().iter();
        let unschedulable = |pod: &&Value| {
            pod["status"]["conditions"][0]["reason"] == "Unschedulable"
                && pod["status"]["phase"] == "Pending"
        };
        items.filter(unschedulable).count()
    };
    wait_for("pods that stay Pending", SOON, slow.len(), pending);
    let refused = || {
        let events = plane.kubectl(&["--namespace=fenced", "get", "events", "--output=json"]);
        events.contains("FailedCreate") && events.contains("node label selector conflicts")
    };
    wait_until("the API server rejects the pods of the other DaemonSet", SOON, refused);

    let pods = pods(&plane).await;
    assert!(pods.iter().all(|pod| owner_of(pod).as_deref() == Some("fenced/everywhere")));
    let stuck = pods.iter().filter(|pod| pod.spec.as_ref().unwrap().node_name.is_none());
    let stuck: BTreeSet<String> = stuck.filter_map(node_of).collect();
    assert_eq!(stuck.iter().map(String::as_str).collect::<Vec<_>>(), slow);
}
