//! Extracts the part of a live object that a manager owns, as it would apply it again (upstream:
//! `TypedValue.ExtractItems`, as client-go's `Extract…` functions use it).

use serde_json::{Value, json};

use super::fields_of::fields_of;
use super::managers::{Entry, ManagedFields, ManagedFieldsError, Manager, Operation};
use super::ownership::own_part;
use super::remove::remove;
use super::schema::Schema;

/// The fields of a live object that `manager` owns by server-side apply, with the fields that
/// identify the object; `None` when it never applied it.
///
/// # Errors
/// The field ownership cannot be read.
pub fn owned_by(
    schema: &Schema,
    live: &Value,
    manager: &str,
) -> Result<Option<Value>, ManagedFieldsError> {
    let owners = ManagedFields::of(live)?;
    let is_own = |name: &Manager| {
        name.name == manager && name.operation == Operation::Apply && name.subresource.is_empty()
    };
    let Some(own) = owners.entries().iter().find(|entry| is_own(&entry.manager)) else {
        return Ok(None);
    };
    let shape = schema.shape();
    let object = own_part(live);
    let all = fields_of(shape, &object).with_named_parents(shape);
    let mut owned =
        remove(shape, &object, &all.difference(&own.fields.clone().with_named_parents(shape)));
    if !owned.is_object() {
        owned = json!({});
    }
    for name in ["apiVersion", "kind"] {
        owned[name] = live[name].clone();
    }
    for name in ["name", "namespace"] {
        owned["metadata"][name] = live["metadata"][name].clone();
    }
    Ok(Some(owned))
}

/// The object as if `manager` had applied all of it, whatever its `managedFields` are.
pub fn owned_alone(schema: &Schema, live: &Value, manager: &str) -> Value {
    let shape = schema.shape();
    let name = Manager::of_object(schema, manager, Operation::Apply);
    // Other metadata identifies the object and has no owner.
    let metadata = json!({
        "labels": live["metadata"]["labels"], "annotations": live["metadata"]["annotations"],
    });
    let stated = json!({"metadata": metadata, "spec": live["spec"]});
    let fields = fields_of(shape, &stated);
    let owners = ManagedFields(vec![Entry { manager: name, fields, time: None }]);
    let mut object = live.clone();
    object["metadata"]["managedFields"] = owners.to_value();
    object
}
