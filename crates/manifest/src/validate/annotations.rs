//! Annotations of the pod template with a meaning to upstream: mirror pods, deletion cost, and the
//! deprecated annotations for seccomp and `AppArmor` profiles, which must not contradict the fields
//! (upstream: `ValidatePodSpecificAnnotations`).
//!
//! Not here: tolerations as JSON in an annotation, which are ignored since 1.6.

use std::collections::BTreeSet;

use super::at::At;
use super::context::visit_containers;
use super::formats::local_descending_path;
use super::go_text::quoted;

const MIRROR: &str = "kubernetes.io/config.mirror";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// Annotation for the seccomp profile of a pod.
pub(super) const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
/// Prefix of the annotations for the seccomp profiles of containers.
pub(super) const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
/// Prefix of the annotations for the `AppArmor` profiles of containers.
pub(super) const APP_ARMOR_CONTAINER: &str = "container.apparmor.security.beta.kubernetes.io/";

/// Validates the annotations without the fields.
pub(super) fn check(annotations: &At<'_>, pod: &At<'_>) {
    for (key, value) in annotations.entries() {
        if key == MIRROR {
            let is_unbound = pod.get("nodeName").is_empty();
            value.invalid_if(is_unbound, "must set spec.nodeName if mirror pod annotation is set");
        } else if key == DELETION_COST {
            value.invalid_if(!is_int32(value.text()), "must be a 32bit integer");
        }
    }
    for (key, value) in annotations.entries() {
        if key == SECCOMP_POD || key.starts_with(SECCOMP_CONTAINER) {
            check_seccomp(&value.reported_at(annotations.path_of(key)));
        }
    }
    let containers = visit_containers(pod);
    let containers: BTreeSet<&str> = containers.iter().map(|one| one.get("name").text()).collect();
    for (key, value) in annotations.entries() {
        if let Some(container) = key.strip_prefix(APP_ARMOR_CONTAINER) {
            if !containers.contains(container) {
                value.invalid_as(quoted(container), "container not found");
            }
            check_app_armor(&value);
        }
    }
}

/// `true` for an integer without plus sign and leading zeros (upstream:
/// `GetDeletionCostFromPodAnnotations`).
fn is_int32(text: &str) -> bool {
    let first_digit_is_fine = text == "0" || text.starts_with(|c| matches!(c, '-' | '1'..='9'));
    first_digit_is_fine && text.parse::<i32>().is_ok()
}

fn check_seccomp(profile: &At<'_>) {
    match (profile.text(), profile.text().strip_prefix("localhost/")) {
        ("runtime/default" | "docker/default" | "unconfined", _) => {}
        (_, Some(file)) => profile.text_follows(file, local_descending_path),
        (_, None) => profile.invalid("must be a valid seccomp profile"),
    }
}

fn check_app_armor(profile: &At<'_>) {
    let text = profile.text();
    let is_known = matches!(text, "" | "runtime/default" | "unconfined");
    let why = format!("invalid AppArmor profile name: {}", quoted(text));
    profile.invalid_if(!is_known && !text.starts_with("localhost/"), &why);
}

/// Validates that annotations and fields agree.
pub(super) fn check_against_fields(annotations: &At<'_>, pod: &At<'_>) {
    let [seccomp, app_armor] =
        ["securityContext.seccompProfile", "securityContext.appArmorProfile"];
    check_match(&annotations.entry(SECCOMP_POD), &pod.nested(seccomp), "seccomp");
    for container in visit_containers(pod) {
        let key = format!("{SECCOMP_CONTAINER}{}", container.get("name").text());
        check_match(&annotations.entry(&key), &container.nested(seccomp), "seccomp");
    }
    if pod.nested("os.name").text() == "windows" {
        return;
    }
    let of_pod = pod.nested(app_armor);
    for container in visit_containers(pod) {
        let key = format!("{APP_ARMOR_CONTAINER}{}", container.get("name").text());
        let own = container.nested(app_armor);
        let profile = if own.is_set() { own.clone() } else { of_pod.clone() };
        check_match(&annotations.entry(&key), &profile.reported_at(own.path()), "apparmor");
    }
}

/// Validates that the annotation names the same profile as the field, if both are there.
fn check_match(annotation: &At<'_>, profile: &At<'_>, what: &str) {
    if !annotation.is_set() {
        return;
    }
    let (kind, file) = (profile.get("type"), profile.get("localhostProfile"));
    let named = annotation.text();
    let kind_matches = match kind.text() {
        "Unconfined" => named == "unconfined",
        "RuntimeDefault" => {
            named == "runtime/default" || what == "seccomp" && named == "docker/default"
        }
        "Localhost" => named.starts_with("localhost/"),
        _unset_or_reported_elsewhere => true,
    };
    let file_matches = kind.text() != "Localhost"
        || file.is_set() && named.strip_prefix("localhost/") == Some(file.text());
    if !kind_matches {
        kind.forbidden(&format!("{what} type in annotation and field must match"));
    } else if !file_matches {
        file.forbidden(&format!("{what} profile in annotation and field must match"));
    }
}
