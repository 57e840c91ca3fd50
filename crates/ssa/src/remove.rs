//! Removes fields from an object (upstream: `typed/remove.go`).

use serde_json::{Map, Value};

use super::field_path::PathStep;
use super::field_set::FieldSet;
use super::items::step_to;
use super::schema::Shape;

/// `value` without the fields in `gone`; `null` when nothing is left of it.
pub(super) fn remove(shape: Shape<'_>, value: &Value, gone: &FieldSet) -> Value {
    match shape {
        Shape::Scalar => value.clone(),
        Shape::Atomic => Value::Null,
        Shape::Map | Shape::Struct(_) => {
            let fields = value.as_object().into_iter().flatten();
            let kept = fields.filter_map(|(name, value)| {
                let step = PathStep::field(name);
                Some((name.clone(), rest(shape.field(name), &step, value, gone)?))
            });
            let kept: Map<_, _> = kept.collect();
            if kept.is_empty() { Value::Null } else { Value::Object(kept) }
        }
        Shape::Set | Shape::Keyed(..) => {
            let elements = value.as_array().into_iter().flatten();
            let kept = elements.filter_map(|element| match step_to(shape, element) {
                Some(step) => rest(shape.element(), &step, element, gone),
                None => Some(element.clone()),
            });
            let kept: Vec<_> = kept.collect();
            if kept.is_empty() { Value::Null } else { Value::Array(kept) }
        }
    }
}

/// The rest of the value at `step`; `None` when it is removed as a whole.
fn rest(shape: Shape<'_>, step: &PathStep, value: &Value, gone: &FieldSet) -> Option<Value> {
    if gone.has_member(step) {
        return None;
    }
    Some(match gone.child(step) {
        Some(below) => remove(shape, value, below),
        None => value.clone(),
    })
}
