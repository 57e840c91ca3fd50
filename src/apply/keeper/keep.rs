//! The requests of a sync: portion by portion, those of a portion at once (upstream: `syncNodes`,
//! `RealPodControl`).

use futures::future::join_all;
use serde_json::json;
use tokio::sync::mpsc;

use super::unseen::Written;
use crate::apply::perform::with_sources;
use crate::cluster::{Kind, Owned, WriteError, Writer};
use crate::controller::program::{Batch, PodWrite, Program, Request};
use crate::controller::revision_data::canonical_json;
use crate::model::{DaemonSetKey, DaemonSetStatus, NamespaceName, REVISION_HASH_LABEL, Uid};

/// What a request comes to.
type Done = Result<Option<Written>, WriteError>;

/// Sends requests under the lock.
pub(super) struct Hands {
    key: DaemonSetKey,
    writer: Writer,
    complaints: mpsc::UnboundedSender<String>,
}

impl Hands {
    pub(super) fn new(
        key: DaemonSetKey,
        writer: Writer,
        complaints: mpsc::UnboundedSender<String>,
    ) -> Self {
        Self { key, writer, complaints }
    }

    /// Sends all of it, but for what a failure leaves out; what will be seen of it. `status` is the
    /// one that was seen.
    pub(super) async fn send(
        &self,
        program: &mut Program,
        status: &DaemonSetStatus,
    ) -> Vec<Written> {
        let mut written = Vec::new();
        if !self.may_adopt(program).await {
            program.failed = true;
            return written;
        }
        while let Some(Batch { stage, requests }) = program.batches.pop_front() {
            let answers =
                join_all(requests.iter().map(|it| self.perform(program, it, status))).await;
            let mut failed = false;
            for (request, answer) in requests.iter().zip(answers) {
                match answer {
                    Ok(seen) => written.extend(seen),
                    Err(error) => {
                        failed = true;
                        self.complain(request, &error);
                    }
                }
            }
            if failed {
                program.fail(stage);
            }
        }
        written
    }

    /// Before anything is adopted: an owner that is gone would take it along (upstream:
    /// `RecheckDeletionTimestamp`).
    async fn may_adopt(&self, program: &Program) -> bool {
        let mut requests = program.batches.iter().flat_map(|batch| &batch.requests);
        let adopts = requests.any(|request| {
            matches!(request, Request::AdoptPod { .. } | Request::AdoptRevision { .. })
        });
        !adopts || self.writer.has_ledger(&self.key, &program.uid).await.unwrap_or(false)
    }

    async fn perform(
        &self,
        program: &Program,
        request: &Request,
        status: &DaemonSetStatus,
    ) -> Done {
        match request {
            Request::AdoptRevision { name, uid } => {
                let it = self.owned(Kind::ControllerRevision, name.as_str(), uid);
                let adopted = self.writer.adopt(it, &program.reference).await;
                let seen = Written::RevisionOf(uid.clone(), Some(program.uid.clone()));
                unless_gone(adopted, seen)
            }
            Request::AdoptPod { name, uid } => {
                let it = self.owned(Kind::Pod, name.as_str(), uid);
                let adopted = self.writer.adopt(it, &program.reference).await;
                unless_gone(adopted, Written::PodOf(uid.clone(), Some(program.uid.clone())))
            }
            Request::ReleaseRevision { name, uid } => {
                let it = self.owned(Kind::ControllerRevision, name.as_str(), uid);
                let released = self.writer.let_go(it, &program.uid).await;
                unless_gone(released, Written::RevisionOf(uid.clone(), None))
            }
            Request::ReleasePod { name, uid } => {
                let it = self.owned(Kind::Pod, name.as_str(), uid);
                let released = self.writer.let_go(it, &program.uid).await;
                unless_gone(released, Written::PodOf(uid.clone(), None))
            }
            Request::CreatePod(node) => {
                let pod = program.pods.pod_for(node).to_string().into();
                let created = self.writer.create_owned(Kind::Pod, self.namespace(), pod).await;
                match created {
                    Ok(name) => Ok(Some(Written::Pod(name.into()))),
                    // Nothing can be created there any more, and nothing is to be told of it.
                    Err(error) if is_of_ending_namespace(&error) => Ok(None),
                    Err(error) => Err(error),
                }
            }
            Request::DeletePod { name, uid, .. } => {
                let deleted = self.writer.delete_pod(self.namespace(), name, uid).await;
                unless_gone(deleted, Written::PodGoing(uid.clone()))
            }
            Request::WriteStatus(new) => self.write_status(program, *new).await,
            Request::CountCollision(count) => {
                let collision_count = Some(*count);
                self.write_status(program, DaemonSetStatus { collision_count, ..*status }).await
            }
            Request::LabelRevision { .. }
            | Request::RenumberRevision { .. }
            | Request::DeleteRevision { .. }
            | Request::CreateRevision(_)
            | Request::RelabelPod { .. } => self.of_history(program, request).await,
            Request::Expect { .. } => Ok(None),
        }
    }

    /// What becomes of revisions, and of labels because of them.
    async fn of_history(&self, program: &Program, request: &Request) -> Done {
        let revision = |name, uid| self.owned(Kind::ControllerRevision, name, uid);
        match request {
            Request::CreateRevision(new) => {
                // The server keeps these bytes, and whoever reads and writes them sends them back.
                let object = new.object(self.namespace().as_str(), &program.reference);
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

    async fn write_status(&self, program: &Program, status: DaemonSetStatus) -> Done {
        self.writer.write_ledger_status(&self.key, &program.uid, &status).await?;
        Ok(Some(Written::Status(status)))
    }

    fn owned<'a>(&'a self, kind: Kind, name: &'a str, uid: &'a Uid) -> Owned<'a> {
        Owned { kind, namespace: self.namespace(), name, uid }
    }

    fn namespace(&self) -> &NamespaceName {
        &self.key.namespace
    }

    /// Tells the run what stands in the way of pods.
    fn complain(&self, request: &Request, error: &WriteError) {
        tracing::debug!(daemon_set = %self.key, ?request, %error, "a request of the keeper failed");
        if request.pod_write() == Some(PodWrite::Create) {
            // A run that has ended does not listen any more.
            let _ = self.complaints.send(format!("Error creating: {}", with_sources(error)));
        }
    }
}

/// One that is gone, or another one, needs nobody.
fn unless_gone(done: Result<(), WriteError>, seen: Written) -> Done {
    match done {
        Ok(()) => Ok(Some(seen)),
        Err(error) if error.is_gone() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a pod could not be created because its namespace is on its way out.
fn is_of_ending_namespace(error: &WriteError) -> bool {
    error.to_string().contains("because it is being terminated")
}
