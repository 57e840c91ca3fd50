//! A rollout that failed, was to be rolled back, and whose run was stopped on the way: applying the
//! same manifest again goes on with the way back. The template that failed stays refused.

use super::flags::CommonFlags;
use super::on_live::with_template;
use crate::model::{DesiredDaemonSet, OnFailure, Snapshot};
use crate::plan::{Hold, after_apply, template_digest};
use crate::planted::planted;
use crate::rollout::{World, is_on_the_way_back};

/// What the DaemonSet is on its way back to, if a rollout of what is desired failed and is not whole
/// again. Whoever retries goes forward.
pub(super) fn unfinished(
    snapshot: &Snapshot,
    desired: &DesiredDaemonSet,
    args: &CommonFlags,
) -> Option<DesiredDaemonSet> {
    let policy = desired.policy.as_ref()?;
    let forward = policy.spec.on_failure != OnFailure::Rollback || args.allow.retry;
    if planted!(forward, "a way back is left" => true) {
        return None;
    }
    let target = after_apply(snapshot, desired, &args.ownership.names()).spec.template;
    let world = World::of(snapshot, &desired.key, true);
    if !is_on_the_way_back(&world, &template_digest(target.raw())) {
        return None;
    }
    let live = world.daemon_set?;
    // Who owns what could be read by whoever parked it.
    let good = with_template(live, Hold::of(live).ok()?.as_ref(), &live.spec.template).ok()?;
    Some(DesiredDaemonSet { policy: Some(policy.clone()), place: desired.place.clone(), ..good })
}
