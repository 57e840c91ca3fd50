//! Tolerations (upstream: `ValidateTolerations`).

use super::at::{At, Errors};
use super::names;

/// Validates `tolerations`.
pub(super) fn check(tolerations: &At<'_>, errors: &mut Errors) {
    for toleration in tolerations.items() {
        let (key, operator) = (toleration.get("key"), toleration.get("operator"));
        key.follows_if_set(names::label_key, errors);
        if key.is_empty() && operator.text() != "Exists" {
            let why = "operator must be Exists when `key` is empty, which means \"match all values \
                       and all keys\"";
            errors.push(operator.invalid_json(why));
        }
        let effect = toleration.get("effect");
        if toleration.get("tolerationSeconds").is_set() && effect.text() != "NoExecute" {
            errors.push(
                effect.invalid_json("effect must be 'NoExecute' when `tolerationSeconds` is set"),
            );
        }
        check_value(&operator, &toleration.get("value"), errors);
        if !effect.is_empty() {
            effect.one_of(&["NoSchedule", "PreferNoSchedule", "NoExecute"], errors);
        }
    }
}

/// Validates the value; its errors are reported at the operator.
fn check_value(operator: &At<'_>, value: &At<'_>, errors: &mut Errors) {
    let at_operator = value.clone().reported_at(operator.path());
    match operator.text() {
        "" | "Equal" => {
            let complaints = names::label_value(value.text());
            if !complaints.is_empty() {
                errors.push(at_operator.invalid(&complaints.join(";")));
            }
        }
        "Exists" => {
            if !value.is_empty() {
                errors.push(at_operator.invalid("value must be empty when `operator` is 'Exists'"));
            }
        }
        // `Lt` and `Gt` belong to a feature gate that is off by default, but upstream lists them.
        "Lt" | "Gt" => errors.push(operator.not_supported(&["Equal", "Exists", "Lt", "Gt"])),
        _unknown => errors.push(operator.not_supported(&["Equal", "Exists"])),
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::table;

    #[test]
    fn rules() {
        table::check(include_str!("tolerations.yaml"));
    }
}
