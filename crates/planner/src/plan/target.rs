//! The whole DaemonSet after the apply: the right side of `diff`.
//!
//! The fields of the server are set as it would: a new spec has a new generation, a new template a
//! new template generation. Not here: fields that others own (`applied`).

use serde_json::{Map, Value};

use crate::annotations::{COMMIT_ANNOTATION, PLAN_DIGEST_ANNOTATION};
use daemonset::model::{
    CHANGE_CAUSE_ANNOTATION, DaemonSet, DesiredDaemonSet, TEMPLATE_GENERATION_ANNOTATION,
};

/// The metadata that an apply can change.
const APPLIED_METADATA: [&str; 4] = ["labels", "annotations", "finalizers", "ownerReferences"];

/// The object after the apply, as the server would return it, without `status` and
/// `managedFields`.
pub(super) fn target(live: Option<&DaemonSet>, desired: &DesiredDaemonSet) -> Value {
    let mut after = desired.raw.as_ref().clone();
    let Some(live) = live else {
        return created(after);
    };
    let mut metadata = object_at(&live.raw, "/metadata");
    metadata.remove("managedFields");
    for field in APPLIED_METADATA {
        metadata.remove(field);
        if let Some(value) = after.pointer(&format!("/metadata/{field}")).filter(|it| !is_empty(it))
        {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    keep_provenance(&live.raw, &mut metadata);
    keep_null_timestamp(&live.raw, &mut after);
    let new_spec = live.raw.get("spec") != after.get("spec");
    let template = |object: &'_ Value| object.pointer("/spec/template").cloned();
    let new_template = template(&live.raw) != template(&after);
    if new_spec {
        metadata.insert("generation".to_owned(), (live.generation + 1).into());
    }
    if new_template && let Some(generation) = live.template_generation() {
        annotate(&mut metadata, generation + 1);
    }
    after["metadata"] = metadata.into();
    after
}

/// `ds-apply` writes the provenance again on each apply, so the manifest does not have it.
fn keep_provenance(live: &Value, metadata: &mut Map<String, Value>) {
    let present = object_at(live, "/metadata/annotations");
    for key in [COMMIT_ANNOTATION, PLAN_DIGEST_ANNOTATION, CHANGE_CAUSE_ANNOTATION] {
        if let Some(value) = present.get(key) {
            let annotations = metadata.entry("annotations").or_insert_with(|| Map::new().into());
            if annotations.get(key).is_none() {
                annotations[key] = value.clone();
            }
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// A new object: both generations start at 1. Its uid and creation time are set by the server.
fn created(mut object: Value) -> Value {
    let mut metadata = object_at(&object, "/metadata");
    metadata.insert("generation".to_owned(), 1.into());
    annotate(&mut metadata, 1);
    object["metadata"] = metadata.into();
    object
}

fn annotate(metadata: &mut Map<String, Value>, template_generation: i64) {
    let annotations = metadata.entry("annotations").or_insert_with(|| Map::new().into());
    annotations[TEMPLATE_GENERATION_ANNOTATION] = template_generation.to_string().into();
}

/// Servers up to 1.33 return `creationTimestamp: null` in every template.
fn keep_null_timestamp(live: &Value, after: &mut Value) {
    let pointer = "/spec/template/metadata";
    let served = live.pointer(pointer).and_then(|metadata| metadata.get("creationTimestamp"));
    if served.is_some_and(Value::is_null)
        && let Some(Value::Object(metadata)) = after.pointer_mut(pointer)
    {
        metadata.insert("creationTimestamp".to_owned(), Value::Null);
    }
}

fn object_at(value: &Value, pointer: &str) -> Map<String, Value> {
    value.pointer(pointer).and_then(Value::as_object).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::tests::{desired, settled, snapshot};
    use super::*;

    #[test]
    fn the_provenance_of_ds_apply_stays() {
        let cluster = settled(1);
        let manifest = desired(&cluster);
        let mut live = snapshot(&cluster).daemon_sets.remove(0);
        let raw = Arc::make_mut(&mut live.raw);
        let own = serde_json::json!({COMMIT_ANNOTATION: "4f2c9e1", "other": "of git"});
        raw["metadata"]["annotations"] = own;
        let after = target(Some(&live), &manifest);
        let annotations = &after["metadata"]["annotations"];
        assert_eq!(annotations, &serde_json::json!({COMMIT_ANNOTATION: "4f2c9e1"}));
    }
}
