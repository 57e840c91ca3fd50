//! What was not checked, because the cluster did not show it: a user may not read everything, and a
//! recording need not hold everything.

use crate::model::Snapshot;
use crate::plan::document::{Change, DaemonSetPlan, Warning};

/// One warning for all of it, if any of it could have mattered.
pub(in crate::plan) fn warning<'a>(
    plans: impl Iterator<Item = &'a DaemonSetPlan>,
    snapshot: &Snapshot,
) -> Option<Warning> {
    let plans: Vec<&DaemonSetPlan> =
        plans.filter(|plan| plan.change != Change::Recreate && plan.has_changes()).collect();
    if plans.is_empty() {
        return None;
    }
    let new_template = |plan: &&DaemonSetPlan| {
        plan.live_template.as_ref().is_some_and(|live| *live != plan.target_template)
    };
    let coverage = &snapshot.coverage;
    let services = !coverage.services;
    // Digests of masked templates are others than those of the templates that failed.
    let leases = match (coverage.leases, coverage.masked) {
        (true, None) => None,
        (true, Some(_)) => Some("whether a template failed before (values are masked)"),
        (false, _) => Some("whether a template failed before (no leases)"),
    };
    let rooms =
        !snapshot.nodes.is_empty() && snapshot.nodes.iter().all(|n| n.allocatable.is_empty());
    let missing: Vec<&str> = [
        services.then_some("which Services gain or lose endpoints (no Services)"),
        rooms.then_some("what the DaemonSets request together (no allocatable of nodes)"),
        leases.filter(|_| plans.iter().any(new_template)),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!missing.is_empty()).then(|| Warning {
        code: "notChecked".to_owned(),
        message: format!("not checked: {}", missing.join("; ")),
        daemon_set: None,
        nodes: Vec::new(),
    })
}
