//! The effects that are requests: each is sent concurrently, and has one answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::ask::{Ask, answer};
use cluster::{Apply, Error, LiveCluster, Lock, RecordWrite, View, WriteError, Writer};
use daemonset::model::{
    CheckQuestion, DaemonSet, DaemonSetKey, FAILED_TEMPLATES_ANNOTATION, PodName, Revision,
    RevisionName, STEPS_ANNOTATION, StepsNote, Uid, failed_templates,
};
use planner::plan::record_after;
use planner::rollout::{
    Answer, Delete, Failure, NewPuller, Precondition, Provenance, Write, Written, write,
};

/// Maximum number of recorded failed templates; the oldest are removed first.
const REMEMBERED: usize = 16;

/// Sends requests without waiting for their answers.
pub(super) struct RequestSender {
    key: DaemonSetKey,
    writer: Writer,
    lock: Arc<Lock>,
    /// The pending answers.
    pub(super) answers: JoinSet<Answer>,
}

impl RequestSender {
    pub(super) fn new(key: DaemonSetKey, lock: Arc<Lock>) -> Self {
        Self { key, writer: lock.writer(), lock, answers: JoinSet::new() }
    }

    pub(super) fn write(&mut self, write: Write) {
        let (writer, key) = (self.writer.clone(), self.key.clone());
        self.answers.spawn(async move {
            let object = write.object();
            let apply = against(&write.precondition, &object);
            if let Some(template) = template_to_keep(&write) {
                // The precondition is the same, so the write has the same result.
                match writer.try_apply(&key, &apply).await {
                    Ok(it) if it.spec.template.raw() == template => {}
                    Ok(_) => return Answer::Written(Err(Failure::ChangesTemplate)),
                    Err(error) => return Answer::Written(Err(failure(&error))),
                }
            }
            let written = writer.apply(&key, &apply).await;
            Answer::Written(written.map(|it| as_written(&it)).map_err(|error| failure(&error)))
        });
    }

    /// Like [`write`](Self::write), but writes the record, if the live object still meets the
    /// precondition.
    pub(super) fn write_record(&mut self, write: Write, live: Option<DaemonSet>, now: Timestamp) {
        let (writer, key) = (self.writer.clone(), self.key.clone());
        self.answers.spawn(async move {
            if !is_unchanged(&write.precondition, live.as_ref()) {
                return Answer::Written(Err(Failure::Conflict));
            }
            let object = match record_after(live.as_ref(), &write.object(), now) {
                Ok(object) => object,
                Err(error) => {
                    let message = error.to_string();
                    return Answer::Written(Err(Failure::Refused { message }));
                }
            };
            let kept = object.pointer("/spec/template");
            if template_to_keep(&write).is_some_and(|template| kept != Some(template)) {
                return Answer::Written(Err(Failure::ChangesTemplate));
            }
            let seen = live.as_ref();
            let written = writer.write_record(&key, &RecordWrite { object: &object, seen }).await;
            Answer::Written(written.map(|it| as_written(&it)).map_err(|error| failure(&error)))
        });
    }

    pub(super) fn delete(&mut self, delete: Delete) {
        let (writer, namespace) = (self.writer.clone(), self.key.namespace.clone());
        let Delete { pod, uid, node: _, reason: _, cost: _ } = delete;
        self.answers.spawn(async move {
            let result =
                writer.delete_pod(&namespace, &pod, &uid).await.map_err(|error| failure(&error));
            Answer::Deleted { uid, result }
        });
    }

    /// Annotates the revision, as it was last observed, with the change.
    pub(super) fn annotate(
        &mut self,
        name: RevisionName,
        seen: Option<Revision>,
        change: Provenance,
    ) {
        let writer = self.writer.clone();
        self.answers.spawn(async move {
            let Some(revision) = seen else {
                return Answer::Annotated { revision: name, result: Err(Failure::Gone) };
            };
            let added = write::provenance(&revision.annotations, &change);
            let added: BTreeMap<&str, Option<&str>> =
                added.iter().map(|(key, value)| (*key, Some(value.as_str()))).collect();
            // Only the holder of the lock annotates revisions, so no version is needed.
            let written = writer.annotate_revision(&revision, None, &added).await;
            Answer::Annotated {
                revision: name,
                result: written.map(drop).map_err(|error| failure(&error)),
            }
        });
    }

