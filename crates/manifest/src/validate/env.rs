//! Environment variables (upstream: `ValidateEnv`, `ValidateEnvFrom`, `validateFileKeyRefVolumes`).
//!
//! Not here: duplicate names (`unique_keys`).

use super::at::At;
use super::context::visit_containers;
use super::downward_api;
use super::formats::{
    config_map_key, dns_label, dns_subdomain, dns_subdomain_prefix, env_name, path_no_backsteps,
};
use super::go_text::quoted;
use super::rules::Rule::{Check, Fields, Follows, FollowsIfNotEmpty, Required, RequiredFollows};
use super::rules::Rules;

/// Sources of a value, in upstream's order.
const SOURCES: Rules = &[
    ("fieldRef", Check(downward_api::field_of_env)),
    ("resourceFieldRef", Check(downward_api::resource_of_env)),
    ("configMapKeyRef", Fields(KEY)),
    ("secretKeyRef", Fields(KEY)),
    ("fileKeyRef", Fields(FILE_KEY)),
];

/// A reference to a key of a `ConfigMap` or Secret.
const KEY: Rules = &[("name", Follows(dns_subdomain)), ("key", RequiredFollows(config_map_key))];

/// A reference to a variable in a file that an earlier container has written.
const FILE_KEY: Rules = &[
    ("key", RequiredFollows(env_name)),
    ("volumeName", RequiredFollows(dns_label)),
    ("path", Required),
    ("path", Follows(path_no_backsteps)),
];

/// Validates `env` of one container.
pub(super) fn check(env: &At<'_>) {
    for variable in env.items() {
        let name = variable.get("name");
        name.check(RequiredFollows(env_name));
        if let Some(from) = variable.find("valueFrom") {
            check_value_from(&from, &variable.get("value"));
        }
    }
}

fn check_value_from(from: &At<'_>, value: &At<'_>) {
    from.check_fields(SOURCES);
    let count = SOURCES.iter().filter(|(source, _)| from.get(source).is_set()).count();
    let why = if count == 0 {
        "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or \
         `fileKeyRef`"
    } else if !value.is_empty() {
        "may not be specified when `value` is not empty"
    } else if count > 1 {
        "may not have more than one field specified at a time"
    } else {
        return;
    };
    from.invalid_as(quoted(""), why);
}

/// Validates `envFrom` of one container; the number of sources is reported without an index.
pub(super) fn check_from(env_from: &At<'_>) {
    for source in env_from.items() {
        source.get("prefix").check(FollowsIfNotEmpty(env_name));
        let references = source.find_all(&["configMapRef", "secretRef"]);
        for reference in &references {
            reference.get("name").check(RequiredFollows(dns_subdomain_prefix));
        }
        let why = match references.len() {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _more => "may not have more than one field specified at a time",
        };
        env_from.invalid_as(quoted(""), why);
    }
}

/// Validates that the files of `fileKeyRef` are in an `emptyDir`.
pub(super) fn check_file_volumes(pod: &At<'_>) {
    for container in visit_containers(pod) {
        let references = container.each("env[*].valueFrom.fileKeyRef").into_iter();
        for reference in references.filter(At::is_set) {
            check_file_volume(&reference.get("volumeName"), &pod.get("volumes"));
        }
    }
}

fn check_file_volume(name: &At<'_>, volumes: &At<'_>) {
    match volumes.items().filter(|volume| volume.get("name").text() == name.text()).last() {
        None => name.not_found(),
        Some(volume) => {
            let is_other = !volume.get("emptyDir").is_set();
            name.invalid_if(is_other, "referenced volume must be of type emptyDir");
        }
    }
}
