//! Generic ephemeral volumes: the claim that is created for each pod (upstream:
//! `ValidatePersistentVolumeClaimTemplate`).

use super::at::At;
use super::formats::{dns_label, dns_subdomain};
use super::rules::Rule::{Check, FollowsIfNotEmpty, OneOf, OneOfIfSet, Required, RequiredBecause};
use super::{amount, metadata, selector};

const ACCESS_MODES: &[&str] =
    &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// Metadata that is forbidden in a template, in upstream's order.
const FORBIDDEN_METADATA: [&str; 13] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

/// Validates an `ephemeral` volume source.
pub(super) fn check(source: &At<'_>) {
    match source.find("volumeClaimTemplate") {
        None => source.get("volumeClaimTemplate").required(""),
        Some(template) => {
            check_metadata(&template.get("metadata"));
            check_spec(&template.get("spec"));
        }
    }
}

fn check_metadata(meta: &At<'_>) {
    meta.check_fields(&[
        ("annotations", Check(metadata::annotations)),
        ("labels", Check(metadata::labels)),
    ]);
    for field in meta.find_all(&FORBIDDEN_METADATA) {
        // Upstream misspells one of them.
        let path = field.path().replace(".uid", ".uID");
        field.reported_at(path).forbidden("cannot be set");
    }
}

fn check_spec(spec: &At<'_>) {
    spec.check_fields(&[
        ("accessModes", RequiredBecause("at least 1 access mode is required")),
        ("selector", Check(selector::check)),
        ("accessModes", Check(check_access_modes)),
    ]);
    check_storage(spec);
    spec.check_fields(&[
        ("storageClassName", FollowsIfNotEmpty(dns_subdomain)),
        ("volumeMode", OneOfIfSet(&["Block", "Filesystem"])),
    ]);
    check_data_sources(spec);
    spec.get("volumeAttributesClassName").check(FollowsIfNotEmpty(dns_subdomain));
}

/// Validates `accessModes`; errors are reported without an index.
fn check_access_modes(modes: &At<'_>) {
    for mode in modes.items() {
        mode.reported_at(modes.path()).check(OneOf(ACCESS_MODES));
    }
    let all = modes.texts();
    let is_other = |mode: &&str| *mode != "ReadWriteOncePod" && ACCESS_MODES.contains(mode);
    let is_mixed = all.contains(&"ReadWriteOncePod") && all.iter().any(is_other);
    modes.forbidden_if(is_mixed, "may not use ReadWriteOncePod with other access modes");
}

/// Validates `resources.requests.storage`; the error's path omits `requests`.
fn check_storage(spec: &At<'_>) {
    let storage = spec.nested("resources.requests.storage");
    let storage = storage.reported_at(spec.path_of("resources[storage]"));
    if storage.is_set() {
        storage.invalid_if(!amount::read(&storage).is_positive(), "must be greater than zero");
    } else {
        storage.required("");
    }
}

fn check_data_sources(spec: &At<'_>) {
    spec.find_all(&["dataSource", "dataSourceRef"]).iter().for_each(check_object);
    let (source, reference) = (spec.get("dataSource"), spec.get("dataSourceRef"));
    let namespace = reference.get("namespace");
    namespace.check(FollowsIfNotEmpty(dns_label));
    if !source.is_set() || !reference.is_set() {
        return;
    }
    let is_same = |field: &&str| source.get(field).json() == reference.get(field).json();
    // Upstream prints the field's path here, a struct without exported fields.
    if !namespace.is_empty() {
        let why = "may not be specified when dataSourceRef.namespace is specified";
        spec.invalid_as("{}".to_owned(), why);
    } else if !["apiGroup", "kind", "name"].iter().all(is_same) {
        spec.invalid_as("{}".to_owned(), "must match dataSourceRef");
    }
}

fn check_object(object: &At<'_>) {
    let (group, kind) = (object.get("apiGroup"), object.get("kind"));
    object.check_fields(&[("name", Required), ("kind", Required)]);
    let is_other = group.is_empty() && kind.text() != "PersistentVolumeClaim";
    let why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
    kind.reported_at(object.path()).invalid_if(is_other, why);
    group.check(FollowsIfNotEmpty(dns_subdomain));
}
