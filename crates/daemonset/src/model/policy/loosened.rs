//! Whether a changed policy is looser than before.

use std::fmt::Display;

use super::{
    Bound, Check, CheckKind, Deadline, Domains, EmptyAnswer, OnFailure, PolicySpec, PolicyStep,
    PrePull, PrometheusCheck, Ramp, WhileWaiting, Window,
};
use crate::model::IntOrPercent;
use crate::model::min_ready::DEFAULT as DEFAULT_MIN_READY;

impl PolicySpec {
    /// The fields that `after` loosens, one text per field. Different values that cannot be
    /// compared, such as a number of nodes and a percentage, count as loosened.
    pub fn loosened_by(&self, after: &Self) -> Vec<String> {
        // `selects` has no order of strictness.
        let Self {
            selects: _,
            managed_by,
            on_failure,
            max_unavailable,
            min_ready_seconds,
            ramp,
            progress_deadline,
            skip_unready_nodes,
            max_restarts,
            after: predecessors,
            shared_budget,
            domains,
            steps,
            windows,
            exclusions,
            gates,
            pre_pull,
            preconditions,
            while_waiting,
            max_duration,
        } = self;
        let (was, is) = (skip_unready_nodes.max, after.skip_unready_nodes.max);
        let found = [
            max_unavailable_loosened(*max_unavailable, after.max_unavailable),
            min_ready_loosened(*min_ready_seconds, after.min_ready_seconds),
            (*ramp == Ramp::Double && after.ramp == Ramp::None)
                .then(|| differs("ramp", "double", "none")),
            progress_deadline_loosened(*progress_deadline, after.progress_deadline),
            allows_more(Some(was), Some(is)).then(|| differs("skipUnreadyNodes", was, is)),
            (after.max_restarts > *max_restarts)
                .then(|| differs("maxRestarts", max_restarts, after.max_restarts)),
            (on_failure != &after.on_failure && after.on_failure != OnFailure::Abort)
                .then(|| differs("onFailure", on_failure, after.on_failure)),
            (managed_by != &after.managed_by)
                .then(|| differs("managedBy", managed_by, after.managed_by)),
            (!contains(&after.after, predecessors))
                .then(|| differs("after", listed(predecessors), listed(&after.after))),
            shared_budget_loosened(*shared_budget, after.shared_budget),
            domains_loosened(domains.as_ref(), after.domains.as_ref()),
            (!keep_all(steps, &after.steps))
                .then(|| differs("steps", listed(steps), listed(&after.steps))),
            windows_loosened(windows, &after.windows),
            (!contains(&after.exclusions, exclusions))
                .then(|| differs("exclusions", listed(exclusions), listed(&after.exclusions))),
            (!keep_checks(preconditions, &after.preconditions)).then(|| {
                differs("preconditions", listed(preconditions), listed(&after.preconditions))
            }),
            (!keep_checks(gates, &after.gates))
                .then(|| differs("gates", listed(gates), listed(&after.gates))),
            pre_pull_loosened(*pre_pull, after.pre_pull),
            (*while_waiting == WhileWaiting::LastGood
                && after.while_waiting == WhileWaiting::Target)
                .then(|| differs("whileWaiting", "lastGood", "target")),
            max_duration_loosened(*max_duration, after.max_duration),
        ];
        found.into_iter().flatten().collect()
    }
}

/// `maxUnavailable from 1 to 2`.
fn differs(field: &str, before: impl Display, after: impl Display) -> String {
    format!("{field} from {before} to {after}")
}

fn max_unavailable_loosened(
    before: Option<IntOrPercent>,
    after: Option<IntOrPercent>,
) -> Option<String> {
    allows_more(before, after).then(|| differs("maxUnavailable", or_none(before), or_none(after)))
}

fn shared_budget_loosened(
    before: Option<IntOrPercent>,
    after: Option<IntOrPercent>,
) -> Option<String> {
    allows_more(before, after).then(|| differs("sharedBudget", or_none(before), or_none(after)))
}

fn min_ready_loosened(before: Option<u32>, after: Option<u32>) -> Option<String> {
    let is_looser = match (before, after) {
        (Some(before), Some(after)) => after < before,
        // The default is 0 if there is a readiness probe.
        (Some(before), None) => before > 0,
        (None, Some(after)) => after < DEFAULT_MIN_READY,
        (None, None) => false,
    };
    let text = |seconds: Option<u32>| {
        seconds.map_or("the default".to_owned(), |seconds| seconds.to_string())
    };
    is_looser.then(|| differs("minReadySeconds", text(before), text(after)))
}

fn progress_deadline_loosened(before: Deadline, after: Deadline) -> Option<String> {
    (after.0 > before.0).then(|| differs("progressDeadline", seconds(before), seconds(after)))
}

