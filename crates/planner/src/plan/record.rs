//! The record of a DaemonSet after an apply. For a DaemonSet managed by `ds-apply` this does the
//! work of the API server (upstream: `PrepareForUpdate`).
//!
//! `templateGeneration` is not maintained: orphans of another owner with the same number would
//! count as updated. Not here: writing the record.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use daemonset::model::{DaemonSet, FIELD_MANAGER};
use manifest::default_daemon_set;
use ssa::{self, DAEMON_SET, Entry, ManagedFields, Manifest, Operation};

/// The apply to a record failed.
#[derive(Debug, thiserror::Error)]
pub enum DaemonSetRecordError {
    /// The manifest and the live record cannot be merged.
    #[error(transparent)]
    Merge(#[from] ssa::Error),
    /// The applied object is not a valid DaemonSet.
    #[error("{}", .0.join("; "))]
    Shape(Vec<String>),
}

/// The record with `ds-apply` as the only field manager. Other managers are ignored: any user who
/// can write ConfigMaps can add entries to it.
pub(super) fn owned_alone(live: &DaemonSet) -> DaemonSet {
    let raw = Arc::new(ssa::owned_alone(&DAEMON_SET, &live.raw, FIELD_MANAGER));
    DaemonSet { raw, ..live.clone() }
}

/// The change that another client made to a record, as far as its managed fields show it; `None`
/// without one.
pub(super) fn written_by_others(live: &DaemonSet) -> Option<String> {
    let managers = match ManagedFields::of(&live.raw) {
        Ok(managers) => managers,
        Err(error) => return Some(error.to_string()),
    };
    let is_ours = |entry: &&Entry| {
        entry.manager.name == FIELD_MANAGER && entry.manager.operation == Operation::Apply
    };
    if let Some(other) = managers.entries().iter().find(|entry| !is_ours(entry)) {
        return Some(format!("field manager {} owns fields in it", other.manager.name));
    }
    let Ok(Some(own)) = ssa::owned_by(&DAEMON_SET, &live.raw, FIELD_MANAGER) else {
        return Some(format!("{FIELD_MANAGER} owns no fields in it"));
    };
    let (Ok(own), Ok(all)) = (with_defaults(own), with_defaults(live.raw.as_ref().clone())) else {
        return Some("it is not a valid DaemonSet".to_owned());
    };
    let parts = ["/spec", "/metadata/labels", "/metadata/annotations"];
    let part = parts.into_iter().find(|part| own.pointer(part) != all.pointer(part))?;
    Some(format!("{} has fields without an owner", part[1..].replace('/', ".")))
}

/// Returns the whole object after `applied` is applied at `now` to the live record.
///
/// # Errors
/// A server would reject the merge or the object.
pub fn record_after(
    live: Option<&DaemonSet>,
    applied: &Value,
    now: Timestamp,
) -> Result<Value, DaemonSetRecordError> {
    let defaulted = with_defaults(applied.clone())?;
    let manifest = Manifest { applied, defaulted: &defaulted };
    let before = live.map(|live| ssa::owned_alone(&DAEMON_SET, &live.raw, FIELD_MANAGER));
    let merged = ssa::apply(&DAEMON_SET, before.as_ref(), manifest, FIELD_MANAGER, now)?;
    let mut object = with_defaults(merged.object)?;
    object["metadata"]["managedFields"] = merged.managed_fields.to_value();
    object["metadata"]["generation"] = match live {
        None => 1,
        Some(live) => live.generation + i64::from(live.raw["spec"] != object["spec"]),
    }
    .into();
    Ok(object)
}

fn with_defaults(object: Value) -> Result<Value, DaemonSetRecordError> {
    let in_words = |(path, problem): &(_, _)| format!("{path}: {problem}");
    default_daemon_set(object)
        .map_err(|problems| DaemonSetRecordError::Shape(problems.iter().map(in_words).collect()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use daemonset::controller::test_cluster::{Cluster, at};
    use daemonset::model::ManagedBy;

    fn manifest(image: &str) -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": "foo", "namespace": "default", "labels": {"team": "a"}},
            "spec": {
                "selector": {"matchLabels": {"app": "foo"}},
                "template": {
                    "metadata": {"labels": {"app": "foo"}},
                    "spec": {"containers": [{"name": "c", "image": image}]},
                },
            },
        })
    }

    fn live(raw: Value) -> DaemonSet {
        let generation = raw["metadata"]["generation"].as_i64().unwrap();
        let cluster = Cluster::of(0);
        DaemonSet {
            managed_by: ManagedBy::DsApply,
            generation,
            raw: Arc::new(raw),
            ..cluster.daemon_set
        }
    }

    #[test]
    fn only_the_spec_raises_the_generation_and_fields_not_in_git_are_removed() {
        let first = record_after(None, &manifest("a:1"), at(0)).unwrap();
        assert_eq!(first["metadata"]["generation"], 1);
        assert_eq!(first["spec"]["updateStrategy"]["type"], "RollingUpdate", "defaulted");
        let mut relabelled = manifest("a:1");
        relabelled["metadata"]["labels"] = json!({"other": "b"});
        let same = record_after(Some(&live(first)), &relabelled, at(1)).unwrap();
        assert_eq!(same["metadata"]["generation"], 1);
        assert_eq!(same["metadata"]["labels"], json!({"other": "b"}));
        let changed = record_after(Some(&live(same)), &manifest("a:2"), at(2)).unwrap();
        assert_eq!(changed["metadata"]["generation"], 2);
        assert_eq!(changed["metadata"]["annotations"], Value::Null, "no template generation");
    }

    #[test]
    fn an_invalid_daemon_set_is_rejected() {
        let error = record_after(None, &json!({"spec": {"template": []}}), at(0)).unwrap_err();
        assert!(error.to_string().contains("template"), "{error}");
    }
}
