//! Writes records: the ConfigMaps of DaemonSets managed by `ds-apply` (`decode::record` reads
//! them).
//!
//! The caller computes the result of a server-side apply; here it is one compare-and-swap write of
//! that result. Not here: the result, and when the status changes.

use std::fmt::Display;

use serde_json::{Value, json};

use super::{WritableCluster, Writer, patch_call};
use crate::decode::record::{OBJECT_KEY, STATUS_KEY};
use crate::lock::Fence;
use crate::request::{Call, Requests};
use crate::retry::Repeat;
use crate::write_error::Attempted;
use crate::{Error, Kind, Resource, Verb, WriteError, uri};
use daemonset::model::{
    DaemonSet, DaemonSetKey, DaemonSetStatus, FIELD_MANAGER, RECORD_LABEL, Uid, record_name,
};

/// The metadata that the server sets on the ConfigMap, and which the record does not store.
const SERVED: [&str; 4] = ["uid", "resourceVersion", "creationTimestamp", "selfLink"];

/// A write of a record.
#[derive(Clone, Copy, Debug)]
pub struct RecordWrite<'a> {
    /// The desired DaemonSet, without its status.
    pub object: &'a Value,
    /// The current record, whose uid and version are preconditions; without it, the record is
    /// created.
    pub seen: Option<&'a DaemonSet>,
}

/// The ConfigMap of a new record.
pub fn config_map(object: &Value, status: &DaemonSetStatus, key: &DaemonSetKey) -> Value {
    json!({
        "apiVersion": Kind::DaemonSetRecord.api_version(),
        "kind": Kind::DaemonSetRecord.as_str(),
        "metadata": {
            "name": record_name(&key.name),
            "namespace": key.namespace,
            "labels": {RECORD_LABEL: "true", "app.kubernetes.io/managed-by": FIELD_MANAGER},
        },
        "data": {OBJECT_KEY: object_text(object), STATUS_KEY: status_text(status)},
    })
}

/// The object as indented JSON, readable with kubectl.
fn object_text(object: &Value) -> String {
    let mut object = object.clone();
    if let Value::Object(fields) = &mut object {
        fields.remove("status");
        if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
            metadata.retain(|name, _| !SERVED.contains(&name.as_str()));
        }
    }
    format!("{object:#}")
}

fn status_text(status: &DaemonSetStatus) -> String {
    // Numbers only, so this cannot fail.
    serde_json::to_string_pretty(status).unwrap_or_default()
}

impl WritableCluster {
    /// The result of writing the record, by a dry run (`dryRun=All`): admission runs, nothing
    /// changes.
    ///
    /// # Errors
    /// As [`Writer::write_record`].
    pub async fn try_record(
        &self,
        key: &DaemonSetKey,
        write: &RecordWrite<'_>,
    ) -> Result<DaemonSet, WriteError> {
        self.requests().write_record(None, key, write).await
    }
}

impl Writer {
    /// Writes the object into the record, and returns the result. The status stays.
    ///
    /// # Errors
    /// [`WriteError::Stale`] when the record has changed; [`WriteError::AlreadyExists`].
    pub async fn write_record(
        &self,
        key: &DaemonSetKey,
        write: &RecordWrite<'_>,
    ) -> Result<DaemonSet, WriteError> {
        self.requests.write_record(Some(&self.fence), key, write).await
    }

    /// Whether the record with this uid still exists and is not terminating.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn has_record(&self, key: &DaemonSetKey, uid: &Uid) -> Result<bool, Error> {
        let (resource, name) = (Resource::Of(Kind::DaemonSetRecord), record_name(&key.name));
        let found = self.requests.object(resource, &key.namespace, &name).await?;
        let live = found.map(|json| self.requests.record_of(&json)).transpose()?;
        Ok(live.is_some_and(|live| live.uid == *uid && !live.terminating))
    }

    /// Writes the status into the record, regardless of its version. The object stays.
    ///
    /// # Errors
    /// [`WriteError::Stale`] when the record was replaced by another one; [`WriteError::NotFound`].
    pub async fn write_record_status(
        &self,
        key: &DaemonSetKey,
        uid: &Uid,
        status: &DaemonSetStatus,
    ) -> Result<(), WriteError> {
        let patch = json!({"metadata": {"uid": uid}, "data": {STATUS_KEY: status_text(status)}});
        let name = record_name(&key.name);
        let body = ("application/merge-patch+json", patch.to_string().into());
        let call = patch_call(Kind::DaemonSetRecord, (&key.namespace, &name), body);
        // Only the holder of the lock writes it, so writing it twice is harmless.
        let call = Call { repeat: Repeat::Harmless, ..call };
        let attempted = Attempted::by(&call, Some(&key.namespace), &name, false);
        self.requests.write_text(Some(&self.fence), &call, attempted).await.map(drop)
    }
}

impl Requests {
    async fn write_record(
        &self,
        fence: Option<&Fence>,
        key: &DaemonSetKey,
        write: &RecordWrite<'_>,
    ) -> Result<DaemonSet, WriteError> {
        let dry_run = fence.is_none();
        let (resource, name) = (Resource::Of(Kind::DaemonSetRecord), record_name(&key.name));
        let pairs: [(&str, Option<&dyn Display>); 2] =
            [("fieldManager", Some(&FIELD_MANAGER)), ("dryRun", dry_run.then_some(&"All"))];
        let repeat = if dry_run { Repeat::Harmless } else { Repeat::Unwanted };
        let call = match write.seen {
            None => {
                let object = config_map(write.object, &DaemonSetStatus::default(), key);
                let path = uri::collection(resource, Some(&key.namespace));
                Call {
                    verb: Verb::Create,
                    body: Some(("application/json", object.to_string().into())),
                    repeat,
                    ..Call::get(resource, uri::with_query(path, pairs))
                }
            }
            Some(DaemonSet { uid, .. }) => {
                let version = write.seen.and_then(DaemonSet::resource_version);
                let change = json!({
                    "metadata": {"uid": uid, "resourceVersion": version},
                    "data": {OBJECT_KEY: object_text(write.object)},
                });
                let path = uri::object(resource, &key.namespace, &name);
                Call {
                    verb: Verb::Patch,
                    body: Some(("application/merge-patch+json", change.to_string().into())),
                    repeat,
                    ..Call::get(resource, uri::with_query(path, pairs))
                }
            }
        };
        let attempted = Attempted::by(&call, Some(&key.namespace), &name, dry_run);
        let answer = self.write_text(fence, &call, attempted).await?;
        Ok(self.record_of(&answer)?)
    }
}
