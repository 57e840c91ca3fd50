//! The fields of each object in a recording: those that the decoder reads, and a few for readers.
//!
//! All kinds but DaemonSets and revisions keep only the fields listed here, so that no env var,
//! argument or annotation of a pod gets into a file through a new field. Those two stay whole,
//! because plans depend on their exact bytes. On request, their secret values are masked, as are
//! the messages of the kubelet and of events, which may quote them, and the annotations of
//! namespaces.

use serde_json::{Map, Value};

use crate::Kind;
use crate::decode::record::OBJECT_KEY;
use daemonset::model::mask::{Salt, mask_annotations, mask_template};
use daemonset::model::{FAILED_TEMPLATES_ANNOTATION, STEPS_ANNOTATION};

/// The annotation where `kubectl apply` stores the whole manifest.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The annotations of a namespace that plans read: node selectors.
const NODE_SELECTORS: [&str; 2] =
    ["scheduler.alpha.kubernetes.io/node-selector", "openshift.io/node-selector"];

/// What replaces the message of an event in a masked recording.
const MASKED_MESSAGE: &str = "(masked)";

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

const NAMESPACE: &[Keep] = &[
    Parts(
        "metadata",
        &[
            Whole("name"),
            Whole("uid"),
            Whole("resourceVersion"),
            Whole("labels"),
            Whole("annotations"),
            Whole("creationTimestamp"),
            Whole("deletionTimestamp"),
        ],
    ),
    Parts("status", &[Whole("phase")]),
];

/// Reduces an object to its recorded form.
pub(super) fn slim(kind: Kind, whole: Value, mask: Option<&Salt>) -> Value {
    let mut object = match kind {
        Kind::Pod => masked_pod(kept(POD, whole), mask),
        Kind::Node => kept(NODE, whole),
        Kind::Service => kept(SERVICE, whole),
        Kind::Lease => kept(LEASE, whole),
        Kind::Event => masked_event(kept(EVENT, whole), mask),
        Kind::DaemonSetRecord => masked_record(kept(RECORD, whole), mask),
        Kind::Namespace => masked_namespace(kept(NAMESPACE, whole), mask),
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

/// Removes the messages of the kubelet and of containers: they may quote arguments and logs. No
/// decision depends on them.
fn masked_pod(mut pod: Value, salt: Option<&Salt>) -> Value {
    if salt.is_some()
        && let Some(status) = pod.get_mut("status")
    {
        remove_messages(status);
    }
    pod
}

fn remove_messages(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("message");
            fields.values_mut().for_each(remove_messages);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_messages),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Replaces the message of an event, which may quote arguments. Its reason stays.
fn masked_event(mut event: Value, salt: Option<&Salt>) -> Value {
    if salt.is_some()
        && let Some(message) = event.get_mut("message")
    {
        *message = MASKED_MESSAGE.into();
    }
    event
}

/// Removes all annotations but the node selectors.
fn masked_namespace(mut namespace: Value, salt: Option<&Salt>) -> Value {
    let annotations = namespace.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    if salt.is_some()
        && let Some(annotations) = annotations
    {
        annotations.retain(|name, _| NODE_SELECTORS.contains(&name.as_str()));
    }
    namespace
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Its recorded form, masked.
    fn masked(kind: Kind, whole: &Value) -> Value {
        slim(kind, whole.clone(), Some(&Salt::from_bytes([7; 16])))
    }

    #[test]
    fn a_masked_namespace_keeps_only_node_selectors() {
        let namespace = json!({
            "metadata": {
                "name": "logging", "uid": "u", "managedFields": [{"manager": "m"}],
                "annotations": {
                    "scheduler.alpha.kubernetes.io/node-selector": "disk=ssd",
                    "openshift.io/node-selector": "zone=a",
                    "example.com/token": "hunter2",
                    LAST_APPLIED: "{\"metadata\":{\"annotations\":{\"a\":\"hunter2\"}}}",
                },
            },
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active", "conditions": [{"message": "hunter2"}]},
        });
        assert_eq!(
            masked(Kind::Namespace, &namespace),
            json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {
                    "name": "logging", "uid": "u",
                    "annotations": {
                        "scheduler.alpha.kubernetes.io/node-selector": "disk=ssd",
                        "openshift.io/node-selector": "zone=a",
                    },
                },
                "status": {"phase": "Active"},
            })
        );
        // Else it keeps its annotations, as a DaemonSet does.
        let plain = slim(Kind::Namespace, namespace, None);
        assert_eq!(plain["metadata"]["annotations"]["example.com/token"], "hunter2");
        assert_eq!((plain.get("spec"), &plain["status"]), (None, &json!({"phase": "Active"})));
    }

    #[test]
    fn messages_that_may_quote_arguments_are_masked() {
        let ended = json!({"terminated": {"exitCode": 1, "reason": "Error", "message": "hunter2"}});
        let pod = json!({
            "metadata": {"namespace": "a", "name": "agent-x", "uid": "p"},
            "status": {
                "phase": "Pending", "reason": "Evicted", "message": "hunter2",
                "conditions": [{"type": "Ready", "status": "False", "message": "hunter2"}],
                "containerStatuses": [{
                    "name": "c", "lastState": ended,
                    "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "hunter2"}},
                }],
                "initContainerStatuses": [{"name": "i", "state": ended}],
            },
        });
        let event = json!({
            "metadata": {"namespace": "a", "name": "e", "uid": "e"}, "type": "Warning",
            "reason": "Failed", "message": "exec: \"--token=hunter2\": not found",
        });
        for (kind, whole, times) in [(Kind::Pod, &pod, 5), (Kind::Event, &event, 1)] {
            let plain = slim(kind, whole.clone(), None).to_string();
            assert_eq!(plain.matches("hunter2").count(), times, "{plain}");
            let masked = masked(kind, whole).to_string();
            assert!(!masked.contains("hunter2"), "{masked}");
        }
        let status = &masked(Kind::Pod, &pod)["status"];
        assert_eq!(status["reason"], "Evicted");
        assert_eq!(status["conditions"], json!([{"type": "Ready", "status": "False"}]));
        let container = &status["containerStatuses"][0];
        assert_eq!(container["state"], json!({"waiting": {"reason": "CrashLoopBackOff"}}));
        assert_eq!(container["lastState"]["terminated"]["exitCode"], 1);
        let event = masked(Kind::Event, &event);
        assert_eq!((&event["reason"], &event["message"]), (&json!("Failed"), &json!("(masked)")));
    }
}
