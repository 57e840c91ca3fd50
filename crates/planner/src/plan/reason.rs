//! The reason for each decision about a node or a pod. Every action, and every action that is not
//! taken, has a [`Reason`]. Its sentence is made only here, from the numbers behind the decision.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::words::grouped;
use daemonset::controller::placement::Obstacle;
use daemonset::controller::reasons::DeleteReason;
use daemonset::model::{NodeReadiness, PodName, RevisionNumber};

/// Code of [`Reason::Superseded`].
pub(super) const SUPERSEDED: &str = "superseded";

/// Code of [`Reason::Terminating`].
pub(super) const TERMINATING: &str = "terminating";

/// The reason for a decision about a node or a pod; `code` names it in JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "code", rename_all = "camelCase", rename_all_fields = "camelCase")]
// A plan has one or two for each of very many pods: what is rare and large is in a box.
pub enum Reason {
    /// The node is eligible and has no pod.
    NoPod,
    /// The node is eligible, and all its pods are terminating or about to be deleted.
    NoLivePod,
    /// The pod comes from another template than the target.
    Outdated {
        /// Its revision, when it still exists.
        #[serde(skip_serializing_if = "Option::is_none")]
        revision: Option<RevisionNumber>,
    },
    /// The pod comes from the target template.
    UpToDate,
    /// The pod is in phase Failed.
    Failed,
    /// The pod is in phase Succeeded.
    Succeeded,
    /// The controller replaces failed pods with a backoff that the API does not expose.
    MayBeDelayed,
    /// Another pod on this node is older and is kept.
    Surplus {
        /// The pod that is kept.
        kept: PodName,
    },
    /// With surge: the pod is outdated, and a new pod on the same node replaces it.
    Superseded {
        /// The new pod.
        by: PodName,
    },
    /// The node is not eligible for a pod of this DaemonSet.
    NotEligible {
        /// The first placement rule that rejects the pod.
        obstacle: Arc<Obstacle>,
    },
    /// The node may keep its pod but not start one, so a deleted pod is not recreated.
    DeletedNotRecreated {
        /// The placement rule that rejects a new pod.
        obstacle: Arc<Obstacle>,
    },
    /// The pod was created for a node that no longer exists, and was never bound to it.
    NodeVanished,
    /// The pod is bound to a node that no longer exists; the pod garbage collector deletes it.
    LeftToGarbageCollector,
    /// The pod is being deleted.
    Terminating,
    /// The update strategy is `OnDelete`: the pod is replaced by `ds-apply roll`, or after
    /// it is deleted.
    OnDelete,
    /// The node is not Ready; its pod is skipped and does not count as unavailable.
    SkippedUnreadyNode(Box<NotReadyNode>),
    /// More nodes are NotReady than may be skipped: this one counts as unavailable.
    UnreadyNodeCounts {
        /// Number of desired nodes that are NotReady.
        unready: u32,
        /// Maximum number of these nodes that are skipped.
        skippable: u32,
    },
    /// Pods that this plan does not replace already use all of `maxUnavailable`.
    MaxUnavailableReached {
        /// Number of desired nodes that stay without an available pod.
        unavailable: u32,
        /// Maximum number of unavailable nodes.
        allowed: u32,
    },
    /// The node is not Ready.
    NodeNotReady(Box<NotReadyNode>),
    /// The pod is not Ready.
    PodNotReady(Box<PodNotReady>),
    /// The pod is Ready, but not for `minReadySeconds` without a restart, so it is not available.
    NotAvailableYet {
        /// `minReadySeconds`: seconds that the pod must be Ready without a restart.
        min_ready_seconds: u32,
    },
    /// A pod runs on a node where a new pod may not start (upstream counts it as misscheduled).
    Misscheduled {
        /// The first placement rule that rejects the pod.
        obstacle: Arc<Obstacle>,
    },
    /// The orphaned pod matches the selector, and the DaemonSet adopts it.
    Adopted,
    /// The pod no longer matches the selector; the DaemonSet releases it and it keeps running.
    Released,
    /// The DaemonSet is being deleted, and its controller no longer reconciles it.
    DaemonSetTerminating,
    /// The selector changed, so the DaemonSet must be recreated; no action is planned here.
    MustBeRecreated,
    /// Its DaemonSet is deleted, and the garbage collector deletes the pod too.
    GoesWithOwner,
    /// Its DaemonSet is deleted, and the pod is kept (orphaned).
    Orphaned,
}

