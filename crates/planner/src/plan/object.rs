//! The change of the DaemonSet object itself: live object against target, both with defaults.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::changes::{Side, compare};
use super::document::{BaseChange, Change, FieldChange};
use super::pause::LeftoverPause;
use super::secrets::{self, ShownValues};
use crate::annotations::{ROLLOUT_ANNOTATION, SOURCE_ID_ANNOTATION};
use daemonset::controller::Owner;
use daemonset::model::mask::{Salt, mask_annotations, mask_template};
use daemonset::model::{
    CHANGE_CAUSE_ANNOTATION, DaemonSet, DaemonSetStatus, DesiredDaemonSet, ManagedBy,
    TEMPLATE_GENERATION_ANNOTATION,
};
use ssa::LAST_APPLIED_ANNOTATION;

/// Annotations that never count as a change: those of the server, of kubectl, and provenance.
const IGNORED_ANNOTATIONS: [&str; 3] =
    [TEMPLATE_GENERATION_ANNOTATION, CHANGE_CAUSE_ANNOTATION, LAST_APPLIED_ANNOTATION];

/// Prefix of the annotations of `ds-apply`: provenance, the state of a rollout, and the id of the
/// source.
const OWN_ANNOTATIONS: &str = "ds-plan.dev/";

/// The same DaemonSets with sensitive values masked as in a masked snapshot, so that they can be
/// compared with it.
pub fn masked(desired: &[DesiredDaemonSet], salt: &Salt) -> Vec<DesiredDaemonSet> {
    desired
        .iter()
        .map(|desired| {
            let mut masked = desired.clone();
            masked.spec.template.edit(|template| mask_template(template, salt));
            for whole in [&mut masked.raw, &mut masked.written] {
                if let Some(template) = Arc::make_mut(whole).pointer_mut("/spec/template") {
                    mask_template(template, salt);
                }
                mask_annotations(Arc::make_mut(whole), salt);
            }
            masked
        })
        .collect()
}

/// The DaemonSet after the apply: its selector and spec.
///
/// A DaemonSet that must be recreated stays unchanged, because no action is planned for it.
pub(super) fn owner_after<'a>(
    live: Option<&'a DaemonSet>,
    desired: &'a DesiredDaemonSet,
    change: Change,
) -> Owner<'a> {
    let Some(live) = live else {
        return Owner {
            key: &desired.key,
            managed_by: desired.managed_by,
            uid: None,
            annotations: &desired.annotations,
            spec: &desired.spec,
            generation: 1,
            // A record has none: orphans of the first generation would count as updated.
            template_generation: match desired.managed_by {
                ManagedBy::DaemonSetController => Some(1),
                ManagedBy::DsApply => None,
            },
            status: DaemonSetStatus::default(),
            terminating: false,
        };
    };
    if change == Change::Recreate {
        return Owner::from(live);
    }
    let new_spec = i64::from(live.spec != desired.spec);
    let new_template = i64::from(live.spec.template != desired.spec.template);
    Owner {
        spec: &desired.spec,
        annotations: &desired.annotations,
        generation: live.generation + new_spec,
        template_generation: live.template_generation().map(|number| number + new_template),
        ..Owner::from(live)
    }
}

/// The change of the object.
pub(super) fn change(
    live: Option<&DaemonSet>,
    desired: &DesiredDaemonSet,
    changes: &[FieldChange],
) -> Change {
    match live {
        None => Change::Create,
        Some(live) if live.spec.selector != desired.spec.selector => Change::Recreate,
        Some(_) if changes.is_empty() => Change::None,
        Some(_) => Change::Update,
    }
}

/// The fields that change; none for a DaemonSet that does not exist yet. `after` is the whole
/// object after the apply; `left` is the leftover annotation of a pause.
pub(super) fn changes(
    live: Option<&DaemonSet>,
    after: &Value,
    left: Option<&LeftoverPause>,
    show_values: ShownValues<'_>,
) -> Vec<FieldChange> {
    let Some(live) = live else { return Vec::new() };
    let (mut before, mut to_come) = (comparable(&live.raw, None), comparable(after, None));
    // Of the annotations of ds-apply only a leftover pause is shown: the apply removes it.
    if left.is_some() {
        for (side, raw) in [(&mut before, &*live.raw), (&mut to_come, after)] {
            let annotations = raw.pointer("/metadata/annotations");
            if let Some(text) = annotations.and_then(|it| it.get(ROLLOUT_ANNOTATION)) {
                side.metadata["annotations"][ROLLOUT_ANNOTATION] = text.clone();
            }
        }
    }
    differences(&before, &to_come, show_values)
}

