//! The apply itself: merges the applied object into the live one, takes fields from other managers,
//! and removes those that its manager no longer applies (upstream: `Updater.Apply`).

use jiff::Timestamp;
use serde_json::Value;

use super::check::{Error, check};
use super::combine::combine;
use super::compare::{compare, same};
use super::emptied::{Settling, settling};
use super::field_set::FieldSet;
use super::fields_of::fields_of;
use super::leftovers::{Leftover, leftovers};
use super::managers::{Entry, ManagedFields, Manager, Operation};
use super::ownership::{Conflict, own_part, ownership, served, take};
use super::remove::remove;
use super::schema::{Schema, Shape};

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

/// The result of a server-side apply of `manifest` by `manager` at `now` to the live object as
/// served, or to none if there is none yet.
///
/// The manager must not be `kubectl`: the server has special rules for that name.
///
/// # Errors
/// Ambiguous list elements in the manifest, or ownership that cannot be read.
pub fn apply(
    schema: &Schema,
    live: Option<&Value>,
    manifest: Manifest<'_>,
    manager: &str,
    now: Timestamp,
) -> Result<Merged, Error> {
    let attempt = Attempt::new(schema, live, manifest, manager, now)?;
    Ok(attempt.under(&attempt.owners).merged())
}

/// An apply that can be evaluated with different ownerships; what does not depend on the ownership
/// is computed once.
#[derive(Debug)]
pub struct Attempt<'m> {
    schema: &'m Schema,
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
        schema: &'m Schema,
        live: Option<&Value>,
        manifest: Manifest<'m>,
        manager: &str,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let shape = schema.shape();
        let applied = own_part(manifest.applied);
        check(shape, &applied, &mut Vec::new())?;
        let (live, owners) = match live {
            Some(live) => (own_part(live), ownership(schema, live, now)?),
            None => (schema.empty.clone(), ManagedFields::default()),
        };
        let own = Entry {
            manager: Manager::of_object(schema, manager, Operation::Apply),
            time: None,
            fields: fields_of(shape, &applied),
        };
        let combined = combine(shape, &live, &applied);
        Ok(Self { schema, live, owners, applied, manifest, own, combined, now })
    }

    /// The field ownership of the live object.
    pub fn owners(&self) -> &ManagedFields {
        &self.owners
    }

    /// Evaluates the apply with this ownership.
    pub fn under(&self, owners: &ManagedFields) -> Tried<'_> {
        let mut owners = served(self.schema, owners);
        let shape = self.schema.shape();
        let last = owners.replace(self.own.clone());
        let (object, last) = match last {
            Some(Entry { fields, time, .. }) => {
                (prune(shape, &self.combined, fields, owners.all()), time)
            }
            None => (self.combined.clone(), None),
        };
        let changes = compare(shape, &self.live, &object);
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
        let Attempt { schema, live, manifest, .. } = self.attempt;
        settling(schema.shape(), manifest.applied, live, &self.object)
    }

    /// The complete result.
    pub fn merged(self) -> Merged {
        let Self { attempt, object, mut owners, conflicts, last } = self;
        let Attempt { schema, live, applied, manifest, own, now, .. } = attempt;
        let unchanged = same(live, &object);
        owners.finish(&own.manager, if unchanged { last } else { Some(*now) });
        let managed_fields = owners.tidied();
        let leftovers = leftovers(schema, &object, applied, manifest.defaulted, &managed_fields);
        Merged { object, managed_fields, conflicts, leftovers }
    }
}

/// `merged` without the fields of `last` that no manager owns any more. `owned` are the fields of
/// all managers, including those applied now (upstream: `Updater.prune`).
fn prune(shape: Shape<'_>, merged: &Value, last: FieldSet, owned: FieldSet) -> Value {
    let fields = |object: &Value| fields_of(shape, object).with_named_parents(shape);
    let [last, owned] = [last, owned].map(|fields| fields.with_named_parents(shape));

    let pruned = remove(shape, merged, &last);
    let before = fields(merged);
    // Fields with another owner are restored, and so are fields that this manager never owned.
    let unowned = before.difference(&fields(&pruned).union(&owned));
    let pruned = remove(shape, merged, &unowned);
    let gone = before.difference(&fields(&pruned)).intersection(&last);
    remove(shape, merged, &gone)
}
