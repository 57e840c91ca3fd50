//! Generic ephemeral volumes: the claim that is created for each pod (upstream:
//! `ValidatePersistentVolumeClaimTemplate`).

use super::at::{At, Errors};
use super::{amount, metadata, names, selector};

const ACCESS_MODES: [&str; 4] =
    ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// Metadata that is forbidden in a template, in upstream's order, with upstream's spelling.
const FORBIDDEN_METADATA: [(&str, &str); 13] = [
    ("name", "name"),
    ("generateName", "generateName"),
    ("namespace", "namespace"),
    ("selfLink", "selfLink"),
    ("uid", "uID"),
    ("resourceVersion", "resourceVersion"),
    ("generation", "generation"),
    ("creationTimestamp", "creationTimestamp"),
    ("deletionTimestamp", "deletionTimestamp"),
    ("deletionGracePeriodSeconds", "deletionGracePeriodSeconds"),
    ("ownerReferences", "ownerReferences"),
    ("finalizers", "finalizers"),
    ("managedFields", "managedFields"),
];

/// Validates an `ephemeral` volume source.
pub(super) fn check(source: &At<'_>, errors: &mut Errors) {
    match source.find("volumeClaimTemplate") {
        None => errors.push(source.get("volumeClaimTemplate").required("")),
        Some(template) => {
            check_metadata(&template.get("metadata"), errors);
            check_spec(&template.get("spec"), errors);
        }
    }
}

fn check_metadata(meta: &At<'_>, errors: &mut Errors) {
    metadata::annotations(&meta.get("annotations"), errors);
    metadata::labels(&meta.get("labels"), errors);
    for (field, spelled) in FORBIDDEN_METADATA {
        if meta.get(field).is_set() {
            errors.push(
                meta.get(field).reported_at(meta.path_of(spelled)).forbidden("cannot be set"),
            );
        }
    }
}

fn check_spec(spec: &At<'_>, errors: &mut Errors) {
    let modes = spec.get("accessModes");
    if modes.is_empty() {
        errors.push(modes.required("at least 1 access mode is required"));
    }
    selector::check(&spec.get("selector"), errors);
    check_access_modes(&modes, errors);
    check_storage(spec, errors);
    spec.get("storageClassName").follows_if_set(names::dns_subdomain, errors);
    spec.get("volumeMode").one_of_if_set(&["Block", "Filesystem"], errors);
    check_data_sources(spec, errors);
    spec.get("volumeAttributesClassName").follows_if_set(names::dns_subdomain, errors);
}

/// Validates `accessModes`; errors are reported without an index.
fn check_access_modes(modes: &At<'_>, errors: &mut Errors) {
    for mode in modes.items() {
        mode.reported_at(modes.path()).one_of(&ACCESS_MODES, errors);
    }
    let modes_set = modes.texts();
    let is_other = |mode: &&str| *mode != "ReadWriteOncePod" && ACCESS_MODES.contains(mode);
    if modes_set.contains(&"ReadWriteOncePod") && modes_set.iter().any(is_other) {
        errors.push(modes.forbidden("may not use ReadWriteOncePod with other access modes"));
    }
}

/// Validates `resources.requests.storage`; the error's path omits `requests`.
fn check_storage(spec: &At<'_>, errors: &mut Errors) {
    let storage = spec.get("resources").get("requests").get("storage");
    let storage = storage.reported_at(spec.path_of("resources[storage]"));
    if !storage.is_set() {
        errors.push(storage.required(""));
    } else if !amount::read(&storage).is_positive() {
        errors.push(storage.invalid("must be greater than zero"));
    }
}

fn check_data_sources(spec: &At<'_>, errors: &mut Errors) {
    let (source, reference) = (spec.find("dataSource"), spec.find("dataSourceRef"));
    for object in source.iter().chain(&reference) {
        check_object(object, errors);
    }
    let Some(reference) = reference else { return };
    reference.get("namespace").follows_if_set(names::dns_label, errors);
    let Some(source) = source else { return };
    let same = ["apiGroup", "kind", "name"]
        .iter()
        .all(|field| source.get(field).json() == reference.get(field).json());
    // Upstream prints the field's path here, a struct without exported fields.
    if !reference.get("namespace").is_empty() {
        let why = "may not be specified when dataSourceRef.namespace is specified";
        errors.push(spec.invalid_as("{}".to_owned(), why));
    } else if !same {
        errors.push(spec.invalid_as("{}".to_owned(), "must match dataSourceRef"));
    }
}

fn check_object(object: &At<'_>, errors: &mut Errors) {
    let (group, kind) = (object.get("apiGroup"), object.get("kind"));
    object.get("name").not_empty(errors);
    kind.not_empty(errors);
    if group.is_empty() && kind.text() != "PersistentVolumeClaim" {
        let why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        errors.push(kind.reported_at(object.path()).invalid(why));
    }
    group.follows_if_set(names::dns_subdomain, errors);
}

#[cfg(test)]
mod tests {
    use crate::validate::table;

    #[test]
    fn rules() {
        table::check(include_str!("claim_template.yaml"));
    }
}
