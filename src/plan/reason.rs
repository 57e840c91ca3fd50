//! Why a node or a pod gets what it gets. Every step that is taken or not taken has one of these;
//! the sentence is made here and nowhere else, from the same numbers that decided.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::controller::placement::Obstacle;
use crate::model::{PodName, RevisionNumber};

/// Code of [`Reason::Superseded`].
pub(super) const SUPERSEDED: &str = "superseded";

/// Code of [`Reason::Terminating`].
pub(super) const TERMINATING: &str = "terminating";

/// Why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "code", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    /// The node is eligible and has no pod.
    NoPod,
    /// The node is eligible, and all the pods that it has are on their way out.
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
    /// The controller replaces failed pods with a growing delay that only it knows.
    MayBeDelayed,
    /// Another pod on this node is older and stays.
    Surplus {
        /// The pod that stays.
        kept: PodName,
    },
    /// With surge: the pod is outdated, and the new one beside it takes its place.
    Superseded {
        /// The new pod.
        by: PodName,
    },
    /// The node may not run a pod of this DaemonSet.
    NotEligible {
        /// The first rule that says no.
        obstacle: Arc<Obstacle>,
    },
    /// The node may keep its pod but not start one, so nothing comes back.
    NothingComesBack {
        /// The rule that forbids a new pod.
        obstacle: Arc<Obstacle>,
    },
    /// The pod was made for a node that is gone, and was never bound to it.
    NodeVanished,
    /// The pod is bound to a node that is gone; the pod garbage collector removes it.
    LeftToGarbageCollector,
    /// The pod is being deleted.
    Terminating,
    /// Pods are replaced when somebody deletes them.
    OnDelete,
    /// The node is not Ready; its pod is left for later and does not count.
    SkippedUnreadyNode {
        /// Since when.
        #[serde(skip_serializing_if = "Option::is_none")]
        since: Option<Timestamp>,
        /// For how many seconds, at the moment observed.
        #[serde(skip_serializing_if = "Option::is_none")]
        seconds: Option<i64>,
    },
    /// The node is not Ready, and more nodes than may be skipped are: it counts as unavailable.
    UnreadyNodeCounts {
        /// Nodes that are not Ready and have something to replace.
        unready: u32,
        /// How many of them may be skipped.
        skippable: u32,
    },
    /// Pods that this plan does not replace use up the budget.
    BudgetTaken {
        /// Desired nodes that stay without an available pod.
        unavailable: u32,
        /// How many may be.
        allowed: u32,
    },
    /// The node is not Ready.
    NodeNotReady {
        /// Since when.
        #[serde(skip_serializing_if = "Option::is_none")]
        since: Option<Timestamp>,
        /// For how many seconds, at the moment observed.
        #[serde(skip_serializing_if = "Option::is_none")]
        seconds: Option<i64>,
    },
    /// The pod is not Ready.
    PodNotReady {
        /// The container in trouble; none when it is the pod itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        container: Option<String>,
        /// The kubelet's or scheduler's word for it, such as `CrashLoopBackOff`.
        #[serde(skip_serializing_if = "Option::is_none")]
        trouble: Option<String>,
        /// What the kubelet or scheduler says about it.
        #[serde(skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
        /// The last warning event about the pod, such as `FailedMount: …`; none where events were
        /// not read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        warning: Option<String>,
        /// Restarts of all its containers together.
        restarts: u32,
    },
    /// The pod is Ready, but not for long enough, or with a restart meanwhile, to be available.
    NotAvailableYet {
        /// How long it has to be.
        min_ready_seconds: u32,
    },
    /// A pod runs where none may start (upstream counts it as misscheduled).
    Misscheduled {
        /// The first rule that says no.
        obstacle: Arc<Obstacle>,
    },
    /// The orphaned pod matches the selector, and the DaemonSet adopts it.
    Adopted,
    /// The pod no longer matches the selector; the DaemonSet lets it go and it runs on.
    Released,
    /// The DaemonSet is being deleted, and its controller does nothing more.
    DaemonSetTerminating,
    /// Another selector is a new DaemonSet: nothing is done here.
    MustBeRecreated,
    /// Its DaemonSet is deleted, and the garbage collector deletes the pod too.
    GoesWithOwner,
    /// Its DaemonSet is deleted, and the pod stays.
    Orphaned,
}

