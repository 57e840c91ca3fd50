//! The fields of each object in a recording: those that the decoder reads, and a few for readers.
//!
//! Pods, nodes, Services and leases keep only the fields listed here, so that no env var, argument
//! or annotation of a pod gets into a file through a new field. DaemonSets and revisions stay
//! whole, because plans depend on their exact bytes; their secret values are masked on request.

use serde_json::{Map, Value};

use crate::Kind;
use crate::decode::record::OBJECT_KEY;
use daemonset::model::mask::{Salt, mask_annotations, mask_template};
use daemonset::model::{FAILED_TEMPLATES_ANNOTATION, STEPS_ANNOTATION};

/// The annotation where `kubectl apply` stores the whole manifest.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A field to keep: as a whole, or only some of its fields.
enum Keep {
    Whole(&'static str),
    Parts(&'static str, &'static [Keep]),
}

use Keep::{Parts, Whole};

const POD: &[Keep] = &[
    Parts(
        "metadata",
        &[
            Whole("name"),
            Whole("generateName"),
            Whole("namespace"),
            Whole("uid"),
            Whole("resourceVersion"),
            Whole("labels"),
            Whole("ownerReferences"),
            Whole("creationTimestamp"),
            Whole("deletionTimestamp"),
        ],
    ),
    Parts(
        "spec",
        &[
            Whole("nodeName"),
            Whole("affinity"),
            Parts("containers", &[Whole("name"), Whole("image")]),
            Parts("initContainers", &[Whole("name"), Whole("image")]),
        ],
    ),
    Parts(
        "status",
        &[
            Whole("phase"),
            Whole("reason"),
            Whole("message"),
            Whole("startTime"),
            Whole("conditions"),
            Parts("containerStatuses", CONTAINER_STATUS),
            Parts("initContainerStatuses", CONTAINER_STATUS),
        ],
    ),
];

const CONTAINER_STATUS: &[Keep] = &[
    Whole("name"),
    Whole("image"),
    Whole("ready"),
    Whole("started"),
    Whole("restartCount"),
    Whole("state"),
    Whole("lastState"),
];

const NODE: &[Keep] = &[
    Parts(
        "metadata",
        &[
            Whole("name"),
            Whole("uid"),
            Whole("resourceVersion"),
            Whole("labels"),
            Whole("creationTimestamp"),
            Whole("deletionTimestamp"),
        ],
    ),
    Parts("spec", &[Whole("taints"), Whole("unschedulable")]),
    Parts(
        "status",
        &[Whole("conditions"), Whole("allocatable"), Parts("nodeInfo", &[Whole("kubeletVersion")])],
    ),
];

const SERVICE: &[Keep] = &[
    Parts(
        "metadata",
        &[Whole("name"), Whole("namespace"), Whole("uid"), Whole("creationTimestamp")],
    ),
    Parts("spec", &[Whole("type"), Whole("clusterIP"), Whole("selector")]),
];

const LEASE: &[Keep] = &[Parts(
    "metadata",
    &[
        Whole("name"),
        Whole("namespace"),
        Whole("uid"),
        Whole("creationTimestamp"),
        Parts("annotations", &[Whole(FAILED_TEMPLATES_ANNOTATION), Whole(STEPS_ANNOTATION)]),
    ],
)];

const RECORD: &[Keep] = &[
    Parts(
        "metadata",
        &[
            Whole("name"),
            Whole("namespace"),
            Whole("uid"),
            Whole("resourceVersion"),
            Whole("labels"),
            Whole("creationTimestamp"),
            Whole("deletionTimestamp"),
        ],
    ),
    Whole("data"),
];

const EVENT: &[Keep] = &[
    Parts(
        "metadata",
        &[Whole("name"), Whole("namespace"), Whole("uid"), Whole("creationTimestamp")],
    ),
    Parts("involvedObject", &[Whole("kind"), Whole("namespace"), Whole("name"), Whole("uid")]),
    Whole("type"),
    Whole("reason"),
    Whole("message"),
    Whole("lastTimestamp"),
    Whole("eventTime"),
    Parts("series", &[Whole("lastObservedTime")]),
];

/// Reduces an object to its recorded form.
pub(super) fn slim(kind: Kind, whole: Value, mask: Option<&Salt>) -> Value {
    let mut object = match kind {
        Kind::Pod => kept(POD, whole),
        Kind::Node => kept(NODE, whole),
        Kind::Service => kept(SERVICE, whole),
        Kind::Lease => kept(LEASE, whole),
        Kind::Event => kept(EVENT, whole),
        Kind::DaemonSetRecord => masked_record(kept(RECORD, whole), mask),
        Kind::Namespace => without_managed_fields(whole),
        Kind::DaemonSet => masked(whole, "/spec/template", mask),
        Kind::ControllerRevision => {
            masked(without_managed_fields(whole), "/data/spec/template", mask)
        }
    };
    if let Value::Object(fields) = &mut object {
        fields.insert("apiVersion".to_owned(), kind.api_version().into());
        fields.insert("kind".to_owned(), kind.as_str().into());
    }
    object
}

/// `value` with only the fields of `keep`; applied to each item of an array.
fn kept(keep: &[Keep], value: Value) -> Value {
    match value {
        Value::Object(mut fields) => Value::Object(
            keep.iter()
                .filter_map(|keep| match keep {
                    Whole(name) => fields.remove_entry(*name),
                    Parts(name, parts) => {
                        fields.remove_entry(*name).map(|(name, value)| (name, kept(parts, value)))
                    }
                })
                .collect::<Map<_, _>>(),
        ),
        Value::Array(items) => items.into_iter().map(|item| kept(keep, item)).collect(),
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => plain,
    }
}

fn without_managed_fields(mut object: Value) -> Value {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("managedFields");
    }
    object
}

/// Replaces the secret values of the object's template, and of the manifest in the annotation of
/// `kubectl apply`, which revisions copy from their DaemonSet.
fn masked(mut object: Value, template: &str, salt: Option<&Salt>) -> Value {
    let Some(salt) = salt else { return object };
    if let Some(template) = object.pointer_mut(template) {
        mask_template(template, salt);
    }
    let annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    if let Some(Value::String(manifest)) = annotations.and_then(|all| all.get_mut(LAST_APPLIED)) {
        *manifest = masked_manifest(manifest, salt);
    }
    mask_annotations(&mut object, salt);
    object
}

/// Replaces the secret values of the DaemonSet in a record.
fn masked_record(mut record: Value, salt: Option<&Salt>) -> Value {
    if let Some(salt) = salt
        && let Some(Value::String(object)) = record.pointer_mut(&format!("/data/{OBJECT_KEY}"))
    {
        *object = masked_manifest(object, salt);
    }
    record
}

fn masked_manifest(manifest: &str, salt: &Salt) -> String {
    let Ok(mut object) = serde_json::from_str::<Value>(manifest) else {
        return salt.digest(manifest);
    };
    if let Some(template) = object.pointer_mut("/spec/template") {
        mask_template(template, salt);
    }
    mask_annotations(&mut object, salt);
    object.to_string()
}
