//! The fields of the pod that the scheduler reads: affinity to nodes and to other pods, topology
//! spread constraints, tolerations.

use std::collections::{BTreeMap, BTreeSet};

use super::at::At;
use super::formats::{dns_label, dns_subdomain, label_key, label_value};
use super::go_text::quoted;
use super::rules::Rule::{Check, Follows, FollowsIfNotEmpty, OneOf, OneOfIfSet, RequiredBecause};
use super::selector;

const POLICIES: &[&str] = &["Honor", "Ignore"];
/// The required terms of affinity to nodes, a list in a struct.
pub(super) const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
/// The required terms of affinity to pods.
pub(super) const REQUIRED_TERMS: &str = "requiredDuringSchedulingIgnoredDuringExecution[*]";
/// The preferred terms of both, with weights.
pub(super) const PREFERRED_TERMS: &str = "preferredDuringSchedulingIgnoredDuringExecution[*]";

/// Validates `affinity` (upstream: `validateAffinity`).
pub(super) fn check_affinity(affinity: &At<'_>) {
    affinity.check_fields(&[
        ("nodeAffinity", Check(check_node)),
        ("podAffinity", Check(check_pods)),
        ("podAntiAffinity", Check(check_pods)),
    ]);
}

fn check_node(affinity: &At<'_>) {
    if let Some(required) = affinity.find(REQUIRED) {
        let why = "must have at least one node selector term";
        required.get("nodeSelectorTerms").check(RequiredBecause(why));
        required.each("nodeSelectorTerms[*]").iter().for_each(|term| check_node_term(term, true));
    }
    for preferred in affinity.each(PREFERRED_TERMS) {
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
        if is_required {
            requirement.check_fields(&[("values[*]", Follows(label_value))]);
        }
    }
    term.check_fields(&[("matchFields[*]", Check(check_node_field))]);
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
        requirement.check_fields(&[("values[*]", Follows(dns_subdomain))]);
    } else {
        key.invalid("not a valid field selector key");
    }
}

fn check_pods(affinity: &At<'_>) {
    affinity.each(REQUIRED_TERMS).iter().for_each(check_pod_term);
    for preferred in affinity.each(PREFERRED_TERMS) {
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
    term.check_fields(&[
        ("topologyKey", RequiredBecause("can not be empty")),
        ("topologyKey", Follows(label_key)),
    ]);
}

/// Validates `matchLabelKeys` and `mismatchLabelKeys` of a term or a spread constraint (upstream:
/// `ValidateMatchLabelKeysAndMismatchLabelKeys`).
fn check_label_keys(term: &At<'_>) {
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

/// Validates `topologySpreadConstraints` (upstream: `validateTopologySpreadConstraints`).
pub(super) fn check_spread(constraints: &At<'_>) {
    let last: BTreeMap<String, usize> = constraints
        .items()
        .enumerate()
        .map(|(i, constraint)| (key_and_action(&constraint), i))
        .collect();
    for (i, constraint) in constraints.items().enumerate() {
        positive(&constraint.get("maxSkew"));
        constraint.check_fields(&[
            ("topologyKey", RequiredBecause("can not be empty")),
            ("whenUnsatisfiable", OneOf(&["DoNotSchedule", "ScheduleAnyway"])),
        ]);
        // A constraint's key and action are unique; reported at the first of two.
        let unique = key_and_action(&constraint);
        if last.get(&unique) != Some(&i) {
            constraint.get("{topologyKey, whenUnsatisfiable}").duplicate_as(quoted(&unique));
        }
        check_min_domains(&constraint);
        constraint.check_fields(&[
            ("nodeAffinityPolicy", OneOfIfSet(POLICIES)),
            ("nodeTaintsPolicy", OneOfIfSet(POLICIES)),
        ]);
        check_label_keys(&constraint);
        constraint.check_fields(&[("labelSelector", Check(selector::check))]);
    }
}

fn positive(number: &At<'_>) {
    if number.int() <= 0 {
        number.invalid_as(number.int().to_string(), "must be greater than zero");
    }
}

/// The key and action that must be unique.
fn key_and_action(constraint: &At<'_>) -> String {
    let [key, action] =
        ["topologyKey", "whenUnsatisfiable"].map(|field| constraint.get(field).text());
    format!("{{{key}, {action}}}")
}

fn check_min_domains(constraint: &At<'_>) {
    let Some(domains) = constraint.find("minDomains") else { return };
    positive(&domains);
    let action = constraint.get("whenUnsatisfiable").text();
    let why = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
    domains.invalid_if(action != "DoNotSchedule", &why);
}

/// Validates a toleration (upstream: `ValidateTolerations`).
pub(super) fn check_toleration(toleration: &At<'_>) {
    let (key, operator) = (toleration.get("key"), toleration.get("operator"));
    key.check(FollowsIfNotEmpty(label_key));
    let why = "operator must be Exists when `key` is empty, which means \"match all values and \
               all keys\"";
    operator.invalid_json_if(key.is_empty() && operator.text() != "Exists", why);
    let effect = toleration.get("effect");
    let is_evicted = toleration.get("tolerationSeconds").is_set();
    let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
    effect.invalid_json_if(is_evicted && effect.text() != "NoExecute", why);
    check_tolerated_value(&operator, &toleration.get("value"));
    if !effect.is_empty() {
        effect.check(OneOf(&["NoSchedule", "PreferNoSchedule", "NoExecute"]));
    }
}

/// Validates the value; its errors are reported at the operator.
fn check_tolerated_value(operator: &At<'_>, value: &At<'_>) {
    let value = value.clone().reported_at(operator.path());
    match operator.text() {
        "" | "Equal" => {
            let complaints = label_value(value.text());
            value.invalid_if(!complaints.is_empty(), &complaints.join(";"));
        }
        "Exists" => {
            value.invalid_if(!value.is_empty(), "value must be empty when `operator` is 'Exists'");
        }
        // `Lt` and `Gt` belong to a feature gate that is off by default, but upstream lists them.
        "Lt" | "Gt" => operator.not_supported(&["Equal", "Exists", "Lt", "Gt"]),
        _unknown => operator.not_supported(&["Equal", "Exists"]),
    }
}
