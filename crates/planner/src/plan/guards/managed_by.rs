//! The controller that manages a DaemonSet: the DaemonSet controller, or `ds-apply` with a record.
//! Never both: each would create its own pods on every node. Not here: how either of them works.

use crate::plan::document::{DaemonSetPlan, Guard, GuardCode};
use crate::plan::record::written_by_others;
use daemonset::model::{
    DaemonSet, DaemonSetKey, DesiredDaemonSet, ManagedBy, Revision, Snapshot, Unreadable,
    record_name,
};

/// The guard of a DaemonSet that another controller manages than the one in the plan.
pub(super) fn other(
    plan: &DaemonSetPlan,
    live: Option<&DaemonSet>,
    snapshot: &Snapshot,
) -> Option<Guard> {
    let key = plan.key();
    let guard = |message: String| plan.guard(GuardCode::ManagedBy, message, None, Vec::new());
    if let Some(Unreadable { namespace: _, name, reason, .. }) = snapshot.unreadable_record(&key) {
        return Some(guard(format!(
            "the record of {key}, ConfigMap {name}, cannot be read ({reason}): another client \
             wrote it. To recreate it without deleting pods, run {} and apply again",
            orphaning(&key, ManagedBy::DsApply)
        )));
    }
    let record = live.filter(|live| live.managed_by == ManagedBy::DsApply);
    if let Some(why) = record.and_then(written_by_others) {
        return Some(guard(format!(
            "the record of {key}, ConfigMap {}, was changed by another client: {why}. To recreate \
             it without deleting pods, run {} and apply again",
            record_name(&key.name),
            orphaning(&key, ManagedBy::DsApply)
        )));
    }
    if snapshot.records_beside.contains(&key) {
        return Some(guard(format!(
            "{key} exists both as a DaemonSet and as a record, so two controllers would manage its \
             pods. Delete one of them without deleting pods: run {} or {}",
            orphaning(&key, ManagedBy::DaemonSetController),
            orphaning(&key, ManagedBy::DsApply)
        )));
    }
    match (plan.managed_by, live.map(|live| live.managed_by)) {
        (ManagedBy::DsApply, Some(ManagedBy::DaemonSetController)) => Some(guard(format!(
            "{key} is managed by the DaemonSet controller; the plan changes that to ds-apply. To \
             hand it over without deleting pods, run {} and apply again",
            orphaning(&key, ManagedBy::DaemonSetController)
        ))),
        (ManagedBy::DaemonSetController, Some(ManagedBy::DsApply)) => Some(guard(format!(
            "{key} is managed by ds-apply (it has a record); the plan changes that to the \
             DaemonSet controller. To hand it over without deleting pods, run {} and apply again. \
             To keep it managed by ds-apply, pass `--managed-by ds-apply`",
            orphaning(&key, ManagedBy::DsApply)
        ))),
        (ManagedBy::DaemonSetController, None) if has_hidden_record(&key, snapshot) => {
            Some(guard(format!(
                "revisions of {key} belong to a record that was not read: it is managed by \
                 ds-apply. The user may not list ConfigMaps, or the recorded snapshot has none"
            )))
        }
        (ManagedBy::DsApply, _) if !snapshot.coverage.records => Some(guard(format!(
            "it is unknown whether {key} has a record. The user may not list ConfigMaps, or the \
             recorded snapshot has none"
        ))),
        (ManagedBy::DsApply, Some(ManagedBy::DsApply) | None)
        | (ManagedBy::DaemonSetController, Some(ManagedBy::DaemonSetController) | None) => None,
    }
}

/// The guard of a step that waits for an approval where `ds-apply` is the controller.
///
/// There its role writes ConfigMaps, because records are ConfigMaps, and no role can tell approvals
/// apart from records: the token of a run would be enough to approve its own steps.
pub(super) fn own_approvals(plan: &DaemonSetPlan, desired: &DesiredDaemonSet) -> Option<Guard> {
    let step = match desired.managed_by {
        ManagedBy::DaemonSetController => None,
        ManagedBy::DsApply => desired.steps_to_approve().next(),
    }?;
    let message = format!(
        "step {} waits for an approval, which is not possible with `managedBy: ds-apply`: there \
         ds-apply may write ConfigMaps, and so could approve its own steps. Remove `approve: \
         true`, or let the DaemonSet controller manage {}",
        step.name,
        plan.key()
    );
    Some(plan.guard(GuardCode::ManagedBy, message, None, Vec::new()))
}

/// The command that deletes it without its pods and revisions.
fn orphaning(key: &DaemonSetKey, managed_by: ManagedBy) -> String {
    let DaemonSetKey { namespace, name } = key;
    let kind = managed_by.owner_kind().to_lowercase();
    let owner = managed_by.owner_name(name);
    format!("`kubectl -n {namespace} delete {kind} {owner} --cascade=orphan`")
}

/// Whether a record exists although none was read: a revision names it as its owner.
fn has_hidden_record(key: &DaemonSetKey, snapshot: &Snapshot) -> bool {
    let (kind, name) = (ManagedBy::DsApply.owner_kind(), record_name(&key.name));
    let of_record = |it: &Revision| {
        it.controller.as_ref().is_some_and(|it| *it.kind == *kind && *it.name == *name)
    };
    !snapshot.coverage.records && snapshot.revisions_in(&key.namespace).iter().any(of_record)
}
