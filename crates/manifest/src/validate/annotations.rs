//! Annotations of the pod template with a meaning to upstream: mirror pods, deletion cost, and the
//! deprecated annotations for seccomp and `AppArmor` profiles, which must not contradict the fields
//! (upstream: `ValidatePodSpecificAnnotations`).
//!
//! Not here: tolerations as JSON in an annotation, which are ignored since 1.6.

use std::collections::BTreeSet;

use super::at::{At, Errors};
use super::containers::visit_all;
use super::go_text::quoted;
use super::paths;

const MIRROR: &str = "kubernetes.io/config.mirror";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// Annotation for the seccomp profile of a pod.
pub(super) const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
/// Prefix of the annotations for the seccomp profiles of containers.
pub(super) const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
/// Prefix of the annotations for the `AppArmor` profiles of containers.
pub(super) const APP_ARMOR_CONTAINER: &str = "container.apparmor.security.beta.kubernetes.io/";

/// Validates the annotations without the fields.
pub(super) fn check(annotations: &At<'_>, pod: &At<'_>, errors: &mut Errors) {
    for (key, value) in annotations.entries() {
        match key {
            MIRROR if pod.get("nodeName").is_empty() => {
                let why = "must set spec.nodeName if mirror pod annotation is set";
                errors.push(value.invalid(why));
            }
            DELETION_COST if !is_int32(value.text()) => {
                errors.push(value.invalid("must be a 32bit integer"));
            }
            _other => {}
        }
    }
    for (key, value) in annotations.entries() {
        if key == SECCOMP_POD || key.starts_with(SECCOMP_CONTAINER) {
            check_seccomp(&value.reported_at(annotations.path_of(key)), errors);
        }
    }
    let containers = visit_all(pod);
    let containers: BTreeSet<&str> = containers.iter().map(|one| one.get("name").text()).collect();
    for (key, value) in annotations.entries() {
        if let Some(container) = key.strip_prefix(APP_ARMOR_CONTAINER) {
            check_app_armor(container, &value, &containers, errors);
        }
    }
}

/// `true` for an integer without plus sign and leading zeros (upstream:
/// `GetDeletionCostFromPodAnnotations`).
fn is_int32(text: &str) -> bool {
    let first_digit_is_fine = text == "0" || text.starts_with(|c| matches!(c, '-' | '1'..='9'));
    first_digit_is_fine && text.parse::<i32>().is_ok()
}

fn check_seccomp(profile: &At<'_>, errors: &mut Errors) {
    match profile.text() {
        "runtime/default" | "docker/default" | "unconfined" => {}
        text => match text.strip_prefix("localhost/") {
            Some(file) => {
                let file = serde_json::Value::from(file);
                let file = At::root(&file).reported_at(profile.path());
                paths::local_descending(&file, errors);
            }
            None => errors.push(profile.invalid("must be a valid seccomp profile")),
        },
    }
}

fn check_app_armor(
    container: &str,
    profile: &At<'_>,
    containers: &BTreeSet<&str>,
    errors: &mut Errors,
) {
    if !containers.contains(container) {
        errors.push(profile.invalid_as(quoted(container), "container not found"));
    }
    let text = profile.text();
    let known = matches!(text, "" | "runtime/default" | "unconfined");
    if !known && !text.starts_with("localhost/") {
        errors.push(profile.invalid(&format!("invalid AppArmor profile name: {}", quoted(text))));
    }
}

/// Validates that annotations and fields agree.
pub(super) fn check_against_fields(annotations: &At<'_>, pod: &At<'_>, errors: &mut Errors) {
    let annotation = |key: &str| annotations.json().get(key).and_then(|value| value.as_str());
    let pod_seccomp = profile_of(pod, "seccompProfile");
    if let Some(text) = annotation(SECCOMP_POD) {
        check_match(text, &pod_seccomp, "seccomp", errors);
    }
    for container in visit_all(pod) {
        let key = format!("{SECCOMP_CONTAINER}{}", container.get("name").text());
        if let Some(text) = annotation(&key) {
            check_match(text, &profile_of(&container, "seccompProfile"), "seccomp", errors);
        }
    }
    if pod.get("os").get("name").text() == "windows" {
        return;
    }
    let pod_app_armor = profile_of(pod, "appArmorProfile");
    for container in visit_all(pod) {
        let key = format!("{APP_ARMOR_CONTAINER}{}", container.get("name").text());
        if let Some(text) = annotation(&key) {
            let own = profile_of(&container, "appArmorProfile");
            let profile = if own.is_set() { own.clone() } else { pod_app_armor.clone() };
            check_match(text, &profile.reported_at(own.path()), "apparmor", errors);
        }
    }
}

fn profile_of<'a>(holder: &At<'a>, kind: &str) -> At<'a> {
    holder.get("securityContext").get(kind)
}

/// Validates that the annotation names the same profile as the field, if there is a field.
fn check_match(annotation: &str, profile: &At<'_>, what: &str, errors: &mut Errors) {
    let (kind, file) = (profile.get("type"), profile.get("localhostProfile"));
    let kind_matches = match kind.text() {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => {
            annotation == "runtime/default" || what == "seccomp" && annotation == "docker/default"
        }
        "Localhost" => annotation.starts_with("localhost/"),
        _unset_or_reported_elsewhere => return,
    };
    if !kind_matches {
        errors.push(kind.forbidden(&format!("{what} type in annotation and field must match")));
    } else if kind.text() == "Localhost"
        && (!file.is_set() || annotation.strip_prefix("localhost/") != Some(file.text()))
    {
        errors.push(file.forbidden(&format!("{what} profile in annotation and field must match")));
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::table;

    #[test]
    fn rules() {
        table::check(include_str!("annotations.yaml"));
    }
}
