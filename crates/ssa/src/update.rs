//! The field ownership after a write that is not a server-side apply (upstream: `Updater.Update`,
//! `managedFieldsUpdater`): the writer owns the fields that it changes; other managers lose them.

use jiff::Timestamp;
use serde_json::Value;

use super::compare::{Comparison, compare};
use super::managers::{Entry, ManagedFields, ManagedFieldsError, Manager};
use super::ownership::{own_part, served, take, without_record};
use super::schema::Schema;

/// The field ownership after `manager` has changed the live object to `new`, or created it.
/// `new` contains the previous ownership as the writer sent it; both objects contain the server's
/// defaults.
///
/// An object without `managedFields` stays without.
///
/// # Errors
/// The previous ownership cannot be read.
pub fn update(
    schema: &Schema,
    live: Option<&Value>,
    new: &Value,
    manager: &Manager,
    now: Timestamp,
) -> Result<ManagedFields, ManagedFieldsError> {
    let owners = owners(live, new, manager)?;
    if live.is_some() && owners.is_empty() {
        return Ok(owners);
    }
    let part = if manager.subresource.is_empty() { own_part } else { without_record };
    let live = live.map_or_else(|| schema.empty.clone(), part);
    let changes = compare(schema.shape(), &live, &part(new));
    let mut owners = served(schema, &owners);
    // Updates have no conflicts.
    take(&mut owners, manager, &changes);
    let Comparison { added, modified, removed } = &changes;
    let own = owners.get(manager);
    let before = own.and_then(|entry| entry.time);
    let kept = own.map(|entry| entry.fields.difference(removed)).unwrap_or_default();
    let mut gained = ManagedFields(vec![Entry {
        manager: manager.clone(),
        time: None,
        fields: added.union(modified),
    }]);
    gained.finish(manager, Some(now));
    let gained = gained.0.remove(0).fields;
    // The time changes only if the manager gains fields, not if it loses some.
    let time = if gained.is_empty() { before } else { Some(now) };
    let fields = kept.union(&gained);
    owners.replace(Entry { manager: manager.clone(), time, fields });
    Ok(owners.tidied())
}

/// The previous ownership: as the writer sends it, if it sends any; one empty entry removes it. A
/// write to a subresource cannot change it (upstream: `decodeLiveOrNew`).
fn owners(
    live: Option<&Value>,
    new: &Value,
    manager: &Manager,
) -> Result<ManagedFields, ManagedFieldsError> {
    let before = live.map(ManagedFields::of).transpose()?.unwrap_or_default();
    if !manager.subresource.is_empty() {
        return Ok(before);
    }
    let sent = new.pointer("/metadata/managedFields").and_then(Value::as_array);
    match sent.map(Vec::as_slice) {
        Some([entry]) if entry.as_object().is_some_and(serde_json::Map::is_empty) => {
            Ok(ManagedFields::default())
        }
        _ => Ok(ManagedFields::of(new).ok().filter(|sent| !sent.is_empty()).unwrap_or(before)),
    }
}
