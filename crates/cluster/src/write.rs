//! Writes to a live cluster: one method per write, each with a timeout, and each attempt only while
//! the lock is fresh. `retry` decides which requests may be sent twice.
//!
//! Not here: the decision to write, and the content.

mod access;
mod approval;
mod body;
mod owned;
mod puller;
pub(super) mod record;

pub use access::{Access, Verdict};
pub use body::Apply;
pub use owned::Owned;
pub use record::RecordWrite;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

use serde_json::Value;

use super::live::LiveCluster;
use super::lock::{Fence, Holder, LiveLease, Lock, LockError, LockOptions, LockWait};
use super::request::{Call, Requests};
use super::retry::Repeat;
use super::write_error::Attempted;
use super::{Error, Kind, Resource, Verb, WriteError, uri};
use daemonset::model::{
    Cascade, DaemonSet, DaemonSetKey, FIELD_MANAGER, ManagedBy, NamespaceName, PodName, Revision,
    Uid,
};

/// A cluster that can be locked and then written to.
pub struct WritableCluster {
    live: LiveCluster,
}

impl WritableCluster {
    /// The client that reads the same cluster.
    pub fn live(&self) -> &LiveCluster {
        &self.live
    }

    /// The result of an apply of the DaemonSet, by a dry run (`dryRun=All`): admission runs,
    /// nothing changes.
    ///
    /// # Errors
    /// As [`Writer::apply`].
    pub async fn try_apply(
        &self,
        key: &DaemonSetKey,
        apply: &Apply<'_>,
    ) -> Result<DaemonSet, WriteError> {
        self.requests().apply(None, key, apply).await
    }

    /// The result of replacing the spec, labels and annotations of the live DaemonSet by those of
    /// `object`, regardless of field owners, by a dry run (`dryRun=All`): admission runs, nothing
    /// changes.
    ///
    /// # Errors
    /// The server rejects it; [`WriteError::Stale`] when the object was replaced by another one.
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
        let attempted = Attempted::by(&call, Some(namespace), name.as_str(), true);
        let answer = self.requests().write_text(None, &call, attempted).await;
        let answer = answer.map_err(body::failed_test_is_stale)?;
        Ok(self.requests().daemon_set_of(&answer)?)
    }

    /// The result of creating a pod, by a dry run (`dryRun=All`): admission runs, nothing is
    /// created. `pod` is raw JSON of the API, with `generateName` or `name`.
    ///
    /// # Errors
    /// The error of creating the pod, such as [`WriteError::Denied`] by `PodSecurity` or a missing
    /// `PriorityClass`.
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
        let attempted = Attempted::by(&call, Some(namespace), name, true);
        self.requests().write(None, &call, attempted).await
    }

    /// Locks a DaemonSet, which need not exist. Waits for another holder as long as the options
    /// say.
    ///
    /// # Errors
    /// Another run holds it beyond the timeout; or the lease cannot be read or written.
    pub async fn lock(
        &self,
        key: &DaemonSetKey,
        holder: &Holder,
        options: &LockOptions,
    ) -> Result<Lock, LockError> {
        self.lock_reports(key, holder, options, &|_| {}).await
    }

    /// As [`lock`](Self::lock); calls `waits` with the holder as soon as it waits for one.
    ///
    /// # Errors
    /// As [`lock`](Self::lock).
    pub async fn lock_reports(
        &self,
        key: &DaemonSetKey,
        holder: &Holder,
        options: &LockOptions,
        waits: &(dyn Fn(&LockWait) + Sync),
    ) -> Result<Lock, LockError> {
        Lock::take(Arc::clone(&self.live.requests), key, holder, options, waits).await
    }

    /// Releases the lock by force, and returns its state before. The former holder notices it
    /// within five seconds, and sends at most one more write.
    ///
    /// # Errors
    /// The lease cannot be read or written.
    pub async fn unlock(&self, key: &DaemonSetKey) -> Result<Option<LiveLease>, LockError> {
        Lock::force_unlock(&self.live.requests, key).await
    }

    /// As [`unlock`](Self::unlock), if the lease has not changed since it was read: a live holder
    /// would have renewed it.
    ///
    /// # Errors
    /// As [`unlock`](Self::unlock).
    pub async fn unlock_as(&self, key: &DaemonSetKey, seen: &LiveLease) -> Result<(), LockError> {
        Lock::break_open_as(&self.live.requests, key, seen).await
    }

    fn requests(&self) -> &Requests {
        &self.live.requests
    }
}

impl LiveCluster {
    /// Allows writes to the cluster. Only `ds-apply` calls this.
    pub fn writable(self) -> WritableCluster {
        WritableCluster { live: self }
    }
}

