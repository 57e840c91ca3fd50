//! Defaults of one volume (upstream: `SetDefaults_Volume`, one function for each kind of volume,
//! and the generated functions that call them).

use serde_json::{Value, json};

use super::super::image::default_pull_policy;
use super::object::{Object, default, each, inner};

/// Mode of files that come from the API: 0644.
const FILE_MODE: i32 = 0o644;

/// Fields with fixed defaults, by kind of volume.
const FIXED: [(&str, &[(&str, &str)]); 5] = [
    ("hostPath", &[("type", "")]),
    ("iscsi", &[("iscsiInterface", "default")]),
    ("rbd", &[("pool", "rbd"), ("user", "admin"), ("keyring", "/etc/ceph/keyring")]),
    ("azureDisk", &[("cachingMode", "ReadWrite"), ("fsType", "ext4"), ("kind", "Shared")]),
    ("scaleIO", &[("storageMode", "ThinProvisioned"), ("fsType", "xfs")]),
];

pub(super) fn default_volume(volume: &mut Object) {
    if !volume.iter().any(|(key, source)| key != "name" && !source.is_null()) {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
    for (kind, fields) in FIXED {
        if let Some(source) = inner(volume, kind) {
            for (key, value) in fields {
                default(source, key, *value);
            }
        }
    }
    if let Some(disk) = inner(volume, "azureDisk") {
        default(disk, "readOnly", false);
    }
    for kind in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = inner(volume, kind) {
            default(source, "defaultMode", FILE_MODE);
        }
    }
    if let Some(source) = inner(volume, "downwardAPI") {
        default_field_refs(source);
    }
    if let Some(projected) = inner(volume, "projected") {
        each(projected, "sources", default_projection);
    }
    if let Some(image) = inner(volume, "image") {
        let reference = image.get("reference").and_then(Value::as_str).unwrap_or_default();
        let policy = default_pull_policy(reference);
        default(image, "pullPolicy", policy);
    }
    default_claim(volume);
}

fn default_field_refs(source: &mut Object) {
    each(source, "items", |item| {
        if let Some(field) = inner(item, "fieldRef") {
            default(field, "apiVersion", "v1");
        }
    });
}

/// Defaults one projected source; drops sources whose features are off:
/// `ClusterTrustBundleProjection` and `PodCertificateRequest`.
fn default_projection(source: &mut Object) {
    if let Some(downward) = inner(source, "downwardAPI") {
        default_field_refs(downward);
    }
    if let Some(token) = inner(source, "serviceAccountToken") {
        default(token, "expirationSeconds", 3600);
    }
    source.remove("clusterTrustBundle");
    source.remove("podCertificate");
}

fn default_claim(volume: &mut Object) {
    let template = inner(volume, "ephemeral").and_then(|e| inner(e, "volumeClaimTemplate"));
    if let Some(spec) = template.and_then(|template| inner(template, "spec")) {
        default(spec, "volumeMode", "Filesystem");
    }
}
