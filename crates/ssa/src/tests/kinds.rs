//! Each kind of field: the result of applying it again, next to fields of another manager.

use serde_json::{Value, json};

use super::{apply, defaulted, served};

/// A valid DaemonSet with `value` at `pointer`, or without that field.
fn with(pointer: &str, value: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": { "name": "ds", "namespace": "default" },
        "spec": {
            "selector": { "matchLabels": { "app": "ds" } },
            "template": {
                "metadata": { "labels": { "app": "ds" } },
                "spec": { "containers": [{ "name": "agent", "image": "a:1" }] },
            },
        },
    });
    if !value.is_null() {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        object.pointer_mut(parent).unwrap()[name] = value.clone();
    }
    object
}

const POD: &str = "/spec/template/spec";
const AGENT: &str = "/spec/template/spec/containers/0";

/// The value that we applied first, the one that another manager then wrote, the one that we apply
/// now; the resulting value, the conflicts, the leftovers.
type Row = (&'static str, String, [Value; 4], &'static [&'static str], &'static [&'static str]);

fn env(pairs: &str) -> Value {
    let variable = |pair: &str| json!({ "name": &pair[..1], "value": &pair[1..] });
    pairs.split_whitespace().map(variable).collect()
}

fn names(names: &str) -> Value {
    names.split_whitespace().map(|name| json!({ "name": name })).collect()
}

#[rustfmt::skip] // a row is a line
fn rows() -> Vec<Row> {
    let at = |place: &str, field: &str| format!("{place}/{field}");
    let none = Value::Null;
    let no = none.clone();
    let udp = json!([{ "containerPort": 53, "protocol": "UDP" }]);
    vec![
        ("a plain value is replaced", at("/spec", "minReadySeconds"), [json!(1), no.clone(), json!(2), json!(2)], &[], &[]),
        ("a plain value that two managers set equally has two owners", at("/spec", "minReadySeconds"), [json!(1), json!(1), no.clone(), json!(1)], &[], &["spec.minReadySeconds"]),
        ("a plain value returns to its default", at("/spec", "minReadySeconds"), [json!(1), no.clone(), no.clone(), no.clone()], &[], &[]),
        ("a plain value of another is a conflict", at("/spec", "minReadySeconds"), [no.clone(), json!(1), json!(2), json!(2)], &["spec.minReadySeconds"], &[]),
        ("an atomic list is replaced", at(AGENT, "args"), [json!(["a"]), no.clone(), json!(["b"]), json!(["b"])], &[], &[]),
        ("an atomic list of another is one conflict", at(AGENT, "args"), [no.clone(), json!(["a", "b"]), json!(["b"]), json!(["b"])], &["spec.template.spec.containers[agent].args"], &[]),
        ("an atomic list of another stays", at(AGENT, "args"), [no.clone(), json!(["a"]), no.clone(), json!(["a"])], &[], &["spec.template.spec.containers[agent].args"]),
        ("an atomic map is one value", at(POD, "nodeSelector"), [no.clone(), json!({"a": "1"}), json!({"b": "1"}), json!({"b": "1"})], &["spec.template.spec.nodeSelector"], &[]),
        ("a map is united", "/metadata/labels".into(), [json!({"a": "1"}), json!({"b": "1"}), json!({"c": "1"}), json!({"b": "1", "c": "1"})], &[], &["metadata.labels.b"]),
        ("a map conflicts key by key", "/metadata/labels".into(), [no.clone(), json!({"a": "1", "x.y/b": "1"}), json!({"a": "1", "x.y/b": "2"}), json!({"a": "1", "x.y/b": "2"})], &["metadata.labels[x.y/b]"], &[]),
        ("a struct is united", at(POD, "securityContext"), [json!({"runAsUser": 1}), json!({"fsGroup": 2}), json!({"runAsUser": 3}), json!({"runAsUser": 3, "fsGroup": 2})], &[], &["spec.template.spec.securityContext.fsGroup"]),
        ("a struct that nobody applies is one leftover", at(AGENT, "securityContext"), [no.clone(), json!({"runAsUser": 1}), no.clone(), json!({"runAsUser": 1})], &[], &["spec.template.spec.containers[agent].securityContext"]),
        ("a set is united", "/metadata/finalizers".into(), [json!(["x/a"]), json!(["x/b"]), json!(["x/c"]), json!(["x/b", "x/c"])], &[], &[]),
        ("a keyed list is united", at(AGENT, "env"), [env("A1 B1"), env("X1"), env("A2 C1"), env("A2 X1 C1")], &[], &["spec.template.spec.containers[agent].env[X]"]),
        ("a keyed list conflicts field by field", at(AGENT, "env"), [no.clone(), env("A1 X1"), env("A2"), env("A2 X1")], &["spec.template.spec.containers[agent].env[A].value"], &["spec.template.spec.containers[agent].env[X]"]),
        ("a key that is left out counts as its default", at(AGENT, "ports"), [json!([{ "containerPort": 53, "protocol": "TCP" }]), udp.clone(), json!([{ "containerPort": 53, "name": "dns" }]), json!([{ "containerPort": 53, "protocol": "TCP", "name": "dns" }, { "containerPort": 53, "protocol": "UDP" }])], &[], &["spec.template.spec.containers[agent].ports[53/UDP]"]),
        ("a keyed list of atomic structs is united", at(POD, "imagePullSecrets"), [names("a"), names("b"), names("c"), names("b c")], &[], &["spec.template.spec.imagePullSecrets[b]"]),
        ("null keeps what others own", "/metadata/labels".into(), [json!({"a": "1"}), json!({"b": "1"}), no.clone(), json!({"b": "1"})], &[], &["metadata.labels.b"]),
        ("an empty map keeps what others own", "/metadata/labels".into(), [json!({"a": "1"}), json!({"b": "1"}), json!({}), json!({"b": "1"})], &[], &["metadata.labels.b"]),
        ("an empty list keeps what others own", at(AGENT, "env"), [env("A1"), env("X1"), json!([]), env("X1")], &[], &["spec.template.spec.containers[agent].env[X]"]),
    ]
}

#[test]
fn each_kind_of_field_is_merged_in_its_own_way() {
    for (rule, pointer, [first, theirs, now, want], conflicts, leftovers) in rows() {
        let live = served(None, &with(&pointer, &first), "ds-apply");
        let live = served(Some(&live), &with(&pointer, &theirs), "other");
        let merged = apply(Some(&live), &with(&pointer, &now), "ds-apply");
        let default = defaulted(&with(&pointer, &Value::Null)).pointer(&pointer).cloned();
        let want = if want.is_null() { default } else { Some(want) };
        assert_eq!(defaulted(&merged.object).pointer(&pointer), want.as_ref(), "{rule}");
        let text = |path: &super::super::FieldPath| path.to_string();
        let found: Vec<_> = merged.conflicts.iter().map(|conflict| text(&conflict.path)).collect();
        assert_eq!(found, conflicts, "{rule}: conflicts");
        let found: Vec<_> = merged.leftovers.iter().map(|left| text(&left.path)).collect();
        assert_eq!(found, leftovers, "{rule}: leftovers");
        let other = |managers: &[super::super::Manager]| managers.iter().all(|m| m.name == "other");
        assert!(merged.leftovers.iter().all(|left| other(&left.managers)), "{rule}");
    }
}

#[test]
fn ambiguous_elements_are_rejected() {
    use super::super::{DAEMON_SET, Error, Manifest};
    for (pointer, value, want) in [
        (
            format!("{AGENT}/env"),
            env("A1 B1 A2"),
            "`spec.template.spec.containers[agent].env[A]` is a duplicate; server-side apply rejects it",
        ),
        (
            "/metadata/finalizers".to_owned(),
            json!(["x/a", "x/a"]),
            "`metadata.finalizers[x/a]` is a duplicate; server-side apply rejects it",
        ),
        (
            format!("{AGENT}/env"),
            json!([{ "name": "A" }, null]),
            "`spec.template.spec.containers[agent].env[1]` has no key; server-side apply rejects it",
        ),
    ] {
        let applied = with(&pointer, &value);
        let manifest = Manifest { applied: &applied, defaulted: &applied };
        let error: Error =
            super::super::apply(&DAEMON_SET, None, manifest, "ds-apply", super::now()).unwrap_err();
        assert_eq!(error.to_string(), want);
    }
}

/// Entries that only older servers wrote: they cannot be created through a current server.
#[test]
fn old_ownership_is_handled_as_by_the_server() {
    let object = |seconds: u32| with("/spec/minReadySeconds", &json!(seconds));
    let entry = |version: &str, fields: Value| {
        json!({
            "manager": "old", "operation": "Update", "apiVersion": version,
            "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": fields },
        })
    };
    for (rule, version, fields, conflicts, after) in [
        (
            "the served version counts",
            "apps/v1",
            json!({"f:minReadySeconds": {}}),
            vec!["spec.minReadySeconds"],
            None,
        ),
        (
            "another version does not",
            "extensions/v1beta1",
            json!({"f:minReadySeconds": {}}),
            vec![],
            None,
        ),
        (
            "a field that is atomic now is owned as a whole",
            "apps/v1",
            json!({"f:selector": {"f:matchLabels": {".": {}, "f:app": {}}}}),
            vec![],
            Some(json!({"f:spec": {"f:selector": {}}})),
        ),
    ] {
        let mut live = defaulted(&object(1));
        live["metadata"]["managedFields"] = json!([entry(version, fields)]);
        let merged = apply(Some(&live), &object(2), "ds-apply");
        let found: Vec<_> = merged.conflicts.iter().map(|c| c.path.to_string()).collect();
        assert_eq!(found, conflicts, "{rule}");
        let entries = merged.managed_fields.to_value();
        let old = entries.as_array().unwrap().iter().find(|entry| entry["manager"] == "old");
        assert_eq!(old.map(|old| old["fieldsV1"].clone()), after, "{rule}");
    }
}

/// Stored objects may have duplicates: an apply of one replaces both.
#[test]
fn one_element_replaces_two_with_its_name() {
    let pointer = format!("{AGENT}/env");
    let live = defaulted(&with(&pointer, &env("A1 X1 A2")));
    let merged = apply(Some(&live), &with(&pointer, &json!([{ "name": "A" }])), "ds-apply");
    let want = json!([{ "name": "A" }, { "name": "X", "value": "1" }]);
    assert_eq!(merged.object.pointer(&pointer), Some(&want));
}
