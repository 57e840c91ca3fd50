//! Sends the requests of a sync batch by batch, those of a batch concurrently (upstream:
//! `syncNodes`, `RealPodControl`).

use futures::future::join_all;
use serde_json::json;
use tokio::sync::mpsc;

use super::pending_writes::Written;
use crate::perform::with_sources;
use cluster::{Kind, Owned, WriteError, Writer};
use daemonset::controller::revision_data::canonical_json;
use daemonset::controller::sync_requests::{Batch, PodWrite, Request, SyncRequests};
use daemonset::model::{DaemonSetKey, DaemonSetStatus, NamespaceName, REVISION_HASH_LABEL, Uid};

/// The result of a request: its visible effect, if any.
type Done = Result<Option<Written>, WriteError>;

/// The result of the requests of a sync.
#[derive(Default)]
pub(super) struct Sent {
    /// The visible effects.
    pub written: Vec<Written>,
    /// Why the first request failed that did, if any.
    pub failure: Option<String>,
}

/// Sends requests under the lock.
pub(super) struct SyncSender {
    key: DaemonSetKey,
    writer: Writer,
    create_failures: mpsc::UnboundedSender<String>,
}

impl SyncSender {
    pub(super) fn new(
        key: DaemonSetKey,
        writer: Writer,
        create_failures: mpsc::UnboundedSender<String>,
    ) -> Self {
        Self { key, writer, create_failures }
    }

    /// Sends all requests, except those that a failure skips, and later batches once they are not allowed
    /// any more: the next sync decides again. `status` is the observed one.
    pub(super) async fn send(
        &self,
        sync_requests: &mut SyncRequests,
        status: &DaemonSetStatus,
        is_allowed: impl Fn() -> bool,
    ) -> Sent {
        let mut sent = Sent::default();
        if let Err(why) = self.may_adopt(sync_requests).await {
            sync_requests.failed = true;
            sent.failure = Some(why);
            return sent;
        }
        while let Some(Batch { stage, requests }) = sync_requests.batches.pop_front() {
            let answers =
                join_all(requests.iter().map(|it| self.perform(sync_requests, it, status))).await;
            let mut failed = false;
            for (request, answer) in requests.iter().zip(answers) {
                match answer {
                    Ok(seen) => sent.written.extend(seen),
                    Err(error) => {
                        failed = true;
                        self.report_failed_create(request, &error);
                        sent.failure.get_or_insert_with(|| with_sources(&error));
                    }
                }
            }
            if failed {
                sync_requests.fail(stage);
            }
            if !is_allowed() {
                break;
            }
        }
        sent
    }

    /// Checks before an adoption that the owner still exists: a deleted owner would take the object
    /// with it (upstream: `RecheckDeletionTimestamp`).
    async fn may_adopt(&self, sync_requests: &SyncRequests) -> Result<(), String> {
        let mut requests = sync_requests.batches.iter().flat_map(|batch| &batch.requests);
        let adopts = requests.any(|request| {
            matches!(request, Request::AdoptPod { .. } | Request::AdoptRevision { .. })
        });
        if !adopts {
            return Ok(());
        }
        match self.writer.has_record(&self.key, &sync_requests.uid).await {
            Ok(true) => Ok(()),
            Ok(false) => Err("its record was deleted or replaced".into()),
            Err(error) => Err(with_sources(&error)),
        }
    }

    async fn perform(
        &self,
        sync_requests: &SyncRequests,
        request: &Request,
        status: &DaemonSetStatus,
    ) -> Done {
        match request {
            Request::AdoptRevision { name, uid } => {
                let it = self.owned(Kind::ControllerRevision, name.as_str(), uid);
                let adopted = self.writer.adopt(it, &sync_requests.reference).await;
                let seen = Written::RevisionOf(uid.clone(), Some(sync_requests.uid.clone()));
                unless_gone(adopted, seen)
            }
            Request::AdoptPod { name, uid } => {
                let it = self.owned(Kind::Pod, name.as_str(), uid);
                let adopted = self.writer.adopt(it, &sync_requests.reference).await;
                unless_gone(adopted, Written::PodOf(uid.clone(), Some(sync_requests.uid.clone())))
            }
            Request::ReleaseRevision { name, uid } => {
                let it = self.owned(Kind::ControllerRevision, name.as_str(), uid);
                let released = self.writer.let_go(it, &sync_requests.uid).await;
                unless_gone(released, Written::RevisionOf(uid.clone(), None))
            }
            Request::ReleasePod { name, uid } => {
                let it = self.owned(Kind::Pod, name.as_str(), uid);
                let released = self.writer.let_go(it, &sync_requests.uid).await;
                unless_gone(released, Written::PodOf(uid.clone(), None))
            }
            Request::CreatePod(node) => {
                let pod = sync_requests.pods.pod_for(node).to_string().into();
                let created = self.writer.create_owned(Kind::Pod, self.namespace(), pod).await;
                match created {
                    Ok(name) => Ok(Some(Written::Pod(name.into()))),
                    // Nothing can be created in a terminating namespace, and this is not reported.
                    Err(error) if is_of_ending_namespace(&error) => Ok(None),
                    Err(error) => Err(error),
                }
            }
            Request::DeletePod { name, uid, .. } => {
                let deleted = self.writer.delete_pod(self.namespace(), name, uid).await;
                unless_gone(deleted, Written::PodGoing(uid.clone()))
            }
            Request::WriteStatus(new) => self.write_status(sync_requests, *new).await,
            Request::CountCollision(count) => {
                let collision_count = Some(*count);
                self.write_status(sync_requests, DaemonSetStatus { collision_count, ..*status })
                    .await
            }
            Request::LabelRevision { .. }
            | Request::RenumberRevision { .. }
            | Request::DeleteRevision { .. }
            | Request::CreateRevision(_)
            | Request::RelabelPod { .. } => self.of_history(sync_requests, request).await,
            Request::Expect { .. } => Ok(None),
        }
    }

