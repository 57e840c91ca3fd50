//! The history of a live object: the client that created it, and all later writers. Uses the tools
//! themselves if they have their own rules, and plain requests otherwise.

use kube::Client;
use serde_json::{Value, json};

use super::server::{self, Run};
use crate::harness::ControlPlane;
use testkit::manifests;
use testkit::random::Random;

/// Creates a live object, or none, and describes its history.
pub(super) async fn live(
    plane: &ControlPlane,
    client: &Client,
    random: &mut Random,
    name: &str,
) -> Vec<String> {
    let mut reported = vec![create(plane, client, random, name).await];
    for _ in 0..random.below(5) {
        reported.push(write(plane, client, random, name).await);
    }
    reported
}

/// The manifest to apply: usually a whole DaemonSet, sometimes part of one, or one with two
/// elements of the same name.
pub(super) fn to_apply(random: &mut Random, name: &str) -> Value {
    let mut object = match random.below(8) {
        0 => manifests::part(random, name),
        _ => manifests::whole(random, name),
    };
    if random.one_in(25) {
        let twice = json!([{ "name": "A", "value": "1" }, { "name": "B" }, { "name": "A" }]);
        object["spec"]["template"]["spec"]["containers"] =
            json!([{ "name": "agent", "image": "cr.example/a:1", "env": twice }]);
    }
    if random.one_in(50) {
        object["metadata"]["finalizers"] = json!(["x.y/a", "x.y/a"]);
    }
    object
}

async fn create(plane: &ControlPlane, client: &Client, random: &mut Random, name: &str) -> String {
    let object = manifests::whole(random, name);
    let text = object.to_string();
    let kubectl = |how: &[&str]| {
        let output = plane.try_kubectl_stdin(&[how, &["--filename=-"]].concat(), &text);
        format!("kubectl {}: {}", how.join(" "), output_text(&output))
    };
    match random.below(8) {
        0..=2 => kubectl(&["apply"]),
        3 => kubectl(&["create"]),
        4 => kubectl(&["apply", "--server-side"]),
        5 => kubectl(&["apply", "--server-side", "--field-manager=other"]),
        6 => apply(client, &object, "ds-apply").await,
        _ => "nothing".to_owned(),
    }
}

async fn apply(client: &Client, object: &Value, manager: &str) -> String {
    let answer = server::apply(client, object, manager, true, Run::Real).await;
    let how = match answer {
        server::Answer::Object(_) => "done".to_owned(),
        server::Answer::Conflicts(_) => unreachable!("it is forced"),
        server::Answer::Invalid(text) | server::Answer::Failed(text) => text,
    };
    format!("{manager} applies: {how}")
}

/// One more write by a random client; describes the result.
pub(super) async fn write(
    plane: &ControlPlane,
    client: &Client,
    random: &mut Random,
    name: &str,
) -> String {
    let daemon_set = format!("daemonset/{name}");
    let kubectl = |arguments: &[&str]| {
        let output = plane.try_kubectl(arguments);
        format!("kubectl {}: {}", arguments.join(" "), output_text(&output))
    };
    match random.below(16) {
        0 | 1 => {
            let text = manifests::whole(random, name).to_string();
            let output = plane.try_kubectl_stdin(&["apply", "--filename=-"], &text);
            format!("kubectl apply again: {}", output_text(&output))
        }
        2 => kubectl(&["set", "image", &daemon_set, "*=cr.example/a:3"]),
        3 => kubectl(&["set", "env", &daemon_set, "A=9", "E=9", "B-"]),
        4 => kubectl(&["set", "resources", &daemon_set, "--limits=cpu=200m,memory=512Mi"]),
        5 => kubectl(&["rollout", "restart", &daemon_set]),
        6 => kubectl(&["label", "--overwrite", &daemon_set, "team=z", "hot=fix"]),
        7 => kubectl(&["annotate", "--overwrite", &daemon_set, "note=z"]),
        8 | 9 => {
            let manager = random.pick(&["other", "third"]);
            apply(client, &manifests::part(random, name), manager).await
        }
        10 | 11 => {
            let object = manifests::whole(random, name);
            apply(client, &object, "ds-apply").await
        }
        12..=14 => bare(client, random, name).await,
        _ => ownership(client, random, name).await,
    }
}

/// A patch as a program or a user with curl would send it.
async fn bare(client: &Client, random: &mut Random, name: &str) -> String {
    let whole = manifests::whole(random, name);
    let (path, kind, body) = match random.below(6) {
        0 => (name.to_owned(), "merge-patch", json!({ "spec": { "minReadySeconds": 7 } })),
        1 => (name.to_owned(), "merge-patch", json!({ "spec": whole["spec"] })),
        2 => {
            let template = json!({ "spec": { "template": whole["spec"]["template"] } });
            (name.to_owned(), "strategic-merge-patch", template)
        }
        3 => {
            let body = json!([{
                "op": "replace", "path": "/spec/template/spec/containers/0/image",
                "value": "cr.example/a:4",
            }]);
            (name.to_owned(), "json-patch", body)
        }
        4 => {
            // Two elements of the same name, which only such a patch can add.
            let twice = json!([{ "name": "A", "value": "1" }, { "name": "A", "value": "2" }]);
            let path = "/spec/template/spec/containers/0/env";
            let body = json!([{ "op": "add", "path": path, "value": twice }]);
            (name.to_owned(), "json-patch", body)
        }
        _ => {
            let status = json!({ "status": { "numberReady": 3, "conditions": [
                { "type": "X", "status": "True" },
            ] } });
            (format!("{name}/status"), "merge-patch", status)
        }
    };
    let manager = random.pick(&["robot", "curl"]);
    let how = server::patch(client, &path, kind, manager, &body).await;
    format!("{manager} sends a {kind} {body}: {}", how.map_or_else(|text| text, |_| "done".into()))
}

/// Managed fields as old or careless clients write them.
async fn ownership(client: &Client, random: &mut Random, name: &str) -> String {
    let Some(live) = server::get(client, name).await else { return "nothing to write to".into() };
    let mut entries = live["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let entry = |version: &str, fields: Value| {
        json!({
            "manager": "ancient", "operation": "Update", "apiVersion": version,
            "time": "2020-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields,
        })
    };
    let fields = json!({ "f:spec": { "f:minReadySeconds": {}, "f:gone": {} } });
    match random.below(4) {
        0 => entries = vec![json!({})],
        1 => entries.push(entry("extensions/v1beta1", fields)),
        2 => entries.push(entry("apps/v1beta2", fields)),
        _ => entries.push(entry(
            "apps/v1",
            json!({ "f:spec": {
            "f:selector": { "f:matchLabels": { "f:app": {} } }, "f:gone": {},
        } }),
        )),
    }
    let body = json!({ "metadata": { "managedFields": entries } });
    let how = server::patch(client, name, "merge-patch", "robot", &body).await;
    format!("ownership set to {entries:?}: {}", how.map_or_else(|text| text, |_| "done".into()))
}

fn output_text(output: &std::process::Output) -> String {
    let text = if output.status.success() { &output.stdout } else { &output.stderr };
    String::from_utf8_lossy(text).trim().to_owned()
}
