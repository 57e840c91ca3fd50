//! `diff` matches `kubectl diff`, line by line.

use serde_json::{Value, json};

use crate::harness::{Component, ControlPlane, FakeNode, ds_plan_offline, kubernetes, stdout};

fn agent() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {
            "name": "agent", "namespace": "default", "labels": {"tier": "node"},
            "annotations": {"owner": "team-a"},
        },
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "minReadySeconds": 5,
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {
                    "hostNetwork": true,
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [{
                        "name": "agent",
                        "image": "registry.example.com/agent:1",
                        "args": ["--verbose", "yes", "1e3"],
                        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "two\nlines"}],
                        "resources": {"limits": {"cpu": "100m", "memory": "64Mi"}},
                        "ports": [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}],
                        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                    }],
                    "volumes": [{"name": "data", "hostPath": {"path": "/data", "type": ""}}],
                },
            },
        },
    })
}

/// Changes of the agent, each with a name.
fn changes() -> Vec<(&'static str, Value)> {
    let container = "/spec/template/spec/containers/0";
    let edits: Vec<(&'static str, String, Value)> = vec![
        ("nothing", "/metadata/labels/tier".into(), json!("node")),
        ("an image", format!("{container}/image"), json!("registry.example.com/agent:2")),
        ("arguments", format!("{container}/args"), json!(["--verbose", "no", "~", "0644"])),
        (
            "one env var more",
            format!("{container}/env"),
            json!([{"name": "A", "value": "1"}, {"name": "C", "value": "on"},
                   {"name": "B", "value": "two\nlines"}]),
        ),
        ("one env var less", format!("{container}/env"), json!([{"name": "A", "value": "1"}])),
        ("another value", format!("{container}/env/1/value"), json!("three\nlines\n")),
        ("memory", format!("{container}/resources/limits/memory"), json!("128974848")),
        ("a port", format!("{container}/ports/0/name"), json!("http")),
        ("a label", "/metadata/labels/tier".into(), json!("edge")),
        ("a label more", "/metadata/labels".into(), json!({"tier": "node", "zone": "a"})),
        ("an annotation", "/metadata/annotations/owner".into(), json!("team: b")),
        ("a setting", "/spec/minReadySeconds".into(), json!(30)),
        ("a setting more", "/spec/revisionHistoryLimit".into(), json!(3)),
        (
            "a budget",
            "/spec/updateStrategy".into(),
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}}),
        ),
        ("a node selector", "/spec/template/spec/nodeSelector".into(), json!({"disk": "ssd"})),
        (
            "tolerations",
            "/spec/template/spec/tolerations".into(),
            json!([{"key": "gpu", "effect": "NoSchedule"}]),
        ),
        ("another name, so a new one", "/metadata/name".into(), json!("other")),
    ];
    edits.into_iter().map(|(name, pointer, value)| (name, edited(&pointer, value))).collect()
}

fn edited(pointer: &str, value: Value) -> Value {
    let mut manifest = agent();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    manifest.pointer_mut(parent).unwrap()[key] = value;
    manifest
}

/// The lines of a diff, without the folders and timestamps in its headers, and without values that
/// a server generates for a new object.
fn lines(diff: &str) -> Vec<String> {
    let made_up = |line: &str| {
        ["+  creationTimestamp:", "+  uid:"].iter().any(|start| line.starts_with(start))
    };
    let header = |line: &str| {
        let name = line.split(['/', '\t', ' ']).find(|part| part.starts_with("apps.v1"));
        format!("{} {}", &line[..3], name.unwrap_or_default())
    };
    let kept = diff.lines().filter(|line| !made_up(line));
    kept.map(|line| match line.get(..4) {
        Some("diff" | "--- " | "+++ ") => header(line),
        // The length of a new object depends on the generated values.
        Some("@@ -") if line.starts_with("@@ -0,0") => "@@".to_owned(),
        Some(_) | None => unquoted(line),
    })
    .collect()
}

/// The line with its value in one kind of quotes: kubectl chooses between two, we always use the
/// same.
fn unquoted(line: &str) -> String {
    let value = line.find(['\'', '"']).filter(|at| line[..*at].ends_with([' ']));
    let read = value.and_then(|at| {
        let text: String = serde_yaml::from_str(&line[at..]).ok()?;
        Some(format!("{}{text:?}", &line[..at]))
    });
    read.unwrap_or_else(|| line.to_owned())
}

/// Compares `kubectl diff` with ours, which reads `recording` instead of the cluster if there is
/// one.
fn agrees(plane: &ControlPlane, flags: &[&str], recording: Option<&str>) {
    for (name, manifest) in changes() {
        let manifest = manifest.to_string();
        let theirs = plane.try_kubectl_stdin(&[&["diff", "-f", "-"], flags].concat(), &manifest);
        assert!(theirs.status.code() < Some(2), "{name}: {theirs:?}");
        let mut arguments = vec!["diff", "-f", "manifest.json", "--show-values"];
        arguments.push("--detailed-exitcode");
        let mut files = vec![("manifest.json", manifest.as_str())];
        let ours = match recording {
            None => plane.ds_plan(&arguments, &files),
            Some(recording) => {
                arguments.extend(["--snapshot", "cluster.json"]);
                files.push(("cluster.json", recording));
                ds_plan_offline(&arguments, &files)
            }
        };
        let changed = theirs.status.code() == Some(1);
        assert_eq!(ours.status.code(), Some(if changed { 2 } else { 0 }), "{name}: {ours:?}");
        let (ours, theirs) = (stdout(&ours), stdout(&theirs));
        assert_eq!(lines(&ours), lines(&theirs), "{name}\n{ours}\n{theirs}");
    }
}

fn api_only() -> ControlPlane {
    ControlPlane::builder()
        .without(Component::ControllerManager)
        .without(Component::Scheduler)
        .without(Component::Kwok)
        .start()
}

/// Client-side apply has no field owners, and neither has a recording without managed fields.
#[test]
fn diffs_match_client_side_apply() {
    if !kubernetes::keeps_templates_as_sent() {
        return;
    }
    let plane = api_only();
    plane.create_nodes([FakeNode::new("node")]);
    plane.apply_yaml(&agent().to_string());
    // Labels of other clients are kept.
    plane.kubectl(&["label", "daemonset", "agent", "added-by=somebody"]);
    let recording = plane.kubectl(&["get", "nodes,daemonsets,namespaces", "-A", "-o", "json"]);
    agrees(&plane, &[], Some(&recording));
}

#[test]
fn diffs_match_server_side_apply() {
    if !kubernetes::keeps_templates_as_sent() {
        return;
    }
    let plane = api_only();
    let applied = ["apply", "--server-side", "--field-manager=ds-apply", "-f", "-"];
    plane.kubectl_stdin(&applied, &agent().to_string());
    plane.kubectl(&["label", "daemonset", "agent", "added-by=somebody"]);
    plane.kubectl(&["rollout", "restart", "daemonset/agent"]);
    agrees(&plane, &["--server-side", "--field-manager=ds-apply"], None);
}