/// The fields of a live object that differ from a manifest. Metadata that only the live object has
/// is not a difference.
pub(super) fn deviations(
    live: &Value,
    manifest: &Value,
    show_values: ShownValues<'_>,
) -> Vec<FieldChange> {
    let manifest = comparable(manifest, None);
    differences(&comparable(live, Some(&manifest)), &manifest, show_values)
}

/// The change of a pull request: its manifest against the one at the merge base.
pub(super) fn since_base(
    base: &[DesiredDaemonSet],
    desired: &DesiredDaemonSet,
    show_values: ShownValues<'_>,
) -> BaseChange {
    let Some(base) = base.iter().find(|it| it.key == desired.key) else {
        return BaseChange { change: Change::Create, changes: Vec::new() };
    };
    let (before, after) = (comparable(&base.raw, None), comparable(&desired.raw, None));
    let changes = differences(&before, &after, show_values);
    let change = if base.spec.selector != desired.spec.selector {
        Change::Recreate
    } else if changes.is_empty() {
        Change::None
    } else {
        Change::Update
    };
    BaseChange { change, changes }
}

/// The part of an object that an apply can change.
#[derive(PartialEq)]
struct Comparable<'v> {
    metadata: Value,
    spec: Cow<'v, Value>,
}

fn differences(
    before: &Comparable<'_>,
    after: &Comparable<'_>,
    show_values: ShownValues<'_>,
) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    let plain = |value| Some(Side { truth: value, shown: value });
    if show_values == ShownValues::All {
        compare("metadata", plain(&before.metadata), plain(&after.metadata), &mut changes);
    } else {
        let [old, new] = [before, after].map(|it| secrets::without_credentials(&it.metadata));
        compare(
            "metadata",
            Some(Side { truth: &before.metadata, shown: &old }),
            Some(Side { truth: &after.metadata, shown: &new }),
            &mut changes,
        );
    }
    if before.spec == after.spec {
        return changes;
    }
    if show_values == ShownValues::All {
        compare("spec", plain(&before.spec), plain(&after.spec), &mut changes);
        return changes;
    }
    let (old, new) =
        (without_secrets(&before.spec, show_values), without_secrets(&after.spec, show_values));
    compare(
        "spec",
        Some(Side { truth: &before.spec, shown: &old }),
        Some(Side { truth: &after.spec, shown: &new }),
        &mut changes,
    );
    changes
}

fn without_secrets(spec: &Value, shown_values: ShownValues<'_>) -> Value {
    let mut shown = spec.clone();
    if let Some(template) = shown.get_mut("template") {
        secrets::mask(template, shown_values);
    }
    shown
}

/// The part of an object that an apply can change. With `desired`, only the labels and annotations
/// that `desired` also has.
fn comparable<'v>(raw: &'v Value, desired: Option<&Comparable<'_>>) -> Comparable<'v> {
    let metadata = |name: &str| raw.get("metadata").and_then(|metadata| metadata.get(name));
    let map = |name: &str| {
        let wanted =
            |key: &str| desired.is_none_or(|desired| desired.metadata[name].get(key).is_some());
        let pairs = metadata(name).and_then(Value::as_object).into_iter().flatten();
        let kept = pairs
            .filter(|(key, _)| (name != "annotations" || !is_ignored(key)) && wanted(key.as_str()));
        kept.map(|(key, value)| (key.clone(), value.clone())).collect::<Map<_, _>>()
    };
    let list = |name: &str| {
        metadata(name).filter(|it| it.is_array()).cloned().unwrap_or_else(|| json!([]))
    };
    Comparable {
        metadata: json!({
            "labels": map("labels"),
            "annotations": map("annotations"),
            "finalizers": list("finalizers"),
            "ownerReferences": list("ownerReferences"),
        }),
        spec: without_null_creation_timestamp(raw.get("spec").unwrap_or(&Value::Null)),
    }
}

pub(super) fn is_ignored(annotation: &str) -> bool {
    // The annotation with the source id is part of the desired object.
    let own = annotation.starts_with(OWN_ANNOTATIONS) && annotation != SOURCE_ID_ANNOTATION;
    own || IGNORED_ANNOTATIONS.contains(&annotation)
}

/// Servers up to 1.33 return `creationTimestamp: null` in every template.
fn without_null_creation_timestamp(spec: &Value) -> Cow<'_, Value> {
    let served = spec.pointer("/template/metadata/creationTimestamp");
    if !served.is_some_and(Value::is_null) {
        return Cow::Borrowed(spec);
    }
    let mut spec = spec.clone();
    if let Some(Value::Object(metadata)) = spec.pointer_mut("/template/metadata") {
        metadata.remove("creationTimestamp");
    }
    Cow::Owned(spec)
}
