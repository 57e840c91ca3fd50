//! Why a pod is created, deleted, or has to wait: data first, one sentence each.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::placement::Obstacle;
use crate::model::{NodeName, Pod, PodName};

/// A pod that the controller would create now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Creation<'a> {
    /// The node it is aimed at.
    pub node: &'a NodeName,
    /// Why.
    pub reason: CreateReason,
}

/// A pod that the controller would delete now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// The node it belongs to, which may not exist any more.
    pub node: &'a NodeName,
    /// Why.
    pub reason: DeleteReason,
}

/// Something that the controller would do on a node, but not now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting<'a> {
    /// The pod that is not touched now, or that is in the way.
    pub pod: &'a Pod,
    /// The node it belongs to.
    pub node: &'a NodeName,
    /// What it waits for.
    pub reason: WaitReason,
}

/// Why a pod is created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "code", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum CreateReason {
    /// The node should run a pod and has none.
    NoPod,
    /// With surge: the node should run a pod, and all that it has are failed, succeeded or
    /// terminating.
    NoLivePod,
    /// With surge: the outdated pod is not available, so the new one costs nothing.
    OldNotAvailable {
        /// The outdated pod.
        old: PodName,
    },
    /// With surge: the outdated pod is available, and the budget has room for a new one beside it.
    WithinSurge {
        /// The outdated pod.
        old: PodName,
        /// Nodes that count as surging already.
        surging: u32,
        /// `maxSurge` for this cluster.
        allowed: u32,
    },
}

/// Why a pod is deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "code", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum DeleteReason {
    /// The node may not keep a pod of this DaemonSet.
    NodeNotEligible {
        /// The rule that says no.
        obstacle: Arc<Obstacle>,
    },
    /// The node has more pods than it should, and another one stays.
    Surplus {
        /// The pod that stays.
        keeps: PodName,
    },
    /// It failed; another one is created when it is gone.
    Failed,
    /// It ended, which a daemon pod should not; another one is created when it is gone.
    Succeeded,
    /// It never got a node, and the node that it is aimed at does not exist.
    NodeVanished,
    /// With surge: outdated, not ready, and the new pod stands beside it.
    OldNotReady {
        /// The new pod.
        new: PodName,
    },
    /// With surge: outdated, and the new pod beside it is available.
    Replaced {
        /// The new pod.
        by: PodName,
    },
    /// Outdated and not available: replacing it costs nothing, so the budget is not asked.
    OutdatedNotAvailable,
    /// Outdated, and the budget has room.
    Outdated {
        /// Nodes without an available pod before this step.
        unavailable: u32,
        /// `maxUnavailable` for this cluster.
        allowed: u32,
    },
    /// With surge: outdated, not available, and the node may not start a new one.
    NotAvailableAndMayNotStart {
        /// The rule that says no.
        obstacle: Arc<Obstacle>,
    },
    /// With surge: outdated on a node that may not start a new one, and enough others are
    /// available.
    Sunset {
        /// The rule that says no.
        obstacle: Arc<Obstacle>,
        /// Nodes with an available pod.
        available: u32,
        /// Nodes that should run one.
        desired: u32,
    },
}

/// What something waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "code", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum WaitReason {
    /// The node gets its pod when this one has gone.
    Terminating,
    /// The failed pod is deleted when the back-off is over.
    BackOff {
        /// The whole delay, in seconds; the controller looks again after that long.
        seconds: u64,
    },
    /// Outdated, but so many nodes are without an available pod that the budget is used up.
    BudgetTaken {
        /// Nodes without an available pod, those of this step included.
        unavailable: u32,
        /// `maxUnavailable` for this cluster.
        allowed: u32,
    },
    /// With surge: outdated, but no more nodes may have two pods.
    SurgeTaken {
        /// Nodes that count as surging, those of this step included.
        surging: u32,
        /// `maxSurge` for this cluster.
        allowed: u32,
    },
    /// With surge: outdated, and stays until the new pod beside it is available.
    NewNotAvailable {
        /// The new pod.
        new: PodName,
    },
    /// With surge: outdated on a node that may not start a new one, but too few others are
    /// available.
    StillNeeded {
        /// The rule that says no.
        obstacle: Arc<Obstacle>,
        /// Nodes with an available pod.
        available: u32,
        /// Nodes that should run one.
        desired: u32,
    },
}

