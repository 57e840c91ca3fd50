//! The decisions of a plan, without data that differs between runs of the same history: uids, names
//! of pods and revisions, hashes, and timestamps.

use planner::plan::{Coded, DaemonSetPlan, NodePlan, Plan, Reason};
use serde_json::{Value, json};

/// Data of reasons that differs from run to run.
const ACCIDENTAL: [&str; 5] = ["message", "since", "seconds", "kept", "by"];

/// The decisions of the plan.
pub(super) fn decisions(plan: &Plan) -> Value {
    json!({
        "daemonSets": plan.daemon_sets.iter().map(daemon_set).collect::<Vec<_>>(),
        "totals": plan.totals,
        "guards": plan.guards,
        "warnings": plan.warnings,
    })
}

fn daemon_set(plan: &DaemonSetPlan) -> Value {
    json!({
        "namespace": plan.namespace,
        "name": plan.name,
        "generation": plan.generation,
        "change": plan.change,
        "strategy": plan.strategy,
        "revisions": [
            plan.revision.current.as_ref().map(|current| current.number),
            Some(plan.revision.target.number),
        ],
        "revision": plan.revision.kind,
        "changes": plan.changes,
        "waves": plan.waves,
        "nodes": plan.nodes.iter().map(node).collect::<Vec<_>>(),
        "totals": plan.totals,
        "status": plan.status,
    })
}

fn node(plan: &NodePlan) -> Value {
    let pods = plan.pods.iter().map(|pod| json!([pod.fate, reason(&pod.reason)]));
    json!({
        "name": plan.name,
        "action": plan.action,
        "wave": plan.wave,
        "pods": pods.collect::<Vec<_>>(),
        "reasons": plan.reasons.iter().map(reason).collect::<Vec<_>>(),
    })
}

fn reason(coded: &Coded<Reason>) -> Value {
    let mut value = serde_json::to_value(coded).unwrap();
    value.as_object_mut().unwrap().retain(|field, _| !ACCIDENTAL.contains(&field.as_str()));
    value
}
