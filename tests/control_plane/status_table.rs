//! `status` prints the same table as kubectl, including spaces.

use planner::plan::{
    ApiVersion, ClusterSummary, Counters, DaemonSetStatusReport, StatusKind, StatusReport, Zones,
};
use render::{TextOptions, status_text};
use serde_json::Value;

use crate::harness::{Component, ControlPlane};

/// A DaemonSet with `labels` as its node selector, as JSON.
fn daemon_set(name: &str, namespace: &str, labels: &Value) -> String {
    serde_json::json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"nodeSelector": labels, "containers": [{"name": "a", "image": "a:1"}]},
            },
        },
    })
    .to_string()
}

/// Our table for the API server's answer; ages are taken from `table`, which kubectl has just
/// printed.
fn ours(list: &Value, table: &str) -> String {
    let ages = table.lines().skip(1).map(|row| row.rsplit_once(' ').unwrap().1);
    let items = list["items"].as_array().unwrap().iter();
    let standing = |(item, age): (&Value, &str)| {
        let text = |pointer: &str| item.pointer(pointer).unwrap().as_str().unwrap();
        let count = |field: &str| {
            u32::try_from(item["status"][field].as_u64().unwrap_or_default()).unwrap()
        };
        let counters = Counters {
            desired: count("desiredNumberScheduled"),
            current: count("currentNumberScheduled"),
            ready: count("numberReady"),
            updated: count("updatedNumberScheduled"),
            available: count("numberAvailable"),
            unavailable: count("numberUnavailable"),
            misscheduled: count("numberMisscheduled"),
        };
        let pairs = item.pointer("/spec/template/spec/nodeSelector").and_then(Value::as_object);
        let pairs =
            pairs.into_iter().flatten().map(|(k, v)| format!("{k}={}", v.as_str().unwrap()));
        let selector = pairs.collect::<Vec<_>>().join(",");
        DaemonSetStatusReport {
            namespace: text("/metadata/namespace").into(),
            name: text("/metadata/name").into(),
            generation: 1,
            observed_generation: 1,
            reported: counters,
            counted: counters,
            node_selector: if selector.is_empty() { "<none>".to_owned() } else { selector },
            age_seconds: age.strip_suffix('s').map(|seconds| seconds.parse().unwrap()),
            waits_since: None,
            pulling: Vec::new(),
            progress: None,
            pause: None,
            lock: None,
            obstacles: vec![],
        }
    };
    let status = StatusReport {
        api_version: ApiVersion::V1Alpha1,
        kind: StatusKind::Status,
        cluster: ClusterSummary {
            name: None,
            uid: None,
            version: None,
            observed_at: "2026-08-01T12:00:00Z".parse().unwrap(),
            nodes: 0,
            snapshot: None,
            zones: Zones::new(),
        },
        daemon_sets: items.zip(ages).map(standing).collect(),
        warnings: vec![],
    };
    status_text(&status, &TextOptions::default())
}

#[test]
fn the_table_matches_kubectl() {
    let plane = ControlPlane::builder()
        .without(Component::ControllerManager)
        .without(Component::Scheduler)
        .without(Component::Kwok)
        .start();
    let labels = serde_json::json!({"kubernetes.io/os": "linux", "disk": "ssd"});
    plane.apply_yaml(&daemon_set("a", "default", &serde_json::json!({})));
    plane.apply_yaml(&daemon_set("agent-with-a-name-that-is-rather-long", "default", &labels));
    plane.apply_yaml(&daemon_set("agent", "kube-system", &serde_json::json!({})));
    let counters = r#"{"status": {"desiredNumberScheduled": 1234567890, "numberReady": 12,
        "currentNumberScheduled": 1, "numberMisscheduled": 0, "observedGeneration": 1}}"#;
    plane.kubectl(&["patch", "ds", "a", "--subresource=status", "--type=merge", "-p", counters]);
    for scope in ["--namespace=default", "--all-namespaces"] {
        let list = plane.kubectl(&["get", "ds", scope, "-o", "json"]);
        let table = plane.kubectl(&["get", "ds", scope]);
        assert_eq!(ours(&serde_json::from_str(&list).unwrap(), &table), table);
    }
}
