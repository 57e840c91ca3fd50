//! Fields that stay in the merged object although they are not in the manifest.
//!
//! They belong to other managers, or to none: values that the server once defaulted and no longer
//! would. Covered are labels, annotations and the spec. Not here: which of them matter (`planner`).

use serde_json::Value;

use super::compare::same;
use super::field_path::{FieldPath, PathStep};
use super::items::Items;
use super::managers::{ManagedFields, Manager};
use super::schema::{Schema, Shape};

/// A field that stays although it is not in the manifest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leftover {
    /// The path of the field. A list element or struct that is not in the manifest is one leftover.
    pub path: FieldPath,
    /// The managers that own it or fields in it; empty for a former default, or for a field written
    /// before ownership was tracked.
    pub managers: Vec<Manager>,
}

/// The fields of `merged` that are neither applied nor in the defaulted manifest, in order of path.
pub(super) fn leftovers(
    schema: &Schema,
    merged: &Value,
    applied: &Value,
    defaulted: &Value,
    managed: &ManagedFields,
) -> Vec<Leftover> {
    let mut finder = Finder { schema, path: Vec::new(), found: Vec::new() };
    let shape = schema.shape();
    for part in [&["metadata", "labels"][..], &["metadata", "annotations"], &["spec"]] {
        let at = |object| part.iter().try_fold(object, |value: &Value, name| value.get(name));
        finder.path = part.iter().map(|name| PathStep::field(*name)).collect();
        let shape = part.iter().fold(shape, |shape, name| shape.field(name));
        if let Some(merged) = at(merged) {
            finder.visit(shape, merged, at(applied), at(defaulted));
        }
    }
    let owned = |path: FieldPath| {
        let owners = managed.entries().iter().filter(|entry| entry.fields.touches(&path));
        Leftover { managers: owners.map(|entry| entry.manager.clone()).collect(), path }
    };
    let mut found: Vec<_> = finder.found.into_iter().map(owned).collect();
    found.sort();
    found
}

struct Finder<'s> {
    schema: &'s Schema,
    path: Vec<PathStep>,
    found: Vec<FieldPath>,
}

impl Finder<'_> {
    fn visit(
        &mut self,
        shape: Shape<'_>,
        merged: &Value,
        applied: Option<&Value>,
        defaulted: Option<&Value>,
    ) {
        match shape {
            Shape::Scalar | Shape::Atomic => {
                let wanted = applied.is_some_and(|value| !value.is_null())
                    || defaulted.is_some_and(|value| same(value, merged));
                if !wanted && !is_nothing(merged) {
                    self.found.push(FieldPath(self.path.clone()));
                }
            }
            Shape::Struct(_) if !self.is_wanted(merged, applied, defaulted) => {}
            Shape::Map | Shape::Struct(_) => {
                for (name, value) in merged.as_object().into_iter().flatten() {
                    if (self.schema.is_derived)(name, merged) {
                        continue;
                    }
                    let (applied, defaulted) =
                        (applied.and_then(|v| v.get(name)), defaulted.and_then(|v| v.get(name)));
                    self.down(PathStep::field(name), shape.field(name), value, applied, defaulted);
                }
            }
            Shape::Set | Shape::Keyed(..) => {
                let (applied, defaulted) = (Items::of(shape, applied), Items::of(shape, defaulted));
                for (step, value) in Items::of(shape, Some(merged)).iter() {
                    let applied = applied.all(step).first().copied();
                    let defaulted = defaulted.all(step).first().copied();
                    self.down(step.clone(), shape.element(), value, applied, defaulted);
                }
            }
        }
    }

    /// Whether the manifest has this struct; records a leftover if not.
    fn is_wanted(
        &mut self,
        merged: &Value,
        applied: Option<&Value>,
        defaulted: Option<&Value>,
    ) -> bool {
        let wanted = applied.or(defaulted).is_some_and(|value| !value.is_null());
        // An empty struct is a value: `emptyDir: {}`.
        if !wanted && !merged.is_null() {
            self.found.push(FieldPath(self.path.clone()));
        }
        wanted
    }

    fn down(
        &mut self,
        step: PathStep,
        shape: Shape<'_>,
        merged: &Value,
        applied: Option<&Value>,
        defaulted: Option<&Value>,
    ) {
        self.path.push(step);
        self.visit(shape, merged, applied, defaulted);
        self.path.pop();
    }
}

/// Whether the server would not store the value.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
