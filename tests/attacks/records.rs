//! The record of `managedBy: ds-apply`, a ConfigMap: a user who may write ConfigMaps in the
//! namespace adds a privileged container to it.

use std::fs;

use serde_json::{Value, json};

use testkit::fixture::{AGENT, cluster, of_kind};
use testkit::sandbox::Sandbox;

/// The cluster of `before.json` has the record of `logging/agent`, and its pods.
fn sandbox() -> Sandbox {
    let files = [("cluster.json", &*cluster().to_string()), ("agent.yaml", AGENT)];
    let sandbox = Sandbox::with(&files);
    let flags = "--rehearse --snapshot cluster.json --save before.json";
    let run = sandbox.ds_apply(&format!("{flags} -f agent.yaml --managed-by ds-apply"));
    assert_eq!(run.code, Some(0), "{run}");
    sandbox
}

/// Edits the object in the record.
fn tamper(sandbox: &Sandbox, edit: impl FnOnce(&mut Value)) {
    let text = fs::read(sandbox.path("before.json")).unwrap();
    let mut cluster: Value = serde_json::from_slice(&text).unwrap();
    let record = of_kind(&mut cluster, "ConfigMap").next().unwrap();
    let text = record["data"]["daemonSet"].as_str().unwrap();
    let mut object: Value = serde_json::from_str(text).unwrap();
    edit(&mut object);
    record["data"]["daemonSet"] = object.to_string().into();
    sandbox.write("before.json", cluster.to_string());
}

fn add_container(object: &mut Value) {
    let mut evil = object["spec"]["template"]["spec"]["containers"][0].clone();
    evil["name"] = json!("evil");
    evil["securityContext"] = json!({"privileged": true});
    object["spec"]["template"]["spec"]["containers"].as_array_mut().unwrap().push(evil);
}

/// The fields of that container, in the format of `managedFields`.
fn fields_of_container() -> Value {
    json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"evil\"}": {
        ".": {}, "f:name": {}, "f:image": {}, "f:securityContext": {"f:privileged": {}},
        "f:imagePullPolicy": {}, "f:resources": {}, "f:terminationMessagePath": {},
        "f:terminationMessagePolicy": {},
    }}}}}})
}

fn entry(manager: &str, operation: &str) -> Value {
    json!({
        "manager": manager, "operation": operation, "apiVersion": "apps/v1",
        "fieldsType": "FieldsV1", "fieldsV1": fields_of_container(),
        "time": "2026-01-01T00:00:00Z",
    })
}

fn merge(whole: &mut Value, part: &Value) {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter()
                .for_each(|(key, value)| merge(whole.entry(key).or_insert(json!({})), value));
        }
        (whole, part) => *whole = part.clone(),
    }
}

const FLAGS: &str = "--snapshot before.json -f agent.yaml --managed-by ds-apply";

/// Applies a new version of the manifest; returns the exit code, and the cluster afterwards.
fn apply(sandbox: &Sandbox) -> (Option<i32>, String) {
    sandbox.write("agent.yaml", AGENT.replace("agent:1", "agent:2"));
    let run = sandbox.ds_apply(&format!("--rehearse --seed 1 --save after.json {FLAGS}"));
    (run.code, fs::read_to_string(sandbox.path("after.json")).unwrap())
}

/// An edit of a record.
type Edit = Box<dyn FnOnce(&mut Value)>;

#[test]
fn a_record_written_by_another_user_is_a_guard() {
    let owned = |owner: Option<Value>| {
        move |object: &mut Value| {
            add_container(object);
            let owners = object["metadata"]["managedFields"].as_array_mut().unwrap();
            owners.extend(owner);
        }
    };
    let edits: [(&str, Edit); 7] = [
        ("without an owner", Box::new(owned(None))),
        ("by server-side apply", Box::new(owned(Some(entry("kubectl", "Apply"))))),
        ("by an update", Box::new(owned(Some(entry("kubectl", "Update"))))),
        ("under our name, by an update", Box::new(owned(Some(entry("ds-apply", "Update"))))),
        (
            "no owners at all",
            Box::new(|object| {
                add_container(object);
                object["metadata"]["managedFields"] = json!([]);
            }),
        ),
        (
            "spoilt owners",
            Box::new(|object| object["metadata"]["managedFields"] = json!([{"manager": 7}])),
        ),
        (
            "a label",
            Box::new(|object| object["metadata"]["labels"]["app"] = json!("something-else")),
        ),
    ];
    for (rule, edit) in edits {
        let sandbox = sandbox();
        let plan = sandbox.ds_plan(&format!("{FLAGS} --fail-on-guards"));
        assert_eq!(plan.code, Some(0), "the record is unchanged: {plan}");
        tamper(&sandbox, edit);
        let plan = sandbox.ds_plan(&format!("{FLAGS} -o json --fail-on-guards"));
        assert_eq!(plan.code, Some(6), "{rule}: {plan}");
        let plan: Value = serde_json::from_str(&plan.stdout).unwrap();
        let guard = plan["guards"][0]["message"].as_str().unwrap();
        assert!(guard.contains("was changed by another client"), "{rule}: {guard}");
        // Nothing of it would be left over.
        assert_eq!(plan["daemonSets"][0]["leftovers"], Value::Null, "{rule}: {plan:#}");
        let (code, after) = apply(&sandbox);
        assert_eq!(code, Some(6), "{rule}");
        assert!(!after.contains("agent:2"), "{rule}");
    }
}

#[test]
fn fields_under_our_own_manager_are_removed() {
    let sandbox = sandbox();
    tamper(&sandbox, |object| {
        add_container(object);
        let owners = &mut object["metadata"]["managedFields"][0];
        assert_eq!(
            (&owners["manager"], &owners["operation"]),
            (&json!("ds-apply"), &json!("Apply"))
        );
        merge(&mut owners["fieldsV1"], &fields_of_container());
    });
    let plan = sandbox.ds_plan(FLAGS);
    assert!(plan.stdout.contains("- spec.template.spec.containers[evil]"), "{plan}");
    let (code, after) = apply(&sandbox);
    assert_eq!(code, Some(0), "{after}");
    let mut after: Value = serde_json::from_str(&after).unwrap();
    for pod in of_kind(&mut after, "Pod") {
        assert!(!pod.to_string().contains("evil"), "{pod}");
    }
    let record = of_kind(&mut after, "ConfigMap").next().unwrap();
    assert!(!record.to_string().contains("evil"), "{record}");
}
