#![doc = include_str!("../README.md")]
//!
//! # The rules
//!
//! Fields of other managers stay, fields that this manager applied before and no longer applies are
//! removed, fields that other managers set to a different value are conflicts. Not here: whether the
//! object is valid, and the effects of the change.
//!
//! The object after an apply is not the manifest: fields that others own stay. Four things follow:
//!
//! - The manifest that is *sent* ([`Manifest::applied`]) and the *desired* object, with defaults, are
//!   two values. A client that sends a default owns it.
//! - If a struct is applied as `{}` over one that is not empty, the server removes it with its
//!   content, and only the next apply stores `{}`. So the write contains `null` for each field that
//!   is removed ([`Settling`]), which reaches the final state at once; the ownership is that of a
//!   plain apply once the strategy is restored. Plan, preflight and every write use it. A write
//!   that must keep the template sends the owned part of it, if the manifest would change it, and
//!   is tried as a dry run first.
//! - With conflicts, the result is that of a forced apply. The conflicts are those that a plain
//!   apply would report; one function serves both.
//! - The server defaults the merged object, so the caller does.
//!
//! The control-plane tests apply random manifests to objects with random histories, on the server
//! as a dry run and here, and compare objects, ownership and conflicts.

mod apply;
mod check;
mod combine;
mod compare;
mod emptied;
mod extract;
mod field_path;
mod field_set;
mod fields_of;
mod fields_v1;
mod items;
mod leftovers;
mod managers;
mod migrate;
mod ownership;
mod reconcile;
mod remove;
mod schema;
#[cfg(test)]
mod tests;
mod update;

pub use apply::{Attempt, Manifest, Merged, Tried, apply};
pub use check::Error;
pub use emptied::{Settling, value_at};
pub use extract::{owned_alone, owned_by};
pub use field_path::{FieldPath, Literal, PathStep, extend_path};
pub use field_set::FieldSet;
pub use fields_v1::StepError;
pub use leftovers::Leftover;
pub use managers::{Entry, ManagedFields, ManagedFieldsError, Manager, Operation};
pub use migrate::LAST_APPLIED_ANNOTATION;
pub use ownership::{Conflict, ownership};
pub use schema::{DAEMON_SET, Schema};
pub use update::update;
