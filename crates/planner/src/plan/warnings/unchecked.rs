//! Checks that were skipped for lack of data: the user may not have permission to read it, or the
//! recorded snapshot does not contain it.

use std::collections::BTreeSet;

use crate::plan::document::{Change, DaemonSetPlan, Warning};
use daemonset::model::{DaemonSetKey, DesiredDaemonSet, Snapshot};

/// One warning for all skipped checks, if any of them could have made a difference.
pub(in crate::plan) fn warning<'a>(
    plans: impl Iterator<Item = &'a DaemonSetPlan>,
    desired: &[&DesiredDaemonSet],
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
    // Masking changes the digest, so it cannot be compared with those of failed templates.
    let leases = match (coverage.leases, coverage.masked) {
        (true, None) => None,
        (true, Some(_)) => Some("whether a template failed before (values are masked)"),
        (false, _) => Some("whether a template failed before (Leases not read)"),
    };
    let rooms =
        !snapshot.nodes.is_empty() && snapshot.nodes.iter().all(|n| n.allocatable.is_empty());
    let classes = priority_classes(&plans, desired, snapshot);
    let approvals = approvals(&plans, desired, snapshot);
    let missing: Vec<&str> = [
        services.then_some("which Services gain or lose endpoints (Services not read)"),
        rooms.then_some("resource requests of all DaemonSets (allocatable of nodes not read)"),
        leases.filter(|_| plans.iter().any(new_template)),
        classes.as_deref(),
        approvals.as_deref(),
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

/// The check of the PriorityClasses that templates of these plans name and that were not looked up.
/// They are taken to exist, also by a rehearsal.
fn priority_classes(
    plans: &[&DaemonSetPlan],
    desired: &[&DesiredDaemonSet],
    snapshot: &Snapshot,
) -> Option<String> {
    let planned: BTreeSet<DaemonSetKey> = plans.iter().map(|plan| plan.key()).collect();
    let templates =
        desired.iter().filter(|it| planned.contains(&it.key)).map(|it| &it.spec.template);
    let unknown: BTreeSet<&str> = templates
        .filter_map(|template| template.needed_priority_class())
        .filter(|name| !snapshot.priority_classes.contains_key(*name))
        .collect();
    let (class, exist) = match unknown.len() {
        0 => return None,
        1 => ("PriorityClass", "exists"),
        _more => ("PriorityClasses", "exist"),
    };
    let names = unknown.into_iter().collect::<Vec<_>>().join(", ");
    Some(format!("whether {class} {names} {exist} (not read)"))
}

/// The approvals of steps that were not looked up: the steps count as not approved. A DaemonSet
/// that does not exist yet has none.
fn approvals(
    plans: &[&DaemonSetPlan],
    desired: &[&DesiredDaemonSet],
    snapshot: &Snapshot,
) -> Option<String> {
    let planned: BTreeSet<DaemonSetKey> =
        plans.iter().filter(|plan| plan.uid.is_some()).map(|plan| plan.key()).collect();
    let unknown: BTreeSet<&DaemonSetKey> = desired
        .iter()
        .filter(|it| it.asks_for_approvals() && planned.contains(&it.key))
        .map(|it| &it.key)
        .filter(|key| !snapshot.approvals.contains_key(*key))
        .collect();
    if unknown.is_empty() {
        return None;
    }
    let names = unknown.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let why = if snapshot.cluster.file.is_some() {
        "a recording has no approvals".to_owned()
    } else {
        let namespaces: BTreeSet<&str> = unknown.iter().map(|key| key.namespace.as_str()).collect();
        let namespaces = namespaces.into_iter().collect::<Vec<_>>().join(", ");
        format!("missing permission: get configmaps in namespace {namespaces}")
    };
    Some(format!("which steps of {names} are approved ({why})"))
}