/// Fewer windows are stricter, none at all are looser.
fn windows_loosened(before: &[Window], after: &[Window]) -> Option<String> {
    let is_looser = !before.is_empty() && (after.is_empty() || !contains(before, after));
    is_looser.then(|| differs("windows", listed(before), listed(after)))
}

fn max_duration_loosened(before: Option<Deadline>, after: Option<Deadline>) -> Option<String> {
    let is_looser = match (before, after) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(before), Some(after)) => after.0 > before.0,
    };
    is_looser.then(|| {
        let text = |limit: Option<Deadline>| or_none(limit.map(seconds));
        differs("maxDuration", text(before), text(after))
    })
}

/// More nodes that pull at once are a burden on the registry and the network.
fn pre_pull_loosened(before: Option<PrePull>, after: Option<PrePull>) -> Option<String> {
    let is_looser = match (before, after) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(PrePull { parallel, timeout }), Some(after)) => {
            after.parallel > parallel || after.timeout.0 > timeout.0
        }
    };
    let text = |it: PrePull| format!("{} at once, {}", it.parallel, seconds(it.timeout));
    is_looser.then(|| differs("prePull", or_none(before.map(text)), or_none(after.map(text))))
}

fn domains_loosened(before: Option<&Domains>, after: Option<&Domains>) -> Option<String> {
    let is_looser = match (before, after) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(before), Some(after)) => {
            let Domains { key, at_once, max_unavailable, first, soak } = before;
            key != &after.key
                || after.at_once > *at_once
                || allows_more(*max_unavailable, after.max_unavailable)
                || first != &after.first
                || after.soak < *soak
        }
    };
    is_looser.then(|| differs("domains", or_none(before), or_none(after)))
}

/// Whether all steps are kept, in their order and as strict as before. Others may be added between
/// them.
fn keep_all(before: &[PolicyStep], after: &[PolicyStep]) -> bool {
    let mut after = after.iter();
    before.iter().all(|step| after.any(|now| keeps(step, now)))
}

fn keeps(before: &PolicyStep, after: &PolicyStep) -> bool {
    let PolicyStep { name, nodes, spread, max_unavailable, approve, soak } = before;
    name == &after.name
        && nodes == &after.nodes
        && spread == &after.spread
        && !allows_more(*max_unavailable, after.max_unavailable)
        && *approve <= after.approve
        && *soak <= after.soak
}

/// Whether all checks are kept, as strict as before. Others may be added.
fn keep_checks(before: &[Check], after: &[Check]) -> bool {
    before.iter().all(|check| after.iter().any(|now| keeps_check(check, now)))
}

fn keeps_check(before: &Check, after: &Check) -> bool {
    let Check { name, interval, delay, allow, unknown_for, kind } = before;
    name == &after.name
        && after.interval <= *interval
        && after.delay <= *delay
        && after.allow <= *allow
        && after.unknown_for <= *unknown_for
        && keeps_kind(kind, &after.kind)
}

/// Bounds can be compared; everything else has to be the same.
fn keeps_kind(before: &CheckKind, after: &CheckKind) -> bool {
    let (CheckKind::Prometheus(was), CheckKind::Prometheus(is)) = (before, after) else {
        return before == after;
    };
    let PrometheusCheck { address, query, min, max, empty } = was;
    let is_within = |was: Option<Bound>, is: Option<Bound>, fits: fn(Bound, Bound) -> bool| {
        was.is_none_or(|was| is.is_some_and(|is| fits(was, is)))
    };
    let is_empty_kept = match (empty, is.empty) {
        (EmptyAnswer::Pass, _) | (_, EmptyAnswer::Fail) => true,
        (EmptyAnswer::Unknown, after) => after != EmptyAnswer::Pass,
        (EmptyAnswer::Fail, EmptyAnswer::Pass | EmptyAnswer::Unknown) => false,
    };
    (address, query) == (&is.address, &is.query)
        && is_within(*min, is.min, |was, is| is >= was)
        && is_within(*max, is.max, |was, is| is <= was)
        && is_empty_kept
}

/// Whether the first list has all items of the second one.
fn contains<T: PartialEq>(list: &[T], items: &[T]) -> bool {
    items.iter().all(|item| list.contains(item))
}

fn seconds(deadline: Deadline) -> String {
    format!("{} s", deadline.0)
}

fn or_none(value: Option<impl Display>) -> String {
    value.map_or_else(|| "none".to_owned(), |value| value.to_string())
}

