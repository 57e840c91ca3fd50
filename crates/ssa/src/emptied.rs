//! Structs that are applied as `{}` where the live object has fields in them.
//!
//! The fields of such a struct are removed, and the struct with them: the rest is `null` (upstream:
//! `removingWalker.doMap`). Only the next apply finds nothing and adds `{}`. So one manifest
//! results in two objects, one after the other, and in two revisions of a pod template.
//!
//! A `null` for each removed field keeps the struct: it is not empty then, and the first apply
//! stores it as `{}`.

use serde_json::{Map, Value};

use super::field_path::{FieldPath, PathStep};
use super::items::{Items, step_to};
use super::schema::{Schema, Shape};

/// An apply that has at once the result of two.
#[derive(Clone, Debug, PartialEq)]
pub struct Settling {
    /// The object to apply: the manifest with `null` for each field that is removed from an emptied
    /// struct.
    pub applied: Value,
    /// The emptied structs. The server may store some of them as `{}` in any case.
    pub emptied: Vec<FieldPath>,
}

/// The object to apply instead of `applied`, which results in `merged`; `None` when no struct is
/// emptied.
pub(super) fn settling(
    shape: Shape<'_>,
    applied: &Value,
    live: &Value,
    merged: &Value,
) -> Option<Settling> {
    let mut walker = Walker { path: Vec::new(), emptied: Vec::new() };
    let mut applied = applied.clone();
    walker.visit(shape, &mut applied, Some(live), Some(merged));
    let Walker { path: _, emptied } = walker;
    (!emptied.is_empty()).then_some(Settling { applied, emptied })
}

/// The value at a path of an object.
pub fn value_at<'v>(schema: &Schema, object: &'v Value, path: &FieldPath) -> Option<&'v Value> {
    let mut at = (schema.shape(), object);
    for step in &path.0 {
        let (shape, value) = at;
        at = (shape.step(step), child(shape, Some(value), step)?);
    }
    Some(at.1)
}

struct Walker {
    path: Vec<PathStep>,
    emptied: Vec<FieldPath>,
}

impl Walker {
    fn visit(
        &mut self,
        shape: Shape<'_>,
        applied: &mut Value,
        live: Option<&Value>,
        merged: Option<&Value>,
    ) {
        match (shape, applied) {
            (Shape::Struct(_), Value::Object(fields)) if fields.is_empty() => {
                let live = live.and_then(Value::as_object);
                self.empty(fields, live, merged);
            }
            (Shape::Struct(_), Value::Object(fields)) => {
                for (name, value) in fields {
                    self.down(shape, PathStep::field(name), value, live, merged);
                }
            }
            (Shape::Keyed(..), Value::Array(elements)) => {
                for element in elements {
                    if let Some(step) = step_to(shape, element) {
                        self.down(shape, step, element, live, merged);
                    }
                }
            }
            (
                Shape::Struct(_)
                | Shape::Keyed(..)
                | Shape::Map
                | Shape::Set
                | Shape::Scalar
                | Shape::Atomic,
                _,
            ) => {}
        }
    }

    fn down(
        &mut self,
        shape: Shape<'_>,
        step: PathStep,
        applied: &mut Value,
        live: Option<&Value>,
        merged: Option<&Value>,
    ) {
        let (live, merged) = (child(shape, live, &step), child(shape, merged, &step));
        let below = shape.step(&step);
        self.path.push(step);
        self.visit(below, applied, live, merged);
        self.path.pop();
    }

    /// Handles a struct that is applied empty: it is emptied if all its live fields are removed.
    fn empty(
        &mut self,
        fields: &mut Map<String, Value>,
        live: Option<&Map<String, Value>>,
        merged: Option<&Value>,
    ) {
        let Some(live) = live.filter(|live| !live.is_empty()) else { return };
        if merged.is_some_and(|merged| !merged.is_null()) {
            return;
        }
        fields.extend(live.keys().map(|name| (name.clone(), Value::Null)));
        self.emptied.push(FieldPath(self.path.clone()));
    }
}

/// The value at a step.
fn child<'v>(shape: Shape<'_>, value: Option<&'v Value>, step: &PathStep) -> Option<&'v Value> {
    match step {
        PathStep::Field(name) => value?.get(name),
        PathStep::Key(_) | PathStep::Value(_) | PathStep::Index(_) => {
            Items::of(shape, value).all(step).first().copied()
        }
    }
}
