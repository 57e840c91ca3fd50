//! Reads and sets the fields of a JSON object.

use serde_json::{Map, Value};

/// A JSON object's fields.
pub(crate) type Object = Map<String, Value>;

/// Sets `key` when it is absent.
pub(super) fn default(object: &mut Object, key: &str, value: impl Into<Value>) {
    if object.get(key).is_none_or(Value::is_null) {
        object.insert(key.to_owned(), value.into());
    }
}

/// The object under `key`.
pub(super) fn inner<'v>(object: &'v mut Object, key: &str) -> Option<&'v mut Object> {
    object.get_mut(key)?.as_object_mut()
}

pub(super) fn field<'v>(value: &'v mut Value, key: &str) -> Option<&'v mut Object> {
    inner(value.as_object_mut()?, key)
}

/// Calls `change` for every object in the list under `key`.
pub(super) fn each(object: &mut Object, key: &str, change: impl Fn(&mut Object)) {
    let items = object.get_mut(key).and_then(Value::as_array_mut);
    items.into_iter().flatten().filter_map(Value::as_object_mut).for_each(change);
}
