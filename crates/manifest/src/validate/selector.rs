//! Label selectors (upstream: `ValidateLabelSelector`).

use std::collections::BTreeMap;

use serde::Deserialize as _;

use super::at::At;
use super::formats::{label_key, label_value};
use super::metadata;
use super::rules::Rule::{Check, Follows};
use daemonset::model::{LabelSelector, Labels};

/// Validates a selector; an absent one is valid.
pub(super) fn check(selector: &At<'_>) {
    selector.check_fields(&[
        ("matchLabels", Check(metadata::labels)),
        ("matchExpressions[*]", Check(check_requirement)),
    ]);
}

fn check_requirement(requirement: &At<'_>) {
    operands(requirement);
    requirement.check_fields(&[("key", Follows(label_key)), ("values[*]", Follows(label_value))]);
}

/// Validates the number of a requirement's operands for its operator.
pub(super) fn operands(requirement: &At<'_>) {
    let (operator, values) = (requirement.get("operator"), requirement.get("values"));
    match operator.text() {
        "In" | "NotIn" => {
            let why = "must be specified when `operator` is 'In' or 'NotIn'";
            values.required_if(values.is_empty(), why);
        }
        "Exists" | "DoesNotExist" => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            values.forbidden_if(!values.is_empty(), why);
        }
        _unknown => operator.invalid_json("not a valid selector operator"),
    }
}

/// `true` if a valid selector selects these labels; an absent one selects nothing.
pub(super) fn selects(selector: &At<'_>, labels: &At<'_>) -> bool {
    let labels = Labels::deserialize(labels.json()).unwrap_or_default();
    selector.is_set()
        && LabelSelector::deserialize(selector.json()).is_ok_and(|s| s.matches(&labels))
}

/// The parts of a selector in a comparable form: labels, and requirements in order.
pub(super) fn parts<'a>(selector: &At<'a>) -> (BTreeMap<&'a str, &'a str>, Vec<Requirement<'a>>) {
    let labels = selector.get("matchLabels").entries().map(|(key, value)| (key, value.text()));
    let requirements = selector.get("matchExpressions").items().map(|requirement| {
        let [key, operator] = ["key", "operator"].map(|field| requirement.get(field).text());
        (key, operator, requirement.get("values").texts())
    });
    (labels.collect(), requirements.collect())
}

/// A requirement: key, operator, operands.
type Requirement<'a> = (&'a str, &'a str, Vec<&'a str>);

/// `true` if the selector selects everything.
pub(super) fn is_empty(selector: &At<'_>) -> bool {
    selector.get("matchLabels").is_empty() && selector.get("matchExpressions").is_empty()
}
