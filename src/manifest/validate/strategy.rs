//! The update strategy (upstream: `ValidateDaemonSetUpdateStrategy`).

use serde_json::Value;

use super::at::{At, Errors};
use super::go_text::json_struct;
use super::names;

/// Judges `spec.updateStrategy`. With `OnDelete` the limits are not looked at.
pub(super) fn check(strategy: &At<'_>, errors: &mut Errors) {
    match strategy.get("type").text() {
        "OnDelete" => {}
        "RollingUpdate" => match strategy.find("rollingUpdate") {
            Some(limits) => check_limits(&limits, errors),
            None => errors.push(strategy.get("rollingUpdate").required("")),
        },
        _unknown => {
            errors.push(strategy.not_supported_as(shown(strategy), &["RollingUpdate", "OnDelete"]));
        }
    }
}

/// Upstream prints the whole internal struct.
fn shown(strategy: &At<'_>) -> String {
    let limits = strategy.find("rollingUpdate").map(|limits| {
        let limit = |name| limits.find(name).map_or_else(|| "0".to_owned(), |l| l.marshalled());
        json_struct(&[("MaxUnavailable", limit("maxUnavailable")), ("MaxSurge", limit("maxSurge"))])
    });
    let limits = limits.unwrap_or_else(|| "null".to_owned());
    json_struct(&[("Type", strategy.get("type").marshalled()), ("RollingUpdate", limits)])
}

/// Exactly one of the two limits must be more than zero (upstream:
/// `ValidateRollingUpdateDaemonSet`).
fn check_limits(limits: &At<'_>, errors: &mut Errors) {
    let (unavailable, surge) = (limits.get("maxUnavailable"), limits.get("maxSurge"));
    for limit in [&unavailable, &surge] {
        match limit.json() {
            Value::String(text) => errors.extend(limit.invalids(names::percent(text))),
            _number => limit.not_negative(errors),
        }
    }
    for limit in [&unavailable, &surge] {
        if names::percent(limit.text()).is_empty() && amount(limit) > 100 {
            errors.push(limit.invalid("must not be greater than 100%"));
        }
    }
    match (amount(&unavailable) != 0, amount(&surge) != 0) {
        (true, true) => {
            errors.push(surge.invalid("may not be set when maxUnavailable is non-zero"));
        }
        (false, false) => errors.push(unavailable.required("cannot be 0 when maxSurge is 0")),
        (true, false) | (false, true) => {}
    }
}

/// The number, or the percentage, or what Go reads from the text; 0 when it reads nothing.
fn amount(limit: &At<'_>) -> i64 {
    let text = limit.text();
    let digits = text.strip_suffix('%').filter(|_| names::percent(text).is_empty());
    match digits {
        // More digits than a number holds are a large number, as in Go.
        Some(digits) => digits.parse().unwrap_or(i64::MAX),
        None => text.parse().unwrap_or_else(|_| limit.int()),
    }
}

#[cfg(test)]
mod tests {
    use crate::manifest::validate::table;

    #[test]
    fn rules() {
        table::check(include_str!("strategy.yaml"));
    }
}
