//! Tolerations (upstream: `ValidateTolerations`).

use super::at::At;
use super::formats::{label_key, label_value};
use super::rules::Rule::{FollowsIfSet, OneOf};

/// Validates `tolerations`.
pub(super) fn check(tolerations: &At<'_>) {
    for toleration in tolerations.items() {
        let (key, operator) = (toleration.get("key"), toleration.get("operator"));
        key.check(FollowsIfSet(label_key));
        let why = "operator must be Exists when `key` is empty, which means \"match all values and \
                   all keys\"";
        operator.invalid_json_if(key.is_empty() && operator.text() != "Exists", why);
        let effect = toleration.get("effect");
        let is_evicted = toleration.get("tolerationSeconds").is_set();
        let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        effect.invalid_json_if(is_evicted && effect.text() != "NoExecute", why);
        check_value(&operator, &toleration.get("value"));
        if !effect.is_empty() {
            effect.check(OneOf(&["NoSchedule", "PreferNoSchedule", "NoExecute"]));
        }
    }
}

/// Validates the value; its errors are reported at the operator.
fn check_value(operator: &At<'_>, value: &At<'_>) {
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
