//! The fields that an object states: those that whoever applies it will own (upstream:
//! `typed/tofieldset.go`).

use serde_json::Value;

use super::field_set::FieldSet;
use super::items::Items;
use super::schema::Shape;
use crate::model::PathStep;

/// The fields of `object`: every plain and atomic value, every entry of a map, every element of a
/// list; of structs only the empty ones.
pub(super) fn fields_of(shape: Shape, object: &Value) -> FieldSet {
    let mut walker = Walker { path: Vec::new(), fields: FieldSet::default() };
    walker.visit(shape, object);
    walker.fields
}

struct Walker {
    path: Vec<PathStep>,
    fields: FieldSet,
}

impl Walker {
    fn visit(&mut self, shape: Shape, value: &Value) {
        match shape {
            Shape::Scalar | Shape::Atomic => self.fields.insert(&self.path),
            Shape::Map | Shape::Struct(_) => self.fields_in(shape, value),
            Shape::Set | Shape::Keyed(..) => self.items_in(shape, value),
        }
    }

    fn fields_in(&mut self, shape: Shape, value: &Value) {
        for (name, value) in value.as_object().into_iter().flatten() {
            let step = PathStep::field(name);
            let entry = !shape.names(&step);
            self.path.push(step);
            self.visit(shape.field(name), value);
            let empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
            if empty || entry {
                self.fields.insert(&self.path);
            }
            self.path.pop();
        }
    }

    /// Of duplicates only the element counts, not what is in it.
    fn items_in(&mut self, shape: Shape, value: &Value) {
        let items = Items::of(shape, Some(value));
        for step in items.steps() {
            self.path.push(step.clone());
            if let [single] = items.all(step) {
                self.visit(shape.element(), single);
            }
            self.fields.insert(&self.path);
            self.path.pop();
        }
    }
}
