//! Compares two objects field by field (upstream: `typed/compare.go`).

use serde_json::Value;

use super::field_path::PathStep;
use super::field_set::FieldSet;
use super::items::Items;
use super::schema::Shape;

/// The fields that differ. The sets are disjoint.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Comparison {
    /// Fields that only the second object has.
    pub(super) added: FieldSet,
    /// Fields that both have, with different values.
    pub(super) modified: FieldSet,
    /// Fields that only the first object has.
    pub(super) removed: FieldSet,
}

/// Compares two objects.
pub(super) fn compare(shape: Shape<'_>, old: &Value, new: &Value) -> Comparison {
    let mut walker = Walker { path: Vec::new(), found: Comparison::default() };
    walker.visit(shape, Some(old), Some(new));
    walker.found
}

struct Walker {
    path: Vec<PathStep>,
    found: Comparison,
}

impl Walker {
    fn visit(&mut self, shape: Shape<'_>, old: Option<&Value>, new: Option<&Value>) {
        // Most of an object is unchanged; equal values need not be walked.
        if let (Some(old), Some(new)) = (old, new)
            && same(old, new)
        {
            return;
        }
        let leaf = match shape {
            Shape::Scalar | Shape::Atomic => true,
            Shape::Map | Shape::Struct(_) | Shape::Set | Shape::Keyed(..) => {
                is_empty(old) && is_empty(new)
            }
        };
        if leaf {
            self.leaf(old, new);
            return;
        }
        match shape {
            Shape::Map | Shape::Struct(_) => self.fields(shape, old, new),
            Shape::Set | Shape::Keyed(..) => self.items(shape, old, new),
            Shape::Scalar | Shape::Atomic => {}
        }
        match (old, new) {
            (None, _) => self.found.added.insert(&self.path),
            (_, None) => self.found.removed.insert(&self.path),
            (Some(_), Some(_)) => {}
        }
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (None, _) => self.found.added.insert(&self.path),
            (_, None) => self.found.removed.insert(&self.path),
            (Some(old), Some(new)) if !same(old, new) => self.found.modified.insert(&self.path),
            (Some(_), Some(_)) => {}
        }
    }

    fn down(&mut self, step: PathStep, shape: Shape<'_>, old: Option<&Value>, new: Option<&Value>) {
        self.path.push(step);
        self.visit(shape, old, new);
        self.path.pop();
    }

    fn fields(&mut self, shape: Shape<'_>, old: Option<&Value>, new: Option<&Value>) {
        let (old, new) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
        let get = |fields: Option<&'_ serde_json::Map<String, Value>>, name: &str| {
            fields.is_some_and(|fields| fields.contains_key(name))
        };
        for (name, value) in old.into_iter().flatten() {
            let after = new.and_then(|new| new.get(name));
            self.down(PathStep::field(name), shape.field(name), Some(value), after);
        }
        for (name, value) in new.into_iter().flatten().filter(|(name, _)| !get(old, name)) {
            self.down(PathStep::field(name), shape.field(name), None, Some(value));
        }
    }

    fn items(&mut self, shape: Shape<'_>, old: Option<&Value>, new: Option<&Value>) {
        let (old, new) = (Items::of(shape, old), Items::of(shape, new));
        let only_new = new.steps().filter(|step| !old.has(step));
        for step in old.steps().chain(only_new) {
            self.item(shape.element(), step, old.all(step), new.all(step));
        }
    }

    /// Duplicates count as one field: they are compared as a whole, and a single element replaces
    /// them.
    fn item(&mut self, shape: Shape<'_>, step: &PathStep, old: &[&Value], new: &[&Value]) {
        match (old, new) {
            ([] | [_], [] | [_]) => {
                self.down(step.clone(), shape, old.first().copied(), new.first().copied());
            }
            ([_, _, ..], [_, _, ..]) => {
                let equal = old.len() == new.len() && old.iter().zip(new).all(|(a, b)| same(a, b));
                if !equal {
                    self.mark(step, |found| &mut found.modified);
                }
            }
            ([_, _, ..], _) => {
                if let Some(single) = new.first() {
                    self.down(step.clone(), shape, None, Some(single));
                }
                self.mark(step, |found| &mut found.removed);
            }
            (_, [_, _, ..]) => {
                if let Some(single) = old.first() {
                    self.down(step.clone(), shape, Some(single), None);
                }
                self.mark(step, |found| &mut found.added);
            }
        }
    }

    fn mark(&mut self, step: &PathStep, set: impl Fn(&mut Comparison) -> &mut FieldSet) {
        self.path.push(step.clone());
        set(&mut self.found).insert(&self.path);
        self.path.pop();
    }
}

/// Whether the value is absent, `null` or empty.
fn is_empty(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Object(fields)) => fields.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        _absent_or_plain => true,
    }
}

/// Whether two values are equal (upstream: `value.Equals`): `1` is `1.0`.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x == y || x.as_f64() == y.as_f64(),
        (Value::Array(x), Value::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(x, y))
        }
        (Value::Object(x), Value::Object(y)) => {
            let equal = |(key, x): (&String, &Value)| y.get(key).is_some_and(|y| same(x, y));
            x.len() == y.len() && x.iter().all(equal)
        }
        _ => a == b,
    }
}
