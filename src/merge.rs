//! What server-side apply makes of a live DaemonSet and a manifest, and who owns what afterwards.
//!
//! Follows structured-merge-diff v6.3 and the API server's field managers as of Kubernetes 1.36:
//! fields that others own stay, fields that this applier applied before and no longer applies go,
//! fields that others set to something else are conflicts. Pure: time comes in, defaults are the
//! caller's. Not here: whether the object is valid (`manifest`), what the change does (`plan`).

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

use crate::model::FieldPath;
use compare::{Comparison, compare};
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

/// The one version of the API that DaemonSets are served in. What managers own in another one
/// counts for nothing: the server cannot look at the object through it.
pub(crate) const API_VERSION: &str = "apps/v1";

/// Fields that nobody owns (upstream: `stripMetaManager`).
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

/// The manifest, twice.
#[derive(Clone, Copy, Debug)]
pub struct Manifest<'m> {
    /// What is sent to the server: only what is written here will be owned.
    pub applied: &'m Value,
    /// The same with the server's defaults. Decides what a leftover is, and nothing else.
    pub defaulted: &'m Value,
}

/// What an apply makes of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    /// The object, not yet defaulted, without `status` and `managedFields`.
    pub object: Value,
    /// Who owns what afterwards.
    pub managed_fields: ManagedFields,
    /// What the server would answer instead, unless it is told to force. With any of them, the
    /// rest is what a forced apply makes.
    pub conflicts: Vec<Conflict>,
    /// Fields that stay although the manifest does not have them.
    pub leftovers: Vec<Leftover>,
}

/// A field that the manifest sets to something else than its owner did.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conflict {
    /// Where it is.
    pub path: FieldPath,
    /// Who owns it; never empty.
    pub managers: Vec<Manager>,
}

/// Why there is nothing to apply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The live object's ownership cannot be read.
    #[error("cannot read who owns the fields of the live object")]
    ManagedFields(#[from] ManagedFieldsError),
    /// Two elements of a list that server-side apply cannot tell apart. It answers 500, though a
    /// create would be accepted.
    #[error("`{path}` is there twice, and server-side apply refuses that")]
    Duplicate {
        /// The element.
        path: FieldPath,
    },
    /// An element of a list that has nothing to be known by.
    #[error("`{path}` has no key, and server-side apply refuses that")]
    Unnamed {
        /// The element, by position.
        path: FieldPath,
    },
}

/// What a server-side apply of `manifest` at `now`, under the name of `manager`, makes of the live
/// object, which is as served; of none, when there is none yet.
///
/// The manager must not be `kubectl`: for that name the server has rules of its own.
///
/// # Errors
/// Lists in the manifest whose elements cannot be told apart, or ownership that cannot be read.
pub fn apply(
    live: Option<&Value>,
    manifest: Manifest<'_>,
    manager: &str,
    now: Timestamp,
) -> Result<Merged, Error> {
    let attempt = Attempt::new(live, manifest, manager, now)?;
    Ok(attempt.under(&attempt.owners).merged())
}

/// An apply that can be tried under one ownership after another: what does not depend on who owns
/// what is worked out once.
#[derive(Debug)]
pub struct Attempt<'m> {
    live: Value,
    owners: ManagedFields,
    applied: Value,
    manifest: Manifest<'m>,
    /// What the applier will own.
    own: Entry,
    /// Live and applied together, before anything is taken away.
    combined: Value,
    now: Timestamp,
}

impl<'m> Attempt<'m> {
    /// The arguments and errors are those of [`apply`].
    ///
    /// # Errors
    /// Lists in the manifest whose elements cannot be told apart, or ownership that cannot be read.
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

    /// Who owns the live object's fields.
    pub fn owners(&self) -> &ManagedFields {
        &self.owners
    }

    /// What comes of it when these are the owners.
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

/// An apply as it comes out under one ownership.
#[derive(Debug)]
pub struct Tried<'a> {
    attempt: &'a Attempt<'a>,
    object: Value,
    owners: ManagedFields,
    conflicts: Vec<Conflict>,
    /// When the applier last changed anything.
    last: Option<Timestamp>,
}

impl Tried<'_> {
    /// What the server would answer instead, unless it is told to force.
    pub fn conflicts(&self) -> &[Conflict] {
        &self.conflicts
    }

    /// What to apply instead, so that one apply comes to where a second one would; `None` when the
    /// manifest itself does.
    pub fn settling(&self) -> Option<Settling> {
        let Attempt { live, manifest, .. } = self.attempt;
        emptied::settling(manifest.applied, live, &self.object)
    }

    /// All of it.
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

/// Takes every field that changes from those who own it, but for `manager`. Those that somebody
/// owns and that do not merely vanish are conflicts (upstream: `Updater.update`).
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
    /// What all managers own together.
    fn all(&self) -> FieldSet {
        let mut all = FieldSet::default();
        self.0.iter().for_each(|entry| all.extend(&entry.fields));
        all
    }

    /// Takes away from a manager what nobody owns, and says when it wrote.
    fn finish(&mut self, manager: &Manager, time: Option<Timestamp>) {
        for entry in self.0.iter_mut().filter(|entry| entry.manager.is(manager)) {
            entry.fields = entry.fields.difference(&UNOWNED);
            entry.time = time;
        }
    }
}

/// The owners that count: those of the version that is served, brought to its schema.
fn served(owners: &ManagedFields) -> ManagedFields {
    let known = owners.0.iter().filter(|entry| entry.manager.api_version == API_VERSION);
    let reconciled = known.cloned().map(|Entry { manager, time, fields }| {
        let fields = reconcile::reconcile(Shape::daemon_set(), fields);
        Entry { manager, time, fields }
    });
    ManagedFields(reconciled.collect())
}

/// The owner of everything in an object whose fields nobody tracked (upstream:
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

/// An object without what apply does not look at: `status`, which the server resets, and the
/// record of ownership itself.
fn own_part(object: &Value) -> Value {
    copied_without(object, &["status"])
}

/// An object without the record of ownership.
fn without_record(object: &Value) -> Value {
    copied_without(object, &[])
}

/// An object without those fields and without the record of ownership.
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

/// A DaemonSet in which nothing is set, as Go writes it.
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
