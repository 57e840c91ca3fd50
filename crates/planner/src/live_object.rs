//! Manifests made from live DaemonSets, for what reads no source: undo, roll, release.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::annotations::{COMMIT_ANNOTATION, PLAN_DIGEST_ANNOTATION, ROLLOUT_ANNOTATION};
use crate::plan::{PausedRollout, PausedRolloutError};
use daemonset::model::{
    DaemonSet, DaemonSetKey, DesiredDaemonSet, FIELD_MANAGER, Place, PodTemplate,
};
use ssa::ManagedFieldsError;

/// A live DaemonSet cannot be made into a manifest.
#[derive(Debug, thiserror::Error)]
pub enum LiveObjectError {
    /// `metadata.managedFields` of the live object cannot be read.
    #[error(transparent)]
    Ownership(#[from] ManagedFieldsError),
    /// The update strategy that the pause recorded cannot be parsed.
    #[error("spec.updateStrategy cannot be read")]
    Strategy(#[source] serde_json::Error),
    /// The annotation of a paused rollout cannot be read.
    #[error("cannot read why {daemon_set} is paused")]
    Pause {
        /// The DaemonSet.
        daemon_set: DaemonSetKey,
        /// The parse error.
        source: PausedRolloutError,
    },
}

/// Annotations that each rollout writes itself.
const OF_A_ROLLOUT: [&str; 3] = [ROLLOUT_ANNOTATION, COMMIT_ANNOTATION, PLAN_DIGEST_ANNOTATION];

/// The fields that `ds-apply` applies again: those that it owns, or the whole spec of an object
/// that it never applied.
pub fn written(live: &DaemonSet) -> Result<Value, LiveObjectError> {
    let owned = ssa::owned_by(&ssa::DAEMON_SET, &live.raw, FIELD_MANAGER)?;
    Ok(owned.unwrap_or_else(|| {
        json!({
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": { "name": live.key.name, "namespace": live.key.namespace },
            "spec": live.raw["spec"],
        })
    }))
}

/// The desired DaemonSet with another template, and with the declared strategy if it is paused.
pub fn with_template(
    live: &DaemonSet,
    pause: Option<&PausedRollout>,
    template: &PodTemplate,
) -> Result<DesiredDaemonSet, LiveObjectError> {
    let mut written = written(live)?;
    written["spec"]["template"] = template.raw().clone();
    let mut raw = live.raw.as_ref().clone();
    raw["spec"]["template"] = template.raw().clone();
    let mut spec = live.spec.clone();
    spec.template = template.clone();
    if let Some(pause) = pause {
        raw["spec"]["updateStrategy"] = pause.declared.clone();
        spec.update_strategy =
            serde::Deserialize::deserialize(&pause.declared).map_err(LiveObjectError::Strategy)?;
    }
    for object in [&mut written, &mut raw] {
        if let Some(Value::Object(annotations)) = object.pointer_mut("/metadata/annotations") {
            annotations.retain(|key, _| !OF_A_ROLLOUT.contains(&key.as_str()));
        }
    }
    if let Some(Value::Object(metadata)) = raw.get_mut("metadata") {
        metadata.remove("managedFields");
    }
    Ok(DesiredDaemonSet {
        key: live.key.clone(),
        labels: live.labels.clone(),
        annotations: live.annotations.clone(),
        spec,
        raw: Arc::new(raw),
        written: Arc::new(written),
        place: Place { path: "cluster".into(), line: 1, column: 1 },
        managed_by: live.managed_by,
        policy: None,
        loosened: None,
    })
}

/// The paused rollout of the DaemonSet, if any.
pub fn pause(live: &DaemonSet) -> Result<Option<PausedRollout>, LiveObjectError> {
    PausedRollout::of(live)
        .map_err(|source| LiveObjectError::Pause { daemon_set: live.key.clone(), source })
}
