//! Rejects lists with ambiguous elements, as server-side apply does, though a create would be
//! accepted (upstream: `typed/validate.go`).
//!
//! Types and names of fields are checked in `manifest`.

use serde_json::Value;

use super::field_path::{FieldPath, PathStep};
use super::items::step_to;
use super::managers::ManagedFieldsError;
use super::schema::Shape;

/// The reason why an apply is impossible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The field ownership of the live object cannot be read.
    #[error("cannot read the field ownership of the live object")]
    ManagedFields(#[from] ManagedFieldsError),
    /// Two elements of a list have the same key. Server-side apply answers 500, though a create
    /// would be accepted.
    #[error("`{path}` is a duplicate; server-side apply rejects it")]
    Duplicate {
        /// The element.
        path: FieldPath,
    },
    /// An element of a list has no key.
    #[error("`{path}` has no key; server-side apply rejects it")]
    Unnamed {
        /// The element, by position.
        path: FieldPath,
    },
}

/// Checks that all elements of lists have a key, and that keys are unique.
pub(super) fn check(
    shape: Shape<'_>,
    value: &Value,
    path: &mut Vec<PathStep>,
) -> Result<(), Error> {
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

fn check_elements(shape: Shape<'_>, value: &Value, path: &mut Vec<PathStep>) -> Result<(), Error> {
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
