//! Environment variables (upstream: `ValidateEnv`, `ValidateEnvFrom`, `validateFileKeyRefVolumes`),
//! and the rule of `ds-plan` about duplicate names.

use std::collections::BTreeSet;

use super::at::{At, Errors};
use super::containers::visit_all;
use super::go_text::quoted;
use super::{downward_api, names, paths};

type Check = fn(&At<'_>, &mut Errors);

/// Sources of a value, in upstream's order.
const SOURCES: [(&str, Check); 5] = [
    ("fieldRef", downward_api::field_of_env),
    ("resourceFieldRef", downward_api::resource_of_env),
    ("configMapKeyRef", check_key),
    ("secretKeyRef", check_key),
    ("fileKeyRef", check_file_key),
];

/// Validates `env` of one container.
pub(super) fn check(env: &At<'_>, errors: &mut Errors) {
    let mut taken = BTreeSet::new();
    for variable in env.items() {
        let name = variable.get("name");
        name.required_and_follows(names::env_name, errors);
        if let Some(from) = variable.find("valueFrom") {
            check_value_from(&from, &variable.get("value"), errors);
        }
        // Create accepts it, but server-side apply fails with 500 from then on.
        if !name.is_empty() && !taken.insert(name.text()) {
            errors.push(name.duplicate_for_us(
                "the API server accepts it on create but fails on every later server-side apply",
            ));
        }
    }
}

fn check_value_from(from: &At<'_>, value: &At<'_>, errors: &mut Errors) {
    let mut count = 0;
    for (field, check) in SOURCES {
        if let Some(source) = from.find(field) {
            count += 1;
            check(&source, errors);
        }
    }
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
    errors.push(from.invalid_as(quoted(""), why));
}

/// Validates a reference to a key of a `ConfigMap` or Secret.
fn check_key(reference: &At<'_>, errors: &mut Errors) {
    reference.get("name").follows(names::dns_subdomain, errors);
    reference.get("key").required_and_follows(names::config_map_key, errors);
}

/// Validates a reference to a variable in a file that an earlier container has written.
fn check_file_key(reference: &At<'_>, errors: &mut Errors) {
    reference.get("key").required_and_follows(names::env_name, errors);
    reference.get("volumeName").required_and_follows(names::dns_label, errors);
    reference.get("path").not_empty(errors);
    paths::no_backsteps(&reference.get("path"), errors);
}

/// Validates `envFrom` of one container; the number of sources is reported without an index.
pub(super) fn check_from(env_from: &At<'_>, errors: &mut Errors) {
    for source in env_from.items() {
        source.get("prefix").follows_if_set(names::env_name, errors);
        let references = ["configMapRef", "secretRef"].map(|field| source.find(field));
        for reference in references.iter().flatten() {
            reference.get("name").required_and_follows(names::dns_subdomain_prefix, errors);
        }
        let why = match references.iter().flatten().count() {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _more => "may not have more than one field specified at a time",
        };
        errors.push(env_from.invalid_as(quoted(""), why));
    }
}

/// Validates that the files of `fileKeyRef` are in an `emptyDir`.
pub(super) fn check_file_volumes(pod: &At<'_>, errors: &mut Errors) {
    for container in visit_all(pod) {
        for variable in container.get("env").items() {
            if let Some(reference) = variable.get("valueFrom").find("fileKeyRef") {
                check_file_volume(&reference.get("volumeName"), pod, errors);
            }
        }
    }
}

fn check_file_volume(name: &At<'_>, pod: &At<'_>, errors: &mut Errors) {
    let volumes = pod.get("volumes");
    match volumes.items().filter(|volume| volume.get("name").text() == name.text()).last() {
        None => errors.push(name.not_found()),
        Some(volume) if volume.get("emptyDir").is_set() => {}
        Some(_other) => errors.push(name.invalid("referenced volume must be of type emptyDir")),
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::table;

    #[test]
    fn rules() {
        table::check(include_str!("env.yaml"));
    }
}
