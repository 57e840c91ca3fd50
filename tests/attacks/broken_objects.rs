//! One broken object does not affect the rest of the fleet: values in a status or a ConfigMap that
//! the API server accepts, but that no program can calculate with.

use std::fs;

use serde_json::{Value, json};

use testkit::fixture::{AGENT, cluster, cluster_with, of_kind};
use testkit::sandbox::Sandbox;

const NODES: [&str; 2] = ["node-1", "node-2"];

/// Commands that must work, whatever one object contains.
const READINGS: [&str; 5] = [
    "plan -f agent.yaml",
    "drift -f agent.yaml",
    "status",
    "history",
    "explain logging/agent node-1",
];

fn sandbox(cluster: &Value) -> Sandbox {
    Sandbox::with(&[("cluster.json", &cluster.to_string()), ("agent.yaml", AGENT)])
}

/// Merges `patch` into `whole`.
fn merge(whole: &mut Value, patch: &Value) {
    match (whole, patch) {
        (Value::Object(whole), Value::Object(patch)) => {
            for (key, value) in patch {
                merge(whole.entry(key).or_insert(Value::Null), value);
            }
        }
        (whole, patch) => *whole = patch.clone(),
    }
}

/// The cluster, with this patch in the first object of a kind.
fn broken(kind: &str, patch: &Value) -> Sandbox {
    let mut cluster = cluster_with(AGENT, &NODES);
    merge(of_kind(&mut cluster, kind).next().unwrap(), patch);
    sandbox(&cluster)
}

fn ready(since: &str) -> Value {
    json!([{"type": "Ready", "status": "True", "lastTransitionTime": since}])
}

#[test]
fn out_of_range_values_are_clamped_and_do_not_affect_others() {
    for (kind, patch) in [
        ("Pod", json!({"status": {"conditions": ready("9999-12-31T23:59:59Z")}})),
        ("Pod", json!({"status": {"conditions": ready("9999-12-30T12:00:00Z")}})),
        ("Pod", json!({"status": {"conditions": ready("10000-01-01T11:59:59Z")}})),
        ("Pod", json!({"status": {"conditions": ready("0000-01-01T00:00:00Z")}})),
        ("Pod", json!({"status": {"startTime": "9999-12-31T23:59:59Z"}})),
        ("Pod", json!({"status": {"containerStatuses": [{"name": "a", "restartCount": -5}]}})),
        (
            "Pod",
            json!({"status": {"containerStatuses": [{"name": "a", "restartCount": -2_147_483_648_i64}]}}),
        ),
        (
            "Pod",
            json!({"status": {"containerStatuses": [{"name": "a", "state": {"running": {
                "startedAt": "9999-12-31T23:59:59Z"
            }}}]}}),
        ),
        (
            "Pod",
            json!({"status": {"containerStatuses": [{"name": "a", "lastState": {"terminated": {
                "exitCode": -1, "finishedAt": "9999-12-31T23:59:59Z"
            }}}]}}),
        ),
        ("Pod", json!({"metadata": {"managedFields": [{"time": "9999-12-31T23:59:59Z"}]}})),
        ("Node", json!({"status": {"conditions": ready("9999-12-31T23:59:59Z")}})),
        ("Lease", json!({"metadata": {"managedFields": [{"time": "9999-12-31T23:59:59Z"}]}})),
    ] {
        let sandbox = broken(kind, &patch);
        for reading in READINGS {
            let run = sandbox.ds_plan(&format!("{reading} --snapshot cluster.json"));
            let fine = run.code == Some(0) || reading.starts_with("drift") && run.code == Some(3);
            assert!(fine, "{reading}: {patch}: {run}");
        }
        // The recording does not contain the time either.
        let plan = sandbox.ds_plan("-f agent.yaml --snapshot cluster.json -o json");
        let plan: Value = serde_json::from_str(&plan.stdout).unwrap();
        let observed = plan["cluster"]["observedAt"].as_str().unwrap();
        assert!(observed.starts_with("2026-01-01T00:0"), "{observed}: {patch}");
    }
}

/// The cluster after a rollout, with everything that a server writes.
fn rolled_out() -> Value {
    let sandbox = sandbox(&cluster());
    let run =
        sandbox.ds_apply("--rehearse --snapshot cluster.json --save after.json -f agent.yaml");
    assert_eq!(run.code, Some(0), "{run}");
    serde_json::from_slice(&fs::read(sandbox.path("after.json")).unwrap()).unwrap()
}

