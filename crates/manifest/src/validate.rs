//! Validates a DaemonSet with the API server's rules, paths and messages (upstream:
//! `ValidateDaemonSet`).
//!
//! The DaemonSet must have been decoded and defaulted as the API server does it. The rules are in
//! upstream's order, with the default feature gates of 1.36 and privileged containers allowed. One
//! rule is specific to `ds-plan`: the name of an environment variable that occurs twice in a
//! container ([`RefusedBy::DsPlan`]).
//!
//! Not here: errors of decoding (types, quantities, unknown fields), rejections by admission and
//! the kubelet, the fields of volume plug-ins that DaemonSets rarely mount, about which
//! [`unchecked_volumes`] warns, and fields of features that are off by default, which the server
//! drops before it validates (`clusterTrustBundle`, `podCertificate`, `stopSignal`,
//! `schedulingGroup`).
//!
//! [`RefusedBy::DsPlan`]: super::RefusedBy::DsPlan

mod amount;
mod annotations;
mod at;
mod claim_template;
mod containers;
mod context;
mod dns;
mod downward_api;
mod env;
mod formats;
mod go_text;
mod metadata;
mod mounts;
mod operating_system;
mod pod_spec;
mod ports;
mod probes;
mod projections;
mod resource_claims;
mod resources;
mod rules;
mod scheduling;
mod security_context;
mod selector;
mod strategy;
#[cfg(test)]
mod tests;
mod unique_keys;
mod volumes;
mod warnings;

use std::collections::BTreeSet;

use serde_json::Value;

use self::at::{At, Reports};
use self::go_text::json;
use self::rules::Rule::{Check, Forbidden, NotNegative, OneOf};
use super::FieldError;

pub(super) use self::formats::{dns_label, dns_subdomain, label_key, label_value};
pub use self::warnings::{unchecked_volumes, warnings};

/// All errors with which the API server would reject the creation of this DaemonSet, in upstream's
/// order (keys of a map in the map's order), and then those of `ds-plan`. Equal errors are listed once.
pub fn validate(daemon_set: &Value) -> Vec<FieldError> {
    let reports = Reports::default();
    let object = At::root(daemon_set, &reports);
    metadata::check(&object.get("metadata"));
    check_spec(&object.get("spec"));
    unique_keys::check(&object);
    // Upstream's message contains equal errors once.
    let mut seen = BTreeSet::new();
    let errors = reports.errors.into_inner().into_iter();
    errors.filter(|error| seen.insert(error.clone())).collect()
}

/// All errors with which the API server would reject the change of `live` into `desired`.
///
/// A selector is immutable; that error comes first, and alone from [`selector_changes`]. The rest
/// is validated as on create: upstream accepts some values that the live object already has, which
/// this function does not.
pub fn validate_update(live: &Value, desired: &Value) -> Vec<FieldError> {
    let reports = Reports::default();
    if selector_changes(live, desired) {
        let selector = At::root(desired, &reports).nested("spec.selector");
        selector.invalid_json("field is immutable");
    }
    let mut errors = reports.errors.into_inner();
    errors.extend(validate(desired));
    errors
}

/// `true` if the selectors differ, so that `live` would have to be deleted to become `desired`.
/// Absent, empty and null maps and lists are equal, as upstream compares them.
pub fn selector_changes(live: &Value, desired: &Value) -> bool {
    let reports = Reports::default();
    let [live, desired] =
        [live, desired].map(|object| At::root(object, &reports).nested("spec.selector"));
    selector::parts(&live) != selector::parts(&desired)
}

/// Validates `spec` (upstream: `ValidateDaemonSetSpec`).
fn check_spec(spec: &At<'_>) {
    let template = spec.get("template");
    check_selector(&spec.get("selector"), &template.nested("metadata.labels"));
    check_template(&template);
    template.get("spec").check_fields(&[
        ("restartPolicy", OneOf(&["Always"])),
        ("activeDeadlineSeconds", Forbidden("activeDeadlineSeconds in DaemonSet is not Supported")),
    ]);
    spec.get("minReadySeconds").check(NotNegative);
    strategy::check(&spec.get("updateStrategy"));
    spec.get("revisionHistoryLimit").check(NotNegative);
}

fn check_selector(selector: &At<'_>, labels: &At<'_>) {
    let before = selector.error_count();
    selector::check(selector);
    if selector.error_count() == before && !selector::selects(selector, labels) {
        let why = "`selector` does not match template `labels`";
        labels.invalid_as(json(labels.json()), why);
    }
    if selector.is_set() && selector::is_empty(selector) {
        selector.invalid_as("{}".to_owned(), "empty selector is invalid for daemonset");
    }
}

/// Validates `spec.template` (upstream: `ValidatePodTemplateSpec`). Errors of its metadata are
/// reported without `metadata`.
fn check_template(template: &At<'_>) {
    let meta = template.get("metadata").reported_at(template.path());
    let (annotations, pod) = (meta.get("annotations"), template.get("spec"));
    meta.get("labels").check(Check(metadata::labels));
    annotations.check(Check(metadata::annotations));
    annotations::check(&annotations, &pod);
    pod_spec::check(&pod);
    annotations::check_against_fields(&annotations, &pod);
    let debugging = pod.get("ephemeralContainers");
    let why = "ephemeral containers not allowed in pod template";
    debugging.forbidden_if(!debugging.is_empty(), why);
}
