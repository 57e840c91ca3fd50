//! Server-side apply of a manifest to a live DaemonSet, with the field ownership afterwards.
//!
//! Follows structured-merge-diff v6.3 and the API server's field managers as of Kubernetes 1.36:
//! fields of other managers stay, fields that this manager applied before and no longer applies are
//! removed, fields that other managers set to a different value are conflicts. Pure: the time is an
//! argument, and defaulting is up to the caller. Not here: whether the object is valid
//! (`manifest`), the effects of the change (`plan`).
//!
//! The object after an apply is not the manifest: fields that others own stay. Four things follow:
//!
//! - The manifest that is *sent* (`DesiredDaemonSet::written`) and the *desired* object (`raw`,
//!   defaulted) are two values. A client that sends a default owns it.
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

mod check;
mod combine;
mod compare;
mod emptied;
mod extract;
mod field_set;
mod fields_of;
mod fields_v1;
mod items;
mod leftovers;
mod managers;
mod migrate;
mod prune;
mod reconcile;
mod remove;
mod schema;
#[cfg(test)]
mod tests;
mod update;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::{Value, json};

use compare::{Comparison, compare};
use daemonset::model::FieldPath;
use fields_of::fields_of;
use schema::Shape;

pub use emptied::{Settling, value_at};
pub use extract::{owned_alone, owned_by};
pub use field_set::FieldSet;
pub use fields_v1::StepError;
pub use leftovers::Leftover;
pub use managers::{Entry, ManagedFields, ManagedFieldsError, Manager, Operation};
pub use migrate::{LAST_APPLIED_ANNOTATION, ownership};
pub use update::update;

/// The only API version in which DaemonSets are served. Ownership recorded in another version is
/// ignored, as the server does.
pub const API_VERSION: &str = "apps/v1";

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

/// The manifest, as applied and with defaults.
#[derive(Clone, Copy, Debug)]
pub struct Manifest<'m> {
    /// The object sent to the server: the manager will own exactly these fields.
    pub applied: &'m Value,
    /// The same with the server's defaults. Used only to find leftovers.
    pub defaulted: &'m Value,
}

/// The result of an apply.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    /// The object before defaulting, without `status` and `managedFields`.
    pub object: Value,
    /// The field ownership afterwards.
    pub managed_fields: ManagedFields,
    /// The conflicts that the server would answer with unless the apply is forced. The other fields
    /// are the result of a forced apply.
    pub conflicts: Vec<Conflict>,
    /// Fields that stay although they are not in the manifest.
    pub leftovers: Vec<Leftover>,
}

/// A field that the manifest sets to a different value than its owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conflict {
    /// The path of the field.
    pub path: FieldPath,
    /// Its owners; never empty.
    pub managers: Vec<Manager>,
}

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

/// The result of a server-side apply of `manifest` by `manager` at `now` to the live object as
/// served, or to none if there is none yet.
///
/// The manager must not be `kubectl`: the server has special rules for that name.
///
/// # Errors
/// Ambiguous list elements in the manifest, or ownership that cannot be read.
pub fn apply(
    live: Option<&Value>,
    manifest: Manifest<'_>,
    manager: &str,
    now: Timestamp,
) -> Result<Merged, Error> {
    let attempt = Attempt::new(live, manifest, manager, now)?;
    Ok(attempt.under(&attempt.owners).merged())
}

/// An apply that can be evaluated with different ownerships; what does not depend on the ownership
/// is computed once.
#[derive(Debug)]
pub struct Attempt<'m> {
    live: Value,
    owners: ManagedFields,
    applied: Value,
    manifest: Manifest<'m>,
    /// The entry of the manager that applies, after the apply.
    own: Entry,
    /// The live and the applied object combined, before fields are removed.
    combined: Value,
    now: Timestamp,
}

impl<'m> Attempt<'m> {
    /// The arguments and errors are those of [`apply`].
    ///
    /// # Errors
    /// Ambiguous list elements in the manifest, or ownership that cannot be read.
    pub fn new(
        live: Option<&Value>,
        manifest: Manifest<'m>,
        manager: &str,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let shape = Shape::daemon_set();
        let applied = own_part(manifest.applied);
        check::check(shape, &applied, &mut Vec::new())?;
        let (live, owners) = match live {
            Some(live) => (own_part(live), ownership(live, now)?),
            None => (empty(), ManagedFields::default()),
        };
        let own = Entry {
            manager: Manager::of_object(manager, Operation::Apply),
            time: None,
            fields: fields_of(shape, &applied),
        };
        let combined = combine::combine(shape, &live, &applied);
        Ok(Self { live, owners, applied, manifest, own, combined, now })
    }