    /// Performs requests for revisions, and for labels that depend on them.
    async fn of_history(&self, sync_requests: &SyncRequests, request: &Request) -> Done {
        let revision = |name, uid| self.owned(Kind::ControllerRevision, name, uid);
        match request {
            Request::CreateRevision(new) => {
                // The server stores these bytes, and clients that read and write the revision send
                // them back.
                let object = new.object(self.namespace().as_str(), &sync_requests.reference);
                let object = canonical_json(&object);
                let kind = Kind::ControllerRevision;
                self.writer.create_owned(kind, self.namespace(), object).await?;
                Ok(Some(Written::Revision(new.name.clone())))
            }
            Request::RenumberRevision { name, uid, to } => {
                let patch = json!({"revision": to.0});
                self.writer.change_owned(revision(name.as_str(), uid), patch).await?;
                Ok(Some(Written::Number(uid.clone(), *to)))
            }
            Request::LabelRevision { name, uid } => {
                let patch = json!({"metadata": {"labels": {REVISION_HASH_LABEL: name}}});
                self.writer.change_owned(revision(name.as_str(), uid), patch).await?;
                Ok(None)
            }
            Request::RelabelPod { name, uid, hash } => {
                let patch = json!({"metadata": {"labels": {REVISION_HASH_LABEL: hash}}});
                let pod = self.owned(Kind::Pod, name.as_str(), uid);
                self.writer.change_owned(pod, patch).await?;
                Ok(None)
            }
            Request::DeleteRevision { name, uid } => {
                let deleted = self.writer.delete_revision(self.namespace(), name.as_str(), uid);
                unless_gone(deleted.await, Written::RevisionGone(uid.clone()))
            }
            Request::AdoptRevision { .. }
            | Request::ReleaseRevision { .. }
            | Request::AdoptPod { .. }
            | Request::ReleasePod { .. }
            | Request::Expect { .. }
            | Request::CreatePod(_)
            | Request::DeletePod { .. }
            | Request::CountCollision(_)
            | Request::WriteStatus(_) => Ok(None),
        }
    }

    async fn write_status(&self, sync_requests: &SyncRequests, status: DaemonSetStatus) -> Done {
        self.writer.write_record_status(&self.key, &sync_requests.uid, &status).await?;
        Ok(Some(Written::Status(status)))
    }

    fn owned<'a>(&'a self, kind: Kind, name: &'a str, uid: &'a Uid) -> Owned<'a> {
        Owned { kind, namespace: self.namespace(), name, uid }
    }

    fn namespace(&self) -> &NamespaceName {
        &self.key.namespace
    }

    /// Reports failed pod creations to the run.
    fn report_failed_create(&self, request: &Request, error: &WriteError) {
        tracing::debug!(daemon_set = %self.key, ?request, %error, "a request of the controller failed");
        if request.pod_write() == Some(PodWrite::Create) {
            // A run that has ended does not receive any more.
            let _ = self.create_failures.send(format!("Error creating: {}", with_sources(error)));
        }
    }
}

/// Ignores the error if the object is gone or was replaced by another one.
fn unless_gone(done: Result<(), WriteError>, seen: Written) -> Done {
    match done {
        Ok(()) => Ok(Some(seen)),
        Err(error) if error.is_gone() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a pod could not be created because its namespace is terminating.
fn is_of_ending_namespace(error: &WriteError) -> bool {
    error.to_string().contains("because it is being terminated")
}
