//! What an apply makes of a DaemonSet for which a ledger stands: what the API server makes of one
//! that is applied (upstream: `PrepareForUpdate`), as no server does it here.
//!
//! `templateGeneration` is not counted: orphans of another owner with the same number would pass
//! for updated. Not here: writing it.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::manifest::default_daemon_set;
use crate::merge::{self, Entry, ManagedFields, Manifest, Operation};
use crate::model::{DaemonSet, FIELD_MANAGER};

/// Why nothing can be applied to a ledger.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The manifest and what is there do not merge.
    #[error(transparent)]
    Merge(#[from] merge::Error),
    /// What is applied is not of a DaemonSet's shape.
    #[error("{}", .0.join("; "))]
    Shape(Vec<String>),
}

/// A record in which nobody but `ds-apply` owns anything: nobody else has any business in it, and
/// whoever may write ConfigMaps writes as many managers into it as he likes.
pub(super) fn owned_alone(live: &DaemonSet) -> DaemonSet {
    let raw = Arc::new(merge::owned_alone(&live.raw, FIELD_MANAGER));
    DaemonSet { raw, ..live.clone() }
}

/// What in a record is not as `ds-apply` has written it, as far as it says so itself; `None` when
/// nothing is.
pub(super) fn written_by_others(live: &DaemonSet) -> Option<String> {
    let managers = match ManagedFields::of(&live.raw) {
        Ok(managers) => managers,
        Err(error) => return Some(error.to_string()),
    };
    let is_ours = |entry: &&Entry| {
        entry.manager.name == FIELD_MANAGER && entry.manager.operation == Operation::Apply
    };
    if let Some(other) = managers.entries().iter().find(|entry| !is_ours(entry)) {
        return Some(format!("{} owns fields in it", other.manager.name));
    }
    let Ok(Some(own)) = merge::owned_by(&live.raw, FIELD_MANAGER) else {
        return Some(format!("{FIELD_MANAGER} owns nothing in it"));
    };
    let (Ok(own), Ok(all)) = (with_defaults(own), with_defaults(live.raw.as_ref().clone())) else {
        return Some("it is no DaemonSet".to_owned());
    };
    let parts = ["/spec", "/metadata/labels", "/metadata/annotations"];
    let part = parts.into_iter().find(|part| own.pointer(part) != all.pointer(part))?;
    Some(format!("{} has fields that nobody owns", part[1..].replace('/', ".")))
}

/// The whole object after `applied` was applied at `now` over what is live.
///
/// # Errors
/// What a server would refuse to merge or to read.
pub fn ledger_after(
    live: Option<&DaemonSet>,
    applied: &Value,
    now: Timestamp,
) -> Result<Value, LedgerError> {
    let defaulted = with_defaults(applied.clone())?;
    let manifest = Manifest { applied, defaulted: &defaulted };
    let before = live.map(|live| merge::owned_alone(&live.raw, FIELD_MANAGER));
    let merged = merge::apply(before.as_ref(), manifest, FIELD_MANAGER, now)?;
    let mut object = with_defaults(merged.object)?;
    object["metadata"]["managedFields"] = merged.managed_fields.to_value();
    object["metadata"]["generation"] = match live {
        None => 1,
        Some(live) => live.generation + i64::from(live.raw["spec"] != object["spec"]),
    }
    .into();
    Ok(object)
}

fn with_defaults(object: Value) -> Result<Value, LedgerError> {
    let in_words = |(path, problem): &(_, _)| format!("{path}: {problem}");
    default_daemon_set(object)
        .map_err(|problems| LedgerError::Shape(problems.iter().map(in_words).collect()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::controller::test_cluster::{Cluster, at};
    use crate::model::ManagedBy;

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
    fn the_generation_grows_with_the_spec_alone_and_what_git_drops_goes() {
        let first = ledger_after(None, &manifest("a:1"), at(0)).unwrap();
        assert_eq!(first["metadata"]["generation"], 1);
        assert_eq!(first["spec"]["updateStrategy"]["type"], "RollingUpdate", "it is defaulted");
        let mut relabelled = manifest("a:1");
        relabelled["metadata"]["labels"] = json!({"other": "b"});
        let same = ledger_after(Some(&live(first)), &relabelled, at(1)).unwrap();
        assert_eq!(same["metadata"]["generation"], 1);
        assert_eq!(same["metadata"]["labels"], json!({"other": "b"}));
        let changed = ledger_after(Some(&live(same)), &manifest("a:2"), at(2)).unwrap();
        assert_eq!(changed["metadata"]["generation"], 2);
        assert_eq!(changed["metadata"]["annotations"], Value::Null, "no template generation");
    }

    #[test]
    fn what_is_no_daemon_set_is_refused() {
        let error = ledger_after(None, &json!({"spec": {"template": []}}), at(0)).unwrap_err();
        assert!(error.to_string().contains("template"), "{error}");
    }
}