/// Since when a node is not Ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotReadyNode {
    /// When the node became NotReady, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Seconds since then, at the time of the snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<i64>,
}

impl NotReadyNode {
    /// Of a node with this readiness; `None` if it is Ready.
    pub(super) fn of(readiness: NodeReadiness, now: Timestamp) -> Option<Self> {
        match readiness {
            NodeReadiness::Ready => None,
            NodeReadiness::NotReady { since } | NodeReadiness::Unknown { since } => Some(Self {
                since: since.map(Timestamp::from),
                seconds: since.map(|since| since.duration_until(now).as_secs()),
            }),
        }
    }
}

/// What is known of a pod that is not Ready.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodNotReady {
    /// The failing container; none when the failure is of the pod itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The reason that the kubelet or scheduler gives, such as `CrashLoopBackOff`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_failure: Option<String>,
    /// The message of the kubelet or scheduler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The last warning event about the pod, such as `FailedMount: …`; none where events were
    /// not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// Sum of the restarts of all its containers.
    pub restarts: u32,
}

impl Reason {
    /// The reason's `code` in JSON.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoPod => "noPod",
            Self::NoLivePod => "noLivePod",
            Self::Outdated { .. } => "outdated",
            Self::UpToDate => "upToDate",
            Self::Failed => "failed",
            Self::Succeeded => "succeeded",
            Self::MayBeDelayed => "mayBeDelayed",
            Self::Surplus { .. } => "surplus",
            Self::Superseded { .. } => SUPERSEDED,
            Self::NotEligible { .. } => "notEligible",
            Self::DeletedNotRecreated { .. } => "deletedNotRecreated",
            Self::NodeVanished => "nodeVanished",
            Self::LeftToGarbageCollector => "leftToGarbageCollector",
            Self::Terminating => TERMINATING,
            Self::OnDelete => "onDelete",
            Self::SkippedUnreadyNode(_) => "skippedUnreadyNode",
            Self::UnreadyNodeCounts { .. } => "unreadyNodeCounts",
            Self::MaxUnavailableReached { .. } => "maxUnavailableReached",
            Self::NodeNotReady(_) => "nodeNotReady",
            Self::PodNotReady(_) => "podNotReady",
            Self::NotAvailableYet { .. } => "notAvailableYet",
            Self::Misscheduled { .. } => "misscheduled",
            Self::Adopted => "adopted",
            Self::Released => "released",
            Self::DaemonSetTerminating => "daemonSetTerminating",
            Self::MustBeRecreated => "mustBeRecreated",
            Self::GoesWithOwner => "goesWithOwner",
            Self::Orphaned => "orphaned",
        }
    }

    /// Details of a single pod that the sentence leaves out: the kubelet's message and the last
    /// warning event.
    pub fn details(&self) -> Vec<String> {
        let Self::PodNotReady(pod) = self else { return Vec::new() };
        let warning = pod.warning.as_ref().map(|warning| format!("last warning: {warning}"));
        pod.detail.iter().cloned().chain(warning).collect()
    }

    /// The sentence of a reason without data.
    fn fixed(&self) -> Option<&'static str> {
        Some(match self {
            Self::NoPod => "node has no pod yet",
            Self::NoLivePod => "node has only terminating pods",
            Self::UpToDate => "runs the target revision",
            Self::Failed => "pod failed",
            Self::Succeeded => "pod completed (phase Succeeded)",
            Self::MayBeDelayed => "may be delayed: the controller backs off after each failure",
            Self::NodeVanished => "created for a node that no longer exists",
            Self::LeftToGarbageCollector => {
                "node no longer exists: the pod garbage collector deletes the pod"
            }
            Self::Terminating => "pod is terminating",
            Self::OnDelete => {
                "strategy OnDelete: replaced by `ds-apply roll`, or after it is deleted"
            }
            Self::Adopted => "orphaned pod is adopted",
            Self::Released => "pod no longer matches the selector and is released",
            Self::DaemonSetTerminating => "the DaemonSet is being deleted",
            Self::MustBeRecreated => {
                "selector changed: the DaemonSet must be recreated; its pods are not changed"
            }
            Self::GoesWithOwner => "deleted with its DaemonSet by the garbage collector",
            Self::Orphaned => "kept without its DaemonSet (orphaned)",
            Self::Outdated { .. }
            | Self::Surplus { .. }
            | Self::Superseded { .. }
            | Self::NotEligible { .. }
            | Self::DeletedNotRecreated { .. }
            | Self::SkippedUnreadyNode(_)
            | Self::UnreadyNodeCounts { .. }
            | Self::MaxUnavailableReached { .. }
            | Self::NodeNotReady(_)
            | Self::PodNotReady(_)
            | Self::NotAvailableYet { .. }
            | Self::Misscheduled { .. } => return None,
        })
    }
}