    /// Creates a puller, owned by the lock.
    pub(super) fn create_puller(&mut self, new: NewPuller) {
        let (writer, lock, key) = (self.writer.clone(), Arc::clone(&self.lock), self.key.clone());
        self.answers.spawn(async move {
            let NewPuller { node, mut pod } = new;
            let Some(owner) = lock.owner_reference(&key).await else {
                let message = "the uid of the lock is not known".to_owned();
                return Answer::PullerCreated { node, result: Err(Failure::Unknown { message }) };
            };
            pod["metadata"]["ownerReferences"] = json!([owner]);
            let created = writer.create_puller(&key.namespace, &pod).await;
            Answer::PullerCreated { node, result: created.map_err(|error| failure(&error)) }
        });
    }

    /// Deletes a puller.
    pub(super) fn remove_puller(&mut self, pod: PodName, uid: Uid) {
        let (writer, namespace) = (self.writer.clone(), self.key.namespace.clone());
        self.answers.spawn(async move {
            let deleted = writer.delete_pod(&namespace, &pod, &uid).await;
            Answer::PullerRemoved { uid, result: deleted.map_err(|error| failure(&error)) }
        });
    }

    /// Reads the approvals of the steps.
    pub(super) fn read_approvals(&mut self, cluster: LiveCluster) {
        let key = self.key.clone();
        self.answers.spawn(async move {
            let read = cluster.approvals_of(&key).await;
            // A run that waits reads them again.
            Answer::Approvals(read.ok().map(|approvals| approvals.by_step))
        });
    }

    /// Asks checks of the policy.
    pub(super) fn ask(&mut self, ask: &Arc<dyn Ask>, questions: Vec<CheckQuestion>) {
        for question in questions {
            let ask = Arc::clone(ask);
            self.answers.spawn(async move {
                let response = answer(&*ask, &question).await;
                Answer::Checked { question: Box::new(question), response }
            });
        }
    }

    /// Sets the note about steps on the lock.
    pub(super) fn note_steps(&mut self, note: StepsNote) {
        let lock = Arc::clone(&self.lock);
        self.answers.spawn(async move {
            let written = lock.set_note(STEPS_ANNOTATION, Some(&note.text())).await;
            Answer::Noted(written.map_err(|error| failure(&error)))
        });
    }

    /// Adds a template to the failed ones.
    pub(super) fn remember_failed_template(&mut self, digest: String) {
        self.change_failed_templates(move |known| remembered(known, &digest));
    }

    /// Removes a template from the failed ones.
    pub(super) fn forget_failed_template(&mut self, digest: String) {
        self.change_failed_templates(move |known| forgotten(known, &digest));
    }

    /// Changes the list of failed templates on the lock.
    fn change_failed_templates(&mut self, change: impl FnOnce(&str) -> String + Send + 'static) {
        let lock = Arc::clone(&self.lock);
        self.answers.spawn(async move {
            let known = lock.note(FAILED_TEMPLATES_ANNOTATION).await.unwrap_or_default();
            let digests = change(&known);
            let digests = (!digests.is_empty()).then_some(digests.as_str());
            let written = lock.set_note(FAILED_TEMPLATES_ANNOTATION, digests).await;
            Answer::Remembered(written.map_err(|error| failure(&error)))
        });
    }
}

fn as_written(daemon_set: &DaemonSet) -> Written {
    Written {
        resource_version: daemon_set.resource_version().unwrap_or_default().to_owned(),
        uid: daemon_set.uid.clone(),
    }
}

/// Whether the live object meets the precondition.
fn is_unchanged(precondition: &Precondition, live: Option<&DaemonSet>) -> bool {
    match (precondition, live) {
        (Precondition::Absent, live) => live.is_none(),
        (Precondition::Unchanged { uid, resource_version }, Some(live)) => {
            live.uid == *uid && live.resource_version() == Some(resource_version)
        }
        (Precondition::Unchanged { .. }, None) => false,
    }
}

/// The live pod template, if the write must not change it.
fn template_to_keep(write: &Write) -> Option<&Value> {
    let live = write.live.as_deref().filter(|_| write.keeps_template)?;
    live.pointer("/spec/template")
}

