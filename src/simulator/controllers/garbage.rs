//! When the garbage collector looks: an object is gone that others belong to, or waits for them to be
//! let go or gone (upstream: `garbagecollector`, `GraphBuilder.processGraphChanges`).
//!
//! Not here: what then becomes of them (`verbs`).

use super::{Moment, Work};
use crate::simulator::{Change, Event, Object};

/// The finalizers of an object that waits for what belongs to it.
const FINALIZERS: [&str; 2] = ["orphan", "foregroundDeletion"];

/// Who the controller is to the API server.
const MANAGER: &str = "kube-controller-manager";

/// Begins with a look at everything: some may have lost their owners while nobody looked.
pub(super) fn begin(moment: &mut Moment<'_>) {
    moment.agenda.add(moment.now, Work::CollectGarbage);
}

/// Hears of a change; whether it concerns the garbage collector, it finds out by itself.
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
            // One that is gone already has left this object behind.
            found.map_or(!is_gone, |found| is_gone && waits(found))
        })
    };
    if leaves_others || waits(object) || owners_wait() {
        moment.agenda.add(moment.now, Work::CollectGarbage);
    }
}

/// Looks at everything.
pub(super) fn collect(moment: &mut Moment<'_>) {
    if let Err(error) = moment.store.verbs(moment.now, MANAGER).collect_garbage() {
        tracing::debug!(%error, "garbage is left");
    }
}

fn waits(object: &Object) -> bool {
    let meta = object.meta();
    let is_one = |finalizer: &str| FINALIZERS.contains(&finalizer);
    meta.deleted.is_some() && meta.finalizers.iter().any(|it| is_one(it))
}
