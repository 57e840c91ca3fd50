//! Rules of field ownership for all writes: who loses which fields, and which fields have no owner.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::Value;

use super::compare::{Comparison, compare};
use super::field_path::FieldPath;
use super::field_set::FieldSet;
use super::managers::{Entry, ManagedFields, ManagedFieldsError, Manager, Operation};
use super::reconcile::reconcile;
use super::schema::Schema;

/// Fields that have no owner (upstream: `stripMetaManager`).
static UNOWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    let of_names = |names: &&[&str]| FieldPath::of_fields(names.iter().copied());
    UNOWNED_NAMES.iter().map(of_names).collect()
});

const UNOWNED_NAMES: [&[&str]; 12] = [
    &["apiVersion"],
    &["kind"],
    &["metadata"],
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["metadata", "creationTimestamp"],
    &["metadata", "selfLink"],
    &["metadata", "uid"],
    &["metadata", "clusterName"],
    &["metadata", "generation"],
    &["metadata", "managedFields"],
    &["metadata", "resourceVersion"],
];

/// A field that the manifest sets to a different value than its owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conflict {
    /// The path of the field.
    pub path: FieldPath,
    /// Its owners; never empty.
    pub managers: Vec<Manager>,
}

/// The ownership of a live object as the server sees it on the first apply: an object without
/// `managedFields` has one manager, `before-first-apply`.
///
/// # Errors
/// The field ownership cannot be read.
pub fn ownership(
    schema: &Schema,
    live: &Value,
    now: Timestamp,
) -> Result<ManagedFields, ManagedFieldsError> {
    let managed = ManagedFields::of(live)?;
    Ok(if managed.is_empty() { before_first_apply(schema, live, now) } else { managed })
}

/// The ownership of an object without `managedFields`: one manager owns everything (upstream:
/// `skipNonAppliedManager`).
fn before_first_apply(schema: &Schema, live: &Value, now: Timestamp) -> ManagedFields {
    let Comparison { added, modified, removed: _ } =
        compare(schema.shape(), &schema.empty, &own_part(live));
    let manager = Manager::of_object(schema, "before-first-apply", Operation::Update);
    let entry = Entry { manager: manager.clone(), time: None, fields: added.union(&modified) };
    let mut all = ManagedFields(vec![entry]);
    all.finish(&manager, Some(now));
    all.tidied()
}

/// The entries of the served API version, converted to its schema.
pub(super) fn served(schema: &Schema, owners: &ManagedFields) -> ManagedFields {
    let known = owners.0.iter().filter(|entry| entry.manager.api_version == schema.api_version);
    let reconciled = known.cloned().map(|Entry { manager, time, fields }| {
        let fields = reconcile(schema.shape(), fields);
        Entry { manager, time, fields }
    });
    ManagedFields(reconciled.collect())
}

/// Removes the changed fields from all owners except `manager`. Changed fields with another owner
/// are conflicts, unless they are only removed (upstream: `Updater.update`).
pub(super) fn take(
    owners: &mut ManagedFields,
    manager: &Manager,
    changes: &Comparison,
) -> Vec<Conflict> {
    let taken = changes.modified.union(&changes.added);
    let mut conflicts: BTreeMap<FieldPath, Vec<Manager>> = BTreeMap::new();
    for entry in owners.0.iter_mut().filter(|entry| !entry.manager.is(manager)) {
        let lost = entry.fields.intersection(&taken);
        for path in lost.paths() {
            conflicts.entry(path).or_default().push(entry.manager.clone());
        }
        entry.fields = entry.fields.difference(&lost).difference(&changes.removed);
    }
    let conflicts = conflicts.into_iter();
    conflicts.map(|(path, managers)| Conflict { path, managers }).collect()
}

impl ManagedFields {
    /// The fields of all managers together.
    pub(super) fn all(&self) -> FieldSet {
        let mut all = FieldSet::default();
        self.0.iter().for_each(|entry| all.extend(&entry.fields));
        all
    }

    /// Removes fields without owners from a manager's entry, and sets its time.
    pub(super) fn finish(&mut self, manager: &Manager, time: Option<Timestamp>) {
        for entry in self.0.iter_mut().filter(|entry| entry.manager.is(manager)) {
            entry.fields = entry.fields.difference(&UNOWNED);
            entry.time = time;
        }
    }
}

/// The object without the fields that apply ignores: `status`, which the server resets, and
/// `managedFields`.
pub(super) fn own_part(object: &Value) -> Value {
    copied_without(object, &["status"])
}

/// The object without `managedFields`.
pub(super) fn without_record(object: &Value) -> Value {
    copied_without(object, &[])
}

/// The object without those fields and without `managedFields`.
fn copied_without(object: &Value, left_out: &[&str]) -> Value {
    let without = |value: &Value, left_out: &[&str]| match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| !left_out.contains(&name.as_str()));
            kept.map(|(name, value)| (name.clone(), value.clone())).collect()
        }
        plain => plain.clone(),
    };
    let mut copy = without(object, &[left_out, &["metadata"]].concat());
    if let Some(metadata) = object.get("metadata") {
        copy["metadata"] = without(metadata, &["managedFields"]);
    }
    copy
}
