//! `ds-apply roll` and `step`: the pods of a DaemonSet that declares `OnDelete` are replaced within a
//! budget, as if it declared `RollingUpdate`. The object is not written.

use std::sync::Arc;

use serde_json::json;

use crate::live_object::{LiveObjectError, pause, with_template};
use crate::plan::PausedRollout;
use daemonset::model::{
    DaemonSet, DaemonSetKey, DesiredDaemonSet, IntOrPercent, Snapshot, UpdateStrategy,
};

/// A DaemonSet cannot be rolled.
#[derive(Debug, thiserror::Error)]
pub enum RollError {
    /// `roll` does not continue a rollout that `apply` has paused.
    #[error("{daemon_set} is {pause}")]
    PausedByApply {
        /// The DaemonSet.
        daemon_set: DaemonSetKey,
        /// The paused rollout.
        pause: Box<PausedRollout>,
    },
    /// The update strategy is not `OnDelete`, so the controller replaces the pods.
    #[error("{0} does not declare OnDelete: the controller replaces its pods")]
    NotOnDelete(DaemonSetKey),
    /// The live object cannot be made into a manifest.
    #[error(transparent)]
    LiveObject(#[from] LiveObjectError),
}

/// The cluster as if the live DaemonSet declared `RollingUpdate` within this budget, and the manifest
/// that leaves it as it is: their plan is the plan of the roll.
pub fn as_rolling_update(
    snapshot: &Snapshot,
    live: &DaemonSet,
    max_unavailable: IntOrPercent,
) -> Result<(Snapshot, DesiredDaemonSet), RollError> {
    if let Some(pause) = pause(live)? {
        let pause = Box::new(pause);
        return Err(RollError::PausedByApply { daemon_set: live.key.clone(), pause });
    }
    if live.spec.update_strategy != UpdateStrategy::OnDelete {
        return Err(RollError::NotOnDelete(live.key.clone()));
    }
    let max_surge = IntOrPercent::Int(0);
    let mut live = live.clone();
    live.spec.update_strategy = UpdateStrategy::RollingUpdate { max_unavailable, max_surge };
    Arc::make_mut(&mut live.raw)["spec"]["updateStrategy"] = json!({
        "type": "RollingUpdate",
        "rollingUpdate": { "maxUnavailable": max_unavailable, "maxSurge": max_surge },
    });
    let desired = with_template(&live, None, &live.spec.template)?;
    let mut snapshot = snapshot.clone();
    for one in snapshot.daemon_sets.iter_mut().filter(|one| one.key == live.key) {
        one.clone_from(&live);
    }
    Ok((snapshot, desired))
}

#[cfg(test)]
mod tests {
    use super::*;
    use daemonset::controller::test_cluster::Cluster;

    #[test]
    fn only_a_daemon_set_that_declares_on_delete_is_rolled() {
        let mut cluster = Cluster::of(2);
        let budget = IntOrPercent::Int(2);
        let before = cluster.snapshot();
        let error = as_rolling_update(&before, &before.daemon_sets[0], budget).unwrap_err();
        assert!(matches!(error, RollError::NotOnDelete(_)), "{error}");
        cluster.daemon_set.spec.update_strategy = UpdateStrategy::OnDelete;
        let snapshot = cluster.snapshot();
        let (rolling, desired) =
            as_rolling_update(&snapshot, &snapshot.daemon_sets[0], budget).unwrap();
        let wanted = UpdateStrategy::RollingUpdate {
            max_unavailable: budget,
            max_surge: IntOrPercent::Int(0),
        };
        assert_eq!(rolling.daemon_sets[0].spec.update_strategy, wanted);
        assert_eq!(desired.spec.update_strategy, wanted);
        assert_eq!(desired.spec.template, snapshot.daemon_sets[0].spec.template);
    }
}
