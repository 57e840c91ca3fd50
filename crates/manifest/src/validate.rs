//! Validates a DaemonSet with the API server's rules, paths and messages (upstream:
//! `ValidateDaemonSet`).
//!
//! The DaemonSet must have been decoded and defaulted as the API server does it. The rules are in
//! upstream's order, with the default feature gates of 1.36 and privileged containers allowed. One
//! rule is specific to `ds-plan`: the name of an environment variable that occurs twice in a
//! container ([`RefusedBy::DsPlan`]).
//!
//! Not here: errors of decoding (types, quantities, unknown fields), rejections by admission and
//! the kubelet, and fields of features that are off by default, which the server drops before it
//! validates (`clusterTrustBundle`, `podCertificate`, `stopSignal`, `schedulingGroup`).
//!
//! [`RefusedBy::DsPlan`]: super::RefusedBy::DsPlan

mod affinity;
mod amount;
mod annotations;
mod at;
mod claim_template;
mod containers;
mod dns;
mod downward_api;
mod env;
mod go_text;
mod metadata;
mod mounts;
mod names;
mod operating_system;
mod paths;
mod pod_spec;
mod ports;
mod probes;
mod projections;
mod resource_claims;
mod resources;
mod restart_rules;
mod security_context;
mod selector;
mod spread;
mod storage;
mod strategy;
#[cfg(test)]
mod table;
mod tolerations;
mod volumes;
mod warnings;
mod windows;

use std::collections::BTreeSet;

use serde_json::Value;

use self::at::{At, Errors};
use self::go_text::json;
use super::FieldError;

pub use self::warnings::{FieldWarning, warnings};

/// All errors with which the API server would reject the creation of this DaemonSet, and those of
/// `ds-plan`, in upstream's order (keys of a map in the map's order). Equal errors are listed once.
pub fn validate(daemon_set: &Value) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let object = At::root(daemon_set);
    metadata::check(&object.get("metadata"), &mut errors);
    check_spec(&object.get("spec"), &mut errors);
    once_each(errors)
}

/// All errors with which the API server would reject the change of `live` into `desired`.
///
/// A selector is immutable; that error comes first, and alone from [`selector_changes`]. The rest
/// is validated as on create: upstream accepts some values that the live object already has, which
/// this function does not.
pub fn validate_update(live: &Value, desired: &Value) -> Vec<FieldError> {
    let mut errors = Errors::new();
    if selector_changes(live, desired) {
        let selector = At::root(desired).get("spec").get("selector");
        errors.push(selector.invalid_json("field is immutable"));
    }
    errors.extend(validate(desired));
    errors
}

/// `true` if the selectors differ, so that `live` would have to be deleted to become `desired`.
/// Absent, empty and null maps and lists are equal, as upstream compares them.
pub fn selector_changes(live: &Value, desired: &Value) -> bool {
    let [live, desired] =
        [live, desired].map(|object| At::root(object).get("spec").get("selector"));
    selector::parts(&live) != selector::parts(&desired)
}

/// Validates `spec` (upstream: `ValidateDaemonSetSpec`).
fn check_spec(spec: &At<'_>, errors: &mut Errors) {
    let (selector, template) = (spec.get("selector"), spec.get("template"));
    check_selector(&selector, &template.get("metadata").get("labels"), errors);
    check_template(&template, errors);
    let pod = template.get("spec");
    if pod.get("restartPolicy").text() != "Always" {
        errors.push(pod.get("restartPolicy").not_supported(&["Always"]));
    }
    if let Some(deadline) = pod.find("activeDeadlineSeconds") {
        errors.push(deadline.forbidden("activeDeadlineSeconds in DaemonSet is not Supported"));
    }
    spec.get("minReadySeconds").not_negative(errors);
    strategy::check(&spec.get("updateStrategy"), errors);
    spec.get("revisionHistoryLimit").not_negative(errors);
}

fn check_selector(selector: &At<'_>, labels: &At<'_>, errors: &mut Errors) {
    let before = errors.len();
    selector::check(selector, errors);
    if errors.len() == before && !selector::selects(selector, labels) {
        let why = "`selector` does not match template `labels`";
        errors.push(labels.invalid_as(json(labels.json()), why));
    }
    if selector.is_set() && selector::is_empty(selector) {
        errors
            .push(selector.invalid_as("{}".to_owned(), "empty selector is invalid for daemonset"));
    }
}

/// Validates `spec.template` (upstream: `ValidatePodTemplateSpec`). Errors of its metadata are
/// reported without `metadata`.
fn check_template(template: &At<'_>, errors: &mut Errors) {
    let meta = template.get("metadata");
    let labels = meta.get("labels").reported_at(template.path_of("labels"));
    let annotations = meta.get("annotations").reported_at(template.path_of("annotations"));
    let pod = template.get("spec");
    metadata::labels(&labels, errors);
    metadata::annotations(&annotations, errors);
    annotations::check(&annotations, &pod, errors);
    pod_spec::check(&pod, errors);
    annotations::check_against_fields(&annotations, &pod, errors);
    if !pod.get("ephemeralContainers").is_empty() {
        let why = "ephemeral containers not allowed in pod template";
        errors.push(pod.get("ephemeralContainers").forbidden(why));
    }
}

/// Removes duplicates: upstream's message contains equal errors once.
fn once_each(errors: Errors) -> Errors {
    let mut seen = BTreeSet::new();
    let is_first: Vec<bool> = errors.iter().map(|error| seen.insert(error)).collect();
    errors.into_iter().zip(is_first).filter_map(|(error, first)| first.then_some(error)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_valid_example_is_valid() {
        assert_eq!(validate(&table::valid()), []);
    }

    #[test]
    fn rules() {
        table::check(include_str!("validate/daemon_set.yaml"));
    }

    #[test]
    fn unusual_but_valid_objects_are_accepted() {
        table::check(include_str!("validate/accepted.yaml"));
    }

    #[test]
    fn a_selector_changes_when_its_requirements_differ() {
        for (live, desired, want) in [
            (json!({"matchLabels": {"a": "b"}}), json!({"matchLabels": {"a": "b"}}), false),
            (json!({"matchLabels": {"a": "b"}}), json!({"matchLabels": {"a": "c"}}), true),
            (
                json!({"matchLabels": {"a": "b"}, "matchExpressions": []}),
                json!({"matchLabels": {"a": "b"}}),
                false,
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]}),
                json!({"matchLabels": null, "matchExpressions": [
                    {"key": "a", "operator": "Exists", "values": []}]}),
                false,
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]}),
                json!({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}),
                true,
            ),
        ] {
            let [live_set, desired_set] =
                [&live, &desired].map(|selector| json!({"spec": {"selector": selector}}));
            assert_eq!(selector_changes(&live_set, &desired_set), want, "{live} to {desired}");
        }
    }

    #[test]
    fn an_update_may_not_change_the_selector() {
        let live = table::valid();
        let mut desired = live.clone();
        desired["spec"]["selector"] = json!({"matchLabels": {"app": "agent", "v": "2"}});
        desired["spec"]["template"]["metadata"]["labels"]["v"] = "2".into();
        assert_eq!(validate_update(&live, &live), []);
        let errors: Vec<String> =
            validate_update(&live, &desired).iter().map(ToString::to_string).collect();
        assert_eq!(
            errors,
            ["spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"agent\",\"v\":\"2\"}}: \
              field is immutable"]
        );
    }
}
