//! Who acts on a DaemonSet: the DaemonSet controller, or `ds-apply` with a ledger. Never both: each
//! would make pods of its own on every node. Not here: how either of them acts.

use super::guard;
use crate::model::{
    DaemonSet, DaemonSetKey, ManagedBy, Revision, Snapshot, Unreadable, ledger_name,
};
use crate::plan::document::{DaemonSetPlan, Guard, GuardCode};
use crate::plan::ledger::written_by_others;

/// What stands in the way when it is not the one that the plan is for.
pub(super) fn other(
    plan: &DaemonSetPlan,
    live: Option<&DaemonSet>,
    snapshot: &Snapshot,
) -> Option<Guard> {
    let key = plan.key();
    let refused = |message: String| guard(plan, GuardCode::ManagedBy, message, None, Vec::new());
    if let Some(Unreadable { namespace: _, name, reason, .. }) = snapshot.unreadable_record(&key) {
        return Some(refused(format!(
            "the record of {key}, ConfigMap {name}, cannot be read ({reason}): somebody else has \
             written it. To make it anew, with every pod staying: {}, and apply again",
            orphaning(&key, ManagedBy::DsApply)
        )));
    }
    let record = live.filter(|live| live.managed_by == ManagedBy::DsApply);
    if let Some(why) = record.and_then(written_by_others) {
        return Some(refused(format!(
            "the record of {key}, ConfigMap {}, is not as ds-apply has written it: {why}. To make it \
             anew, with every pod staying: {}, and apply again",
            ledger_name(&key.name),
            orphaning(&key, ManagedBy::DsApply)
        )));
    }
    if snapshot.ledgers_beside.contains(&key) {
        return Some(refused(format!(
            "there is both a DaemonSet and a ledger for {key}, and two controllers would act on \
             it. Delete one of them, with its pods staying: {} or {}",
            orphaning(&key, ManagedBy::DaemonSetController),
            orphaning(&key, ManagedBy::DsApply)
        )));
    }
    match (plan.managed_by, live.map(|live| live.managed_by)) {
        (ManagedBy::DsApply, Some(ManagedBy::DaemonSetController)) => Some(refused(format!(
            "{key} is a DaemonSet in the cluster, and its controller acts on it; it is to be \
             managed by ds-apply. To hand it over, with every pod staying: {}, and apply again",
            orphaning(&key, ManagedBy::DaemonSetController)
        ))),
        (ManagedBy::DaemonSetController, Some(ManagedBy::DsApply)) => Some(refused(format!(
            "{key} is managed by ds-apply, and a ledger stands for it; it is to be a DaemonSet. To \
             hand it over, with every pod staying: {}, and apply again. Else say `--managed-by \
             ds-apply`",
            orphaning(&key, ManagedBy::DsApply)
        ))),
        (ManagedBy::DaemonSetController, None) if has_hidden_ledger(&key, snapshot) => {
            Some(refused(format!(
                "revisions of {key} belong to a ledger that cannot be read: it is managed by \
                 ds-apply. The user may not list ConfigMaps, or the recording has none"
            )))
        }
        (ManagedBy::DsApply, _) if !snapshot.coverage.ledgers => Some(refused(format!(
            "whether there is a ledger for {key} is not known. The user may not list ConfigMaps, \
             or the recording has none"
        ))),
        (ManagedBy::DsApply, Some(ManagedBy::DsApply) | None)
        | (ManagedBy::DaemonSetController, Some(ManagedBy::DaemonSetController) | None) => None,
    }
}

/// How it is deleted without its pods and revisions.
fn orphaning(key: &DaemonSetKey, managed_by: ManagedBy) -> String {
    let DaemonSetKey { namespace, name } = key;
    let kind = managed_by.owner_kind().to_lowercase();
    let owner = managed_by.owner_name(name);
    format!("`kubectl -n {namespace} delete {kind} {owner} --cascade=orphan`")
}

/// Whether there is a ledger, although none was read.
fn has_hidden_ledger(key: &DaemonSetKey, snapshot: &Snapshot) -> bool {
    let (kind, name) = (ManagedBy::DsApply.owner_kind(), ledger_name(&key.name));
    let of_ledger = |it: &Revision| {
        it.controller.as_ref().is_some_and(|it| *it.kind == *kind && *it.name == *name)
    };
    !snapshot.coverage.ledgers && snapshot.revisions_in(&key.namespace).iter().any(of_ledger)
}
