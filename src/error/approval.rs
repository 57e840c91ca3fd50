//! Errors of approving a step.

use crate::exit::Exit;
use cluster::WriteError;
use daemonset::model::DaemonSetKey;
use planner::approval::{NotDone, NotToApprove};

/// A step cannot be approved, or needs no approval.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApprovalError {
    /// There is no such step, or it begins without an approval.
    #[error("{}", not_to_approve(daemon_set, step, why))]
    NotToApprove {
        /// The DaemonSet.
        daemon_set: DaemonSetKey,
        /// The name that was given.
        step: String,
        /// The reason.
        why: NotToApprove,
    },
    /// The step before it is not done.
    #[error("step {before} of {daemon_set} is not done: {why}; {step} is not approved")]
    NotDone {
        /// The DaemonSet.
        daemon_set: DaemonSetKey,
        /// The step to approve.
        step: String,
        /// The step before it.
        before: String,
        /// The reason.
        why: NotDone,
    },
    /// Every node runs the template already.
    #[error("{0} is rolled out: no step waits for an approval")]
    RolledOut(DaemonSetKey),
    /// What was noted about rollouts of the template is lost.
    #[error(
        "{0} has run this template before, but what was noted about that is lost: it is unknown which \
         approvals were used"
    )]
    NoteLost(DaemonSetKey),
    /// A rollback of the template is under way.
    #[error("{0} is being rolled back: no step of this rollout is approved")]
    RollingBack(DaemonSetKey),
    /// The user may not list Leases, which note the progress of steps.
    #[error("it is unknown whether the step before it is done: not permitted: list leases.coordination.k8s.io in namespace {}", _0.namespace)]
    ProgressUnknown(DaemonSetKey),
    /// The name of the ConfigMap is taken.
    #[error(
        "ConfigMap {name} is the record of another DaemonSet, so it cannot have approvals of {daemon_set}"
    )]
    NameTaken {
        /// The DaemonSet.
        daemon_set: DaemonSetKey,
        /// Name of the ConfigMap.
        name: String,
    },
    /// The approval cannot be written.
    #[error("cannot approve a step of {daemon_set}")]
    Write {
        /// The DaemonSet.
        daemon_set: DaemonSetKey,
        /// The error of the server.
        source: Box<WriteError>,
    },
}

impl ApprovalError {
    /// The outcome of a run that failed with this error.
    pub(super) fn exit(&self) -> Exit {
        match self {
            Self::NotToApprove { .. }
            | Self::RolledOut(_)
            | Self::ProgressUnknown(_)
            | Self::NameTaken { .. }
            | Self::Write { .. } => Exit::Failed,
            Self::NotDone { .. } | Self::NoteLost(_) | Self::RollingBack(_) => Exit::Blocked,
        }
    }
}

fn not_to_approve(daemon_set: &DaemonSetKey, step: &str, why: &NotToApprove) -> String {
    match why {
        NotToApprove::NoSteps => format!("no RolloutPolicy with steps applies to {daemon_set}"),
        NotToApprove::Unknown { needed: _ } => {
            format!("the policy of {daemon_set} has no step {step}")
        }
        NotToApprove::NotAsked { needed: _ } => {
            format!("step {step} of {daemon_set} needs no approval: it has no `approve: true`")
        }
    }
}
