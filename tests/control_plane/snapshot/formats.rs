//! Nodes and pods are equal, whether the API server encodes them as protobuf (a live cluster) or as
//! JSON (what kubectl records).

use cluster::{Scope, read_recorded_from};
use daemonset::model::{NodeReadiness, PodPhase};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::Request;
use serde_json::{Value, json};

use super::{KINDS, admin, comparable, wrong_clock};
use crate::harness::{Component, ControlPlane, block_on};

/// Pods and nodes with values that the example fleet does not have.
fn extremes() -> Vec<Value> {
    let waiting = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off \u{1f600} <&> \"\\\n"}});
    let ended = |code: i32| json!({"terminated": {"exitCode": code, "reason": "Error", "message": "ä".repeat(600), "finishedAt": "1969-12-31T23:59:59Z"}});
    let running = json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}});
    let container = |name: &str, state: &Value, last: &Value| {
        json!({
            "name": name, "image": "i", "imageID": "", "ready": false, "started": false,
            "restartCount": i32::MAX, "state": state, "lastState": last,
        })
    };
    let statuses = [
        json!({}),
        json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]}),
        json!({"phase": "Failed", "reason": "Evicted", "message": "low on\u{2028}memory"}),
        json!({"phase": "Running", "startTime": "9998-12-31T23:59:59Z", "conditions": [
            {"type": "Ready", "status": "Unknown", "lastProbeTime": "1970-01-01T00:00:00Z",
             "lastTransitionTime": "0001-01-01T00:00:01Z", "reason": "", "message": ""}]}),
        json!({"phase": "Running", "containerStatuses": [container("c", &waiting, &ended(-1))],
               "initContainerStatuses": [container("i", &ended(0), &json!({}))]}),
        json!({"phase": "Running", "containerStatuses": [container("c", &running, &ended(137))]}),
        json!({"phase": "Pending", "initContainerStatuses": [container("i", &running, &json!({}))]}),
    ];
    let affinity = |operator: &str, values: Value| {
        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
            {"matchFields": [{"key": "metadata.name", "operator": operator, "values": values}]}]}}})
    };
    let pods = statuses.into_iter().enumerate().map(|(at, status)| {
        let operator = if at % 2 == 0 { "In" } else { "NotIn" };
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("extreme-{at}"), "namespace": "default",
                "labels": {"a": "", "b": "x"}, "annotations": {"note": "ü\n\u{0}"}},
            "spec": {"affinity": affinity(operator, json!([format!("n{at}")])),
                "containers": [{"name": "c", "image": "i"}],
                "initContainers": [{"name": "i", "image": "i"}]},
            "status": status,
        })
    });
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "extreme"},
        "spec": {"unschedulable": true, "taints": [
            {"key": "a", "effect": "NoSchedule"}, {"key": "b", "value": "v", "effect": "NoExecute",
             "timeAdded": "2026-01-01T00:00:00Z"}]},
        "status": {"allocatable": {"cpu": "1500m", "memory": "1Gi", "example.com/x": "0"},
            "conditions": [{"type": "Ready", "status": "Unknown"}]},
    });
    pods.chain([node]).collect()
}

/// The nodes and pods of the example fleet, and the extremes. Their DaemonSets are there because a
/// recording without them is refused.
fn objects() -> Vec<Value> {
    let fleet = include_str!("../../../examples/fleet/cluster.json");
    let mut fleet: Value = serde_json::from_str(fleet).unwrap();
    let items = fleet["items"].as_array_mut().unwrap().drain(..);
    let kept = items.filter(|item| {
        ["Namespace", "Node", "Pod", "DaemonSet"].iter().any(|it| item["kind"] == *it)
    });
    kept.chain(extremes()).collect()
}

/// Creates an object and then its status; nodes are created with theirs.
async fn create(client: kube::Client, mut object: Value) -> Result<(), kube::Error> {
    let kind = object["kind"].as_str().unwrap().to_owned();
    let metadata = object["metadata"].as_object_mut().unwrap();
    for field in ["uid", "resourceVersion", "creationTimestamp"] {
        metadata.remove(field);
    }
    let name = metadata["name"].as_str().unwrap().to_owned();
    let collection = match metadata.get("namespace").and_then(Value::as_str) {
        Some(namespace) if kind == "DaemonSet" => {
            format!("/apis/apps/v1/namespaces/{namespace}/daemonsets")
        }
        Some(namespace) => format!("/api/v1/namespaces/{namespace}/pods"),
        None => format!("/api/v1/{}s", kind.to_lowercase()),
    };
    let status = (kind == "Pod").then(|| ("PUT", format!("{collection}/{name}/status")));
    for (method, path) in [("POST", collection)].into_iter().chain(status) {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("Content-Type", "application/json");
        let request = request.body(object.to_string().into_bytes()).unwrap();
        match client.request::<Value>(request).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            created => drop(created?),
        }
    }
    Ok(())
}

/// A cluster in which nothing changes.
fn fleet() -> ControlPlane {
    let plane = ControlPlane::builder()
        .without(Component::ControllerManager)
        .without(Component::Scheduler)
        .without(Component::Kwok)
        .start();
    // Namespaces first.
    let (first, rest): (Vec<Value>, Vec<Value>) =
        objects().into_iter().partition(|object| object["kind"] == "Namespace");
    for objects in [first, rest] {
        let client = plane.client();
        block_on(async move {
            let one = |object| create(client.clone(), object);
            let all = stream::iter(objects).map(one).buffer_unordered(16);
            all.try_collect::<()>().await
        })
        .unwrap();
    }
    plane
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_and_pods_are_equal_as_protobuf_and_as_json() {
    let plane = fleet();
    let text = plane.kubectl(&["get", KINDS, "-A", "-o=json", "--show-managed-fields"]);
    let recorded = comparable(read_recorded_from(text.as_bytes(), "s").unwrap(), true);
    // Small pages: several are in flight.
    for page_size in [500, 7] {
        let cluster = admin(&plane).await.with_page_size(page_size);
        let live = cluster.snapshot(&Scope::All, wrong_clock()).await.unwrap();
        assert_eq!((live.nodes.len(), live.pods.len()), (41, 176));
        // The objects differ from each other in what is compared.
        assert!(live.nodes.iter().any(|node| node.readiness != NodeReadiness::Ready));
        for phase in [PodPhase::Pending, PodPhase::Running, PodPhase::Failed] {
            assert!(live.pods.iter().any(|pod| pod.phase == phase), "{phase:?}");
        }
        assert!(live.pods.iter().any(|pod| pod.unready.is_some()));
        assert!(live.pods.iter().any(|pod| pod.container_failure.is_some()));
        assert_eq!(comparable(live, true), recorded);
    }
}
