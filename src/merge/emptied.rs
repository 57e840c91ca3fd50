//! Structs that are applied as `{}` where the live object has something in them.
//!
//! What was in such a struct goes, and the struct goes with it: what is left of it is `null`
//! (upstream: `removingWalker.doMap`). Only the next apply finds nothing there and adds `{}`. So one
//! manifest makes two objects, one after the other, and of a pod template two revisions.
//!
//! A `null` for each field that goes keeps the struct: it is not empty then, and is stored as `{}`
//! by the first apply.

use serde_json::{Map, Value};

use super::items::{Items, step_to};
use super::schema::Shape;
use crate::model::{FieldPath, PathStep};

/// An apply that comes at once to where a second one would.
#[derive(Clone, Debug, PartialEq)]
pub struct Settling {
    /// What to apply: the manifest with `null` for each field that goes from an emptied struct.
    pub applied: Value,
    /// The emptied structs. The server may store some of them as `{}` in any case.
    pub emptied: Vec<FieldPath>,
}

/// What to apply instead of `applied`, of which `merged` came; `None` when no struct is emptied.
pub(super) fn settling(applied: &Value, live: &Value, merged: &Value) -> Option<Settling> {
    let mut walker = Walker { path: Vec::new(), emptied: Vec::new() };
    let mut applied = applied.clone();
    walker.visit(Shape::daemon_set(), &mut applied, Some(live), Some(merged));
    let Walker { path: _, emptied } = walker;
    (!emptied.is_empty()).then_some(Settling { applied, emptied })
}

/// The field of an object that a path leads to.
pub fn value_at<'v>(object: &'v Value, path: &FieldPath) -> Option<&'v Value> {
    let mut at = (Shape::daemon_set(), object);
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
        shape: Shape,
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
        shape: Shape,
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

    /// One struct that is applied empty: nothing is left of it where all that is live in it goes.
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

/// What a step leads to.
fn child<'v>(shape: Shape, value: Option<&'v Value>, step: &PathStep) -> Option<&'v Value> {
    match step {
        PathStep::Field(name) => value?.get(name),
        PathStep::Key(_) | PathStep::Value(_) | PathStep::Index(_) => {
            Items::of(shape, value).all(step).first().copied()
        }
    }
}
