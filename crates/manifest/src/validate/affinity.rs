//! Affinity to nodes and to other pods (upstream: `validateAffinity`).

use std::collections::{BTreeMap, BTreeSet};

use super::at::{At, Errors};
use super::{names, selector};

const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// Validates `affinity`.
pub(super) fn check(affinity: &At<'_>, errors: &mut Errors) {
    check_node(&affinity.get("nodeAffinity"), errors);
    check_pods(&affinity.get("podAffinity"), errors);
    check_pods(&affinity.get("podAntiAffinity"), errors);
}

fn check_node(affinity: &At<'_>, errors: &mut Errors) {
    if let Some(required) = affinity.find(REQUIRED) {
        let terms = required.get("nodeSelectorTerms");
        if terms.is_empty() {
            errors.push(terms.required("must have at least one node selector term"));
        }
        for term in terms.items() {
            check_node_term(&term, names::label_value, errors);
        }
    }
    for preferred in affinity.get(PREFERRED).items() {
        check_weight(&preferred, errors);
        // Upstream accepts any value in a preference.
        check_node_term(&preferred.get("preference"), |_any| vec![], errors);
    }
}

fn check_weight(preferred: &At<'_>, errors: &mut Errors) {
    let weight = preferred.get("weight");
    if !(1..=100).contains(&weight.int()) {
        let shown = weight.int().to_string();
        errors.push(weight.invalid_as(shown, "must be in the range 1-100"));
    }
}

/// Validates a node selector term; one without requirements is valid and matches no node.
fn check_node_term(term: &At<'_>, value: fn(&str) -> Vec<String>, errors: &mut Errors) {
    for requirement in term.get("matchExpressions").items() {
        check_node_operands(&requirement, errors);
        requirement.get("key").follows(names::label_key, errors);
        for operand in requirement.get("values").items() {
            operand.follows(value, errors);
        }
    }
    for requirement in term.get("matchFields").items() {
        check_node_field(&requirement, errors);
    }
}

fn check_node_operands(requirement: &At<'_>, errors: &mut Errors) {
    let (operator, values) = (requirement.get("operator"), requirement.get("values"));
    match operator.text() {
        "Gt" | "Lt" => {
            if values.items().len() != 1 {
                let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                errors.push(values.required(why));
            }
        }
        _of_labels_too => selector::operands(&operator, &values, errors),
    }
}

/// Validates a `matchFields` requirement: only `metadata.name` with exactly one value is supported.
fn check_node_field(requirement: &At<'_>, errors: &mut Errors) {
    let (key, operator) = (requirement.get("key"), requirement.get("operator"));
    let values = requirement.get("values");
    if !["In", "NotIn"].contains(&operator.text()) {
        errors.push(operator.invalid_json("not a valid selector operator"));
    } else if values.items().len() != 1 {
        let why =
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
        errors.push(values.required(why));
    }
    if key.text() == "metadata.name" {
        for value in values.items() {
            value.follows(names::dns_subdomain, errors);
        }
    } else {
        errors.push(key.invalid("not a valid field selector key"));
    }
}

fn check_pods(affinity: &At<'_>, errors: &mut Errors) {
    for term in affinity.get(REQUIRED).items() {
        check_pod_term(&term, errors);
    }
    for preferred in affinity.get(PREFERRED).items() {
        check_weight(&preferred, errors);
        check_pod_term(&preferred.get("podAffinityTerm"), errors);
    }
}

fn check_pod_term(term: &At<'_>, errors: &mut Errors) {
    selector::check(&term.get("labelSelector"), errors);
    selector::check(&term.get("namespaceSelector"), errors);
    for namespace in term.get("namespaces").items() {
        // Upstream misspells the field.
        namespace.reported_at(term.path_of("namespace")).follows(names::dns_label, errors);
    }
    check_label_keys(term, errors);
    let topology = term.get("topologyKey");
    if topology.is_empty() {
        errors.push(topology.required("can not be empty"));
    }
    topology.follows(names::label_key, errors);
}

/// Validates `matchLabelKeys` and `mismatchLabelKeys` of a term or a spread constraint (upstream:
/// `ValidateMatchLabelKeysAndMismatchLabelKeys`).
pub(super) fn check_label_keys(term: &At<'_>, errors: &mut Errors) {
    let selector = term.get("labelSelector");
    let (matching, differing) = (term.get("matchLabelKeys"), term.get("mismatchLabelKeys"));
    for keys in [&matching, &differing] {
        if !selector.is_set() && !keys.is_empty() {
            errors.push(keys.forbidden("must not be specified when labelSelector is not set"));
            continue;
        }
        for key in keys.items() {
            key.follows(names::label_key, errors);
        }
    }
    check_keys_of_selector(term, &matching, &selector, errors);
    let differing: BTreeSet<&str> = differing.texts().into_iter().collect();
    for key in matching.items().filter(|key| differing.contains(key.text())) {
        errors.push(key.invalid("exists in both matchLabelKeys and mismatchLabelKeys"));
    }
}

/// The server merges the keys into the selector when it creates a pod, so only a key that occurs
/// twice in the selector is an error. Reported at the term, with the key's index.
fn check_keys_of_selector(term: &At<'_>, keys: &At<'_>, selector: &At<'_>, errors: &mut Errors) {
    // For a duplicate key, the last index.
    let keys: BTreeMap<&str, usize> =
        keys.texts().into_iter().enumerate().map(|(i, key)| (key, i)).collect();
    let mut selected: BTreeSet<&str> =
        selector.get("matchLabels").entries().map(|(key, _)| key).collect();
    for requirement in selector.get("matchExpressions").items() {
        let key = requirement.get("key");
        let listed = keys.get(key.text());
        if let Some(i) = listed.filter(|_| selected.contains(key.text())) {
            let key = key.clone().reported_at(format!("{}[{i}]", term.path()));
            errors.push(key.invalid("exists in both matchLabelKeys and labelSelector"));
        }
        selected.insert(key.text());
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::table;

    #[test]
    fn rules() {
        table::check(include_str!("affinity.yaml"));
    }
}
