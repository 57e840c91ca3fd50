//! Fields that stay in the merged object although the manifest does not have them.
//!
//! Others own them, or nobody does: what a defaulting server once filled in and no longer would.
//! Looked at are labels, annotations and the spec. Not here: which of them matter (`plan`).

use serde_json::Value;

use super::compare::same;
use super::items::Items;
use super::managers::{ManagedFields, Manager};
use super::schema::Shape;
use crate::model::{FieldPath, PathStep, TEMPLATE_GENERATION_ANNOTATION};

/// A field that stays although the manifest does not have it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leftover {
    /// Where it is; all of a list element or struct that the manifest lacks is one leftover.
    pub path: FieldPath,
    /// Who owns it or something in it; nobody when it was a server's default once, or was written
    /// before fields had owners.
    pub managers: Vec<Manager>,
}

/// What of `merged` is neither applied nor in the defaulted manifest, in order of path.
pub(super) fn leftovers(
    merged: &Value,
    applied: &Value,
    defaulted: &Value,
    managed: &ManagedFields,
) -> Vec<Leftover> {
    let mut finder = Finder { path: Vec::new(), found: Vec::new() };
    let shape = Shape::daemon_set();
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

struct Finder {
    path: Vec<PathStep>,
    found: Vec<FieldPath>,
}

impl Finder {
    fn visit(
        &mut self,
        shape: Shape,
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
                    if name == TEMPLATE_GENERATION_ANNOTATION || is_outvoted(name, merged) {
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

    /// Whether the manifest has this struct at all; notes it down when not.
    fn is_wanted(
        &mut self,
        merged: &Value,
        applied: Option<&Value>,
        defaulted: Option<&Value>,
    ) -> bool {
        let wanted = applied.or(defaulted).is_some_and(|value| !value.is_null());
        // An empty struct is something: `emptyDir: {}`.
        if !wanted && !merged.is_null() {
            self.found.push(FieldPath(self.path.clone()));
        }
        wanted
    }

    fn down(
        &mut self,
        step: PathStep,
        shape: Shape,
        merged: &Value,
        applied: Option<&Value>,
        defaulted: Option<&Value>,
    ) {
        self.path.push(step);
        self.visit(shape, merged, applied, defaulted);
        self.path.pop();
    }
}

/// The old name of the service account says nothing beside the new one: the server copies that.
fn is_outvoted(name: &str, fields: &Value) -> bool {
    name == "serviceAccount" && fields.get("serviceAccountName").is_some_and(|v| !v.is_null())
}

/// Nothing that would be stored.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
