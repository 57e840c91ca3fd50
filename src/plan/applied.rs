//! What a DaemonSet will be after the apply: the manifest merged into the live object as
//! server-side apply does it, so fields that others own stay.
//!
//! Where somebody else owns a field that the manifest sets to another value, a take-over is
//! assumed: what they own becomes ours first, and goes if the manifest does not have it. Not here:
//! the merge itself (`merge`), what follows for pods.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::document::{FieldOwner, Warning};
use super::object::is_ignored;
use crate::manifest::default_daemon_set;
use crate::merge::{self, Manager, Manifest, Merged};
use crate::model::{
    DaemonSet, DaemonSetSpec, DesiredDaemonSet, FieldPath, Labels, PathStep, Snapshot,
};

/// The field manager that applies.
pub(super) const MANAGER: &str = "ds-apply";

/// A DaemonSet as it will be.
pub(super) struct Applied {
    /// The manifest, with what stays of the live object.
    pub desired: DesiredDaemonSet,
    /// Fields that stay although the manifest does not have them.
    pub leftovers: Vec<FieldOwner>,
    /// Fields that others own and the manifest sets to something else.
    pub conflicts: Vec<FieldOwner>,
    /// Why ownership played no part.
    pub warning: Option<Warning>,
}

/// Merges each manifest into what is live.
pub(super) fn applied(snapshot: &Snapshot, desired: &[DesiredDaemonSet]) -> Vec<Applied> {
    desired.iter().map(|desired| one(snapshot, desired)).collect()
}

fn one(snapshot: &Snapshot, desired: &DesiredDaemonSet) -> Applied {
    let plain = |desired: DesiredDaemonSet, warning| Applied {
        desired,
        leftovers: Vec::new(),
        conflicts: Vec::new(),
        warning,
    };
    let Some(live) = snapshot.daemon_set(&desired.key) else { return plain(desired.clone(), None) };
    if !snapshot.coverage.managed_fields {
        return plain(laid_over(live, desired), Some(undecided(desired)));
    }
    match merged(snapshot, live, desired) {
        Ok(applied) => applied,
        Err(reason) => plain(laid_over(live, desired), Some(impossible(desired, &reason))),
    }
}

fn merged(
    snapshot: &Snapshot,
    live: &DaemonSet,
    desired: &DesiredDaemonSet,
) -> Result<Applied, String> {
    let now = snapshot.observed_at;
    let manifest = Manifest { applied: &desired.written, defaulted: &desired.raw };
    let apply = |live: &Value| -> Result<Merged, String> {
        merge::apply(Some(live), manifest, MANAGER, now).map_err(|error| error.to_string())
    };
    let mut after = apply(&live.raw)?;
    let conflicts = std::mem::take(&mut after.conflicts);
    let conflicts: Vec<_> = conflicts.into_iter().filter(|it| is_ours(&it.path)).collect();
    if !conflicts.is_empty() {
        let names: BTreeSet<&str> =
            conflicts.iter().flat_map(|it| &it.managers).map(|it| it.name.as_str()).collect();
        let names: Vec<&str> = names.into_iter().collect();
        let owners = merge::ownership(&live.raw, now).map_err(|error| error.to_string())?;
        let mut taken = live.raw.as_ref().clone();
        taken["metadata"]["managedFields"] = owners.taken_over(&names, MANAGER).to_value();
        after = apply(&taken)?;
    }
    let object = default_daemon_set(after.object).map_err(|problems| {
        problems
            .iter()
            .map(|(path, problem)| format!("{path}: {problem}"))
            .collect::<Vec<_>>()
            .join("; ")
    })?;
    let leftovers = after.leftovers.into_iter().filter(|it| is_ours(&it.path));
    Ok(Applied {
        leftovers: leftovers.flat_map(|it| owners_of(&it.path, &it.managers)).collect(),
        conflicts: conflicts.iter().flat_map(|it| owners_of(&it.path, &it.managers)).collect(),
        desired: with_object(desired, object).map_err(|error| error.to_string())?,
        warning: None,
    })
}

/// One entry for each owner; one without, when nobody owns the field.
fn owners_of(path: &FieldPath, managers: &[Manager]) -> Vec<FieldOwner> {
    let owner = |manager: Option<&Manager>| FieldOwner {
        path: path.to_string(),
        manager: manager.map(|manager| manager.name.clone()),
    };
    if managers.is_empty() {
        return vec![owner(None)];
    }
    managers.iter().map(|manager| owner(Some(manager))).collect()
}

/// Whether a field is the manifest's affair: not the server's, kubectl's or our own memory.
fn is_ours(path: &FieldPath) -> bool {
    match path.0.as_slice() {
        [PathStep::Field(metadata), PathStep::Field(annotations), PathStep::Field(key)] => {
            !(metadata == "metadata" && annotations == "annotations" && is_ignored(key))
        }
        _ => true,
    }
}

/// The manifest over the live object without regard to owners: it decides on all of the spec, and
/// labels and annotations that only the live object has stay.
fn laid_over(live: &DaemonSet, desired: &DesiredDaemonSet) -> DesiredDaemonSet {
    let mut object = desired.raw.as_ref().clone();
    for map in ["labels", "annotations"] {
        let pairs = |object: &Value| -> Map<String, Value> {
            let found = object.pointer(&format!("/metadata/{map}")).and_then(Value::as_object);
            found.cloned().unwrap_or_default()
        };
        let mut all = pairs(&live.raw);
        all.extend(pairs(&object));
        if !all.is_empty() {
            object["metadata"][map] = all.into();
        }
    }
    DesiredDaemonSet { raw: Arc::new(object), ..desired.clone() }
}

fn with_object(
    desired: &DesiredDaemonSet,
    object: Value,
) -> Result<DesiredDaemonSet, serde_json::Error> {
    let map = |name: &str| {
        let pairs = object.pointer(&format!("/metadata/{name}")).unwrap_or(&Value::Null);
        if pairs.is_null() { Ok(Labels::default()) } else { Labels::deserialize(pairs) }
    };
    Ok(DesiredDaemonSet {
        labels: map("labels")?,
        annotations: map("annotations")?,
        spec: DaemonSetSpec::deserialize(&object["spec"])?,
        raw: Arc::new(object),
        ..desired.clone()
    })
}

fn undecided(desired: &DesiredDaemonSet) -> Warning {
    warning(
        desired,
        "ownershipUnknown",
        "the snapshot has no managed fields (`--show-managed-fields`): fields that others own are \
         taken for ours"
            .to_owned(),
    )
}

fn impossible(desired: &DesiredDaemonSet, reason: &str) -> Warning {
    let message = format!("a server-side apply would be refused: {reason}");
    warning(desired, "applyRefused", message)
}

fn warning(desired: &DesiredDaemonSet, code: &str, message: String) -> Warning {
    let daemon_set = Some(desired.key.to_string());
    Warning { code: code.to_owned(), message, daemon_set, nodes: Vec::new() }
}
