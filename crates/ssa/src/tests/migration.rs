//! Transfers of ownership: the new owners, and the fields that an apply then removes.

use serde_json::{Value, json};

use super::super::{DAEMON_SET, LAST_APPLIED_ANNOTATION, ManagedFields, ownership};
use super::{apply, defaulted, now};

fn entry(manager: &str, operation: &str, version: &str, fields: &[&str]) -> Value {
    let fields: Value = json!({ "f:spec": fields.iter().map(|f| (format!("f:{f}"), json!({}))).collect::<serde_json::Map<_, _>>() });
    json!({
        "manager": manager, "operation": operation, "apiVersion": version,
        "time": "2026-01-02T03:04:05Z", "fieldsType": "FieldsV1", "fieldsV1": fields,
    })
}

fn of(entries: &Value) -> ManagedFields {
    ManagedFields::of(&json!({ "metadata": { "managedFields": entries } })).unwrap()
}

/// The cases of upstream's `TestUpgradeManagedFields`, in our fields.
#[test]
fn updates_of_client_side_apply_become_an_apply() {
    let csa = |version, fields| entry("kubectl-client-side-apply", "Update", version, fields);
    let ours = |version, fields| entry("ds-apply", "Apply", version, fields);
    let with_status = |mut entry: Value| {
        entry["subresource"] = json!("status");
        entry
    };
    for (rule, before, after) in [
        ("neither manager", json!([]), json!([])),
        (
            "a single manager is renamed",
            json!([csa("apps/v1", &["a"])]),
            json!([ours("apps/v1", &["a"])]),
        ),
        (
            "both are united",
            json!([ours("apps/v1", &["a"]), csa("apps/v1", &["b"])]),
            json!([ours("apps/v1", &["a", "b"])]),
        ),
        (
            "another version is dropped",
            json!([ours("apps/v1", &["a"]), csa("apps/v1beta2", &["b"])]),
            json!([ours("apps/v1", &["a"])]),
        ),
        (
            "other managers stay",
            json!([csa("apps/v1", &["a"]), entry("other", "Update", "apps/v1", &["a"])]),
            json!([ours("apps/v1", &["a"]), entry("other", "Update", "apps/v1", &["a"])]),
        ),
        (
            "its status stays its own",
            json!([with_status(csa("apps/v1", &["a"])),]),
            json!([with_status(csa("apps/v1", &["a"]))]),
        ),
    ] {
        let got = of(&before).migrated(&["kubectl-client-side-apply"], "ds-apply");
        assert_eq!(got.to_value(), after, "{rule}");
    }
}

#[test]
fn forcing_conflicts_includes_managers_that_apply() {
    let before = json!([
        entry("argocd", "Apply", "apps/v1", &["a"]),
        entry("argocd", "Update", "apps/v1", &["b"]),
        entry("helm", "Apply", "apps/v1", &["c"]),
    ]);
    let after = json!([
        entry("ds-apply", "Apply", "apps/v1", &["a", "b"]),
        entry("helm", "Apply", "apps/v1", &["c"]),
    ]);
    assert_eq!(of(&before).transferred(&DAEMON_SET, &["argocd"], "ds-apply").to_value(), after);
}

fn daemon_set(env: &[&str]) -> Value {
    let env: Value = env.iter().map(|name| json!({ "name": name, "value": "1" })).collect();
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": { "name": "ds", "annotations": { LAST_APPLIED_ANNOTATION: "{}" } },
        "spec": {
            "selector": { "matchLabels": { "app": "ds" } },
            "template": {
                "metadata": { "labels": { "app": "ds" } },
                "spec": { "containers": [{ "name": "agent", "image": "a:1", "env": env }] },
            },
        },
    })
}

/// An object from before ownership was tracked, migrated in one go: removals in git take effect.
#[test]
fn after_the_migration_fields_not_in_git_are_removed() {
    let mut live = defaulted(&daemon_set(&["A", "B"]));
    let mut manifest = daemon_set(&["A"]);
    manifest["metadata"].as_object_mut().unwrap().remove("annotations");

    let env = "spec.template.spec.containers[agent].env[B]";
    let last = format!("metadata.annotations[{LAST_APPLIED_ANNOTATION}]");
    let left = |live: &Value| -> Vec<String> {
        let leftovers = apply(Some(live), &manifest, "ds-apply").leftovers;
        leftovers.iter().map(|left| left.path.to_string()).collect()
    };
    assert_eq!(left(&live), [last, env.to_owned()]);

    let owners = ownership(&DAEMON_SET, &live, now()).unwrap();
    assert_eq!(owners.client_side_appliers(), ["before-first-apply"]);
    let migrated = owners.migrated(&owners.client_side_appliers(), "ds-apply");
    live["metadata"]["managedFields"] = migrated.to_value();
    assert_eq!(left(&live), [""; 0]);
    let merged = apply(Some(&live), &manifest, "ds-apply");
    assert_eq!(defaulted(&merged.object)["spec"], defaulted(&manifest)["spec"]);
}
