//! What differs between the versions of Kubernetes that these tests run on.

use serde_json::{Value, json};

use crate::harness::{Component, ControlPlane, kubernetes, stdout};

/// A field of a pod's `spec`: the first minor version that keeps it, by `docs/src/versions.md`; the
/// change of a template that sets it; and the pointer to it.
type Newer = (u32, Value, &'static str);

fn of_pods() -> Vec<Newer> {
    let limits = json!({"limits": {"cpu": "1"}});
    let claims = json!([{"name": "gpu", "resourceClaimName": "gpu"}]);
    let image = json!([{"name": "data", "image": {"reference": "data:1"}}]);
    let groups = json!({"supplementalGroupsPolicy": "Strict"});
    let policy = json!({"seLinuxChangePolicy": "Recursive"});
    vec![
        (34, json!({"resources": limits}), "/resources"),
        (35, json!({"hostnameOverride": "agent"}), "/hostnameOverride"),
        (33, json!({"hostUsers": false}), "/hostUsers"),
        (34, json!({"resourceClaims": claims}), "/resourceClaims"),
        (33, json!({"securityContext": groups}), "/securityContext/supplementalGroupsPolicy"),
        (33, json!({"securityContext": policy}), "/securityContext/seLinuxChangePolicy"),
        (35, json!({"volumes": image}), "/volumes/0/image"),
    ]
}

fn of_containers() -> Vec<Newer> {
    let action = json!([{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]);
    let from_file = json!({"fileKeyRef": {"volumeName": "data", "path": "env", "key": "A"}});
    let env = json!([{"name": "A", "valueFrom": from_file}]);
    let resize = json!([{"resourceName": "cpu", "restartPolicy": "NotRequired"}]);
    let container = |fields: Value| {
        let mut container = json!({"name": "agent", "image": "agent:1"});
        container.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        // What the others refer to.
        json!({
            "containers": [container], "volumes": [{"name": "data", "emptyDir": {}}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}], "hostUsers": false,
        })
    };
    let sidecar = |field: &str, value: &Value| {
        let mut sidecar = json!({"name": "side", "image": "side:1", "restartPolicy": "Always"});
        sidecar[field] = value.clone();
        json!({"initContainers": [sidecar], "volumes": [{"name": "data", "emptyDir": {}}]})
    };
    let restarts = json!({"restartPolicy": "Never", "restartPolicyRules": action});
    let unmasked = json!({"securityContext": {"procMount": "Unmasked"}});
    let gpu = json!({"resources": {"claims": [{"name": "gpu"}]}});
    vec![
        (34, container(gpu), "/containers/0/resources/claims"),
        (35, container(json!({"restartPolicy": "Always"})), "/containers/0/restartPolicy"),
        (35, container(restarts), "/containers/0/restartPolicyRules"),
        (33, container(json!({"resizePolicy": resize})), "/containers/0/resizePolicy"),
        (33, sidecar("resizePolicy", &resize), "/initContainers/0/resizePolicy"),
        (35, container(json!({"env": env})), "/containers/0/env/0/valueFrom/fileKeyRef"),
        (35, sidecar("env", &env), "/initContainers/0/env/0/valueFrom/fileKeyRef"),
        (33, container(unmasked), "/containers/0/securityContext/procMount"),
    ]
}

/// Values of fields that have others, too, with the end of the path that the warning shows.
fn of_values() -> Vec<(Newer, &'static str)> {
    let container = |policy: &str, action: &str| {
        let codes = json!({"operator": "In", "values": [42]});
        let rules = json!([{"action": action, "exitCodes": codes}]);
        json!({
            "name": "agent", "image": "agent:1",
            "restartPolicy": policy, "restartPolicyRules": rules,
        })
    };
    let init = |mut container: Value| {
        container["name"] = json!("first");
        json!({"initContainers": [container]})
    };
    let without_rules = |policy: &str| json!({"image": "agent:1", "restartPolicy": policy});
    let all = container("Never", "RestartAllContainers");
    let policy = "/initContainers/0/restartPolicy";
    vec![
        (
            (36, json!({"containers": [all]}), "/containers/0/restartPolicyRules/0/action"),
            ".containers[*].restartPolicyRules[action=RestartAllContainers]",
        ),
        (
            (36, init(all), "/initContainers/0/restartPolicyRules/0/action"),
            ".initContainers[*].restartPolicyRules[action=RestartAllContainers]",
        ),
        (
            (36, init(container("Always", "Restart")), "/initContainers/0/restartPolicyRules"),
            ".initContainers[restartPolicy=Always].restartPolicyRules",
        ),
        ((35, init(without_rules("Never")), policy), ".initContainers[restartPolicy=Never]"),
        (
            (35, init(without_rules("OnFailure")), policy),
            ".initContainers[restartPolicy=OnFailure]",
        ),
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

/// All of them, with the end of the path that the warning shows.
fn all_newer() -> impl Iterator<Item = (Newer, String)> {
    let fields = of_pods().into_iter().chain(of_containers());
    let fields = fields.map(|newer| {
        let shown = newer.2.replace("/0", "[*]").replace('/', ".");
        (newer, shown)
    });
    fields.chain(of_values().into_iter().map(|(newer, shown)| (newer, shown.to_owned())))
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
    for (at, ((since, change, pointer), shown)) in all_newer().enumerate() {
        let name = format!("agent-{at}");
        let manifest = agent(&name, &change).to_string();
        let plan = plane.ds_plan(&["-f", "m.json", "-o", "json"], &[("m.json", &manifest)]);
        let plan: Value = serde_json::from_str(&stdout(&plan)).unwrap();
        let warnings = plan["warnings"].as_array().unwrap();
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
