//! Topology spread constraints (upstream: `validateTopologySpreadConstraints`).

use std::collections::BTreeMap;

use super::affinity;
use super::at::At;
use super::go_text::quoted;
use super::rules::Rule::{Check, OneOf, OneOfIfSet};
use super::selector;

const POLICIES: &[&str] = &["Honor", "Ignore"];

/// Validates `topologySpreadConstraints`.
pub(super) fn check(constraints: &At<'_>) {
    let last: BTreeMap<String, usize> =
        constraints.items().enumerate().map(|(i, constraint)| (kind(&constraint), i)).collect();
    for (i, constraint) in constraints.items().enumerate() {
        let topology = constraint.get("topologyKey");
        positive(&constraint.get("maxSkew"));
        topology.required_if(topology.is_empty(), "can not be empty");
        constraint.get("whenUnsatisfiable").check(OneOf(&["DoNotSchedule", "ScheduleAnyway"]));
        // A constraint's key and action are unique; reported at the first of two.
        let kind = kind(&constraint);
        if last.get(&kind) != Some(&i) {
            constraint.get("{topologyKey, whenUnsatisfiable}").duplicate_as(quoted(&kind));
        }
        check_min_domains(&constraint);
        constraint.check_fields(&[
            ("nodeAffinityPolicy", OneOfIfSet(POLICIES)),
            ("nodeTaintsPolicy", OneOfIfSet(POLICIES)),
        ]);
        affinity::check_label_keys(&constraint);
        constraint.check_fields(&[("labelSelector", Check(selector::check))]);
    }
}

fn positive(number: &At<'_>) {
    if number.int() <= 0 {
        number.invalid_as(number.int().to_string(), "must be greater than zero");
    }
}

/// The key and action that must be unique.
fn kind(constraint: &At<'_>) -> String {
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
