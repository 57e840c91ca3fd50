//! Defaults of a DaemonSet, and the fields that the API server drops (upstream:
//! `SetObjectDefaults_DaemonSet`, the conversions of `PodTemplateSpec` and `PodSpec`, and
//! `dropDisabledFields` with the default feature gates).
//!
//! Works on an object that `decode` has made canonical, so "absent" means: no such key, or `null`.
//! Defaulting is idempotent. Volumes are in a file of their own (`volumes`).

mod container;
mod object;
mod volume;

use serde_json::{Value, json};

pub(super) use object::Object;

use object::{default, each, field, inner};

/// Annotations of templates that upstream drops (`dropInitContainerAnnotations`).
const ANCIENT_ANNOTATIONS: [&str; 4] = [
    "pod.alpha.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.beta.kubernetes.io/init-containers",
];

/// Defaults a canonical DaemonSet in place.
pub(super) fn daemon_set(object: &mut Value) {
    let Some(spec) = field(object, "spec") else { return };
    strategy(spec);
    default(spec, "revisionHistoryLimit", 10);
    if let Some(template) = inner(spec, "template") {
        if let Some(metadata) = inner(template, "metadata") {
            drop_ancient_annotations(metadata);
        }
        if let Some(spec) = inner(template, "spec") {
            pod_spec(spec);
        }
    }
}

fn strategy(spec: &mut Object) {
    let Some(strategy) = inner(spec, "updateStrategy") else { return };
    default(strategy, "type", "RollingUpdate");
    let rolls = strategy.get("type") == Some(&json!("RollingUpdate"));
    if rolls {
        default(strategy, "rollingUpdate", json!({}));
    }
    // With OnDelete the block stays, but upstream's internal type has no absent limits.
    if let Some(limits) = inner(strategy, "rollingUpdate") {
        default(limits, "maxUnavailable", i32::from(rolls));
        default(limits, "maxSurge", 0);
    }
}

fn drop_ancient_annotations(metadata: &mut Object) {
    let Some(annotations) = inner(metadata, "annotations") else { return };
    annotations.retain(|key, _| !ANCIENT_ANNOTATIONS.contains(&key.as_str()));
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
}

fn pod_spec(spec: &mut Object) {
    default(spec, "dnsPolicy", "ClusterFirst");
    default(spec, "restartPolicy", "Always");
    default(spec, "securityContext", json!({}));
    default(spec, "terminationGracePeriodSeconds", 30);
    default(spec, "schedulerName", "default-scheduler");
    service_account(spec);
    spec.remove("schedulingGroup");
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        each(spec, list, container::default_container);
    }
    each(spec, "volumes", volume::default_volume);
}

/// The deprecated and the current name of one field; the current one takes precedence, and both are
/// served.
fn service_account(spec: &mut Object) {
    let name = spec.get("serviceAccountName").or(spec.get("serviceAccount")).cloned();
    if let Some(name) = name {
        spec.insert("serviceAccountName".to_owned(), name.clone());
        spec.insert("serviceAccount".to_owned(), name);
    }
}
