//! DaemonSets as they are live, for commands that read no source.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::cli::error::{Error, Place};
use crate::merge;
use crate::model::{
    DaemonSet, DaemonSetKey, DesiredDaemonSet, FIELD_MANAGER, IntOrPercent, Place as Document,
    PodTemplate, Snapshot, UpdateStrategy,
};
use crate::plan::{COMMIT_ANNOTATION, Hold, HoldError, ROLLOUT_ANNOTATION};
use crate::rollout::PLAN_DIGEST_ANNOTATION;

/// Annotations that a rollout writes anew.
const OF_A_ROLLOUT: [&str; 3] = [ROLLOUT_ANNOTATION, COMMIT_ANNOTATION, PLAN_DIGEST_ANNOTATION];

/// The DaemonSet, which must be there.
pub(super) fn find<'s>(snapshot: &'s Snapshot, key: &DaemonSetKey) -> Result<&'s DaemonSet, Error> {
    snapshot.daemon_set(key).ok_or_else(|| Error::NotFound {
        missing: vec![key.clone()],
        place: Place::Cluster,
        known: snapshot.daemon_sets.iter().map(|one| one.key.clone()).collect(),
    })
}

/// What `ds-apply` would apply again: what it owns, or all of an object that it never applied.
pub(super) fn written(live: &DaemonSet) -> Result<Value, Error> {
    let owned = merge::owned_by(&live.raw, FIELD_MANAGER).map_err(Error::Ownership)?;
    Ok(owned.unwrap_or_else(|| {
        json!({
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": { "name": live.key.name, "namespace": live.key.namespace },
            "spec": live.raw["spec"],
        })
    }))
}

/// The DaemonSet as it would be desired with another template, and the strategy that was declared.
pub(super) fn with_template(
    live: &DaemonSet,
    hold: Option<&Hold>,
    template: &PodTemplate,
) -> Result<DesiredDaemonSet, Error> {
    let mut written = written(live)?;
    written["spec"]["template"] = template.raw().clone();
    let mut raw = live.raw.as_ref().clone();
    raw["spec"]["template"] = template.raw().clone();
    let mut spec = live.spec.clone();
    spec.template = template.clone();
    if let Some(hold) = hold {
        raw["spec"]["updateStrategy"] = hold.declared.clone();
        spec.update_strategy =
            serde::Deserialize::deserialize(&hold.declared).map_err(Error::Declared)?;
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

/// The hold that it is under.
pub(super) fn hold(live: &DaemonSet) -> Result<Option<Hold>, Error> {
    Hold::of(live).map_err(|source: HoldError| Error::Hold { daemon_set: live.key.clone(), source })
}

/// The snapshot as if the controller rolled the DaemonSet, so that a plan of it has waves.
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
