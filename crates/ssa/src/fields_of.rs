//! The fields of an object that its manager will own after an apply (upstream:
//! `typed/tofieldset.go`).

use serde_json::Value;

use super::field_path::PathStep;
use super::field_set::FieldSet;
use super::items::Items;
use super::schema::Shape;

/// The fields of `object`: every plain and atomic value, every entry of a map, every element of a
/// list; of structs only the empty ones.
pub(super) fn fields_of(shape: Shape<'_>, object: &Value) -> FieldSet {
    match shape {
        // The root is not a field: no manager owns a whole object.
        Shape::Scalar | Shape::Atomic => FieldSet::default(),
        Shape::Map | Shape::Struct(_) => fields_in(shape, object),
        Shape::Set | Shape::Keyed(..) => items_in(shape, object),
    }
}

fn fields_in(shape: Shape<'_>, value: &Value) -> FieldSet {
    let mut fields = FieldSet::default();
    for (name, value) in value.as_object().into_iter().flatten() {
        let (step, inner) = (PathStep::field(name), shape.field(name));
        let whole = matches!(inner, Shape::Scalar | Shape::Atomic);
        let empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
        let is_member = whole || empty || !shape.names(&step);
        fields.add(step, is_member, fields_of(inner, value));
    }
    fields
}

/// Of duplicates only the element itself counts, not its fields.
fn items_in(shape: Shape<'_>, value: &Value) -> FieldSet {
    let mut fields = FieldSet::default();
    let items = Items::of(shape, Some(value));
    for step in items.steps() {
        let below = match items.all(step) {
            [single] => fields_of(shape.element(), single),
            _several => FieldSet::default(),
        };
        fields.add(step.clone(), true, below);
    }
    fields
}
