//! What a write that is no server-side apply makes of the ownership (upstream: `Updater.Update`,
//! `managedFieldsUpdater`): whoever writes owns what it changes, and takes it from everybody else.

use jiff::Timestamp;
use serde_json::Value;

use super::compare::{Comparison, compare};
use super::managers::{Entry, ManagedFields, ManagedFieldsError, Manager, Operation};
use super::schema::Shape;
use super::{API_VERSION, empty, own_part, served, take, without_record};

/// Who owns what after `manager` has made `new` out of the live DaemonSet, or out of nothing.
/// `new` holds the ownership so far, as the writer left it; both hold the server's defaults.
///
/// An object whose fields nobody tracks stays so.
///
/// # Errors
/// The ownership so far cannot be read.
pub fn update(
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
    let live = live.map_or_else(empty, part);
    let changes = compare(Shape::daemon_set(), &live, &part(new));
    let mut owners = served(&owners);
    // Nothing is a conflict for those who do not apply.
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
    // Only who gains something has written; losing is no deed.
    let time = if gained.is_empty() { before } else { Some(now) };
    let fields = kept.union(&gained);
    owners.replace(Entry { manager: manager.clone(), time, fields });
    Ok(owners.tidied())
}

/// The ownership so far: as the writer sends it, if it sends any; one empty entry wipes it out. A
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

impl Manager {
    /// One that writes by other means than server-side apply, to the object itself or to a
    /// subresource.
    pub fn updating(name: &str, subresource: &str) -> Self {
        Self {
            name: name.to_owned(),
            operation: Operation::Update,
            api_version: API_VERSION.to_owned(),
            subresource: subresource.to_owned(),
        }
    }
}
