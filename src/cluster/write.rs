//! Writing to a live cluster: one method a write, each with a time limit, each attempt only while
//! the lock is fresh. What may be sent twice is told in `retry`.
//!
//! Not here: what to write, and when.

mod access;
mod body;
pub(super) mod ledger;
mod owned;

pub use access::{Access, Verdict};
pub use ledger::LedgerWrite;
pub use owned::Owned;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

use serde_json::Value;

use super::live::LiveCluster;
use super::lock::{Fence, Holder, LeaseRecord, Lock, LockError, LockOptions, LockWait};
use super::request::{Call, Requests};
use super::retry::Repeat;
use super::write_error::Attempted;
use super::{Error, Kind, Resource, Verb, WriteError, uri};
use crate::model::{
    Cascade, DaemonSet, DaemonSetKey, FIELD_MANAGER, ManagedBy, NamespaceName, PodName, Revision,
    Uid,
};

/// A server-side apply of a DaemonSet.
#[derive(Clone, Copy, Debug)]
pub struct Apply<'a> {
    /// What is applied, and will be owned: as written, without the server's defaults.
    pub object: &'a Value,
    /// Whether to take fields from others.
    pub force: bool,
    /// The one object that may be changed. Without it, one that was deleted meanwhile is created
    /// anew.
    pub uid: Option<&'a Uid>,
    /// The one version that may be changed ([`DaemonSet::resource_version`]).
    pub resource_version: Option<&'a str>,
}

/// A cluster that can be written to, once it is locked.
pub struct WritableCluster {
    live: LiveCluster,
}

impl WritableCluster {
    pub(super) fn new(live: LiveCluster) -> Self {
        Self { live }
    }

    /// The same cluster, for reading.
    pub fn live(&self) -> &LiveCluster {
        &self.live
    }

    /// What an apply would make of the DaemonSet (`dryRun=All`). Admission is asked, nothing
    /// changes.
    ///
    /// # Errors
    /// What the apply itself would answer.
    pub async fn try_apply(
        &self,
        key: &DaemonSetKey,
        apply: &Apply<'_>,
    ) -> Result<DaemonSet, WriteError> {
        self.requests().apply(None, key, apply).await
    }

    /// What the server would make of the live DaemonSet if its spec, labels and annotations were
    /// those of `object` (`dryRun=All`), whoever owns them. Admission is asked, nothing changes.
    ///
    /// # Errors
    /// The server would not accept it; [`WriteError::Stale`] when it is another object by now.
    pub async fn try_outcome(
        &self,
        live: &DaemonSet,
        object: &Value,
    ) -> Result<DaemonSet, WriteError> {
        let resource = Resource::Of(Kind::DaemonSet);
        let DaemonSetKey { namespace, name } = &live.key;
        let path = uri::object(resource, namespace, name.as_str());
        let pairs: [(&str, Option<&dyn Display>); 2] =
            [("dryRun", Some(&"All")), ("fieldManager", Some(&FIELD_MANAGER))];
        let call = Call {
            verb: Verb::Patch,
            body: Some(("application/json-patch+json", body::outcome(live, object))),
            repeat: Repeat::HarmlessUnlessBroken,
            ..Call::get(resource, uri::with_query(path, pairs))
        };
        let attempted = attempted(&call, Some(namespace), name.as_str(), true);
        let answer = self.requests().write_text(None, &call, attempted).await;
        let answer = answer.map_err(body::failed_test_is_stale)?;
        Ok(self.requests().daemon_set_of(&answer)?)
    }

    /// What the server would make of a pod (`dryRun=All`): admission is asked, and nothing is
    /// created. It is raw JSON as the API has it, with `generateName` or `name`.
    ///
    /// # Errors
    /// What creating the pod would answer: [`WriteError::Denied`] by `PodSecurity` or a missing
    /// `PriorityClass`, say.
    pub async fn try_pod(
        &self,
        namespace: &NamespaceName,
        pod: &Value,
    ) -> Result<Value, WriteError> {
        let resource = Resource::Of(Kind::Pod);
        let path = uri::collection(resource, Some(namespace));
        let pairs: [(&str, Option<&dyn Display>); 2] =
            [("dryRun", Some(&"All")), ("fieldManager", Some(&FIELD_MANAGER))];
        let call = Call {
            verb: Verb::Create,
            body: Some(("application/json", pod.to_string().into())),
            ..Call::get(resource, uri::with_query(path, pairs))
        };
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        let attempted = attempted(&call, Some(namespace), name, true);
        self.requests().write(None, &call, attempted).await
    }

    /// Locks a DaemonSet, which need not exist. Waits for whoever has the lock, if the options say
    /// so.
    ///
    /// # Errors
    /// Somebody else has it and keeps it; or the lease cannot be read or written.
    pub async fn lock(
        &self,
        key: &DaemonSetKey,
        holder: &Holder,
        options: &LockOptions,
    ) -> Result<Lock, LockError> {
        self.lock_telling(key, holder, options, &|_| {}).await
    }

