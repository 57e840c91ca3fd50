//! The output of `diff -o json` and the input of a unified diff: each whole DaemonSet, live and
//! after the apply. Not here: the effect on pods (`plan`).

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::document::{ApiVersion, Change, ClusterSummary, FieldChange, SourceInfo, Warning};
use super::input::Intent;
use super::pause::LeftoverPause;
use super::secrets::ShownValues;
use super::{applied, object, secrets, target, warnings};
use daemonset::model::{
    DaemonSet, DaemonSetName, DaemonSetStatus, DesiredDaemonSet, NamespaceName, Snapshot,
};

/// Comparison of every DaemonSet of the source: live and target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Diff {
    /// Version of this document's format.
    pub api_version: ApiVersion,
    /// Always `Diff`.
    pub kind: DiffKind,
    /// Origin of the manifests.
    pub source: SourceInfo,
    /// The cluster, and the time of its snapshot.
    pub cluster: ClusterSummary,
    /// One entry per DaemonSet, ordered by namespace and name.
    pub daemon_sets: Vec<DaemonSetDiff>,
    /// Warnings.
    pub warnings: Vec<Warning>,
}

/// Kind of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DiffKind {
    /// A diff.
    Diff,
}

/// Comparison of one DaemonSet: live and target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DaemonSetDiff {
    /// `metadata.namespace`.
    pub namespace: NamespaceName,
    /// `metadata.name`.
    pub name: DaemonSetName,
    /// Change of the object.
    pub change: Change,
    /// The fields that change.
    pub changes: Vec<FieldChange>,
    /// The live object without `managedFields`; none when it does not exist yet or does not
    /// change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<Value>,
    /// The object after the apply; none when it does not change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Value>,
}

impl Diff {
    /// Whether any object changes.
    pub fn has_changes(&self) -> bool {
        self.daemon_sets.iter().any(|one| one.change != Change::None)
    }
}

/// Input of a diff.
#[derive(Clone, Debug)]
pub struct DiffInput<'a> {
    /// Snapshot of the cluster.
    pub snapshot: &'a Snapshot,
    /// The DaemonSets of the source, each once.
    pub desired: &'a [DesiredDaemonSet],
    /// Field managers whose fields are overwritten or removed (`--force-conflicts`), in addition
    /// to those in conflict.
    pub force_conflicts: &'a BTreeSet<String>,
    /// Origin of the manifests.
    pub source: SourceInfo,
    /// Warnings from reading the source.
    pub warnings: Vec<Warning>,
    /// Whether values that may be secret are shown.
    pub show_values: ShownValues<'a>,
}

/// Compares every DaemonSet of the source with the live one.
pub fn diff(input: DiffInput<'_>) -> Diff {
    let DiffInput { snapshot, desired, force_conflicts, source, mut warnings, show_values } = input;
    warnings.extend(warnings::about_server(&snapshot.cluster));
    let masked = snapshot.coverage.masked.map(|salt| object::masked(desired, &salt));
    let manifests = masked.as_deref().unwrap_or(desired);
    warnings.extend(applied::about_ownership(snapshot, manifests));
    let applied = applied::applied(snapshot, manifests, force_conflicts, Intent::Preview);
    warnings.extend(applied.iter().flat_map(|it| it.warnings.clone()));
    let mut daemon_sets: Vec<DaemonSetDiff> =
        applied.iter().map(|it| one(snapshot, &it.desired, show_values)).collect();
    daemon_sets.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    Diff {
        api_version: ApiVersion::V1Alpha1,
        kind: DiffKind::Diff,
        source,
        cluster: ClusterSummary::from(snapshot),
        daemon_sets,
        warnings,
    }
}

fn one(
    snapshot: &Snapshot,
    desired: &DesiredDaemonSet,
    show_values: ShownValues<'_>,
) -> DaemonSetDiff {
    let live = snapshot.daemon_set(&desired.key);
    let after = target::target(live, desired);
    let changes =
        object::changes(live, &after, live.and_then(LeftoverPause::of).as_ref(), show_values);
    let change = object::change(live, desired, &changes);
    let (before, after) = match change {
        Change::None => (None, None),
        Change::Create | Change::Update | Change::Recreate | Change::Delete => {
            let (before, after) = shown(live, after, show_values);
            (before, Some(after))
        }
    };
    DaemonSetDiff {
        namespace: desired.key.namespace.clone(),
        name: desired.key.name.clone(),
        change,
        changes,
        live: before,
        target: after,
    }
}

/// Both objects as `kubectl diff` compares them: with the status, without `managedFields`.
fn shown(
    live: Option<&DaemonSet>,
    mut after: Value,
    show_values: ShownValues<'_>,
) -> (Option<Value>, Value) {
    let mut before = live.map(|live| live.raw.as_ref().clone());
    let status = status(live.map(|live| live.status).unwrap_or_default());
    for object in before.iter_mut().chain([&mut after]) {
        object["status"] = status.clone();
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.remove("managedFields");
        }
    }
    if show_values != ShownValues::All {
        secrets::mask_objects(before.as_mut(), &mut after, show_values);
    }
    (before, after)
}

/// The status as the API server returns it.
fn status(status: DaemonSetStatus) -> Value {
    let served = status.served().into_iter();
    let served = served.filter_map(|(name, count)| Some((name.to_owned(), count?.into())));
    let mut fields: Map<String, Value> = served.collect();
    if let Some(count) = status.collision_count {
        fields.insert("collisionCount".to_owned(), json!(count));
    }
    fields.into()
}
