//! `metadata` as every write treats it (upstream: `BeforeCreate`, `BeforeUpdate`).

use jiff::Timestamp;
use serde_json::{Map, Value};

/// Fields of `metadata` in the way that Go leaves out what is empty.
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

/// The fields of `metadata`, which is made when it is missing.
pub(super) fn fields(object: &mut Value) -> Option<&mut Map<String, Value>> {
    let metadata = object.as_object_mut()?.entry("metadata").or_insert_with(|| Map::new().into());
    if metadata.is_null() {
        *metadata = Map::new().into();
    }
    metadata.as_object_mut()
}

/// A text of `metadata`; empty when absent.
pub(super) fn text<'v>(object: &'v Value, field: &str) -> &'v str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// Sets a field of `metadata`, or takes it away.
pub(super) fn set(object: &mut Value, field: &str, value: Option<Value>) {
    let Some(metadata) = fields(object) else { return };
    match value {
        Some(value) => metadata.insert(field.to_owned(), value),
        None => metadata.remove(field),
    };
}

/// A moment in whole seconds, as the API has it.
pub(super) fn time(moment: Timestamp) -> Value {
    moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into()
}
