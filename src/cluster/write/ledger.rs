//! Writing ledgers: ConfigMaps that stand for a DaemonSet (`decode::ledger` reads them).
//!
//! What server-side apply would be of a DaemonSet has been worked out before; here it is one
//! compare-and-swap write of the result. Not here: that result, and when the status changes.

use std::fmt::Display;

use serde_json::{Value, json};

use super::{WritableCluster, Writer, attempted, patch_call};
use crate::cluster::decode::ledger::{OBJECT_KEY, STATUS_KEY};
use crate::cluster::lock::Fence;
use crate::cluster::request::{Call, Requests};
use crate::cluster::retry::Repeat;
use crate::cluster::{Error, Kind, Resource, Verb, WriteError, uri};
use crate::model::{
    DaemonSet, DaemonSetKey, DaemonSetStatus, FIELD_MANAGER, LEDGER_LABEL, Uid, ledger_name,
};

/// What the server knows of an object, and the ledger does not keep.
const SERVED: [&str; 4] = ["uid", "resourceVersion", "creationTimestamp", "selfLink"];

/// What is written into a ledger.
#[derive(Clone, Copy, Debug)]
pub struct LedgerWrite<'a> {
    /// The whole DaemonSet as it is to be, but for its status.
    pub object: &'a Value,
    /// The one ledger, in the one version, that may be changed; without it, it is created.
    pub seen: Option<&'a DaemonSet>,
}

/// The ledger of a whole DaemonSet, as it is created.
pub(crate) fn config_map(object: &Value, status: &DaemonSetStatus, key: &DaemonSetKey) -> Value {
    json!({
        "apiVersion": Kind::Ledger.api_version(),
        "kind": Kind::Ledger.as_str(),
        "metadata": {
            "name": ledger_name(&key.name),
            "namespace": key.namespace,
            "labels": {LEDGER_LABEL: "true", "app.kubernetes.io/managed-by": FIELD_MANAGER},
        },
        "data": {OBJECT_KEY: object_text(object), STATUS_KEY: status_text(status)},
    })
}

/// For people, too, who look at it with kubectl.
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
    // Numbers only: it cannot fail.
    serde_json::to_string_pretty(status).unwrap_or_default()
}

impl WritableCluster {
    /// What the server would make of the ledger (`dryRun=All`). Admission is asked, nothing
    /// changes.
    ///
    /// # Errors
    /// What the write itself would answer.
    pub async fn try_ledger(
        &self,
        key: &DaemonSetKey,
        write: &LedgerWrite<'_>,
    ) -> Result<DaemonSet, WriteError> {
        self.requests().write_ledger(None, key, write).await
    }
}

impl Writer {
    /// Writes the object into the ledger, and returns what became of it. The status stays.
    ///
    /// # Errors
    /// [`WriteError::Stale`] when it is no longer what was seen; [`WriteError::AlreadyExists`].
    pub async fn write_ledger(
        &self,
        key: &DaemonSetKey,
        write: &LedgerWrite<'_>,
    ) -> Result<DaemonSet, WriteError> {
        self.requests.write_ledger(Some(&self.fence), key, write).await
    }

    /// Whether the ledger is there, and still this one.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn has_ledger(&self, key: &DaemonSetKey, uid: &Uid) -> Result<bool, Error> {
        let (resource, name) = (Resource::Of(Kind::Ledger), ledger_name(&key.name));
        let found = self.requests.object(resource, &key.namespace, &name).await?;
        let live = found.map(|json| self.requests.ledger_of(&json)).transpose()?;
        Ok(live.is_some_and(|live| live.uid == *uid && !live.terminating))
    }

    /// Writes the status into the ledger. The object stays, whatever its version.
    ///
    /// # Errors
    /// [`WriteError::Stale`] when it is another one by now; [`WriteError::NotFound`].
    pub async fn write_ledger_status(
        &self,
        key: &DaemonSetKey,
        uid: &Uid,
        status: &DaemonSetStatus,
    ) -> Result<(), WriteError> {
        let patch = json!({"metadata": {"uid": uid}, "data": {STATUS_KEY: status_text(status)}});
        let name = ledger_name(&key.name);
        let body = ("application/merge-patch+json", patch.to_string().into());
        let call = patch_call(Kind::Ledger, (&key.namespace, &name), body);
        // Whoever has the lock is the only one who writes it, so twice is as good as once.
        let call = Call { repeat: Repeat::Harmless, ..call };
        let attempted = attempted(&call, Some(&key.namespace), &name, false);
        self.requests.write_text(Some(&self.fence), &call, attempted).await.map(drop)
    }
}

impl Requests {
    async fn write_ledger(
        &self,
        fence: Option<&Fence>,
        key: &DaemonSetKey,
        write: &LedgerWrite<'_>,
    ) -> Result<DaemonSet, WriteError> {
        let dry_run = fence.is_none();
        let (resource, name) = (Resource::Of(Kind::Ledger), ledger_name(&key.name));
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
        let attempted = attempted(&call, Some(&key.namespace), &name, dry_run);
        let answer = self.write_text(fence, &call, attempted).await?;
        Ok(self.ledger_of(&answer)?)
    }
}
