//! Affinity to nodes and to other pods (upstream: `validateAffinity`).

use std::collections::{BTreeMap, BTreeSet};

use super::at::At;
use super::formats::{dns_label, dns_subdomain, label_key, label_value};
use super::rules::Rule::{Check, Follows};
use super::selector;

pub(super) const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
pub(super) const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// Validates `affinity`.
pub(super) fn check(affinity: &At<'_>) {
    affinity.check_fields(&[
        ("nodeAffinity", Check(check_node)),
        ("podAffinity", Check(check_pods)),
        ("podAntiAffinity", Check(check_pods)),
    ]);
}

fn check_node(affinity: &At<'_>) {
    if let Some(required) = affinity.find(REQUIRED) {
        let terms = required.get("nodeSelectorTerms");
        terms.required_if(terms.is_empty(), "must have at least one node selector term");
        terms.items().for_each(|term| check_node_term(&term, true));
    }
    for preferred in affinity.get(PREFERRED).items() {
        check_weight(&preferred);
        check_node_term(&preferred.get("preference"), false);
    }
}

fn check_weight(preferred: &At<'_>) {
    let weight = preferred.get("weight");
    if !(1..=100).contains(&weight.int()) {
        weight.invalid_as(weight.int().to_string(), "must be in the range 1-100");
    }
}

/// Validates a node selector term; one without requirements is valid and matches no node. In a
/// preference, upstream accepts any value.
fn check_node_term(term: &At<'_>, is_required: bool) {
    for requirement in term.get("matchExpressions").items() {
        let values = requirement.get("values");
        if ["Gt", "Lt"].contains(&requirement.get("operator").text()) {
            let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            values.required_if(values.items().len() != 1, why);
        } else {
            selector::operands(&requirement);
        }
        requirement.get("key").check(Follows(label_key));
        for value in values.items().filter(|_| is_required) {
            value.check(Follows(label_value));
        }
    }
    term.get("matchFields").items().for_each(|requirement| check_node_field(&requirement));
}

/// Validates a `matchFields` requirement: only `metadata.name` with exactly one value is supported.
fn check_node_field(requirement: &At<'_>) {
    let (key, operator) = (requirement.get("key"), requirement.get("operator"));
    let values = requirement.get("values");
    if ["In", "NotIn"].contains(&operator.text()) {
        let why =
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
        values.required_if(values.items().len() != 1, why);
    } else {
        operator.invalid_json("not a valid selector operator");
    }
    if key.text() == "metadata.name" {
        values.items().for_each(|value| value.check(Follows(dns_subdomain)));
    } else {
        key.invalid("not a valid field selector key");
    }
}

fn check_pods(affinity: &At<'_>) {
    affinity.get(REQUIRED).items().for_each(|term| check_pod_term(&term));
    for preferred in affinity.get(PREFERRED).items() {
        check_weight(&preferred);
        check_pod_term(&preferred.get("podAffinityTerm"));
    }
}

fn check_pod_term(term: &At<'_>) {
    term.check_fields(&[
        ("labelSelector", Check(selector::check)),
        ("namespaceSelector", Check(selector::check)),
    ]);
    for namespace in term.get("namespaces").items() {
        // Upstream misspells the field.
        namespace.reported_at(term.path_of("namespace")).check(Follows(dns_label));
    }
    check_label_keys(term);
    let topology = term.get("topologyKey");
    topology.required_if(topology.is_empty(), "can not be empty");
    topology.check(Follows(label_key));
}

/// Validates `matchLabelKeys` and `mismatchLabelKeys` of a term or a spread constraint (upstream:
/// `ValidateMatchLabelKeysAndMismatchLabelKeys`).
pub(super) fn check_label_keys(term: &At<'_>) {
    let selector = term.get("labelSelector");
    let (matching, differing) = (term.get("matchLabelKeys"), term.get("mismatchLabelKeys"));
    for keys in [&matching, &differing] {
        if selector.is_set() || keys.is_empty() {
            keys.items().for_each(|key| key.check(Follows(label_key)));
        } else {
            keys.forbidden("must not be specified when labelSelector is not set");
        }
    }
    check_keys_of_selector(term, &matching, &selector);
    let differing: BTreeSet<&str> = differing.texts().into_iter().collect();
    for key in matching.items() {
        let both = differing.contains(key.text());
        key.invalid_if(both, "exists in both matchLabelKeys and mismatchLabelKeys");
    }
}

/// The server merges the keys into the selector when it creates a pod, so only a key that occurs
/// twice in the selector is an error. Reported at the term, with the key's index.
fn check_keys_of_selector(term: &At<'_>, keys: &At<'_>, selector: &At<'_>) {
    // For a duplicate key, the last index.
    let keys: BTreeMap<&str, usize> =
        keys.texts().into_iter().enumerate().map(|(i, key)| (key, i)).collect();
    let mut selected: BTreeSet<&str> =
        selector.get("matchLabels").entries().map(|(key, _)| key).collect();
    for requirement in selector.get("matchExpressions").items() {
        let key = requirement.get("key");
        if !selected.insert(key.text())
            && let Some(i) = keys.get(key.text())
        {
            let key = key.reported_at(format!("{}[{i}]", term.path()));
            key.invalid("exists in both matchLabelKeys and labelSelector");
        }
    }
}
