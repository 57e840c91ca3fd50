//! Garbage collection of objects whose owners are deleted or terminate (upstream: the garbage
//! collector of the controller manager). Each call is a full pass; the caller decides how often.

use std::sync::Arc;

use serde_json::{Value, json};

use super::delete::{FOREGROUND, ORPHAN};
use super::{DeleteOptions, Propagation, Target, Verbs};
use crate::{Object, Owner, Status};
use daemonset::model::Uid;

impl Verbs<'_> {
    /// Deletes objects whose owners all do not exist, orphans dependents where requested, and
    /// completes deletions that have waited for that. Returns the number of objects written.
    ///
    /// Owners of kinds that are not served are assumed to exist.
    ///
    /// # Errors
    /// The error of a delete or update.
    pub(crate) fn collect_garbage(&mut self) -> Result<usize, Status> {
        let mut written = 0;
        for waiting in self.owners_that_wait() {
            written += self.help(&waiting)?;
        }
        let gone: Vec<Uid> =
            self.store.owner_uids().filter(|uid| self.is_gone(uid)).cloned().collect();
        for uid in gone {
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

    /// Terminating objects that wait for the garbage collector.
    fn owners_that_wait(&self) -> Vec<Arc<Object>> {
        let waits = |object: &&Arc<Object>| {
            object.meta().finalizers.iter().any(|it| matches!(&**it, ORPHAN | FOREGROUND))
        };
        self.store.held().filter(waits).cloned().collect()
    }

    /// Orphans or deletes the dependents of an object, and removes its finalizer when that is done.
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
            let has_dependents = self.store.dependents(&dependent.meta().uid).next().is_some();
            let propagation =
                if has_dependents { Propagation::Foreground } else { Propagation::Background };
            let options =
                DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() };
            self.delete(Target::of(dependent), &options)?;
            written += 1;
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

    /// `true` if an owner does not exist, by the reference of its first dependent.
    fn is_gone(&self, owner: &Uid) -> bool {
        self.store.dependents(owner).next().is_some_and(|dependent| {
            let mut owners = dependent.meta().owners.iter();
            owners.any(|it| it.uid == *owner && !self.is_there(dependent, it))
        })
    }

    /// `true` if an object has owners, and none of them exists.
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

/// Removes an owner reference from an object.
fn disown(object: &mut Value, uid: &Uid) {
    let references = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
    let uid = uid.to_string();
    let others: Vec<Value> = references.into_iter().filter(|it| it["uid"] != uid).collect();
    object["metadata"]["ownerReferences"] = json!(others);
}
