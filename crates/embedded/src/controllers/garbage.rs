//! Schedules the garbage collector: when an owner is deleted, or waits for its dependents to be
//! orphaned or deleted (upstream: `garbagecollector`, `GraphBuilder.processGraphChanges`).
//!
//! Not here: the collection itself (`verbs`).

use super::moment::{CONTROLLER_MANAGER, Moment, Work};
use crate::{Change, Event, Object};

/// Finalizers of an object that waits for its dependents.
const FINALIZERS: [&str; 2] = ["orphan", "foregroundDeletion"];

/// Starts with a full collection: objects may have lost their owners before.
pub(super) fn begin(moment: &mut Moment<'_>) {
    moment.agenda.add(moment.now, Work::CollectGarbage);
}

/// Handles an event, and schedules a collection if it is relevant.
pub(super) fn hear(event: &Event, moment: &mut Moment<'_>) {
    let object = &event.object;
    let is_gone = event.change == Change::Deleted;
    let leaves_others = is_gone && moment.store.dependents(&object.meta().uid).next().is_some();
    let owners_wait = || {
        let mut owners = object.meta().owners.iter();
        owners.any(|owner| {
            let Some(kind) = owner.kind else { return false };
            let namespace = if kind.is_namespaced() { object.key().namespace() } else { "" };
            let found = moment.store.get(kind, namespace, &owner.name);
            let found = found.filter(|found| found.meta().uid == owner.uid);
            // A deleted owner has left this object behind.
            found.map_or(!is_gone, |found| is_gone && waits(found))
        })
    };
    if leaves_others || waits(object) || owners_wait() {
        moment.agenda.add(moment.now, Work::CollectGarbage);
    }
}

/// Runs a full collection.
pub(super) fn collect(moment: &mut Moment<'_>) {
    if let Err(error) = moment.store.verbs(moment.now, CONTROLLER_MANAGER).collect_garbage() {
        tracing::debug!(%error, "garbage is left");
    }
}

fn waits(object: &Object) -> bool {
    let meta = object.meta();
    let is_one = |finalizer: &str| FINALIZERS.contains(&finalizer);
    meta.deleted.is_some() && meta.finalizers.iter().any(|it| is_one(it))
}
