//! The DaemonSet after the apply: the manifest merged into the live object by the rules of
//! server-side apply, so fields of other managers are kept.
//!
//! Where another manager owns a field that the manifest sets to another value, forced conflicts are
//! assumed: all fields of that manager become owned by `ds-apply`, and those that are not in the
//! manifest are removed. A preview of what Flux or Argo CD will write is the same merge, with the
//! fields of its managers taken as those of `ds-apply` from the start. Not here: the merge itself
//! (`ssa`), the effect on pods.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use rayon::prelude::*;
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::document::{FieldOwner, Warning};
use super::git_ops::{self, GitOps};
use super::input::Intent;
use super::object::is_ignored;
use super::pause::goes_back_from;
use super::record::owned_alone;
use super::{settle, warnings};
use daemonset::model::{
    DaemonSet, DaemonSetSpec, DesiredDaemonSet, FIELD_MANAGER, Labels, ManagedBy, Snapshot,
};
use manifest::{self, RefusedBy, default_daemon_set};
use ssa::{
    self, Attempt, Conflict, DAEMON_SET, FieldPath, Manager, Manifest, Merged, PathStep, Settling,
};

/// A DaemonSet after the apply.
pub(super) struct Applied {
    /// The manifest merged into the live object.
    pub desired: DesiredDaemonSet,
    /// Fields that are kept although the manifest does not have them.
    pub leftovers: Vec<FieldOwner>,
    /// Fields of other managers that the manifest sets to another value.
    pub conflicts: Vec<FieldOwner>,
    /// Managers whose fields `ds-apply` overwrites or removes.
    pub forced_conflicts: Vec<String>,
    /// In a preview: the controller that applies the DaemonSet, while `ds-apply` only replaces its
    /// pods.
    pub git_ops: Option<GitOps>,
    /// A warning if the server would reject the apply, and others about the merge.
    pub warnings: Vec<Warning>,
}