impl Lock {
    /// A writer whose requests are sent only while the lock is fresh.
    pub fn writer(&self) -> Writer {
        Writer { requests: self.requests(), fence: self.fence() }
    }
}

/// Sends writes as long as the lock is fresh; otherwise nothing is sent. Clones share the lock and
/// the limit of requests in flight.
#[derive(Clone)]
pub struct Writer {
    requests: Arc<Requests>,
    fence: Arc<Fence>,
}

impl Writer {
    /// The result of an apply of the DaemonSet, by a dry run (`dryRun=All`). Nothing changes, so it
    /// needs no lock.
    ///
    /// # Errors
    /// As [`Writer::apply`].
    pub async fn try_apply(
        &self,
        key: &DaemonSetKey,
        apply: &Apply<'_>,
    ) -> Result<DaemonSet, WriteError> {
        self.requests.apply(None, key, apply).await
    }

    /// Applies a DaemonSet (server-side apply), and returns the result. Retried only when it was
    /// certainly not applied; never after a conflict or a 500.
    ///
    /// # Errors
    /// [`WriteError::Conflict`] without force; [`WriteError::Stale`] when `uid` or
    /// `resource_version` do not match the object, or it was deleted.
    pub async fn apply(
        &self,
        key: &DaemonSetKey,
        apply: &Apply<'_>,
    ) -> Result<DaemonSet, WriteError> {
        self.requests.apply(Some(&self.fence), key, apply).await
    }

    /// Replaces only `metadata.managedFields` of exactly this version of the DaemonSet
    /// (compare-and-swap).
    ///
    /// # Errors
    /// [`WriteError::Stale`] when the object has changed: then nothing is written.
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
        let attempted =
            Attempted::by(&call, Some(&live.key.namespace), live.key.name.as_str(), false);
        let answer = self.requests.write_text(Some(&self.fence), &call, attempted).await;
        let answer = answer.map_err(body::failed_test_is_stale)?;
        Ok(self.requests.daemon_set_of(&answer)?)
    }

    /// Sets annotations of a revision; `None` removes one. With `resource_version`, only if the
    /// revision still has this version.
    ///
    /// # Errors
    /// [`WriteError::Stale`] when the revision has changed or was replaced;
    /// [`WriteError::NotFound`].
    pub async fn annotate_revision(
        &self,
        revision: &Revision,
        resource_version: Option<&str>,
        annotations: &BTreeMap<&str, Option<&str>>,
    ) -> Result<Revision, WriteError> {
        let Revision { namespace, name, uid, .. } = revision;
        let patch = body::annotations(uid, resource_version, annotations);
        let call = Call {
            // Setting them twice has the same effect, unless a version is given, which the first
            // write changes.
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
        let attempted = Attempted::by(&call, Some(namespace), name.as_str(), false);
        let answer = self.requests.write_text(Some(&self.fence), &call, attempted).await?;
        Ok(self.requests.revision_of(&answer)?)
    }

    /// Deletes one pod, with its own grace period. Returns when the server has accepted the delete;
    /// the pod terminates later. Not retried: the caller decides again whether to delete it.
    ///
    /// # Errors
    /// [`WriteError::NotFound`] or [`WriteError::Stale`] when a pod with that name and uid does not
    /// exist ([`WriteError::is_gone`]).
    pub async fn delete_pod(
        &self,
        namespace: &NamespaceName,
        name: &PodName,
        uid: &Uid,
    ) -> Result<(), WriteError> {
        let body = body::delete(uid, None, None);
        self.delete(Kind::Pod, namespace, name.as_str(), body, Repeat::Undecided).await
    }

    /// Deletes exactly this version of a DaemonSet, or of its record if `ds-apply` manages it.
    ///
    /// # Errors
    /// As [`delete_pod`](Self::delete_pod); [`WriteError::Stale`] also when the object has
    /// changed.
    pub async fn delete_daemon_set(
        &self,
        live: &DaemonSet,
        cascade: Cascade,
    ) -> Result<(), WriteError> {
        let DaemonSetKey { namespace, name } = &live.key;
        let body = body::delete(&live.uid, live.resource_version(), Some(cascade));
        let kind = match live.managed_by {
            ManagedBy::DaemonSetController => Kind::DaemonSet,
            ManagedBy::DsApply => Kind::DaemonSetRecord,
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
        let attempted = Attempted::by(&call, Some(namespace), name, false);
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
        let attempted = Attempted::by(&call, Some(&key.namespace), key.name.as_str(), dry_run);
        let answer = self.write_text(fence, &call, attempted).await?;
        Ok(self.daemon_set_of(&answer)?)
    }

    /// Sends a write, and returns the answer as JSON.
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

    /// Sends a write, and returns the body of the answer.
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

/// A patch of one object, retried only when it was certainly not applied.
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
