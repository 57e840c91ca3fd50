//! The update strategy (upstream: `ValidateDaemonSetUpdateStrategy`).

use super::at::At;
use super::formats::percent;
use super::go_text::{GoStruct, GoType, STRING, json_struct};
use super::rules::Rule::NotNegative;

const LIMITS: GoStruct = &[
    ("MaxUnavailable", "maxUnavailable", GoType::Or("0")),
    ("MaxSurge", "maxSurge", GoType::Or("0")),
];
const STRATEGY: GoStruct =
    &[("Type", "type", STRING), ("RollingUpdate", "rollingUpdate", GoType::Struct(LIMITS))];

/// Validates `spec.updateStrategy`. With `OnDelete`, the limits are ignored.
pub(super) fn check(strategy: &At<'_>) {
    match strategy.get("type").text() {
        "OnDelete" => {}
        "RollingUpdate" => check_limits(&strategy.get("rollingUpdate")),
        _unknown => {
            let shown = json_struct(strategy.json(), STRATEGY);
            strategy.not_supported_as(shown, &["RollingUpdate", "OnDelete"]);
        }
    }
}

/// Validates that exactly one of the two limits is more than zero (upstream:
/// `ValidateRollingUpdateDaemonSet`).
fn check_limits(limits: &At<'_>) {
    let (unavailable, surge) = (limits.get("maxUnavailable"), limits.get("maxSurge"));
    for limit in [&unavailable, &surge] {
        if limit.json().is_string() {
            limit.invalids_json(percent(limit.text()));
        } else {
            limit.check(NotNegative);
        }
    }
    for limit in [&unavailable, &surge] {
        let is_too_much = percent(limit.text()).is_empty() && amount(limit) > 100;
        limit.invalid_json_if(is_too_much, "must not be greater than 100%");
    }
    match (amount(&unavailable) != 0, amount(&surge) != 0) {
        (true, true) => surge.invalid_json("may not be set when maxUnavailable is non-zero"),
        (false, false) => unavailable.required("cannot be 0 when maxSurge is 0"),
        (true, false) | (false, true) => {}
    }
}

/// The number, or the percentage as Go parses it from the text; 0 if it cannot be parsed.
fn amount(limit: &At<'_>) -> i64 {
    let text = limit.text();
    let digits = text.strip_suffix('%').filter(|_| percent(text).is_empty());
    match digits {
        // A number that overflows is the maximum, as in Go.
        Some(digits) => digits.parse().unwrap_or(i64::MAX),
        None => text.parse().unwrap_or_else(|_| limit.int()),
    }
}
