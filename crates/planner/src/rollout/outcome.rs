//! The outcomes of a run and their messages.

mod cause;
mod pause_reason;

use std::collections::BTreeMap;
use std::fmt;

use super::event::Failure;
use crate::checks::CheckFinding;
use crate::plan::{Age, Reason};
use crate::steps::WaitsFor;
use crate::words::count;
pub use cause::{FailedGate, FailureCause, Overdue};
use daemonset::model::{NodeName, PodName, RevisionName, Uid};
pub use pause_reason::{ControllerWork, NotAborted, NotPulled, PauseReason};

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    /// The outcome.
    pub outcome: Outcome,
    /// Nodes whose pod this run replaced, in the order in which they became available again.
    pub replaced: Vec<Replaced>,
    /// Nodes that are not in the desired state, and the reasons.
    pub left: BTreeMap<NodeName, Vec<Reason>>,
}

/// A node whose pod was replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The node.
    pub node: NodeName,
    /// The wave of the node, if it was planned.
    pub wave: Option<u32>,
    /// Time from the delete until the new pod was available, in seconds.
    pub seconds: i64,
    /// The part of it until the old pod was gone, in seconds, if that was observed.
    pub terminating: Option<i64>,
    /// Restarts of the new pod's containers during that time.
    pub restarts: u32,
}

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The target state is reached. Nodes that were skipped or wait for `OnDelete` are in
    /// [`Ending::left`].
    Done,
    /// The rollout is paused where it is and can be resumed.
    Paused {
        /// Why.
        why: PauseReason,
    },
    /// The policy lets no more nodes begin for now; the DaemonSet is paused, or unchanged if nothing
    /// has begun.
    Waiting {
        /// What is waited for.
        waits_for: Vec<WaitsFor>,
    },
    /// The rollout failed; the last good template is live again and the DaemonSet is paused.
    Aborted {
        /// Failures by node; empty when they happened in an earlier run.
        failed: BTreeMap<NodeName, PodFailure>,
        /// The revision whose template is live.
        to: RevisionName,
        /// The result of replacing the pods of the failed template; `None` if they were left.
        rolled_back: Option<RolledBack>,
        /// Set if it failed although no pod has.
        cause: Option<FailureCause>,
    },
    /// Another client changed the DaemonSet.
    Stale {
        /// The change.
        change: Interference,
        /// Whether the DaemonSet is still paused, so that the controller replaces no pods.
        paused: bool,
    },
    /// The DaemonSet is deleted or terminating.
    Gone {
        /// The uid of the new DaemonSet with the same name, if there is one.
        replaced_by: Option<Uid>,
    },
    /// Ctrl-C or SIGTERM; the DaemonSet is left as it is.
    Interrupted {
        /// Whether the DaemonSet is paused. If it is not, it may be unchanged, or its controller
        /// continues.
        paused: bool,
    },
    /// Another run holds the lock.
    LockLost,
    /// The server rejected a request, and the live strategy is not `OnDelete`.
    Failed {
        /// The rejected request.
        request: Attempt,
        /// The server's answer.
        failure: Failure,
    },
}

/// The result of replacing the pods of the failed template.
#[derive(Clone, Debug, PartialEq)]
pub enum RolledBack {
    /// All pods were replaced.
    Fully,
    /// The rollback failed as well, on these nodes.
    Failed(BTreeMap<NodeName, PodFailure>),
    /// The rollback stalled.
    Stopped(Box<PauseReason>),
}

/// A failed new pod, or a node on which no new pod appears.
#[derive(Clone, Debug, PartialEq)]
pub enum PodFailure {
    /// The pod is not available within the deadline.
    TooLate {
        /// The pod.
        pod: PodName,
        /// Time that it had, in seconds.
        seconds: i64,
        /// The reason that the kubelet or scheduler reports.
        reason: Reason,
    },
    /// A container is waiting for a reason that is permanent.
    Permanent {
        /// The pod.
        pod: PodName,
        /// Time for which the reason has been reported, in seconds.
        seconds: i64,
        /// The reason that the kubelet reports.
        reason: Reason,
    },
    /// Its containers restarted too often.
    Restarts {
        /// The pod.
        pod: PodName,
        /// Number of restarts.
        restarts: u32,
        /// Restarts that the policy allows.
        allowed: u32,
    },
    /// No pod was created.
    NoPod {
        /// Duration in seconds.
        seconds: i64,
        /// The message of the controller's `FailedCreate` event.
        message: Option<String>,
    },
    /// The old pod does not terminate.
    StillTerminating {
        /// The pod.
        pod: PodName,
        /// Duration in seconds.
        seconds: i64,
    },
}

impl Outcome {
    /// The gate of the policy that has failed.
    pub fn failed_gate(&self) -> Option<&FailedGate> {
        let (Self::Paused { why: PauseReason::Failed { cause, .. } } | Self::Aborted { cause, .. }) =
            self
        else {
            return None;
        };
        cause.as_ref()?.gate()
    }

    /// The check that has been unknown for too long.
    pub fn unknown_check(&self) -> Option<&CheckFinding> {
        let Self::Paused { why: PauseReason::CheckUnknown { finding, .. } } = self else {
            return None;
        };
        Some(finding)
    }

    /// Failed nodes of a paused or aborted outcome.
    pub fn failed(&self) -> Option<&BTreeMap<NodeName, PodFailure>> {
        let (Self::Paused { why: PauseReason::Failed { failed, .. } }
        | Self::Aborted { failed, .. }) = self
        else {
            return None;
        };
        Some(failed)
    }

