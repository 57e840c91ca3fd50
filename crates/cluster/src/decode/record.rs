//! `v1` ConfigMap: only records, each of which contains a DaemonSet managed by `ds-apply`.
//!
//! Uid and resource version are those of the ConfigMap. Its data has the rest of the object, and
//! its status under a separate key, as JSON. Other ConfigMaps are ignored.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::metadata::{Annotated, Pairs};
use super::{Cause, Context};
use crate::Kind;
use daemonset::model::{
    ControllerRef, DaemonSet, DaemonSetKey, DaemonSetSpec, DaemonSetStatus, Labels, ManagedBy,
    RECORD_LABEL, null_as_default, record_name,
};

/// Key of the object in the ConfigMap's data: a DaemonSet without its status and uid.
pub(crate) const OBJECT_KEY: &str = "daemonSet";

/// Key of the DaemonSet's status: the seven counters and the observed generation.
pub(crate) const STATUS_KEY: &str = "status";

/// Whether an owner reference may refer to a record.
pub(super) fn is_named_by(reference: &ControllerRef) -> bool {
    *reference.kind == *Kind::DaemonSetRecord.as_str()
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct Wire<'a> {
    #[serde(borrow, default)]
    metadata: Annotated<'a>,
    #[serde(borrow, default, deserialize_with = "null_as_default")]
    data: Data<'a>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Data<'a> {
    #[serde(borrow)]
    daemon_set: Option<Cow<'a, str>>,
    #[serde(borrow)]
    status: Option<Cow<'a, str>>,
}

/// The typed part of the embedded object.
#[derive(Deserialize)]
struct Embedded {
    metadata: EmbeddedMetadata,
    spec: DaemonSetSpec,
}

#[derive(Deserialize)]
struct EmbeddedMetadata {
    name: String,
    #[serde(default)]
    generation: i64,
    #[serde(default, deserialize_with = "null_as_default")]
    labels: Labels,
    #[serde(default, deserialize_with = "null_as_default")]
    annotations: Labels,
}

impl<'a> super::Wire<'a> for Wire<'a> {
    /// `None` for a ConfigMap that is not a record.
    type Slim = Option<DaemonSet>;
    type Annotations = Pairs<'a>;
    const KIND: Kind = Kind::DaemonSetRecord;

    fn metadata(&self) -> &Annotated<'a> {
        &self.metadata
    }

    fn slim(self, json: &str, context: &mut Context<'_>) -> Result<Option<DaemonSet>, Cause> {
        let metadata = &self.metadata;
        if metadata.labels(context.interner).get(RECORD_LABEL) != Some("true") {
            return Ok(None);
        }
        let text = self.data.daemon_set.ok_or(Cause::Missing("data.daemonSet"))?;
        let mut raw: Value = inside("data.daemonSet", &text)?;
        let Embedded { metadata: embedded, spec } = read("data.daemonSet", &raw)?;
        let key = DaemonSetKey::new(metadata.namespace(context.interner)?, &*embedded.name);
        if record_name(&key.name) != metadata.name()? {
            let reason = format!(
                "belongs to the DaemonSet {}, whose record ConfigMap has a different name",
                key.name
            );
            return Err(Cause::Inside("data.daemonSet.metadata.name", reason));
        }
        let status: DaemonSetStatus = match &self.data.status {
            Some(text) => inside("data.status", text)?,
            None => DaemonSetStatus::default(),
        };
        let uid = metadata.uid()?;
        raw["metadata"]["namespace"] = key.namespace.as_str().into();
        raw["metadata"]["uid"] = uid.to_string().into();
        raw["metadata"]["resourceVersion"] = version(json)?.into();
        raw["metadata"]["creationTimestamp"] =
            metadata.creation_timestamp.map(|at| at.to_string()).into();
        Ok(Some(DaemonSet {
            key,
            managed_by: ManagedBy::DsApply,
            uid,
            generation: embedded.generation,
            labels: embedded.labels,
            annotations: embedded.annotations,
            created: metadata.creation_timestamp,
            terminating: metadata.is_terminating(),
            spec,
            status,
            raw: Arc::new(raw),
        }))
    }
}