#[test]
fn a_rollout_uses_clamped_timestamps() {
    let mut cluster = rolled_out();
    let patch = json!({"status": {"conditions": ready("9999-12-30T21:59:59Z")}});
    merge(of_kind(&mut cluster, "Pod").next().unwrap(), &patch);
    let sandbox = sandbox(&cluster);
    sandbox.write("agent.yaml", AGENT.replace("agent:1", "agent:2"));
    let run = sandbox.ds_apply("--rehearse --seed 1 --snapshot cluster.json -f agent.yaml");
    assert_eq!(run.code, Some(0), "{run}");
    assert!(run.stdout.contains("2 nodes replaced"), "{run}");
}

#[test]
fn unreadable_objects_are_not_ready_and_are_named() {
    for (kind, patch, name) in [
        ("Pod", json!({"status": {"conditions": "none"}}), "Pod logging/agent-node-1"),
        ("Pod", json!({"status": {"conditions": ready("soon")}}), "Pod logging/agent-node-1"),
        ("Node", json!({"status": {"conditions": ready("soon")}}), "Node node-1"),
    ] {
        let sandbox = broken(kind, &patch);
        for reading in &READINGS[..3] {
            let run = sandbox.ds_plan(&format!("{reading} --snapshot cluster.json"));
            let warned = format!("warning: {name} cannot be read (status.conditions");
            assert!(run.stderr.contains(&warned), "{reading}: {run}");
        }
        let status = sandbox.ds_plan("status --snapshot cluster.json");
        assert!(status.stdout.contains("node-1"), "reported as an obstacle: {status}");
    }
}

/// Nested deeper than any JSON reader allows.
fn deep() -> String {
    format!("{}1{}", "[".repeat(400), "]".repeat(400))
}

#[test]
fn an_unreadable_revision_has_no_template() {
    let cluster = cluster_with(AGENT, &NODES).to_string();
    let revision = format!(
        r#"{{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{{"name":"decoy",
        "namespace":"other","uid":"uid-decoy"}},"revision":7,"data":{}}},"#,
        deep()
    );
    let cluster = cluster.replacen(r#""items":["#, &format!(r#""items":[{revision}"#), 1);
    let sandbox = Sandbox::with(&[("cluster.json", &cluster), ("agent.yaml", AGENT)]);
    let run = sandbox.ds_plan("-f agent.yaml --snapshot cluster.json");
    assert_eq!(run.code, Some(0), "{run}");
    assert!(run.stderr.contains("ControllerRevision other/decoy cannot be read"), "{run}");
}

/// A record ConfigMap with this data.
fn record(name: &str, data: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {
            "name": format!("ds-plan-{name}"), "namespace": "logging", "uid": "uid-record",
            "labels": {"ds-plan.dev/record": "true"}, "resourceVersion": "1",
        },
    })
}

#[test]
fn a_broken_record_fails_only_its_daemon_set() {
    for data in [
        json!({}),
        json!({"daemonSet": "{"}),
        json!({"daemonSet": deep()}),
        json!({"daemonSet": "{\"metadata\":{\"name\":\"other\"},\"spec\":{}}"}),
        json!({"daemonSet": "{\"metadata\":{\"name\":\"agent\"},\"spec\":{\"selector\":{},\"template\":{}}}"}),
    ] {
        let mut cluster = rolled_out();
        cluster["items"].as_array_mut().unwrap().push(record("mesh", &data));
        let sandbox = sandbox(&cluster);
        sandbox.write("mesh.yaml", AGENT.replace("agent", "mesh"));
        sandbox.write("agent.yaml", AGENT.replace("agent:1", "agent:2"));
        let policy = "apiVersion: ds-plan.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {name: x}\n\
                      spec: {selects: {names: [logging/mesh]}, managedBy: ds-apply}\n";
        sandbox.write("policy.yaml", policy);
        let files = "-f agent.yaml -f mesh.yaml --policy policy.yaml --snapshot cluster.json";
        let plan = sandbox.ds_plan(&format!("{files} -o json"));
        assert_eq!(plan.code, Some(0), "{plan}");
        let plan: Value = serde_json::from_str(&plan.stdout).unwrap();
        let guards = plan["guards"].as_array().unwrap();
        assert!(guards.iter().all(|guard| guard["daemonSet"] == "logging/mesh"), "{guards:#?}");
        assert_eq!((guards.len(), &guards[0]["code"]), (1, &json!("managedBy")), "{guards:#?}");
        // The other DaemonSets are applied.
        let run = sandbox.ds_apply(&format!("--rehearse --seed 1 {files}"));
        assert_eq!(run.code, Some(6), "{run}");
        assert!(run.stderr.contains("logging/mesh"), "{run}");
        assert!(run.stdout.contains("2 nodes replaced"), "{data}: {run}");
    }
}
