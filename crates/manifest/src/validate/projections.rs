//! Volume sources made of files: Secret, `ConfigMap`, downward API, and their projections into one
//! volume (upstream: `validateProjectedVolumeSource` and related functions).
//!
//! Not here: `clusterTrustBundle` and `podCertificate`, which a server with default feature gates
//! drops before it validates.

use std::collections::BTreeSet;

use super::at::{At, Errors};
use super::go_text::quoted;
use super::{downward_api, paths};

pub(super) fn secret(source: &At<'_>, errors: &mut Errors) {
    keyed_files(source, "secretName", errors);
}

pub(super) fn config_map(source: &At<'_>, errors: &mut Errors) {
    keyed_files(source, "name", errors);
}

fn keyed_files(source: &At<'_>, name: &str, errors: &mut Errors) {
    source.get(name).not_empty(errors);
    paths::file_mode(&source.get("defaultMode"), errors);
    for item in source.get("items").items() {
        key_to_path(&item, errors);
    }
}

/// Validates a key and its file path (upstream: `validateKeyToPath`).
fn key_to_path(item: &At<'_>, errors: &mut Errors) {
    item.get("key").not_empty(errors);
    item.get("path").not_empty(errors);
    paths::local_non_reserved(&item.get("path"), errors);
    paths::file_mode(&item.get("mode"), errors);
}

/// Validates `downwardAPI` items; errors are reported without the item's index.
pub(super) fn downward_api(source: &At<'_>, errors: &mut Errors) {
    paths::file_mode(&source.get("defaultMode"), errors);
    for item in source.get("items").items() {
        downward_api_file(&item.reported_at(source.path()), errors);
    }
}

fn downward_api_file(item: &At<'_>, errors: &mut Errors) {
    item.get("path").not_empty(errors);
    paths::local_non_reserved(&item.get("path"), errors);
    match (item.find("fieldRef"), item.find("resourceFieldRef")) {
        (Some(field), resource) => {
            downward_api::field_of_volume(&field, errors);
            if resource.is_some() {
                let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.push(item.invalid_as(quoted("resource"), why));
            }
        }
        (None, Some(resource)) => downward_api::resource_of_volume(&resource, errors),
        (None, None) => {
            errors.push(item.required("one of fieldRef and resourceFieldRef is required"));
        }
    }
    paths::file_mode(&item.get("mode"), errors);
}

pub(super) fn projected(volume: &At<'_>, errors: &mut Errors) {
    paths::file_mode(&volume.get("defaultMode"), errors);
    let mut taken = BTreeSet::new();
    for source in volume.get("sources").items() {
        for kind in ["secret", "configMap"] {
            if let Some(keyed) = source.find(kind) {
                projected_keys(volume, &keyed, &mut taken, errors);
            }
        }
        if let Some(fields) = source.find("downwardAPI") {
            for item in fields.get("items").items() {
                downward_api_file(&item.clone().reported_at(fields.path()), errors);
                let path = item.get("path").text();
                take(volume, path, path, &mut taken, errors);
            }
        }
        if let Some(token) = source.find("serviceAccountToken") {
            service_account_token(volume, &token, errors);
        }
        let kinds = ["secret", "configMap", "downwardAPI", "serviceAccountToken"];
        if kinds.iter().filter(|kind| source.get(kind).is_set()).count() > 1 {
            errors.push(source.forbidden("may not specify more than 1 volume type per source"));
        }
    }
}

fn projected_keys<'a>(
    volume: &At<'_>,
    keyed: &At<'a>,
    taken: &mut BTreeSet<&'a str>,
    errors: &mut Errors,
) {
    keyed.get("name").not_empty(errors);
    for item in keyed.get("items").items() {
        key_to_path(&item, errors);
        take(volume, item.get("path").text(), keyed.get("name").text(), taken, errors);
    }
}

/// Validates that no two files have one path; the error is reported at the volume, with `shown`.
fn take<'a>(
    volume: &At<'_>,
    path: &'a str,
    shown: &str,
    taken: &mut BTreeSet<&'a str>,
    errors: &mut Errors,
) {
    if !path.is_empty() && !taken.insert(path) {
        errors.push(volume.invalid_as(quoted(shown), "conflicting duplicate paths"));
    }
}

/// Validates `serviceAccountToken`; the path is reported at the volume.
fn service_account_token(volume: &At<'_>, token: &At<'_>, errors: &mut Errors) {
    let seconds = token.get("expirationSeconds");
    if seconds.int() < 600 {
        errors.push(seconds.invalid("may not specify a duration less than 10 minutes"));
    }
    if seconds.int() > 1 << 32 {
        errors.push(seconds.invalid("may not specify a duration larger than 2^32 seconds"));
    }
    let path = token.get("path").reported_at(volume.path_of("path"));
    path.not_empty(errors);
    paths::local_non_reserved(&path, errors);
}

#[cfg(test)]
mod tests {
    use crate::validate::table;

    #[test]
    fn rules() {
        table::check(include_str!("projections.yaml"));
    }
}