    /// The nodes to which images could not be pulled, if that is why it is paused.
    pub fn not_pulled(&self) -> Option<&BTreeMap<NodeName, NotPulled>> {
        let Self::Paused { why: PauseReason::NotPulled { nodes, skippable: _ } } = self else {
            return None;
        };
        Some(nodes)
    }
}

impl PodFailure {
    /// The pod that failed, if there is one.
    pub fn pod(&self) -> Option<&PodName> {
        match self {
            Self::TooLate { pod, .. }
            | Self::Permanent { pod, .. }
            | Self::Restarts { pod, .. }
            | Self::StillTerminating { pod, .. } => Some(pod),
            Self::NoPod { .. } => None,
        }
    }
}

/// A change by another client.
#[derive(Clone, Debug, PartialEq)]
pub enum Interference {
    /// The live template is a different one, or the server mutated ours.
    Template {
        /// The revision of the live template, once there is one.
        revision: Option<RevisionName>,
        /// Whether it has another time of a `kubectl rollout restart`.
        restarted: bool,
    },
    /// The strategy or the pause annotation was changed.
    Strategy,
    /// Another run aborted the rollout or restored the strategy.
    Pause,
}

/// The kind of a request, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// Writing the DaemonSet.
    Write,
    /// Deleting a pod.
    Delete,
    /// Annotating the revision with the change.
    Annotate,
    /// Remembering the failed template.
    Remember,
    /// Noting what has become of the steps.
    Note,
    /// Creating a pod that pulls images.
    Pull,
}

impl fmt::Display for PodFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLate { pod, seconds, reason } => {
                write!(f, "pod {pod} is not available after {}: {reason}", Age(*seconds))?;
                reason.details().iter().try_for_each(|detail| write!(f, ": {detail}"))
            }
            Self::Permanent { pod, seconds, reason } => {
                write!(f, "pod {pod} has been failing for {}: {reason}", Age(*seconds))?;
                reason.details().iter().try_for_each(|detail| write!(f, ": {detail}"))
            }
            Self::Restarts { pod, restarts, allowed } => {
                let restarts = count(*restarts, "time");
                write!(f, "pod {pod} restarted {restarts}, at most {allowed} allowed")
            }
            Self::NoPod { seconds, message } => {
                write!(f, "no pod created for {}", Age(*seconds))?;
                message.iter().try_for_each(|message| write!(f, ": {message}"))
            }
            Self::StillTerminating { pod, seconds } => {
                write!(f, "pod {pod} has been terminating for {}", Age(*seconds))
            }
        }
    }
}

impl fmt::Display for Interference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Template { revision, restarted: true } => {
                f.write_str("`kubectl rollout restart` has changed the live template")?;
                revision.iter().try_for_each(|it| write!(f, " to that of revision {it}"))
            }
            Self::Template { revision: Some(revision), restarted: false } => {
                write!(f, "the live template is that of revision {revision}")
            }
            Self::Template { revision: None, restarted: false } => {
                f.write_str("the live template was changed")
            }
            Self::Strategy => f.write_str("the update strategy was changed"),
            Self::Pause => f.write_str("the pause was changed"),
        }
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Write => "writing the DaemonSet",
            Self::Delete => "deleting a pod",
            Self::Annotate => "annotating the revision with the change",
            Self::Remember => "remembering the failed template",
            Self::Note => "noting the progress of steps on the lock",
            Self::Pull => "creating a pod that pulls images",
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Paused { why } => write!(f, "paused: {why}"),
            Self::Waiting { waits_for } => {
                let waits: Vec<String> = waits_for.iter().map(ToString::to_string).collect();
                write!(f, "waiting: {}", waits.join("; "))
            }
            Self::Aborted { failed, to, rolled_back, cause } => {
                match (failed.len(), cause) {
                    (_, Some(cause)) => write!(f, "aborted: {cause}; {to} is live")?,
                    (0, None) => {
                        write!(f, "aborted: new pods failed in an earlier run; {to} is live")?;
                    }
                    (nodes, None) => {
                        let nodes = count(nodes, "node");
                        write!(f, "aborted: new pods failed on {nodes}; {to} is live")?;
                    }
                }
                match rolled_back {
                    None => Ok(()),
                    Some(RolledBack::Fully) => f.write_str(", and all pods were rolled back"),
                    Some(RolledBack::Failed(failed)) => {
                        write!(f, ", but rolling back failed on {}", count(failed.len(), "node"))
                    }
                    Some(RolledBack::Stopped(why)) => {
                        write!(f, ", but rolling back stopped: {why}")
                    }
                }
            }
            Self::Stale { change, paused: true } => write!(f, "paused: {change}"),
            Self::Stale { change, paused: false } => write!(f, "stopped: {change}"),
            Self::Gone { replaced_by: None } => f.write_str("the DaemonSet is gone"),
            Self::Gone { replaced_by: Some(uid) } => {
                write!(f, "the DaemonSet is gone; another one has its name (uid {uid})")
            }
            Self::Interrupted { paused: true } => f.write_str("paused: the run was interrupted"),
            Self::Interrupted { paused: false } => f.write_str("interrupted"),
            Self::LockLost => f.write_str("another run took the lock"),
            Self::Failed { request, failure } => write!(f, "{request}: {failure}"),
        }
    }
}
