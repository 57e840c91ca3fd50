//! Live DaemonSets, for commands that read no source.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::error::{Error, Place};
use daemonset::model::{
    DaemonSet, DaemonSetKey, DesiredDaemonSet, FIELD_MANAGER, IntOrPercent, Place as Document,
    PodTemplate, Snapshot, UpdateStrategy,
};
use planner::plan::{COMMIT_ANNOTATION, PausedRollout, PausedRolloutError, ROLLOUT_ANNOTATION};
use planner::rollout::PLAN_DIGEST_ANNOTATION;

/// Annotations that each rollout writes itself.
const OF_A_ROLLOUT: [&str; 3] = [ROLLOUT_ANNOTATION, COMMIT_ANNOTATION, PLAN_DIGEST_ANNOTATION];

/// The live DaemonSet; an error if it does not exist.
pub(super) fn find<'s>(snapshot: &'s Snapshot, key: &DaemonSetKey) -> Result<&'s DaemonSet, Error> {
    snapshot.daemon_set(key).ok_or_else(|| Error::NotFound {
        missing: vec![key.clone()],
        place: Place::Cluster,
        known: snapshot.daemon_sets.iter().map(|one| one.key.clone()).collect(),
    })
}

/// The fields that `ds-apply` applies again: those that it owns, or the whole spec of an object
/// that it never applied.
pub(super) fn written(live: &DaemonSet) -> Result<Value, Error> {
    let owned = ssa::owned_by(&live.raw, FIELD_MANAGER).map_err(Error::Ownership)?;
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
pub(super) fn with_template(
    live: &DaemonSet,
    pause: Option<&PausedRollout>,
    template: &PodTemplate,
) -> Result<DesiredDaemonSet, Error> {
    let mut written = written(live)?;
    written["spec"]["template"] = template.raw().clone();
    let mut raw = live.raw.as_ref().clone();
    raw["spec"]["template"] = template.raw().clone();
    let mut spec = live.spec.clone();
    spec.template = template.clone();
    if let Some(pause) = pause {
        raw["spec"]["updateStrategy"] = pause.declared.clone();
        spec.update_strategy =
            serde::Deserialize::deserialize(&pause.declared).map_err(Error::Declared)?;
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
        place: Document { path: "cluster".into(), line: 1, column: 1 },
        managed_by: live.managed_by,
        policy: None,
        loosened: None,
    })
}

/// The paused rollout of the DaemonSet, if any.
pub(super) fn pause(live: &DaemonSet) -> Result<Option<PausedRollout>, Error> {
    PausedRollout::of(live).map_err(|source: PausedRolloutError| Error::PausedRollout {
        daemon_set: live.key.clone(),
        source,
    })
}

/// The snapshot with strategy `RollingUpdate` for the DaemonSet, so that its plan has waves.
pub(super) fn as_if_rolling(
    snapshot: &Snapshot,
    key: &DaemonSetKey,
    max_unavailable: IntOrPercent,
) -> Snapshot {
    let mut snapshot = snapshot.clone();
    if let Some(live) = snapshot.daemon_sets.iter_mut().find(|one| one.key == *key) {
        let max_surge = IntOrPercent::Int(0);
        live.spec.update_strategy = UpdateStrategy::RollingUpdate { max_unavailable, max_surge };
        Arc::make_mut(&mut live.raw)["spec"]["updateStrategy"] = json!({
            "type": "RollingUpdate",
            "rollingUpdate": { "maxUnavailable": max_unavailable, "maxSurge": max_surge },
        });
    }
    snapshot
}
