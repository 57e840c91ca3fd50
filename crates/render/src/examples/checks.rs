//! A report about checks.

use serde_json::json;

use planner::check_report::CheckReport;

/// A gate that one of two nodes fails, and a precondition that passes.
pub(crate) fn checks() -> CheckReport {
    let point = |minute: u32, value: &str| json!({"at": format!("2026-08-01T11:{minute:02}:00Z"), "value": value});
    let series = |node: &str, value: &str| json!({"labels": [format!("node={node}")], "worst": value, "last": value});
    let reason = json!({
        "message": "0.25 at 2026-08-01T11:12:00Z, at most 0.01 allowed, of {node=a-04}",
        "code": "outOfBounds", "series": "node=a-04", "value": "0.25",
        "at": "2026-08-01T11:12:00Z", "max": 0.01, "failed": 1, "samples": 1, "allowed": 0,
        "others": 0,
    });
    let gate = json!({
        "check": "errors", "role": "gate", "asks": "rate(errors[5m]), at most 0.01",
        "answer": "fail", "reason": reason, "series": 2, "max": 0.01,
        "points": [point(10, "0"), point(11, "0.125"), point(12, "0.25")],
        "each": [series("a-04", "0.25"), series("a-05", "0")],
    });
    let precondition = json!({
        "check": "quiet", "role": "precondition", "asks": "https://x.example has status 200",
        "answer": "pass", "series": 0,
    });
    let warning = json!({
        "code": "checkAlwaysPasses", "message": "quiet always passes",
        "daemonSet": "logging/agent", "nodes": [],
    });
    let report = json!({
        "apiVersion": "ds-plan.dev/v1alpha1", "kind": "CheckReport",
        "cluster": {"name": "prod-eu", "observedAt": "2026-08-01T12:00:00Z", "nodes": 12},
        "daemonSets": [{
            "namespace": "logging", "name": "agent", "nodes": 2, "others": 10,
            "isRollingOut": true, "checks": [precondition, gate],
        }],
        "warnings": [warning],
    });
    serde_json::from_value(report).unwrap()
}
