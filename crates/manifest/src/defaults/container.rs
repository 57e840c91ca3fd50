//! Defaults of one container (upstream: `SetDefaults_Container`, `SetDefaults_Probe`,
//! `SetDefaults_HTTPGetAction`, and the generated functions that call them).

use serde_json::Value;

use super::super::image::default_pull_policy;
use super::object::{Object, default, each, inner};

pub(super) fn default_container(container: &mut Object) {
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let policy = default_pull_policy(image);
    default(container, "imagePullPolicy", policy);
    default(container, "terminationMessagePath", "/dev/termination-log");
    default(container, "terminationMessagePolicy", "File");
    each(container, "ports", |port| default(port, "protocol", "TCP"));
    each(container, "env", default_env);
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = inner(container, probe) {
            default_probe(probe);
        }
    }
    default_lifecycle(container);
}

fn default_env(env: &mut Object) {
    let Some(source) = inner(env, "valueFrom") else { return };
    if let Some(field) = inner(source, "fieldRef") {
        default(field, "apiVersion", "v1");
    }
    if let Some(file) = inner(source, "fileKeyRef") {
        default(file, "optional", false);
    }
}

fn default_probe(probe: &mut Object) {
    default(probe, "timeoutSeconds", 1);
    default(probe, "periodSeconds", 10);
    default(probe, "successThreshold", 1);
    default(probe, "failureThreshold", 3);
    default_http_get(probe);
    if let Some(grpc) = inner(probe, "grpc") {
        default(grpc, "service", "");
    }
}

fn default_http_get(handler: &mut Object) {
    if let Some(get) = inner(handler, "httpGet") {
        default(get, "path", "/");
        default(get, "scheme", "HTTP");
    }
}

/// Defaults `lifecycle`; drops `stopSignal` (feature `ContainerStopSignals`, off), and `lifecycle`
/// if it is empty without it.
fn default_lifecycle(container: &mut Object) {
    let Some(lifecycle) = inner(container, "lifecycle") else { return };
    for hook in ["postStart", "preStop"] {
        if let Some(hook) = inner(lifecycle, hook) {
            default_http_get(hook);
        }
    }
    if lifecycle.remove("stopSignal").is_some() && lifecycle.is_empty() {
        container.remove("lifecycle");
    }
}