    /// The same; says whom it waits for as soon as it does.
    ///
    /// # Errors
    /// As [`lock`](Self::lock).
    pub async fn lock_telling(
        &self,
        key: &DaemonSetKey,
        holder: &Holder,
        options: &LockOptions,
        waits: &(dyn Fn(&LockWait) + Sync),
    ) -> Result<Lock, LockError> {
        Lock::take(Arc::clone(&self.live.requests), key, holder, options, waits).await
    }

    /// Takes the lock away from whoever has it, and says who that was. They find it out before
    /// their next write but one, at the latest after five seconds.
    ///
    /// # Errors
    /// The lease cannot be read or written.
    pub async fn unlock(&self, key: &DaemonSetKey) -> Result<Option<LeaseRecord>, LockError> {
        Lock::break_open(&self.live.requests, key).await
    }

    /// The same, if nobody has written the lease since it was seen: a run that is alive has.
    ///
    /// # Errors
    /// As [`unlock`](Self::unlock).
    pub async fn unlock_as(&self, key: &DaemonSetKey, seen: &LeaseRecord) -> Result<(), LockError> {
        Lock::break_open_as(&self.live.requests, key, seen).await
    }

    fn requests(&self) -> &Requests {
        &self.live.requests
    }
}

/// Writes, as long as the lock is fresh; otherwise nothing is sent. Clones share the lock and the
/// number of requests that may be under way.
#[derive(Clone)]
pub struct Writer {
    requests: Arc<Requests>,
    fence: Arc<Fence>,
}

impl Writer {
    pub(super) fn new(requests: Arc<Requests>, fence: Arc<Fence>) -> Self {
        Self { requests, fence }
    }

    /// What an apply would make of the DaemonSet (`dryRun=All`). Nothing changes, so it needs no
    /// lock.
    ///
    /// # Errors
    /// What the apply itself would answer.
    pub async fn try_apply(
        &self,
        key: &DaemonSetKey,
        apply: &Apply<'_>,
    ) -> Result<DaemonSet, WriteError> {
        self.requests.apply(None, key, apply).await
    }

    /// Applies a DaemonSet on the server's side, and returns what became of it. Sent again only
    /// when it is certain that nothing happened; never after a conflict or a 500.
    ///
    /// # Errors
    /// [`WriteError::Conflict`] without force; [`WriteError::Stale`] when `uid` or
    /// `resource_version` are no longer the object's, or it is gone.
    pub async fn apply(
        &self,
        key: &DaemonSetKey,
        apply: &Apply<'_>,
    ) -> Result<DaemonSet, WriteError> {
        self.requests.apply(Some(&self.fence), key, apply).await
    }

    /// Replaces `metadata.managedFields`, and nothing else, of exactly this version of the
    /// DaemonSet (compare-and-swap).
    ///
    /// # Errors
    /// [`WriteError::Stale`] when it has changed meanwhile: then nothing is written.
    pub async fn replace_managed_fields(
        &self,
        live: &DaemonSet,
        managed_fields: &Value,
    ) -> Result<DaemonSet, WriteError> {
        let patch = body::managed_fields(live, managed_fields);
        let call = patch_call(
            Kind::DaemonSet,
            (&live.key.namespace, live.key.name.as_str()),
            ("application/json-patch+json", patch),
        );
        let attempted = attempted(&call, Some(&live.key.namespace), live.key.name.as_str(), false);
        let answer = self.requests.write_text(Some(&self.fence), &call, attempted).await;
        let answer = answer.map_err(body::failed_test_is_stale)?;
        Ok(self.requests.daemon_set_of(&answer)?)
    }

    /// Sets annotations of a revision (`None` takes one away), and changes nothing else. With
    /// `resource_version`, of exactly this version of it.
    ///
    /// # Errors
    /// [`WriteError::Stale`] when it is another one by now; [`WriteError::NotFound`].
    pub async fn annotate_revision(
        &self,
        revision: &Revision,
        resource_version: Option<&str>,
        annotations: &BTreeMap<&str, Option<&str>>,
    ) -> Result<Revision, WriteError> {
        let Revision { namespace, name, uid, .. } = revision;
        let patch = body::annotations(uid, resource_version, annotations);
        let call = Call {
            // Setting them twice is the same, unless the first time makes the version another.
            repeat: match resource_version {
                Some(_) => Repeat::Unwanted,
                None => Repeat::Harmless,
            },
            ..patch_call(
                Kind::ControllerRevision,
                (namespace, name.as_str()),
                ("application/merge-patch+json", patch),
            )
        };
        let attempted = attempted(&call, Some(namespace), name.as_str(), false);
        let answer = self.requests.write_text(Some(&self.fence), &call, attempted).await?;
        Ok(self.requests.revision_of(&answer)?)
    }

