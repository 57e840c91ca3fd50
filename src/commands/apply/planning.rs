//! The plan of a run: made before it is approved, and again under the lock, where it must not have
//! changed.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;

use super::flags::{AllowFlags, CommonFlags};
use crate::error::Error;
use daemonset::model::{DesiredDaemonSet, NamespaceName, Place, Snapshot};
use planner::plan::{self, Binding, Guard, Plan, Prune, SourceInfo, Warning};
use planner::rollout::Extent;

/// The input of a plan that is to be approved.
pub(super) struct ApprovalRequest<'a> {
    /// The DaemonSets.
    pub desired: &'a [DesiredDaemonSet],
    /// The origin of their manifests.
    pub source: SourceInfo,
    /// The warnings of reading them.
    pub warnings: Vec<Warning>,
    /// The DaemonSets to delete with `--prune`.
    pub prune: Option<Prune<'a>>,
    /// The namespaces in the source, and where.
    pub namespaces: &'a BTreeMap<NamespaceName, Place>,
    /// The outdated pods to replace.
    pub extent: &'a Extent,
}

impl<'a> ApprovalRequest<'a> {
    /// A request for these DaemonSets, without warnings and pruning.
    pub(super) fn only(desired: &'a [DesiredDaemonSet], source: SourceInfo) -> Self {
        let namespaces = const { &BTreeMap::new() };
        Self {
            desired,
            source,
            warnings: Vec::new(),
            prune: None,
            namespaces,
            extent: &Extent::All,
        }
    }
}

/// The target of a rollback that was stopped, unless `--retry` retries the rollout instead.
pub(super) fn resumed(
    snapshot: &Snapshot,
    desired: &DesiredDaemonSet,
    args: &CommonFlags,
) -> Option<DesiredDaemonSet> {
    if args.allow.retry {
        return None;
    }
    planner::rollback::unfinished(snapshot, desired, &args.ownership.names())
}

/// Plans a request on this snapshot. For a DaemonSet with an unfinished rollback, it plans the rest
/// of the rollback.
pub(super) fn planned(
    snapshot: &Snapshot,
    wanted: ApprovalRequest<'_>,
    args: &CommonFlags,
    created_at: Timestamp,
) -> Plan {
    let ApprovalRequest { desired, source, warnings, prune, namespaces, extent } = wanted;
    let mut desired = Cow::Borrowed(desired);
    for at in 0..desired.len() {
        if let Some(goal) = resumed(snapshot, &desired[at], args) {
            desired.to_mut()[at] = goal;
        }
    }
    plan::plan(plan::Input {
        force_conflicts: &args.ownership.names(),
        created_namespaces: namespaces,
        prune,
        source,
        warnings,
        created_at,
        extent,
        ..plan::Input::of(snapshot, &desired)
    })
}

/// Checks that a plan that was made again still matches the approved one.
///
/// # Errors
/// It is stale, or a new guard blocks it.
pub(super) fn check_not_stale(
    approved: &Plan,
    now: &Plan,
    binding: Binding,
    allow: AllowFlags,
) -> Result<(), Error> {
    let stale = plan::stale(approved, now, binding);
    if !stale.is_empty() {
        return Err(Error::Stale(stale));
    }
    not_blocked(now, allow)
}

/// Checks that no guard blocks a plan.
///
/// # Errors
/// The guards that no flag allows.
pub(super) fn not_blocked(plan: &Plan, allow: AllowFlags) -> Result<(), Error> {
    let guards = blocking_guards(plan, allow);
    if guards.is_empty() { Ok(()) } else { Err(Error::Blocked(guards)) }
}

/// The guards of the plan that no flag allows.
pub(super) fn blocking_guards(plan: &Plan, allow: AllowFlags) -> Vec<Guard> {
    plan.guards.iter().filter(|guard| !allow.passes(guard.code)).cloned().collect()
}