impl From<&DeleteReason> for Reason {
    fn from(reason: &DeleteReason) -> Self {
        match reason {
            DeleteReason::NodeNotEligible { obstacle } => {
                Self::NotEligible { obstacle: obstacle.clone() }
            }
            DeleteReason::Surplus { keeps } => Self::Surplus { kept: keeps.clone() },
            DeleteReason::Failed => Self::Failed,
            DeleteReason::Succeeded => Self::Succeeded,
            DeleteReason::NodeVanished => Self::NodeVanished,
            DeleteReason::OldNotReady { new: by } | DeleteReason::Replaced { by } => {
                Self::Superseded { by: by.clone() }
            }
            DeleteReason::OutdatedNotAvailable | DeleteReason::Outdated { .. } => {
                Self::Outdated { revision: None }
            }
            DeleteReason::NotAvailableAndMayNotStart { obstacle }
            | DeleteReason::Sunset { obstacle, .. } => {
                Self::DeletedNotRecreated { obstacle: obstacle.clone() }
            }
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(sentence) = self.fixed() {
            return f.write_str(sentence);
        }
        match self {
            Self::Outdated { revision: Some(revision) } => write!(f, "runs revision {revision}"),
            Self::Outdated { revision: None } => {
                f.write_str("runs a revision that no longer exists")
            }
            Self::Surplus { kept } => write!(f, "surplus pod: {kept} is older and is kept"),
            Self::Superseded { by } => write!(f, "outdated: replaced by new pod {by}"),
            Self::NotEligible { obstacle } => write!(f, "{obstacle}"),
            Self::DeletedNotRecreated { obstacle } => {
                write!(f, "deleted, not recreated: {obstacle}")
            }
            Self::SkippedUnreadyNode(node) => write!(
                f,
                "node NotReady{}: skipped; its pod is replaced when the node is Ready again",
                For(node.seconds)
            ),
            Self::UnreadyNodeCounts { unready, skippable } => write!(
                f,
                "node NotReady, counted as unavailable: {} NotReady nodes, at most {} skipped",
                grouped(*unready),
                grouped(*skippable)
            ),
            Self::MaxUnavailableReached { unavailable, allowed } => {
                let (unavailable, allowed) = (grouped(*unavailable), grouped(*allowed));
                write!(
                    f,
                    "`maxUnavailable` reached: {unavailable} unavailable, at most {allowed} allowed"
                )
            }
            Self::NodeNotReady(node) => write!(f, "node NotReady{}", For(node.seconds)),
            Self::PodNotReady(pod) => {
                pod_not_ready(f, pod.container.as_deref(), pod.container_failure.as_deref())
            }
            Self::NotAvailableYet { min_ready_seconds } => {
                let seconds = Age((*min_ready_seconds).into());
                write!(f, "pod Ready for less than {seconds} (`minReadySeconds`)")
            }
            Self::Misscheduled { obstacle } => {
                write!(f, "its pod keeps running; a new pod may not start here: {obstacle}")
            }
            Self::NoPod
            | Self::NoLivePod
            | Self::UpToDate
            | Self::Failed
            | Self::Succeeded
            | Self::MayBeDelayed
            | Self::NodeVanished
            | Self::LeftToGarbageCollector
            | Self::Terminating
            | Self::OnDelete
            | Self::Adopted
            | Self::Released
            | Self::DaemonSetTerminating
            | Self::MustBeRecreated
            | Self::GoesWithOwner
            | Self::Orphaned => Ok(()),
        }
    }
}

/// Without restarts and detail, so that nodes with the same failure share one line.
fn pod_not_ready(
    f: &mut fmt::Formatter<'_>,
    container: Option<&str>,
    container_failure: Option<&str>,
) -> fmt::Result {
    f.write_str("pod is not Ready")?;
    match (container, container_failure) {
        (Some(container), Some(failure)) => write!(f, ": {failure} in container {container}"),
        (None, Some(failure)) => write!(f, ": {failure}"),
        (Some(_) | None, None) => Ok(()),
    }
}

/// ` for 3h`, or nothing when the duration is not known.
struct For(Option<i64>);

impl fmt::Display for For {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(seconds) => write!(f, " for {}", Age(seconds)),
            None => Ok(()),
        }
    }
}