impl fmt::Display for CreateReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPod => f.write_str("node has no pod yet"),
            Self::NoLivePod => f.write_str("node has no pod that can run"),
            Self::OldNotAvailable { old } => write!(f, "outdated pod {old} is not available"),
            Self::WithinSurge { old, surging, allowed } => {
                write!(f, "pod {old} is outdated; {surging} surging, at most {allowed} allowed")
            }
        }
    }
}

impl fmt::Display for DeleteReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NodeNotEligible { obstacle } => write!(f, "{obstacle}"),
            Self::Surplus { keeps } => write!(f, "surplus beside pod {keeps}"),
            Self::Failed => f.write_str("pod failed"),
            Self::Succeeded => f.write_str("pod ended"),
            Self::NodeVanished => f.write_str("not bound, and its node does not exist any more"),
            Self::OldNotReady { new } => write!(f, "outdated and not ready, beside new pod {new}"),
            Self::Replaced { by } => write!(f, "outdated, and new pod {by} is available"),
            Self::OutdatedNotAvailable => f.write_str("outdated and not available"),
            Self::Outdated { unavailable, allowed } => {
                write!(f, "outdated; {unavailable} unavailable, at most {allowed} allowed")
            }
            Self::NotAvailableAndMayNotStart { obstacle } => {
                write!(f, "outdated and not available, and no new one may start: {obstacle}")
            }
            Self::Sunset { obstacle, available, desired } => write!(
                f,
                "outdated, and no new one may start: {obstacle}; {available} available, \
                 {desired} desired"
            ),
        }
    }
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Terminating => f.write_str("pod is terminating"),
            Self::BackOff { seconds } => write!(f, "failed pod, back-off of {seconds} s"),
            Self::BudgetTaken { unavailable, allowed } => {
                write!(f, "outdated; {unavailable} unavailable, at most {allowed} allowed")
            }
            Self::SurgeTaken { surging, allowed } => {
                write!(f, "outdated; {surging} surging, at most {allowed} allowed")
            }
            Self::NewNotAvailable { new } => {
                write!(f, "outdated, stays until new pod {new} is available")
            }
            Self::StillNeeded { obstacle, available, desired } => write!(
                f,
                "outdated, and no new one may start: {obstacle}; stays while only {available} \
                 are available for {desired} desired"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::controller::test_cluster::taint;

    #[test]
    fn reasons_have_a_code_their_data_and_a_sentence() {
        let obstacle = || Arc::new(Obstacle::Taint { taint: taint("gpu:NoSchedule") });
        let sunset = DeleteReason::Sunset { obstacle: obstacle(), available: 10, desired: 8 };
        let gpu = json!({"code": "taint",
            "taint": {"key": "gpu", "value": "", "effect": "NoSchedule"}});
        let want = json!({"code": "sunset", "obstacle": gpu, "available": 10, "desired": 8});
        assert_eq!(serde_json::to_value(&sunset).unwrap(), want);
        assert_eq!(
            sunset.to_string(),
            "outdated, and no new one may start: taint gpu:NoSchedule is not tolerated; \
             10 available, 8 desired"
        );
        let within = CreateReason::WithinSurge { old: "a".into(), surging: 1, allowed: 3 };
        let want = json!({"code": "withinSurge", "old": "a", "surging": 1, "allowed": 3});
        assert_eq!(serde_json::to_value(&within).unwrap(), want);
        assert_eq!(within.to_string(), "pod a is outdated; 1 surging, at most 3 allowed");
        let taken = WaitReason::SurgeTaken { surging: 3, allowed: 3 };
        assert_eq!(taken.to_string(), "outdated; 3 surging, at most 3 allowed");
    }
}