/// Whether the second limit may be wider than the first one.
fn allows_more(before: Option<IntOrPercent>, after: Option<IntOrPercent>) -> bool {
    match (before, after) {
        (None, _) => false,
        (Some(IntOrPercent::Int(before)), Some(IntOrPercent::Int(after)))
        | (Some(IntOrPercent::Percent(before)), Some(IntOrPercent::Percent(after))) => {
            after > before
        }
        // A number and a percentage cannot be compared: it depends on the cluster.
        (Some(_), None)
        | (Some(IntOrPercent::Int(_)), Some(IntOrPercent::Percent(_)))
        | (Some(IntOrPercent::Percent(_)), Some(IntOrPercent::Int(_))) => true,
    }
}

/// The items as text, separated by semicolons.
fn listed(items: &[impl Display]) -> String {
    if items.is_empty() {
        return "none".to_owned();
    }
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Fields of a policy before, those after, and the beginning of the text; empty if the policy
    /// is not looser.
    fn cases() -> Vec<(Value, Value, &'static str)> {
        let steps = |steps: &[&str]| {
            let step = |text: &&str| {
                let (name, nodes) = text.split_once(' ').unwrap();
                let (nodes, rest) = nodes.split_once(' ').unwrap_or((nodes, ""));
                let mut step = json!({"name": name, "nodes": nodes});
                for word in rest.split_whitespace() {
                    match word.split_once('=') {
                        Some((field, value)) => step[field] = value.into(),
                        None => step["approve"] = true.into(),
                    }
                }
                step
            };
            json!({"steps": steps.iter().map(step).collect::<Vec<_>>()})
        };
        let domains = |change: &Value| {
            let mut domains = json!({
                "key": "zone", "atOnce": 2, "maxUnavailable": "20%", "first": ["c"], "soak": "15m"
            });
            domains.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            json!({"domains": domains})
        };
        let same = || domains(&json!({}));
        let canary = || steps(&["canary 5% maxUnavailable=2 soak=1h"]);
        let night = || json!({"windows": [{"schedule": "0 2 * * *", "duration": "3h"}]});
        let freeze = || {
            json!({"exclusions": [
                {"from": "2026-12-18T00:00:00Z", "to": "2027-01-04T00:00:00Z", "reason": "freeze"}
            ]})
        };
        vec![
            (json!({"after": ["a/b", "a/c"]}), json!({"after": ["a/c"]}), "after from a/b; a/c to"),
            (json!({"after": ["a/b"]}), json!({"after": ["a/c", "a/b"]}), ""),
            (json!({}), json!({"after": ["a/b"]}), ""),
            (json!({"sharedBudget": 3}), json!({}), "sharedBudget from 3 to none"),
            (
                json!({"sharedBudget": 3}),
                json!({"sharedBudget": "1%"}),
                "sharedBudget from 3 to 1%",
            ),
            (json!({"sharedBudget": 3}), json!({"sharedBudget": 2}), ""),
            (json!({}), json!({"sharedBudget": 3}), ""),
            (same(), json!({}), "domains from zone, 2 at once, maxUnavailable 20%, first c, soak"),
            (same(), same(), ""),
            (json!({}), same(), ""),
            (same(), domains(&json!({"key": "rack"})), "domains from"),
            (same(), domains(&json!({"atOnce": 3})), "domains from"),
            (same(), domains(&json!({"atOnce": 1, "soak": "16m", "maxUnavailable": "10%"})), ""),
            (same(), domains(&json!({"maxUnavailable": null})), "domains from"),
            (same(), domains(&json!({"maxUnavailable": 1})), "domains from"),
            (same(), domains(&json!({"first": ["a"]})), "domains from"),
            (same(), domains(&json!({"soak": "14m"})), "domains from"),
            (canary(), json!({}), "steps from canary: 5%, maxUnavailable 2, soak 1h to none"),
            (canary(), canary(), ""),
            (json!({}), canary(), ""),
            (canary(), steps(&["canary 5% maxUnavailable=1 soak=2h approve"]), ""),
            (canary(), steps(&["one 1", "canary 5% maxUnavailable=2 soak=1h", "half 50%"]), ""),
            (canary(), steps(&["canary 5% maxUnavailable=2 soak=59m"]), "steps from"),
            (canary(), steps(&["canary 5% maxUnavailable=3 soak=1h"]), "steps from"),
            (canary(), steps(&["canary 5% soak=1h"]), "steps from"),
            (canary(), steps(&["canary 6% maxUnavailable=2 soak=1h"]), "steps from"),
            (canary(), steps(&["first 5% maxUnavailable=2 soak=1h"]), "steps from"),
            (canary(), steps(&["canary 5% maxUnavailable=2 soak=1h spread=zone"]), "steps from"),
            (steps(&["a 1 approve"]), steps(&["a 1"]), "steps from a: 1, approve to a: 1"),
            (steps(&["a 1", "b 5%"]), steps(&["b 5%", "a 1"]), "steps from a: 1; b: 5% to b: 5%;"),
            (night(), json!({}), "windows from"),
            (json!({}), night(), ""),
            (
                night(),
                json!({"windows": [{"schedule": "0 2 * * *", "duration": "4h"}]}),
                "windows from",
            ),
            (freeze(), json!({}), "exclusions from"),
            (json!({}), freeze(), ""),
            (json!({"prePull": {}}), json!({}), "prePull from 10 at once, 600 s to none"),
            (
                json!({"prePull": {"parallel": 2}}),
                json!({"prePull": {"parallel": 3}}),
                "prePull from 2 at once, 600 s to 3 at once, 600 s",
            ),
            (json!({"prePull": {}}), json!({"prePull": {"timeout": "11m"}}), "prePull from 10"),
            (json!({"prePull": {}}), json!({"prePull": {"parallel": 9, "timeout": "9m"}}), ""),
            (json!({}), json!({"prePull": {}}), ""),
            (json!({}), json!({"whileWaiting": "target"}), "whileWaiting from lastGood to target"),
            (json!({"whileWaiting": "target"}), json!({}), ""),
            (json!({"maxDuration": "1h"}), json!({}), "maxDuration from 3600 s to none"),
            (json!({"maxDuration": "1h"}), json!({"maxDuration": "2h"}), "maxDuration from 3600 s"),
            (json!({"maxDuration": "1h"}), json!({"maxDuration": "59m"}), ""),
            (json!({}), json!({"maxDuration": "1h"}), ""),
        ]
    }

    /// As [`cases`], for checks.
    fn cases_of_checks() -> Vec<(Value, Value, &'static str)> {
        let of = |field: &str, change: &Value, bounds: &Value| {
            let mut query = json!({"address": "https://a", "query": "x"});
            query.as_object_mut().unwrap().extend(bounds.as_object().unwrap().clone());
            let mut check = json!({"name": "c", "allow": 1, "delay": "1m", "prometheus": query});
            check.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            json!({field: [check]})
        };
        let (same, bounds) = (json!({}), json!({"min": 1, "max": 2}));
        let gate = |change: Value| of("gates", &change, &bounds);
        let bound = |bounds: Value| of("gates", &same, &bounds);
        let before = || gate(json!({}));
        let text = "gates from c: x, at least 1, at most 2, 1 may fail, after 1m to";
        vec![
            (before(), json!({}), text),
            (before(), before(), ""),
            (json!({}), before(), ""),
            (of("preconditions", &same, &bounds), json!({}), "preconditions from c: x"),
            (of("preconditions", &same, &bounds), before(), "preconditions from c: x"),
            (before(), gate(json!({"name": "d"})), text),
            (before(), gate(json!({"allow": 2})), text),
            (before(), gate(json!({"delay": "2m"})), text),
            (before(), gate(json!({"interval": "2m"})), text),
            (before(), gate(json!({"unknownFor": "2h"})), text),
            (
                before(),
                gate(json!({"allow": 0, "delay": "0s", "interval": "1s", "unknownFor": "1m"})),
                "",
            ),
            (before(), bound(json!({"min": 1.1, "max": 1.9})), ""),
            (before(), bound(json!({"min": 0.9, "max": 2})), text),
            (before(), bound(json!({"min": 1, "max": 2.1})), text),
            (before(), bound(json!({"max": 2})), text),
            (bound(json!({"max": 2})), bound(json!({"min": 0, "max": 2})), ""),
            (before(), bound(json!({"min": 1, "max": 2, "empty": "pass"})), text),
            (before(), bound(json!({"min": 1, "max": 2, "empty": "fail"})), ""),
            (bound(json!({"max": 2, "empty": "fail"})), bound(json!({"max": 2})), "gates from"),
            (
                json!({"gates": [{"name": "c", "command": ["a"]}]}),
                json!({"gates": [{"name": "c", "command": ["b"]}]}),
                "gates from c: `a` exits with 0 to c: `b` exits with 0",
            ),
        ]
    }

    #[test]
    fn each_field_that_is_loosened_is_named() {
        let spec = |fields: &Value| -> PolicySpec {
            let mut spec = json!({"selects": {"names": ["a/x"]}});
            spec.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            serde_json::from_value(spec).unwrap()
        };
        for (before, after, want) in cases().into_iter().chain(cases_of_checks()) {
            let found = spec(&before).loosened_by(&spec(&after));
            assert_eq!(found.len(), usize::from(!want.is_empty()), "{before} {after}: {found:?}");
            assert!(found.concat().starts_with(want), "{before} {after}: {found:?}");
        }
    }
}