/// A duration as kubectl prints ages: at most the two largest units.
///
/// Upstream: `duration.HumanDuration` of apimachinery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Age(
    /// Duration in seconds.
    pub i64,
);

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MINUTE: i64 = 60;
        const HOUR: i64 = 60 * MINUTE;
        const DAY: i64 = 24 * HOUR;
        const YEAR: i64 = 365 * DAY;
        let s = self.0.max(0);
        let pair = |f: &mut fmt::Formatter<'_>, (big, big_unit), (small, small_unit)| match small {
            0 => write!(f, "{big}{big_unit}"),
            _ => write!(f, "{big}{big_unit}{small}{small_unit}"),
        };
        if s < 2 * MINUTE {
            write!(f, "{s}s")
        } else if s < 10 * MINUTE {
            pair(f, (s / MINUTE, 'm'), (s % MINUTE, 's'))
        } else if s < 3 * HOUR {
            write!(f, "{}m", s / MINUTE)
        } else if s < 8 * HOUR {
            pair(f, (s / HOUR, 'h'), (s % HOUR / MINUTE, 'm'))
        } else if s < 2 * DAY {
            write!(f, "{}h", s / HOUR)
        } else if s < 8 * DAY {
            pair(f, (s / DAY, 'd'), (s % DAY / HOUR, 'h'))
        } else if s < 2 * YEAR {
            write!(f, "{}d", s / DAY)
        } else if s < 8 * YEAR {
            pair(f, (s / YEAR, 'y'), (s % YEAR / DAY, 'd'))
        } else {
            write!(f, "{}y", s / YEAR)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_printed_as_kubectl_prints_them() {
        for (seconds, want) in [
            (-5, "0s"),
            (119, "119s"),
            (120, "2m"),
            (121, "2m1s"),
            (599, "9m59s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (11_700, "3h15m"),
            (28_800, "8h"),
            (172_800, "2d"),
            (180_000, "2d2h"),
            (691_200, "8d"),
            (63_072_000, "2y"),
            (64_000_000, "2y10d"),
            (252_288_000, "8y"),
        ] {
            assert_eq!(Age(seconds).to_string(), want, "{seconds} s");
        }
    }
}