/// The apply of an object, with its preconditions.
fn against<'a>(precondition: &'a Precondition, object: &'a Value) -> Apply<'a> {
    let (uid, resource_version) = match precondition {
        Precondition::Absent => (None, None),
        Precondition::Unchanged { uid, resource_version } => {
            (Some(uid), Some(resource_version.as_str()))
        }
    };
    Apply { object, force: false, uid, resource_version }
}

/// The digests with this one added, each once, the latest last.
fn remembered(known: &str, digest: &str) -> String {
    let mut all = but_for(known, digest);
    all.push(digest);
    all.split_off(all.len().saturating_sub(REMEMBERED)).join(",")
}

/// The digests without this one.
fn forgotten(known: &str, digest: &str) -> String {
    but_for(known, digest).join(",")
}

fn but_for<'a>(known: &'a str, digest: &str) -> Vec<&'a str> {
    failed_templates(known).filter(|one| *one != digest).collect()
}

/// The revision in this view.
pub(super) fn revision(view: &View, uid: &Uid) -> Option<Revision> {
    view.snapshot.revisions.iter().find(|revision| revision.uid == *uid).cloned()
}

/// The failure of a request as the rollout distinguishes it.
fn failure(error: &WriteError) -> Failure {
    let message = with_sources(error);
    match error {
        WriteError::Stale { .. } | WriteError::AlreadyExists { .. } => Failure::Conflict,
        WriteError::NotFound { .. } => Failure::Gone,
        WriteError::Forbidden { .. } | WriteError::Cluster(Error::Forbidden { .. }) => {
            Failure::Forbidden { message }
        }
        // Another client took fields that `ds-apply` owned: the approved plan is stale.
        WriteError::Conflict { .. }
        | WriteError::Invalid { .. }
        | WriteError::Denied { .. }
        | WriteError::Refused { status: ..500, .. } => Failure::Refused { message },
        WriteError::Unlocked { .. }
        | WriteError::TooManyRequests { .. }
        | WriteError::OutcomeUnknown { .. }
        // The preflight succeeded, so this is a fault of the server.
        | WriteError::Refused { .. }
        | WriteError::Cluster(_) => Failure::Unknown { message },
    }
}

/// The message of an error and of its causes.
pub(super) fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use cluster::{Attempted, Kind, Resource, Verb};

    #[test]
    fn server_faults_are_retried_and_rejections_are_not() {
        let attempted = || Attempted {
            verb: Verb::Delete,
            resource: Resource::Of(Kind::Pod),
            namespace: None,
            name: "agent-x".to_owned(),
            dry_run: false,
        };
        for (status, again) in [(500, true), (507, true), (400, false), (413, false)] {
            let message = String::new();
            let error = WriteError::Refused { attempted: attempted(), status, message };
            assert_eq!(matches!(failure(&error), Failure::Unknown { .. }), again, "{status}");
        }
    }

    #[test]
    fn the_evaluated_version_is_a_precondition() {
        let object = json!({"kind": "DaemonSet"});
        let unchanged =
            Precondition::Unchanged { uid: "u".into(), resource_version: "41".to_owned() };
        for (precondition, uid, version) in
            [(Precondition::Absent, None, None), (unchanged, Some("u"), Some("41"))]
        {
            let Apply { object: sent, force, uid: of, resource_version } =
                against(&precondition, &object);
            assert_eq!((sent, force), (&object, false));
            assert_eq!((of.map(Uid::to_string).as_deref(), resource_version), (uid, version));
        }
    }

    #[test]
    fn failed_templates_are_remembered_once_and_not_without_end() {
        assert_eq!(remembered("", "a"), "a");
        assert_eq!(remembered("a,b", "a"), "b,a");
        assert_eq!((forgotten("a,b", "a").as_str(), forgotten("a", "a").as_str()), ("b", ""));
        let many: Vec<String> = (0..40).map(|n| n.to_string()).collect();
        let kept = remembered(&many.join(","), "new");
        assert_eq!(kept.split(',').count(), REMEMBERED);
        assert!(kept.starts_with("25,") && kept.ends_with(",39,new"), "{kept}");
    }
}
