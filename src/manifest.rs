//! From the bytes of a manifest to a DaemonSet, as kubectl and the API server read it.

mod field_error;
mod validate;

pub use field_error::{ErrorKind, FieldError, RefusedBy};
pub use validate::{selector_changes, validate, validate_update};
