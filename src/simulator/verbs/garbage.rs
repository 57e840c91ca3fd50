//! What becomes of objects whose owners are gone or going (upstream: the garbage collector of the
//! controller manager). One look at everything; whoever calls it sets the cadence.

use std::sync::Arc;

use serde_json::{Value, json};

use super::delete::{FOREGROUND, ORPHAN};
use super::{DeleteOptions, Deleted, Propagation, Target, Verbs};
use crate::model::Uid;
use crate::simulator::{Kind, Object, Owner, Status};

impl Verbs<'_> {
    /// Deletes in the background what has owners of which none is left, lets go of what is to
    /// outlive its owner, and finishes deletions that have waited for that. Says how many objects
    /// were written.
    ///
    /// Owners of kinds that are not served are taken to be there.
    ///
    /// # Errors
    /// What a delete or update answers; nothing else stands in the way of either here.
    pub fn collect_garbage(&mut self) -> Result<usize, Status> {
        let mut written = 0;
        for waiting in self.owners_that_wait() {
            written += self.help(&waiting)?;
        }
        let uids: Vec<Uid> = self.store.owner_uids().cloned().collect();
        for uid in uids {
            let dependents: Vec<Arc<Object>> = self.store.dependents(&uid).cloned().collect();
            for dependent in dependents.iter().filter(|it| it.meta().deleted.is_none()) {
                if self.is_abandoned(dependent) {
                    let options = DeleteOptions {
                        uid: Some(dependent.meta().uid.clone()),
                        propagation: Some(Propagation::Background),
                        ..DeleteOptions::default()
                    };
                    self.delete(Target::of(dependent), &options)?;
                    written += 1;
                }
            }
        }
        Ok(written)
    }

    /// Objects on their way out that wait for the garbage collector.
    fn owners_that_wait(&self) -> Vec<Arc<Object>> {
        let all = Kind::ALL.into_iter().flat_map(|kind| self.store.objects(kind, None));
        let waits = |object: &&Arc<Object>| {
            let finalizers = &object.meta().finalizers;
            object.meta().deleted.is_some()
                && finalizers.iter().any(|it| matches!(&**it, ORPHAN | FOREGROUND))
        };
        all.filter(waits).cloned().collect()
    }

    /// Orphans the dependents of an object, or deletes them, and takes its finalizer away when
    /// nothing is left to be done.
    fn help(&mut self, owner: &Arc<Object>) -> Result<usize, Status> {
        let uid = owner.meta().uid.clone();
        let dependents: Vec<Arc<Object>> = self.store.dependents(&uid).cloned().collect();
        let has = |finalizer: &str| owner.meta().finalizers.iter().any(|it| **it == *finalizer);
        let mut written = 0;
        if has(ORPHAN) {
            for dependent in &dependents {
                self.edit(Target::of(dependent), |object| disown(object, &uid))?;
                written += 1;
            }
            return self.let_go(owner, ORPHAN).map(|()| written + 1);
        }
        for dependent in dependents.iter().filter(|it| it.meta().deleted.is_none()) {
            let options = DeleteOptions {
                propagation: Some(Propagation::Foreground),
                ..DeleteOptions::default()
            };
            let deleted = self.delete(Target::of(dependent), &options)?;
            written += usize::from(matches!(deleted, Deleted::Gone(_) | Deleted::Going(_)));
        }
        let blocks = |it: &Arc<Object>| {
            it.meta().owners.iter().any(|owner| owner.uid == uid && owner.blocks_deletion)
        };
        if self.store.dependents(&uid).any(blocks) {
            return Ok(written);
        }
        self.let_go(owner, FOREGROUND).map(|()| written + 1)
    }

    fn let_go(&mut self, owner: &Object, finalizer: &str) -> Result<(), Status> {
        let changed = self.edit(Target::of(owner), |object| {
            if let Some(all) = object["metadata"]["finalizers"].as_array_mut() {
                all.retain(|it| it != finalizer);
            }
        });
        changed.map(drop)
    }

    /// Whether an object has owners, and none of them is left.
    fn is_abandoned(&self, object: &Object) -> bool {
        let owners = &object.meta().owners;
        !owners.is_empty() && owners.iter().all(|owner| !self.is_there(object, owner))
    }

    fn is_there(&self, object: &Object, owner: &Owner) -> bool {
        let Some(kind) = owner.kind else { return true };
        let namespace = if kind.is_namespaced() { object.key().namespace() } else { "" };
        let found = self.store.get(kind, namespace, &owner.name);
        found.is_some_and(|found| found.meta().uid == owner.uid)
    }
}

/// Takes an owner away from an object.
fn disown(object: &mut Value, uid: &Uid) {
    let references = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
    let others: Vec<Value> =
        references.into_iter().filter(|it| it["uid"] != uid.as_str()).collect();
    object["metadata"]["ownerReferences"] = json!(others);
}