impl Reason {
    /// The reason's code, as JSON has it.
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
            Self::NothingComesBack { .. } => "nothingComesBack",
            Self::NodeVanished => "nodeVanished",
            Self::LeftToGarbageCollector => "leftToGarbageCollector",
            Self::Terminating => TERMINATING,
            Self::OnDelete => "onDelete",
            Self::SkippedUnreadyNode { .. } => "skippedUnreadyNode",
            Self::UnreadyNodeCounts { .. } => "unreadyNodeCounts",
            Self::BudgetTaken { .. } => "budgetTaken",
            Self::NodeNotReady { .. } => "nodeNotReady",
            Self::PodNotReady { .. } => "podNotReady",
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
}

impl Reason {
    /// What its sentence leaves out and is said of one pod alone: the kubelet's message, and the
    /// last warning.
    pub fn details(&self) -> Vec<String> {
        let Self::PodNotReady { detail, warning, .. } = self else { return Vec::new() };
        let warning = warning.as_ref().map(|warning| format!("last warning: {warning}"));
        detail.iter().cloned().chain(warning).collect()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPod => f.write_str("node has no pod yet"),
            Self::NoLivePod => f.write_str("node has no pod that stays"),
            Self::Outdated { revision: Some(revision) } => write!(f, "runs revision {revision}"),
            Self::Outdated { revision: None } => {
                f.write_str("runs a template that no revision records")
            }
            Self::UpToDate => f.write_str("runs the target revision"),
            Self::Failed => f.write_str("pod failed"),
            Self::Succeeded => f.write_str("pod has ended (phase Succeeded)"),
            Self::MayBeDelayed => {
                f.write_str("may be delayed: the controller waits longer after each failure")
            }
            Self::Surplus { kept } => write!(f, "surplus pod: {kept} is older and stays"),
            Self::Superseded { by } => write!(f, "outdated, and new pod {by} takes its place"),
            Self::NotEligible { obstacle } => write!(f, "{obstacle}"),
            Self::NothingComesBack { obstacle } => {
                write!(f, "outdated, and nothing comes back: {obstacle}")
            }
            Self::NodeVanished => f.write_str("made for a node that is gone"),
            Self::LeftToGarbageCollector => {
                f.write_str("node is gone: the pod garbage collector removes the pod")
            }
            Self::Terminating => f.write_str("pod is terminating"),
            Self::OnDelete => f.write_str("strategy OnDelete: replaced when somebody deletes it"),
            Self::SkippedUnreadyNode { since: _, seconds } => write!(
                f,
                "node NotReady{}: skipped, its pod is replaced when it is back",
                For(*seconds)
            ),
            Self::UnreadyNodeCounts { unready, skippable } => write!(
                f,
                "node NotReady, and counts against the budget: {unready} such nodes, at most \
                 {skippable} skipped"
            ),
            Self::BudgetTaken { unavailable, allowed } => {
                write!(f, "budget taken: {unavailable} unavailable, at most {allowed} allowed")
            }
            Self::NodeNotReady { since: _, seconds } => write!(f, "node NotReady{}", For(*seconds)),
            // Without restarts and detail: nodes in the same trouble stand in one line.
            Self::PodNotReady { container, trouble, detail: _, warning: _, restarts: _ } => {
                f.write_str("pod is not Ready")?;
                match (container, trouble) {
                    (Some(container), Some(word)) => write!(f, ": {word} in container {container}"),
                    (None, Some(word)) => write!(f, ": {word}"),
                    (Some(_) | None, None) => Ok(()),
                }
            }
            Self::NotAvailableYet { min_ready_seconds } => {
                let seconds = Age((*min_ready_seconds).into());
                write!(f, "pod Ready without a restart for less than minReadySeconds ({seconds})")
            }
            Self::Misscheduled { obstacle } => {
                write!(f, "its pod runs on, but none may start: {obstacle}")
            }
            Self::Adopted => f.write_str("orphaned pod is adopted"),
            Self::Released => f.write_str("pod no longer matches the selector and is released"),
            Self::DaemonSetTerminating => f.write_str("the DaemonSet is being deleted"),
            Self::MustBeRecreated => {
                f.write_str("another selector needs a new DaemonSet: nothing is done")
            }
            Self::GoesWithOwner => {
                f.write_str("goes with its DaemonSet: the garbage collector deletes it")
            }
            Self::Orphaned => f.write_str("stays without its DaemonSet, and belongs to nobody"),
        }
    }
}

/// ` for 3h`, or nothing where the span is not known.
struct For(Option<i64>);

impl fmt::Display for For {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(seconds) => write!(f, " for {}", Age(seconds)),
            None => Ok(()),
        }
    }
}

/// A span of time as kubectl prints ages: the two largest units that matter.
///
/// Upstream: `duration.HumanDuration` of apimachinery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Age(
    /// Seconds.
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
    fn ages_read_as_kubectl_prints_them() {
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
