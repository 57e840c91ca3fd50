//! Reasons why a pod is created, deleted, or has to wait, as data with one sentence each.

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
    /// The reason.
    pub reason: CreateReason,
}

/// A pod that the controller would delete now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// The node it belongs to, which may not exist any more.
    pub node: &'a NodeName,
    /// The reason.
    pub reason: DeleteReason,
}

/// An action on a node that has to wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting<'a> {
    /// The pod that is not changed now, or that blocks the action.
    pub pod: &'a Pod,
    /// The node it belongs to.
    pub node: &'a NodeName,
    /// The reason for waiting.
    pub reason: WaitReason,
}

/// The reason why a pod is created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "code", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum CreateReason {
    /// The node should run a pod and has none.
    NoPod,
    /// With surge: the node should run a pod, and all of its pods are failed, succeeded or
    /// terminating.
    NoLivePod,
    /// With surge: the outdated pod is not available, so the new one uses no budget.
    OldNotAvailable {
        /// The outdated pod.
        old: PodName,
    },
    /// With surge: the outdated pod is available, and the budget allows a new one next to it.
    WithinSurge {
        /// The outdated pod.
        old: PodName,
        /// Nodes that already count as surging.
        surging: u32,
        /// `maxSurge` for this cluster.
        allowed: u32,
    },
}

/// The reason why a pod is deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "code", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum DeleteReason {
    /// No pod of this DaemonSet may run on the node.
    NodeNotEligible {
        /// The rule that fails.
        obstacle: Arc<Obstacle>,
    },
    /// The node has more pods than it should, and another pod is kept.
    Surplus {
        /// The pod that is kept.
        keeps: PodName,
    },
    /// The pod failed; another one is created when it is gone.
    Failed,
    /// The pod succeeded, which a daemon pod should not; another one is created when it is gone.
    Succeeded,
    /// The pod was never bound, and the node that it is aimed at does not exist.
    NodeVanished,
    /// With surge: outdated, not ready, and the node has a new pod.
    OldNotReady {
        /// The new pod.
        new: PodName,
    },
    /// With surge: outdated, and the new pod on the node is available.
    Replaced {
        /// The new pod.
        by: PodName,
    },
    /// Outdated and not available: replacing it uses no budget.
    OutdatedNotAvailable,
    /// Outdated, and the budget allows it.
    Outdated {
        /// Nodes without an available pod before this sync.
        unavailable: u32,
        /// `maxUnavailable` for this cluster.
        allowed: u32,
    },
    /// With surge: outdated, not available, and a new pod may not start on the node.
    NotAvailableAndMayNotStart {
        /// The rule that fails.
        obstacle: Arc<Obstacle>,
    },
    /// With surge: outdated on a node where a new pod may not start, and enough other pods are
    /// available.
    Sunset {
        /// The rule that fails.
        obstacle: Arc<Obstacle>,
        /// Nodes with an available pod.
        available: u32,
        /// Nodes that should run one.
        desired: u32,
    },
}

/// The reason for waiting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "code", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum WaitReason {
    /// A pod is created on the node when this pod is gone.
    Terminating,
    /// The failed pod is deleted when the back-off is over.
    BackOff {
        /// The whole delay, in seconds, after which the controller syncs again.
        seconds: u64,
    },
    /// Outdated, but `maxUnavailable` is reached.
    MaxUnavailableReached {
        /// Nodes without an available pod, including those of this sync.
        unavailable: u32,
        /// `maxUnavailable` for this cluster.
        allowed: u32,
    },
    /// With surge: outdated, but `maxSurge` is reached.
    SurgeTaken {
        /// Nodes that count as surging, including those of this sync.
        surging: u32,
        /// `maxSurge` for this cluster.
        allowed: u32,
    },
    /// With surge: outdated, and kept until the new pod on the node is available.
    NewNotAvailable {
        /// The new pod.
        new: PodName,
    },
    /// With surge: outdated on a node where a new pod may not start, but too few other pods are
    /// available.
    StillNeeded {
        /// The rule that fails.
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
            Self::Surplus { keeps } => write!(f, "surplus, pod {keeps} is kept"),
            Self::Failed => f.write_str("pod failed"),
            Self::Succeeded => f.write_str("pod completed"),
            Self::NodeVanished => f.write_str("not bound, and its node no longer exists"),
            Self::OldNotReady { new } => write!(f, "outdated and not ready, next to new pod {new}"),
            Self::Replaced { by } => write!(f, "outdated, and new pod {by} is available"),
            Self::OutdatedNotAvailable => f.write_str("outdated and not available"),
            Self::Outdated { unavailable, allowed } => {
                write!(f, "outdated; {unavailable} unavailable, at most {allowed} allowed")
            }
            Self::NotAvailableAndMayNotStart { obstacle } => {
                write!(f, "outdated and not available; a new pod may not start here: {obstacle}")
            }
            Self::Sunset { obstacle, available, desired } => write!(
                f,
                "outdated; a new pod may not start here: {obstacle}; {available} available, \
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
            Self::MaxUnavailableReached { unavailable, allowed } => {
                write!(f, "outdated; {unavailable} unavailable, at most {allowed} allowed")
            }
            Self::SurgeTaken { surging, allowed } => {
                write!(f, "outdated; {surging} surging, at most {allowed} allowed")
            }
            Self::NewNotAvailable { new } => {
                write!(f, "outdated, kept until new pod {new} is available")
            }
            Self::StillNeeded { obstacle, available, desired } => write!(
                f,
                "outdated; a new pod may not start here: {obstacle}; kept while only {available} \
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
            "outdated; a new pod may not start here: taint gpu:NoSchedule is not tolerated; \
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