    /// Deletes one pod, with its own grace period. Returns when the server has accepted it; the pod
    /// ends later. Sent once: whether it is still to go is decided anew.
    ///
    /// # Errors
    /// [`WriteError::NotFound`] or [`WriteError::Stale`] when there is no pod of that name and uid
    /// ([`WriteError::is_gone`]).
    pub async fn delete_pod(
        &self,
        namespace: &NamespaceName,
        name: &PodName,
        uid: &Uid,
    ) -> Result<(), WriteError> {
        let body = body::delete(uid, None, None);
        self.delete(Kind::Pod, namespace, name.as_str(), body, Repeat::Undecided).await
    }

    /// Deletes exactly this version of a DaemonSet, or of the ledger that stands for it.
    ///
    /// # Errors
    /// As [`delete_pod`](Self::delete_pod); [`WriteError::Stale`] also when it has changed.
    pub async fn delete_daemon_set(
        &self,
        live: &DaemonSet,
        cascade: Cascade,
    ) -> Result<(), WriteError> {
        let DaemonSetKey { namespace, name } = &live.key;
        let body = body::delete(&live.uid, live.resource_version(), Some(cascade));
        let kind = match live.managed_by {
            ManagedBy::DaemonSetController => Kind::DaemonSet,
            ManagedBy::DsApply => Kind::Ledger,
        };
        let name = live.managed_by.owner_name(name);
        self.delete(kind, namespace, &name, body, Repeat::Harmless).await
    }

    async fn delete(
        &self,
        kind: Kind,
        namespace: &NamespaceName,
        name: &str,
        body: Vec<u8>,
        repeat: Repeat,
    ) -> Result<(), WriteError> {
        let resource = Resource::Of(kind);
        let call = Call {
            verb: Verb::Delete,
            body: Some(("application/json", body)),
            repeat,
            ..Call::get(resource, uri::object(resource, namespace, name))
        };
        let attempted = attempted(&call, Some(namespace), name, false);
        self.requests.write_text(Some(&self.fence), &call, attempted).await.map(drop)
    }
}

impl Requests {
    async fn apply(
        &self,
        fence: Option<&Fence>,
        key: &DaemonSetKey,
        apply: &Apply<'_>,
    ) -> Result<DaemonSet, WriteError> {
        let dry_run = fence.is_none();
        let resource = Resource::Of(Kind::DaemonSet);
        let path = uri::object(resource, &key.namespace, key.name.as_str());
        let pairs: [(&str, Option<&dyn Display>); 4] = [
            ("fieldManager", Some(&FIELD_MANAGER)),
            ("fieldValidation", Some(&"Strict")),
            ("force", Some(&apply.force)),
            ("dryRun", dry_run.then_some(&"All")),
        ];
        let call = Call {
            verb: Verb::Patch,
            body: Some(("application/apply-patch+yaml", body::apply(apply))),
            repeat: if dry_run { Repeat::HarmlessUnlessBroken } else { Repeat::Unwanted },
            ..Call::get(resource, uri::with_query(path, pairs))
        };
        let attempted = attempted(&call, Some(&key.namespace), key.name.as_str(), dry_run);
        let answer = self.write_text(fence, &call, attempted).await?;
        Ok(self.daemon_set_of(&answer)?)
    }

    /// The answer to a write, as JSON.
    async fn write(
        &self,
        fence: Option<&Fence>,
        call: &Call,
        attempted: Attempted,
    ) -> Result<Value, WriteError> {
        let answer = self.write_text(fence, call, attempted).await?;
        let answer = serde_json::from_slice(&answer);
        answer.map_err(|error| {
            Error::NotAnAnswer { request: call.to_string(), reason: error.to_string() }.into()
        })
    }

    /// The answer to a write.
    pub(super) async fn write_text(
        &self,
        fence: Option<&Fence>,
        call: &Call,
        attempted: Attempted,
    ) -> Result<Vec<u8>, WriteError> {
        let answer = self.send_under(fence, call).await;
        answer.map_err(|failure| WriteError::of(failure, attempted, call, &self.server))
    }
}

/// A patch of one object, sent once.
fn patch_call(
    kind: Kind,
    (namespace, name): (&NamespaceName, &str),
    body: (&'static str, Vec<u8>),
) -> Call {
    let resource = Resource::Of(kind);
    let path = uri::object(resource, namespace, name);
    let manager: Option<&dyn Display> = Some(&FIELD_MANAGER);
    Call {
        verb: Verb::Patch,
        body: Some(body),
        repeat: Repeat::Unwanted,
        ..Call::get(resource, uri::with_query(path, [("fieldManager", manager)]))
    }
}

fn attempted(
    call: &Call,
    namespace: Option<&NamespaceName>,
    name: &str,
    dry_run: bool,
) -> Attempted {
    Attempted {
        verb: call.verb,
        resource: call.resource,
        namespace: namespace.cloned(),
        name: name.to_owned(),
        dry_run,
    }
}
