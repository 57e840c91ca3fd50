//! Sends one request of a sync (upstream: `RealPodControl`, the claiming patches of
//! `PodControllerRefManager`, `storeDaemonSetStatus`).
//!
//! Not here: the choice of requests, and the consequences of a failure.

use serde_json::{Value, json};

use crate::controllers::complaints;
use crate::controllers::moment::CONTROLLER_MANAGER;
use crate::{DeleteOptions, Kind, Reason, Status, Store, Target, Verbs};
use daemonset::controller::sync_requests::{PodWrite, Request, SyncRequests};
use daemonset::model::{DaemonSetKey, DaemonSetStatus, REVISION_HASH_LABEL, Uid};
use jiff::Timestamp;

/// The result of a request.
pub(super) struct Done {
    /// The written version, for writes that the controller must see before it continues.
    pub(super) version: Option<u64>,
}

/// Sends `request`.
///
/// # Errors
/// The server's error, unless upstream treats it as success.
pub(super) fn perform(
    store: &mut Store,
    program: &SyncRequests,
    request: &Request,
    now: Timestamp,
) -> Result<Done, Status> {
    let SyncRequests { key, uid, reference, pods, .. } = program;
    let namespace = key.namespace.as_str();
    let mut verbs = store.verbs(now, CONTROLLER_MANAGER);
    let revision = |name| Target::new(Kind::ControllerRevision, namespace, name);
    let pod = |name| Target::new(Kind::Pod, namespace, name);
    let unseen = |_| Done { version: None };
    let label_of_hash =
        |it: &mut Value, hash: &str| it["metadata"]["labels"][REVISION_HASH_LABEL] = hash.into();
    match request {
        Request::AdoptRevision { name, uid: of } => {
            adopt(&mut verbs, program, revision(name.as_str()), of).map(|_| Done { version: None })
        }
        Request::AdoptPod { name, uid: of } => {
            adopt(&mut verbs, program, pod(name.as_str()), of).map(|version| Done { version })
        }
        Request::ReleaseRevision { name, uid: of } => {
            release(&mut verbs, uid, revision(name.as_str()), of).map(unseen)
        }
        Request::ReleasePod { name, uid: of } => {
            release(&mut verbs, uid, pod(name.as_str()), of).map(unseen)
        }
        Request::LabelRevision { name, uid: _ } => verbs
            .edit(revision(name.as_str()), |it| label_of_hash(it, name.as_str()))
            .map(|_| Done { version: None }),
        Request::RenumberRevision { name, uid: _, to } => verbs
            .edit(revision(name.as_str()), |it| it["revision"] = to.0.into())
            .map(|_| Done { version: None }),
        Request::RelabelPod { name, uid: _, hash } => verbs
            .edit(pod(name.as_str()), |it| label_of_hash(it, hash.as_str()))
            .map(|_| Done { version: None }),
        Request::DeleteRevision { name, uid: _ } => verbs
            .delete(revision(name.as_str()), &DeleteOptions::default())
            .map(|_| Done { version: None }),
        Request::CreateRevision(new) => {
            let object = new.object(namespace, reference);
            verbs
                .create(Kind::ControllerRevision, namespace, object)
                .map(|_| Done { version: None })
        }
        Request::CreatePod(node) => {
            let created = verbs.create(Kind::Pod, namespace, pods.pod_for(node));
            created.map(|pod| Done { version: Some(pod.version()) })
        }
        Request::DeletePod { name, .. } => verbs
            .delete(pod(name.as_str()), &DeleteOptions::default())
            .map(|_| Done { version: None }),
        Request::CountCollision(count) => {
            edit_status(&mut verbs, key, |status| status["collisionCount"] = (*count).into())
        }
        Request::WriteStatus(new) => edit_status(&mut verbs, key, |status| fill(status, new)),
        Request::Expect { .. } => Ok(Done { version: None }),
    }
}

/// Creates upstream's event about a failed request, on the DaemonSet.
pub(super) fn report_failed_create(
    store: &mut Store,
    program: &SyncRequests,
    request: &Request,
    error: &Status,
    now: Timestamp,
) {
    let (reason, verb) = match request.pod_write() {
        Some(PodWrite::Create) => ("FailedCreate", "creating"),
        Some(PodWrite::Delete) => ("FailedDelete", "deleting"),
        None => return,
    };
    let message = format!("Error {verb}: {error}");
    complaints::warn(store, &program.key, &program.uid, reason, &message, now);
}

/// Adopts an orphan, after checking that the DaemonSet is still the same and not being deleted
/// (upstream: `RecheckDeletionTimestamp`).
fn adopt(
    verbs: &mut Verbs<'_>,
    program: &SyncRequests,
    target: Target<'_>,
    of: &Uid,
) -> Result<Option<u64>, Status> {
    let SyncRequests { key, uid, reference, .. } = program;
    let name = key.name.as_str();
    let live = verbs.get(Target::new(Kind::DaemonSet, key.namespace.as_str(), name))?;
    if live.meta().uid != *uid || live.meta().deleted.is_some() {
        return Err(Status::conflict(Kind::DaemonSet, name, "it is not the one that was seen"));
    }
    let changed = edit_one(verbs, target, of, |object| {
        let references = &mut object["metadata"]["ownerReferences"];
        if !references.is_array() {
            *references = json!([]);
        }
        if let Some(references) = references.as_array_mut() {
            references.push(reference.clone());
        }
    });
    // A deleted object does not need an owner.
    unless_gone(changed)
}

/// Releases an object that the selector no longer selects.
fn release(
    verbs: &mut Verbs<'_>,
    uid: &Uid,
    target: Target<'_>,
    of: &Uid,
) -> Result<Option<u64>, Status> {
    let uid = uid.to_string();
    let changed = edit_one(verbs, target, of, |object| {
        if let Some(references) = object["metadata"]["ownerReferences"].as_array_mut() {
            references.retain(|reference| reference["uid"] != uid);
        }
    });
    match changed {
        Err(error) if error.reason == Reason::Invalid => Ok(None),
        changed => unless_gone(changed),
    }
}

/// Changes the object with this uid.
fn edit_one(
    verbs: &mut Verbs<'_>,
    target: Target<'_>,
    uid: &Uid,
    change: impl FnOnce(&mut Value),
) -> Result<Option<u64>, Status> {
    if verbs.get(target)?.meta().uid != *uid {
        return Err(Status::not_found(target.kind, target.name));
    }
    Ok(Some(verbs.edit(target, change)?.version()))
}

fn unless_gone(changed: Result<Option<u64>, Status>) -> Result<Option<u64>, Status> {
    match changed {
        Err(error) if error.reason == Reason::NotFound => Ok(None),
        changed => changed,
    }
}

fn edit_status(
    verbs: &mut Verbs<'_>,
    key: &DaemonSetKey,
    change: impl FnOnce(&mut Value),
) -> Result<Done, Status> {
    let target = Target::new(Kind::DaemonSet, key.namespace.as_str(), key.name.as_str());
    let written = verbs.edit(target.status(), |object| {
        if !object["status"].is_object() {
            object["status"] = json!({});
        }
        change(&mut object["status"]);
    })?;
    Ok(Done { version: Some(written.version()) })
}

/// Writes the counters, and keeps the rest of the status.
fn fill(status: &mut Value, new: &DaemonSetStatus) {
    let Some(fields) = status.as_object_mut() else { return };
    for (name, count) in new.served() {
        match count {
            None => fields.remove(name),
            Some(count) => fields.insert(name.to_owned(), count.into()),
        };
    }
}
