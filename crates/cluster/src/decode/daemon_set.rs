//! `apps/v1` DaemonSet: typed, and raw without its status.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::metadata::{Annotated, Pairs};
use super::{Cause, Context};
use crate::Kind;
use daemonset::model::{
    DaemonSet, DaemonSetKey, DaemonSetName, DaemonSetSpec, DaemonSetStatus, ManagedBy,
    drop_null_timestamps, null_as_default,
};

#[derive(Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct Wire<'a> {
    #[serde(borrow, default)]
    metadata: Annotated<'a>,
    spec: DaemonSetSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: DaemonSetStatus,
}

impl<'a> super::Wire<'a> for Wire<'a> {
    type Slim = DaemonSet;
    type Annotations = Pairs<'a>;
    const KIND: Kind = Kind::DaemonSet;

    fn metadata(&self) -> &Annotated<'a> {
        &self.metadata
    }

    fn slim(self, json: &str, context: &mut Context<'_>) -> Result<DaemonSet, Cause> {
        let metadata = &self.metadata;
        Ok(DaemonSet {
            key: DaemonSetKey {
                namespace: metadata.namespace(context.interner)?,
                name: DaemonSetName::from(metadata.name()?),
            },
            managed_by: ManagedBy::DaemonSetController,
            uid: metadata.uid()?,
            generation: metadata.generation,
            labels: metadata.labels(context.interner),
            annotations: metadata.annotations(context.interner),
            created: metadata.creation_timestamp,
            terminating: metadata.is_terminating(),
            raw: Arc::new(without_status(serde_json::from_str(json)?)),
            spec: self.spec,
            status: self.status,
        })
    }
}

/// The raw object for diffs, without its status and with `managedFields`, which show the owners of
/// fields. Its template has no null timestamps, as the typed one. Adds `apiVersion` and `kind`, which
/// items of a typed list do not have.
fn without_status(mut whole: Value) -> Value {
    if let Value::Object(fields) = &mut whole {
        fields.remove("status");
        if let Some(template) = fields.get_mut("spec").and_then(|spec| spec.get_mut("template")) {
            drop_null_timestamps(template);
        }
        fields.insert("apiVersion".to_owned(), Kind::DaemonSet.api_version().into());
        fields.insert("kind".to_owned(), Kind::DaemonSet.as_str().into());
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_served_object_loses_its_status_and_the_null_timestamps_of_its_template() {
        let metadata = json!({"name": "a", "creationTimestamp": null});
        let served = json!({
            "metadata": metadata, "status": {"numberReady": 1},
            "spec": {"template": {"metadata": {"creationTimestamp": null, "labels": {}}}},
        });
        let expected = json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata,
            "spec": {"template": {"metadata": {"labels": {}}}},
        });
        assert_eq!(without_status(served), expected);
    }
}
