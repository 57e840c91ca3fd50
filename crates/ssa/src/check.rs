//! Rejects lists with ambiguous elements, as server-side apply does, though a create would be
//! accepted (upstream: `typed/validate.go`).
//!
//! Types and names of fields are checked in `manifest`.

use serde_json::Value;

use super::Error;
use super::items::step_to;
use super::schema::Shape;
use daemonset::model::{FieldPath, PathStep};

/// Checks that all elements of lists have a key, and that keys are unique.
pub(super) fn check(shape: Shape, value: &Value, path: &mut Vec<PathStep>) -> Result<(), Error> {
    match shape {
        Shape::Scalar | Shape::Atomic => Ok(()),
        Shape::Map | Shape::Struct(_) => {
            for (name, value) in value.as_object().into_iter().flatten() {
                path.push(PathStep::field(name));
                check(shape.field(name), value, path)?;
                path.pop();
            }
            Ok(())
        }
        Shape::Set | Shape::Keyed(..) => check_elements(shape, value, path),
    }
}

fn check_elements(shape: Shape, value: &Value, path: &mut Vec<PathStep>) -> Result<(), Error> {
    let mut seen = Vec::new();
    for (at, element) in value.as_array().into_iter().flatten().enumerate() {
        let Some(step) = step_to(shape, element) else {
            path.push(PathStep::Index(i64::try_from(at).unwrap_or(i64::MAX)));
            return Err(Error::Unnamed { path: FieldPath(path.clone()) });
        };
        path.push(step.clone());
        if seen.contains(&step) {
            return Err(Error::Duplicate { path: FieldPath(path.clone()) });
        }
        seen.push(step);
        check(shape.element(), element, path)?;
        path.pop();
    }
    Ok(())
}
