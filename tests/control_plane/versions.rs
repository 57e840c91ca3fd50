//! What differs between the versions of Kubernetes that these tests run on.

use serde_json::{Value, json};

use crate::harness::{Component, ControlPlane, kubernetes, stdout};

/// Fields of a pod's `spec`, each as a change of a template and the pointer to what it sets. The
/// number is the first minor version that keeps it, by `docs/src/versions.md`.
fn newer_fields() -> Vec<(u32, Value, &'static str)> {
    let limits = json!({"limits": {"cpu": "1"}});
    let rules = json!([{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]);
    let key = json!({"volumeName": "data", "path": "env", "key": "A"});
    let env = json!([{"name": "A", "valueFrom": {"fileKeyRef": key}}]);
    let resize = json!([{"resourceName": "cpu", "restartPolicy": "NotRequired"}]);
    let data = json!([{"name": "data", "emptyDir": {}}]);
    let image = json!([{"name": "data", "image": {"reference": "data:1"}}]);
    let claims = json!([{"name": "gpu", "resourceClaimName": "gpu"}]);
    let container = |field: &str, value: &Value| json!({"containers": [{"name": "agent", "image": "agent:1", field: value}]});
    let init = |field: &str, value: &Value| {
        let always = json!({"name": "side", "image": "side:1", "restartPolicy": "Always"});
        let mut change = json!({"initContainers": [always]});
        change["initContainers"][0][field] = value.clone();
        change
    };
    let with = |mut change: Value, field: &str, value: &Value| {
        change[field] = value.clone();
        change
    };
    let user = json!({"procMount": "Unmasked"});
    let gpu = json!({"claims": [{"name": "gpu"}]});
    let mut ruled = container("restartPolicy", &json!("Never"));
    ruled["containers"][0]["restartPolicyRules"] = rules;
    vec![
        (34, json!({"resources": limits}), "/resources"),
        (35, json!({"hostnameOverride": "agent"}), "/hostnameOverride"),
        (33, json!({"hostUsers": false}), "/hostUsers"),
        (34, json!({"resourceClaims": claims}), "/resourceClaims"),
        (
            34,
            with(container("resources", &gpu), "resourceClaims", &claims),
            "/containers/0/resources/claims",
        ),
        (
            33,
            json!({"securityContext": {"supplementalGroupsPolicy": "Strict"}}),
            "/securityContext/supplementalGroupsPolicy",
        ),
        (
            33,
            json!({"securityContext": {"seLinuxChangePolicy": "Recursive"}}),
            "/securityContext/seLinuxChangePolicy",
        ),
        (35, container("restartPolicy", &json!("Always")), "/containers/0/restartPolicy"),
        (35, ruled, "/containers/0/restartPolicyRules"),
        (33, container("resizePolicy", &resize), "/containers/0/resizePolicy"),
        (33, init("resizePolicy", &resize), "/initContainers/0/resizePolicy"),
        (
            35,
            with(container("env", &env), "volumes", &data),
            "/containers/0/env/0/valueFrom/fileKeyRef",
        ),
        (
            35,
            with(init("env", &env), "volumes", &data),
            "/initContainers/0/env/0/valueFrom/fileKeyRef",
        ),
        (
            33,
            with(container("securityContext", &user), "hostUsers", &json!(false)),
            "/containers/0/securityContext/procMount",
        ),
        (35, json!({"volumes": image}), "/volumes/0/image"),
    ]
}

/// A DaemonSet that selects no node, with `change` in the spec of its pods.
fn agent(name: &str, change: &Value) -> Value {
    let mut agent = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "agent", "image": "agent:1"}]},
        }},
    });
    let spec = agent["spec"]["template"]["spec"].as_object_mut().unwrap();
    spec.extend(change.as_object().unwrap().clone());
    agent
}

/// The server keeps a field by default exactly if the plan does not warn about it.
#[test]
fn the_plan_warns_about_fields_that_this_server_does_not_keep() {
    let plane = ControlPlane::builder()
        .without(Component::ControllerManager)
        .without(Component::Scheduler)
        .without(Component::Kwok)
        .start();
    let version = kubernetes::version().minor;
    for (at, (since, change, pointer)) in newer_fields().into_iter().enumerate() {
        let name = format!("agent-{at}");
        let manifest = agent(&name, &change).to_string();
        let plan = plane.ds_plan(&["-f", "m.json", "-o", "json"], &[("m.json", &manifest)]);
        let plan: Value = serde_json::from_str(&stdout(&plan)).unwrap();
        let warnings = plan["warnings"].as_array().unwrap();
        let shown = pointer.replace("/0", "[*]").replace('/', ".");
        let warned = warnings.iter().any(|warning| {
            let message = warning["message"].as_str().unwrap();
            warning["code"] == "newerFields"
                && message.contains(&format!("spec.template.spec{shown} (1.{since})"))
        });

        // Without validation of field names an unknown field is dropped, as one that is off.
        let create = ["create", "--validate=false", "--filename=-", "--output=json"];
        let created = plane.try_kubectl_stdin(&create, &manifest);
        let served: Value = serde_json::from_slice(&created.stdout).unwrap_or_default();
        // What is off is left out, or set back to its default.
        let kept = served.pointer(&format!("/spec/template/spec{pointer}")).is_some_and(|value| {
            value.is_object() || value.is_array() || change.pointer(pointer) == Some(value)
        });
        assert_eq!(kept, version >= since, "{pointer}: {created:?}");
        assert_eq!(warned, !kept, "{pointer}: {warnings:?}");
    }
}
