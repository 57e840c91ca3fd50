//! Resumes a rollback whose run was stopped: applying the manifest that failed again continues the
//! rollback. The failed template stays refused.

use super::flags::CommonFlags;
use super::live_object::with_template;
use daemonset::model::{DesiredDaemonSet, OnFailure, Snapshot};
use planner::plan::{PausedRollout, after_apply, template_digest};
use planner::rollout::{World, is_rolling_back};

/// The target of the rollback, if the rollout of the desired template failed and its rollback is
/// not finished. With `--retry`, the rollout is retried instead.
pub(super) fn unfinished(
    snapshot: &Snapshot,
    desired: &DesiredDaemonSet,
    args: &CommonFlags,
) -> Option<DesiredDaemonSet> {
    let policy = desired.policy.as_ref()?;
    if policy.spec.on_failure != OnFailure::Rollback || args.allow.retry {
        return None;
    }
    let target = after_apply(snapshot, desired, &args.ownership.names()).spec.template;
    let world = World::of(snapshot, &desired.key, true);
    if !is_rolling_back(&world, &template_digest(target.raw())) {
        return None;
    }
    let live = world.daemon_set?;
    // The run that aborted it could read managedFields, so an error is not expected here.
    let good =
        with_template(live, PausedRollout::of(live).ok()?.as_ref(), &live.spec.template).ok()?;
    Some(DesiredDaemonSet { policy: Some(policy.clone()), place: desired.place.clone(), ..good })
}
