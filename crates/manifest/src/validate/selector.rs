//! Label selectors (upstream: `ValidateLabelSelector`).

use std::collections::BTreeMap;

use serde::Deserialize as _;

use super::at::{At, Errors};
use super::{metadata, names};
use daemonset::model::{LabelSelector, Labels};

/// Validates a selector; an absent one is valid.
pub(super) fn check(selector: &At<'_>, errors: &mut Errors) {
    metadata::labels(&selector.get("matchLabels"), errors);
    for requirement in selector.get("matchExpressions").items() {
        check_requirement(&requirement, errors);
    }
}

fn check_requirement(requirement: &At<'_>, errors: &mut Errors) {
    let (operator, values) = (requirement.get("operator"), requirement.get("values"));
    operands(&operator, &values, errors);
    requirement.get("key").follows(names::label_key, errors);
    for value in values.items() {
        value.follows(names::label_value, errors);
    }
}

/// Validates the number of operands for the operator.
pub(super) fn operands(operator: &At<'_>, values: &At<'_>, errors: &mut Errors) {
    match operator.text() {
        "In" | "NotIn" if values.is_empty() => {
            let why = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(values.required(why));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(values.forbidden(why));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        _unknown => errors.push(operator.invalid_json("not a valid selector operator")),
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
