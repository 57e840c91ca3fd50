//! `ds-apply roll` and `step`: the pods of a DaemonSet that declares `OnDelete` are replaced within a
//! budget, as if it declared `RollingUpdate`. The object is not written. `step --wave` replaces those
//! of one wave, when it comes next.

use std::sync::Arc;

use serde_json::json;

use crate::live_object::{LiveObjectError, pause, with_template};
use crate::plan::{DaemonSetPlan, PausedRollout, Wave};
use crate::words::count;
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

/// `step --wave` does not replace the pods of a wave.
#[derive(Debug, thiserror::Error)]
pub enum WaveError {
    /// No wave that is left has this number.
    #[error("the plan of {daemon_set} has no wave {number}")]
    NotLeft {
        /// The DaemonSet.
        daemon_set: DaemonSetKey,
        /// The number that was given.
        number: u32,
        /// The waves that are left: `2 (rest, zone-a)`.
        left: Vec<String>,
    },
    /// Another wave comes before it.
    #[error("wave {wave} of {daemon_set} comes after wave {next}")]
    NotNext {
        /// The DaemonSet.
        daemon_set: DaemonSetKey,
        /// The wave, with its name.
        wave: String,
        /// The wave that comes next, with its name.
        next: String,
    },
    /// The number is now that of another wave than the one that was shown.
    #[error("wave {shown} of {daemon_set} is now {now}")]
    Renumbered {
        /// The DaemonSet.
        daemon_set: DaemonSetKey,
        /// The wave that was shown, with its name.
        shown: String,
        /// The name of the other wave.
        now: String,
    },
    /// The wave has nodes that were not shown.
    #[error("wave {wave} of {daemon_set} has {} that it did not have when it was shown", count(*nodes, "node"))]
    OtherNodes {
        /// The DaemonSet.
        daemon_set: DaemonSetKey,
        /// The wave, with its name.
        wave: String,
        /// Number of the nodes that were not shown.
        nodes: usize,
    },
}

/// The wave of a plan with this number, if it is its turn.
///
/// # Errors
/// There is none, or another one comes next.
pub fn wave(plan: &DaemonSetPlan, number: u32) -> Result<&Wave, WaveError> {
    let daemon_set = || plan.key();
    let Some(wave) = plan.waves.iter().find(|wave| wave.index == number) else {
        let left = plan.waves.iter().map(named).collect();
        return Err(WaveError::NotLeft { daemon_set: daemon_set(), number, left });
    };
    // While the step before it soaks, no wave comes next: the run says what it waits for.
    let is_next = |wave: &&Wave| plan.next_waves.contains(&wave.index);
    match plan.waves.iter().find(is_next) {
        Some(next) if !is_next(&wave) => {
            let (wave, next) = (named(wave), named(next));
            Err(WaveError::NotNext { daemon_set: daemon_set(), wave, next })
        }
        Some(_) | None => Ok(wave),
    }
}

/// Checks that a wave of a plan that was made again is the one that was shown. It may have fewer
/// nodes.
///
/// # Errors
/// It is another one, or has other nodes.
pub fn check_same_wave(plan: &DaemonSetPlan, shown: &Wave, now: &Wave) -> Result<(), WaveError> {
    let daemon_set = plan.key();
    if (&shown.step, &shown.domain) != (&now.step, &now.domain) {
        let (shown, now) = (named(shown), now.name.clone());
        return Err(WaveError::Renumbered { daemon_set, shown, now });
    }
    match now.nodes.iter().filter(|node| !shown.nodes.contains(node)).count() {
        0 => Ok(()),
        nodes => Err(WaveError::OtherNodes { daemon_set, wave: named(now), nodes }),
    }
}

/// `2 (rest, zone-a)`.
fn named(wave: &Wave) -> String {
    format!("{} ({})", wave.index, wave.name)
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
