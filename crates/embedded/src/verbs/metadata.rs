//! Rules of `metadata` for all writes (upstream: `BeforeCreate`, `BeforeUpdate`).

use serde_json::{Map, Value};

use crate::Cause;

/// Removes empty fields of `metadata`, which Go omits.
pub(super) fn tidy(object: &mut Value) {
    let Some(metadata) = fields(object) else { return };
    metadata.retain(|_, value| !is_empty(value));
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The fields of `metadata`, which is created if it is missing.
pub(super) fn fields(object: &mut Value) -> Option<&mut Map<String, Value>> {
    let metadata = object.as_object_mut()?.entry("metadata").or_insert_with(|| Map::new().into());
    if metadata.is_null() {
        *metadata = Map::new().into();
    }
    metadata.as_object_mut()
}

/// A string of `metadata`; empty when absent.
pub(super) fn text<'v>(object: &'v Value, field: &str) -> &'v str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// Sets or removes a field of `metadata`.
pub(super) fn set(object: &mut Value, field: &str, value: Option<Value>) {
    let Some(metadata) = fields(object) else { return };
    match value {
        Some(value) => metadata.insert(field.to_owned(), value),
        None => metadata.remove(field),
    };
}

/// The errors of a changed `metadata` (upstream: `ValidateObjectMetaAccessorUpdate`).
pub(super) fn check_update(old: &Value, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let list = |object: &Value| -> Vec<String> {
        let all = object["metadata"]["finalizers"].as_array().into_iter().flatten();
        all.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    if !text(old, "deletionTimestamp").is_empty() {
        let before = list(old);
        let mut added: Vec<_> =
            list(object).into_iter().filter(|it| !before.contains(it)).collect();
        added.sort();
        if !added.is_empty() {
            let all: Vec<String> = added.iter().map(|it| format!("{it:?}")).collect();
            causes.push(Cause {
                reason: "FieldValueForbidden",
                message: format!(
                    "Forbidden: no new finalizers can be added if the object is being deleted, \
                     found new finalizers []string{{{}}}",
                    all.join(", ")
                ),
                field: "metadata.finalizers".to_owned(),
            });
        }
    }
    for field in ["name", "namespace", "uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let [before, after] = [old, object].map(|it| &it["metadata"][field]);
        if before != after {
            causes.push(Cause::immutable(&format!("metadata.{field}"), after));
        }
    }
    causes
}