    /// The field ownership of the live object.
    pub fn owners(&self) -> &ManagedFields {
        &self.owners
    }

    /// Evaluates the apply with this ownership.
    pub fn under(&self, owners: &ManagedFields) -> Tried<'_> {
        let mut owners = served(owners);
        let last = owners.replace(self.own.clone());
        let (object, last) = match last {
            Some(Entry { fields, time, .. }) => {
                (prune::prune(&self.combined, fields, owners.all()), time)
            }
            None => (self.combined.clone(), None),
        };
        let changes = compare(Shape::daemon_set(), &self.live, &object);
        let conflicts = take(&mut owners, &self.own.manager, &changes);
        Tried { attempt: self, object, owners, conflicts, last }
    }
}

/// An apply evaluated with one ownership.
#[derive(Debug)]
pub struct Tried<'a> {
    attempt: &'a Attempt<'a>,
    object: Value,
    owners: ManagedFields,
    conflicts: Vec<Conflict>,
    /// The time when the manager last changed anything.
    last: Option<Timestamp>,
}

impl Tried<'_> {
    /// The conflicts that the server would answer with unless the apply is forced.
    pub fn conflicts(&self) -> &[Conflict] {
        &self.conflicts
    }

    /// The object to apply instead, so that one apply has the result of two; `None` when the
    /// manifest itself has it.
    pub fn settling(&self) -> Option<Settling> {
        let Attempt { live, manifest, .. } = self.attempt;
        emptied::settling(manifest.applied, live, &self.object)
    }

    /// The complete result.
    pub fn merged(self) -> Merged {
        let Self { attempt, object, mut owners, conflicts, last } = self;
        let Attempt { live, applied, manifest, own, now, .. } = attempt;
        let unchanged = compare::same(live, &object);
        owners.finish(&own.manager, if unchanged { last } else { Some(*now) });
        let managed_fields = owners.tidied();
        let leftovers = leftovers::leftovers(&object, applied, manifest.defaulted, &managed_fields);
        Merged { object, managed_fields, conflicts, leftovers }
    }
}

/// Removes the changed fields from all owners except `manager`. Changed fields with another owner
/// are conflicts, unless they are only removed (upstream: `Updater.update`).
fn take(owners: &mut ManagedFields, manager: &Manager, changes: &Comparison) -> Vec<Conflict> {
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
    fn all(&self) -> FieldSet {
        let mut all = FieldSet::default();
        self.0.iter().for_each(|entry| all.extend(&entry.fields));
        all
    }

    /// Removes fields without owners from a manager's entry, and sets its time.
    fn finish(&mut self, manager: &Manager, time: Option<Timestamp>) {
        for entry in self.0.iter_mut().filter(|entry| entry.manager.is(manager)) {
            entry.fields = entry.fields.difference(&UNOWNED);
            entry.time = time;
        }
    }
}

/// The entries of the served API version, converted to its schema.
fn served(owners: &ManagedFields) -> ManagedFields {
    let known = owners.0.iter().filter(|entry| entry.manager.api_version == API_VERSION);
    let reconciled = known.cloned().map(|Entry { manager, time, fields }| {
        let fields = reconcile::reconcile(Shape::daemon_set(), fields);
        Entry { manager, time, fields }
    });
    ManagedFields(reconciled.collect())
}

/// The ownership of an object without `managedFields`: one manager owns everything (upstream:
/// `skipNonAppliedManager`).
fn before_first_apply(live: &Value, now: Timestamp) -> ManagedFields {
    let Comparison { added, modified, removed: _ } =
        compare(Shape::daemon_set(), &empty(), &own_part(live));
    let manager = Manager::of_object("before-first-apply", Operation::Update);
    let entry = Entry { manager: manager.clone(), time: None, fields: added.union(&modified) };
    let mut all = ManagedFields(vec![entry]);
    all.finish(&manager, Some(now));
    all.tidied()
}

/// The object without the fields that apply ignores: `status`, which the server resets, and
/// `managedFields`.
fn own_part(object: &Value) -> Value {
    copied_without(object, &["status"])
}

/// The object without `managedFields`.
fn without_record(object: &Value) -> Value {
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

/// An empty DaemonSet, as Go marshals it.
fn empty() -> Value {
    json!({
        "metadata": {},
        "spec": {
            "selector": null,
            "template": { "metadata": {}, "spec": { "containers": null } },
            "updateStrategy": {},
        },
    })
}
