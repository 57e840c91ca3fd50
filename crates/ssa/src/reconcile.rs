//! Converts ownership that was recorded when a field was still granular to a schema in which it is
//! atomic (upstream: `typed/reconcile_schema.go`).

use super::field_path::PathStep;
use super::field_set::FieldSet;
use super::schema::Shape;

/// `fields` with ownership inside atomic values turned into ownership of the whole.
pub(super) fn reconcile(shape: Shape<'_>, fields: FieldSet) -> FieldSet {
    let mut whole = FieldSet::default();
    find(shape, &fields, &mut Vec::new(), &mut whole);
    if whole.is_empty() {
        return fields;
    }
    fields.recursive_difference(&whole).union(&whole)
}

fn find(shape: Shape<'_>, fields: &FieldSet, path: &mut Vec<PathStep>, whole: &mut FieldSet) {
    match shape {
        Shape::Atomic => whole.insert(path),
        Shape::Scalar => {}
        Shape::Map | Shape::Struct(_) | Shape::Set | Shape::Keyed(..) => {
            for (step, below) in fields.children() {
                path.push(step.clone());
                find(shape.step(step), below, path, whole);
                path.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{DAEMON_SET, fields_v1};
    use super::*;

    #[test]
    fn only_atomic_fields_are_made_whole() {
        for (rule, before, after) in [
            (
                "untouched",
                json!({"f:spec": {"f:selector": {}}}),
                json!({"f:spec": {"f:selector": {}}}),
            ),
            (
                "inside an atomic struct",
                json!({"f:spec": {"f:selector": {"f:matchLabels": {".": {}, "f:app": {}}}}}),
                json!({"f:spec": {"f:selector": {}}}),
            ),
            (
                "a member with members below",
                json!({"f:spec": {"f:selector": {".": {}, "f:matchLabels": {}}}}),
                json!({"f:spec": {"f:selector": {}}}),
            ),
            (
                "maps stay maps",
                json!({"f:metadata": {"f:labels": {".": {}, "f:a": {}}}}),
                json!({"f:metadata": {"f:labels": {".": {}, "f:a": {}}}}),
            ),
        ] {
            let got = reconcile(DAEMON_SET.shape(), fields_v1::read(&before).unwrap());
            assert_eq!(fields_v1::write(&got), after, "{rule}");
        }
    }
}