/// The ConfigMap's resource version. Other kinds do not need theirs while decoding.
fn version(json: &str) -> Result<Option<String>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Whole {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        resource_version: Option<String>,
    }
    Ok(serde_json::from_str::<Whole>(json)?.metadata.resource_version)
}

fn inside<T: DeserializeOwned>(path: &'static str, text: &str) -> Result<T, Cause> {
    serde_json::from_str(text).map_err(|error| Cause::Inside(path, error.to_string()))
}

fn read<T: DeserializeOwned>(path: &'static str, value: &Value) -> Result<T, Cause> {
    T::deserialize(value).map_err(|error| Cause::Inside(path, error.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::decoded;
    use super::*;
    use crate::decode::SnapshotBuilder;

    fn config_map(name: &str, labels: &Value, data: &Value) -> String {
        json!({
            "metadata": {
                "name": name, "namespace": "ns", "uid": "u", "resourceVersion": "7",
                "labels": labels, "creationTimestamp": "2026-03-04T05:06:07Z",
            },
            "data": data,
        })
        .to_string()
    }

    fn object() -> Value {
        json!({
            "metadata": {"name": "agent", "generation": 3, "annotations": {"a": "b"}},
            "spec": {
                "selector": {"matchLabels": {"app": "agent"}},
                "template": {"metadata": {"labels": {"app": "agent"}}, "spec": {}},
            },
        })
    }

    #[test]
    fn a_record_is_decoded_to_its_daemon_set() {
        let record = json!({RECORD_LABEL: "true"});
        let status = r#"{"desiredNumberScheduled":3,"numberReady":2}"#;
        let data = json!({"daemonSet": object().to_string(), "status": status});
        let json = config_map("ds-plan-agent", &record, &data);
        let found = decoded(&[(Kind::DaemonSetRecord, &json)]).daemon_sets.remove(0);
        assert_eq!(found.key, DaemonSetKey::new("ns", "agent"));
        assert_eq!((found.managed_by, &found.uid), (ManagedBy::DsApply, &"u".into()));
        assert_eq!((found.generation, found.resource_version()), (3, Some("7")));
        assert_eq!((found.status.desired_number_scheduled, found.status.number_ready), (3, 2));
        assert_eq!(found.annotations.get("a"), Some("b"));
    }

    #[test]
    fn other_config_maps_are_ignored_and_invalid_records_reported() {
        let plain = config_map("other", &json!({}), &json!({"daemonSet": "{"}));
        assert_eq!(decoded(&[(Kind::DaemonSetRecord, &plain)]).daemon_sets, []);
        let record = json!({RECORD_LABEL: "true"});
        let mut no_selector = object();
        no_selector["spec"]["selector"] = Value::Null;
        for (name, data, want) in [
            ("ds-plan-agent", json!({}), "data.daemonSet: is missing"),
            ("ds-plan-agent", json!({"daemonSet": "{"}), "data.daemonSet: EOF"),
            ("ds-plan-agent", json!({"daemonSet": no_selector.to_string()}), "data.daemonSet: "),
            (
                "ds-plan-agent",
                json!({"daemonSet": object().to_string(), "status": "7"}),
                "data.status: ",
            ),
            ("a-copy", json!({"daemonSet": object().to_string()}), "has a different name"),
        ] {
            let json = config_map(name, &record, &data);
            // Only this record fails.
            let mut snapshot_builder = SnapshotBuilder::default();
            snapshot_builder.add(Kind::DaemonSetRecord, 0, &json).unwrap();
            let error = snapshot_builder.unreadable_record().unwrap().to_string();
            assert!(error.contains(want), "{error}");
            assert!(error.starts_with("ConfigMap `ns/"), "{error}");
        }
    }
}
