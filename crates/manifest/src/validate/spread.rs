//! Topology spread constraints (upstream: `validateTopologySpreadConstraints`).

use std::collections::BTreeMap;

use super::at::{At, Errors};
use super::go_text::quoted;
use super::{affinity, selector};

/// Validates `topologySpreadConstraints`.
pub(super) fn check(constraints: &At<'_>, errors: &mut Errors) {
    let last: BTreeMap<String, usize> =
        constraints.items().enumerate().map(|(i, constraint)| (kind(&constraint), i)).collect();
    for (i, constraint) in constraints.items().enumerate() {
        positive(&constraint.get("maxSkew"), errors);
        let (topology, action) =
            (constraint.get("topologyKey"), constraint.get("whenUnsatisfiable"));
        if topology.is_empty() {
            errors.push(topology.required("can not be empty"));
        }
        action.one_of(&["DoNotSchedule", "ScheduleAnyway"], errors);
        check_unique(&constraint, last.get(&kind(&constraint)) == Some(&i), errors);
        check_min_domains(&constraint, errors);
        for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            constraint.get(policy).one_of_if_set(&["Honor", "Ignore"], errors);
        }
        affinity::check_label_keys(&constraint, errors);
        selector::check(&constraint.get("labelSelector"), errors);
    }
}

fn positive(number: &At<'_>, errors: &mut Errors) {
    if number.int() <= 0 {
        errors.push(number.invalid_as(number.int().to_string(), "must be greater than zero"));
    }
}

/// Validates that there is one constraint for each key and action; reported at the first of two.
fn check_unique(constraint: &At<'_>, is_last: bool, errors: &mut Errors) {
    if !is_last {
        let at = constraint.get("{topologyKey, whenUnsatisfiable}");
        errors.push(at.duplicate_as(quoted(&kind(constraint))));
    }
}

/// The key and action that must be unique.
fn kind(constraint: &At<'_>) -> String {
    let [key, action] =
        ["topologyKey", "whenUnsatisfiable"].map(|field| constraint.get(field).text().to_owned());
    format!("{{{key}, {action}}}")
}

fn check_min_domains(constraint: &At<'_>, errors: &mut Errors) {
    let Some(domains) = constraint.find("minDomains") else { return };
    positive(&domains, errors);
    let action = constraint.get("whenUnsatisfiable").text();
    if action != "DoNotSchedule" {
        let why =
            format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
        errors.push(domains.invalid(&why));
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::table;

    #[test]
    fn rules() {
        table::check(include_str!("spread.yaml"));
    }
}
