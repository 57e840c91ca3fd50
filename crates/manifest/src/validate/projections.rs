//! Volume sources made of files: Secret, `ConfigMap`, downward API, and their projections into one
//! volume (upstream: `validateProjectedVolumeSource` and related functions).
//!
//! Not here: `clusterTrustBundle` and `podCertificate`, which a server with default feature gates
//! drops before it validates.

use std::collections::BTreeSet;

use super::at::At;
use super::downward_api;
use super::formats::local_non_reserved_path;
use super::go_text::quoted;
use super::rules::Rule::{self, Check, Fields, Follows, Required};
use super::rules::Rules;

/// Kinds of projected sources, in upstream's order.
const KINDS: [&str; 4] = ["secret", "configMap", "downwardAPI", "serviceAccountToken"];

const FILE_MODE: Rule = Check(check_file_mode);

pub(super) const SECRET: Rules =
    &[("secretName", Required), ("defaultMode", FILE_MODE), ("items[*]", Fields(KEY_TO_PATH))];
pub(super) const CONFIG_MAP: Rules =
    &[("name", Required), ("defaultMode", FILE_MODE), ("items[*]", Fields(KEY_TO_PATH))];

/// A key and its file path (upstream: `validateKeyToPath`).
const KEY_TO_PATH: Rules = &[
    ("key", Required),
    ("path", Required),
    ("path", Follows(local_non_reserved_path)),
    ("mode", FILE_MODE),
];

fn check_file_mode(mode: &At<'_>) {
    let why = "must be a number between 0 and 0777 (octal), both inclusive";
    mode.invalid_if(!(0..=0o777).contains(&mode.int()), why);
}

/// Validates `downwardAPI`; errors of its items are reported without `items` and index.
pub(super) fn downward_api(source: &At<'_>) {
    source.get("defaultMode").check(FILE_MODE);
    for item in source.each("items[*]") {
        downward_api_file(&item.reported_at(source.path()));
    }
}

fn downward_api_file(item: &At<'_>) {
    let path = item.get("path");
    path.check(Required);
    path.check(Follows(local_non_reserved_path));
    match (item.find("fieldRef"), item.find("resourceFieldRef")) {
        (Some(field), resource) => {
            downward_api::field_of_volume(&field);
            if resource.is_some() {
                let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
                item.invalid_as(quoted("resource"), why);
            }
        }
        (None, Some(resource)) => downward_api::resource_of_volume(&resource),
        (None, None) => item.required("one of fieldRef and resourceFieldRef is required"),
    }
    item.get("mode").check(FILE_MODE);
}

pub(super) fn projected(volume: &At<'_>) {
    volume.get("defaultMode").check(FILE_MODE);
    let mut all_paths = BTreeSet::new();
    // Two files with one path; upstream reports it at the volume.
    let mut check_unique = |path: &str, shown: &str| {
        if !path.is_empty() && !all_paths.insert(path.to_owned()) {
            volume.invalid_as(quoted(shown), "conflicting duplicate paths");
        }
    };
    for source in volume.get("sources").items() {
        for keyed in source.find_all(&["secret", "configMap"]) {
            keyed.get("name").check(Required);
            for item in keyed.get("items").items() {
                item.check_fields(KEY_TO_PATH);
                check_unique(item.get("path").text(), keyed.get("name").text());
            }
        }
        let fields = source.get("downwardAPI");
        for item in fields.get("items").items() {
            let path = item.get("path").text();
            downward_api_file(&item.reported_at(fields.path()));
            check_unique(path, path);
        }
        if let Some(token) = source.find("serviceAccountToken") {
            check_token(&token, &token.get("path").reported_at(volume.path_of("path")));
        }
        let has_many = source.find_all(&KINDS).len() > 1;
        source.forbidden_if(has_many, "may not specify more than 1 volume type per source");
    }
}

/// Validates `serviceAccountToken`; upstream reports its path at the volume.
fn check_token(token: &At<'_>, path: &At<'_>) {
    let seconds = token.get("expirationSeconds");
    seconds.invalid_if(seconds.int() < 600, "may not specify a duration less than 10 minutes");
    let is_too_long = seconds.int() > 1 << 32;
    seconds.invalid_if(is_too_long, "may not specify a duration larger than 2^32 seconds");
    path.check(Required);
    path.check(Follows(local_non_reserved_path));
}
