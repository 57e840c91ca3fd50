//! What belongs to an object that is gone, or is on its way, goes too, or is let go (upstream:
//! `garbagecollector`, `attemptToDeleteItem`, `orphanDependents`).
//!
//! By identity: an owner is the object with that uid. An owner of a kind that is not served is taken
//! to be there. Not here: namespaces, whose end takes more than this.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Moment, Work};
use crate::model::Uid;
use crate::simulator::{
    Change, DeleteOptions, Event, Kind, Object, ObjectKey, Owner, Propagation, Status, Target,
};

/// The finalizer of an object whose dependents are let go first.
const ORPHAN: &str = "orphan";

/// The finalizer of an object whose dependents are deleted first.
const FOREGROUND: &str = "foregroundDeletion";

/// Who the controller is to the API server.
const MANAGER: &str = "kube-controller-manager";

/// Hears of an object that is gone, or on its way, or has come too late.
pub(super) fn hear(event: &Event, moment: &mut Moment<'_>) {
    let object = &event.object;
    let look_at =
        |kind: Kind, key: &ObjectKey, uid: &Uid| Work::Garbage(kind, key.clone(), uid.clone());
    if event.change == Change::Deleted || waits(object).is_some() {
        let work = look_at(object.kind(), object.key(), &object.meta().uid);
        moment.agenda.add(moment.now, work);
    }
    for owner in &object.meta().owners {
        let Some(kind) = owner.kind else { continue };
        let key = key_of(owner, kind, object);
        let found = moment.store.at(kind, &key).filter(|it| it.meta().uid == owner.uid);
        // One that waits for this object, or one that was gone before it came.
        let concerned = match found {
            Some(owner) => event.change == Change::Deleted && waits(owner).is_some(),
            None => event.change != Change::Deleted,
        };
        if concerned {
            moment.agenda.add(moment.now, look_at(kind, &key, &owner.uid));
        }
    }
}

/// Looks at what belongs to an object.
pub(super) fn collect(kind: Kind, key: &ObjectKey, uid: &Uid, moment: &mut Moment<'_>) {
    let dependents: Vec<Arc<Object>> = moment.store.dependents(uid).cloned().collect();
    let live = moment.store.at(kind, key).filter(|it| it.meta().uid == *uid).cloned();
    let done = match &live {
        None => dependents.iter().try_for_each(|it| leave(it, uid, moment)),
        Some(owner) => match waits(owner) {
            Some(Wait::Orphans) => dependents
                .iter()
                .try_for_each(|it| let_go(it, uid, moment))
                .and_then(|()| finish(owner, ORPHAN, moment)),
            Some(Wait::Dependents) => end_before(owner, &dependents, moment),
            None => Ok(()),
        },
    };
    if let Err(error) = done {
        tracing::debug!(%key, %error, "garbage is left");
    }
}

/// What an object that is being deleted waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// Its dependents are to be let go.
    Orphans,
    /// Its dependents are to be gone.
    Dependents,
}

fn waits(object: &Object) -> Option<Wait> {
    let meta = object.meta();
    meta.deleted?;
    let has = |finalizer: &str| meta.finalizers.iter().any(|it| **it == *finalizer);
    if has(ORPHAN) { Some(Wait::Orphans) } else { has(FOREGROUND).then_some(Wait::Dependents) }
}

/// The owner's key: in the namespace of what belongs to it, or in none.
fn key_of(owner: &Owner, kind: Kind, dependent: &Object) -> ObjectKey {
    let namespace = if kind.is_namespaced() { dependent.key().namespace() } else { "" };
    ObjectKey::new(namespace, &owner.name)
}

/// An object whose owner is gone goes too, unless it has another one.
fn leave(object: &Arc<Object>, uid: &Uid, moment: &mut Moment<'_>) -> Result<(), Status> {
    let is_there = |owner: &Owner| {
        owner.kind.is_none_or(|kind| {
            let found = moment.store.at(kind, &key_of(owner, kind, object));
            found.is_some_and(|found| found.meta().uid == owner.uid)
        })
    };
    if object.meta().owners.iter().any(is_there) {
        return let_go(object, uid, moment);
    }
    if object.meta().deleted.is_some() {
        return Ok(());
    }
    delete(object, Propagation::Background, moment)
}

fn delete(object: &Object, how: Propagation, moment: &mut Moment<'_>) -> Result<(), Status> {
    let options = DeleteOptions {
        uid: Some(object.meta().uid.clone()),
        propagation: Some(how),
        ..DeleteOptions::default()
    };
    moment.store.verbs(moment.now, MANAGER).delete(Target::of(object), &options).map(drop)
}

fn let_go(object: &Arc<Object>, uid: &Uid, moment: &mut Moment<'_>) -> Result<(), Status> {
    let mut verbs = moment.store.verbs(moment.now, MANAGER);
    let changed = verbs.edit(Target::of(object), |object| {
        if let Some(references) = object["metadata"]["ownerReferences"].as_array_mut() {
            references.retain(|reference| reference["uid"] != uid.as_str());
        }
    });
    changed.map(drop)
}

/// Deletes what belongs to an object; the object may go when nothing is left that blocks it.
fn end_before(
    owner: &Arc<Object>,
    dependents: &[Arc<Object>],
    moment: &mut Moment<'_>,
) -> Result<(), Status> {
    let uid = &owner.meta().uid;
    for dependent in dependents.iter().filter(|it| it.meta().deleted.is_none()) {
        delete(dependent, Propagation::Background, moment)?;
    }
    let blocks = |it: &Owner| it.uid == *uid && it.blocks_deletion;
    let blocked = moment.store.dependents(uid).any(|it| it.meta().owners.iter().any(blocks));
    if blocked { Ok(()) } else { finish(owner, FOREGROUND, moment) }
}

fn finish(owner: &Object, finalizer: &str, moment: &mut Moment<'_>) -> Result<(), Status> {
    let mut verbs = moment.store.verbs(moment.now, MANAGER);
    let without = |object: &mut Value| {
        if let Some(finalizers) = object["metadata"]["finalizers"].as_array_mut() {
            finalizers.retain(|it| *it != json!(finalizer));
        }
    };
    verbs.edit(Target::of(owner), without).map(drop)
}
