//! The update strategy (upstream: `ValidateDaemonSetUpdateStrategy`).

use serde_json::Value;

use super::at::{At, Errors};
use super::go_text::json_struct;
use super::names;

/// Validates `spec.updateStrategy`. With `OnDelete`, the limits are ignored.
pub(super) fn check(strategy: &At<'_>, errors: &mut Errors) {
    match strategy.get("type").text() {
        "OnDelete" => {}
        "RollingUpdate" => check_limits(&strategy.get("rollingUpdate"), errors),
        _unknown => {
            errors.push(strategy.not_supported_as(shown(strategy), &["RollingUpdate", "OnDelete"]));
        }
    }
}

/// The strategy as upstream prints its internal struct.
fn shown(strategy: &At<'_>) -> String {
    let limits = strategy.find("rollingUpdate").map(|limits| {
        let limit = |name| limits.find(name).map_or_else(|| "0".to_owned(), |l| l.marshalled());
        json_struct(&[("MaxUnavailable", limit("maxUnavailable")), ("MaxSurge", limit("maxSurge"))])
    });
    let limits = limits.unwrap_or_else(|| "null".to_owned());
    json_struct(&[("Type", strategy.get("type").marshalled()), ("RollingUpdate", limits)])
}

/// Validates that exactly one of the two limits is more than zero (upstream:
/// `ValidateRollingUpdateDaemonSet`).
fn check_limits(limits: &At<'_>, errors: &mut Errors) {
    let (unavailable, surge) = (limits.get("maxUnavailable"), limits.get("maxSurge"));
    for limit in [&unavailable, &surge] {
        match limit.json() {
            Value::String(text) => errors.extend(limit.invalids_json(names::percent(text))),
            _number => limit.not_negative(errors),
        }
    }
    for limit in [&unavailable, &surge] {
        if names::percent(limit.text()).is_empty() && amount(limit) > 100 {
            errors.push(limit.invalid_json("must not be greater than 100%"));
        }
    }
    match (amount(&unavailable) != 0, amount(&surge) != 0) {
        (true, true) => {
            errors.push(surge.invalid_json("may not be set when maxUnavailable is non-zero"));
        }
        (false, false) => errors.push(unavailable.required("cannot be 0 when maxSurge is 0")),
        (true, false) | (false, true) => {}
    }
}

/// The number, or the percentage as Go parses it from the text; 0 if it cannot be parsed.
fn amount(limit: &At<'_>) -> i64 {
    let text = limit.text();
    let digits = text.strip_suffix('%').filter(|_| names::percent(text).is_empty());
    match digits {
        // A number that overflows is the maximum, as in Go.
        Some(digits) => digits.parse().unwrap_or(i64::MAX),
        None => text.parse().unwrap_or_else(|_| limit.int()),
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::table;

    #[test]
    fn rules() {
        table::check(include_str!("strategy.yaml"));
    }
}