/// The server would reject the apply.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("{0}")]
    Merge(#[from] ssa::Error),
    #[error("{}", listed(.0))]
    Invalid(Vec<String>),
    #[error("{0}")]
    Unreadable(#[from] serde_json::Error),
}

fn listed(problems: &[String]) -> String {
    problems.join("; ")
}

/// Returns the object that is sent to the server: the manifest as written, always with the update
/// strategy, so that the strategy never depends on a server default or another field manager.
pub fn sent(desired: &DesiredDaemonSet) -> Value {
    let mut object = desired.written.as_ref().clone();
    if let Some(strategy) = desired.raw.pointer("/spec/updateStrategy") {
        object["spec"]["updateStrategy"] = strategy.clone();
    }
    object
}

/// Merges each manifest into its live object. `force_conflicts` names managers whose fields are
/// overwritten or removed even if they do not conflict.
pub(super) fn applied(
    snapshot: &Snapshot,
    desired: &[DesiredDaemonSet],
    force_conflicts: &BTreeSet<String>,
    intent: Intent,
) -> Vec<Applied> {
    desired.par_iter().map(|desired| one(snapshot, desired, force_conflicts, intent)).collect()
}

/// Returns one DaemonSet after an apply by `ds-apply`, with the conflicts of all managers and those of
/// `force_conflicts` forced, as a plan assumes.
pub fn after_apply(
    snapshot: &Snapshot,
    desired: &DesiredDaemonSet,
    force_conflicts: &BTreeSet<String>,
) -> DesiredDaemonSet {
    one(snapshot, desired, force_conflicts, Intent::Apply).desired
}

/// A warning when the snapshot has no field ownership.
pub(super) fn about_ownership(
    snapshot: &Snapshot,
    desired: &[DesiredDaemonSet],
) -> Option<Warning> {
    let any_live = desired.iter().any(|desired| snapshot.daemon_set(&desired.key).is_some());
    (any_live && !snapshot.coverage.managed_fields).then(|| Warning {
        code: "noManagedFields".to_owned(),
        message:
            "the snapshot has no managed fields, so it is unknown which fields other managers \
                  own; record it with `ds-plan snapshot`, or with kubectl's --show-managed-fields"
                .to_owned(),
        daemon_set: None,
        nodes: Vec::new(),
    })
}

fn one(
    snapshot: &Snapshot,
    desired: &DesiredDaemonSet,
    force_conflicts: &BTreeSet<String>,
    intent: Intent,
) -> Applied {
    let mut applied = merged(snapshot, desired, force_conflicts, intent);
    let after = &mut applied.desired;
    let Some(policy) = after.policy.clone() else { return applied };
    let (live, template) = (snapshot.daemon_set(&desired.key), after.spec.template.raw());
    if live.and_then(|live| goes_back_from(live, template)).is_none() {
        return applied;
    }
    let budgets = policy.budgets();
    if budgets != *policy {
        applied.warnings.push(warnings::way_back(&desired.key));
        after.policy = Some(budgets.into());
    }
    applied
}

fn merged(
    snapshot: &Snapshot,
    desired: &DesiredDaemonSet,
    force_conflicts: &BTreeSet<String>,
    intent: Intent,
) -> Applied {
    let plain = |desired: DesiredDaemonSet| Applied {
        desired,
        leftovers: Vec::new(),
        conflicts: Vec::new(),
        forced_conflicts: Vec::new(),
        git_ops: None,
        warnings: Vec::new(),
    };
    let Some(live) = snapshot.daemon_set(&desired.key) else { return plain(desired.clone()) };
    let alone;
    let live = match live.managed_by {
        ManagedBy::DaemonSetController => live,
        ManagedBy::DsApply => {
            alone = owned_alone(live);
            &alone
        }
    };
    let mut applied = plain(laid_over(live, desired));
    applied.git_ops = match intent {
        Intent::Apply => None,
        Intent::Preview => git_ops::applies(live, desired, force_conflicts),
    };
    if !snapshot.coverage.managed_fields {
        return applied;
    }
    if let Err(why) = merge_into(&mut applied, snapshot, live, desired, force_conflicts) {
        applied.warnings.push(refused(desired, &why));
    }
    applied
}

/// Merges the manifest and fills in the results, up to the first error.
fn merge_into(
    applied: &mut Applied,
    snapshot: &Snapshot,
    live: &DaemonSet,
    desired: &DesiredDaemonSet,
    force_conflicts: &BTreeSet<String>,
) -> Result<(), Refused> {
    let now = snapshot.observed_at;
    let sent = sent(desired);
    let manifest = Manifest { applied: &sent, defaulted: &desired.raw };
    let attempt = Attempt::new(&DAEMON_SET, Some(&live.raw), manifest, FIELD_MANAGER, now)?;
    let owners = match &applied.git_ops {
        None => Cow::Borrowed(attempt.owners()),
        Some(git_ops) => {
            let own = git_ops.managers();
            Cow::Owned(attempt.owners().transferred(&DAEMON_SET, &own, FIELD_MANAGER))
        }
    };
    // Labels and annotations that the controller adds itself are not in git, and stay.
    let keeps_metadata = applied.git_ops.is_some();
    let whole = |object| if keeps_metadata { with_live_metadata(live, object) } else { object };
    let mut tried = attempt.under(&owners);
    let conflicts: Vec<&Conflict> =
        tried.conflicts().iter().filter(|it| is_ours(&it.path)).collect();
    applied.conflicts = conflicts.iter().flat_map(|it| owners_of(&it.path, &it.managers)).collect();
    let in_conflict = conflicts.iter().flat_map(|it| &it.managers).map(|it| it.name.clone());
    let taken: BTreeSet<String> = in_conflict.chain(force_conflicts.iter().cloned()).collect();
    applied.forced_conflicts = taken.into_iter().collect();
    let taken: Vec<&str> = applied.forced_conflicts.iter().map(String::as_str).collect();
    if !taken.is_empty() {
        tried = attempt.under(&owners.transferred(&DAEMON_SET, &taken, FIELD_MANAGER));
    }
    let settling = tried.settling();
    let Merged { object, leftovers, .. } = tried.merged();
    let leftovers = leftovers.into_iter().filter(|it| is_ours(&it.path));
    applied.leftovers =
        leftovers.flat_map(|it| owners_of(&as_served(it.path), &it.managers)).collect();
    let object = whole(object);
    let Some(Settling { applied: sent, emptied }) = settling else {
        applied.desired = with_object(desired, valid(object, desired)?)?;
        return Ok(());
    };
    let manifest = Manifest { applied: &sent, defaulted: &desired.raw };
    let attempt = Attempt::new(&DAEMON_SET, Some(&live.raw), manifest, FIELD_MANAGER, now)?;
    let owners = owners.transferred(&DAEMON_SET, &taken, FIELD_MANAGER);
    let after = valid(whole(attempt.under(&owners).merged().object), desired)?;
    let first = default_daemon_set(object).unwrap_or_default();
    applied.warnings.extend(settle::warning(&desired.key, &emptied, &first, &after));
    applied.desired = with_object(desired, after)?;
    Ok(())
}

/// The merged object as the server would return it. It can be invalid although the live object and
/// the manifest are both valid: each may own a different source of the same volume.
///
/// A spec that is the same as the manifest's is not validated again.
fn valid(object: Value, desired: &DesiredDaemonSet) -> Result<Value, Refused> {
    let in_words = |(path, problem): &(_, _)| format!("{path}: {problem}");
    let object = default_daemon_set(object)
        .map_err(|problems| Refused::Invalid(problems.iter().map(in_words).collect()))?;
    if object.get("spec") == desired.raw.get("spec") {
        return Ok(object);
    }
    let mut errors = manifest::validate(&object);
    errors.retain(|error| error.refused_by == RefusedBy::ApiServer);
    if errors.is_empty() {
        return Ok(object);
    }
    Err(Refused::Invalid(errors.iter().map(|error| error.without_value().to_string()).collect()))
}

/// The server restores `serviceAccountName` from its deprecated alias, which has no owner.
fn as_served(mut path: FieldPath) -> FieldPath {
    if let Some(PathStep::Field(name)) = path.0.last_mut()
        && name == "serviceAccount"
    {
        "serviceAccountName".clone_into(name);
    }
    path
}

/// One entry for each owner; one entry without a manager for a field without an owner.
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

/// Whether a field belongs to the manifest: not to the server, kubectl or `ds-apply`.
fn is_ours(path: &FieldPath) -> bool {
    match path.0.as_slice() {
        [PathStep::Field(metadata), PathStep::Field(annotations), PathStep::Field(key)] => {
            !(metadata == "metadata" && annotations == "annotations" && is_ignored(key))
        }
        _ => true,
    }
}

/// The manifest over the live object regardless of owners: it replaces the whole spec, and metadata
/// that only the live object has is kept.
fn laid_over(live: &DaemonSet, desired: &DesiredDaemonSet) -> DesiredDaemonSet {
    let object = with_live_metadata(live, desired.raw.as_ref().clone());
    DesiredDaemonSet { raw: Arc::new(object), ..desired.clone() }
}

/// The object with the metadata that only the live object has.
fn with_live_metadata(live: &DaemonSet, mut object: Value) -> Value {
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
    for list in ["finalizers", "ownerReferences"] {
        if object["metadata"].get(list).is_none()
            && let Some(live) = live.raw.pointer(&format!("/metadata/{list}"))
        {
            object["metadata"][list] = live.clone();
        }
    }
    object
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
        spec: if object.get("spec") == desired.raw.get("spec") {
            desired.spec.clone()
        } else {
            DaemonSetSpec::deserialize(&object["spec"])?
        },
        raw: Arc::new(object),
        ..desired.clone()
    })
}

fn refused(desired: &DesiredDaemonSet, why: &Refused) -> Warning {
    Warning {
        code: "applyRefused".to_owned(),
        message: format!("the server would reject a server-side apply: {why}"),
        daemon_set: Some(desired.key.to_string()),
        nodes: Vec::new(),
    }
}
