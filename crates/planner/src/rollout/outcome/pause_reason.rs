//! Why a rollout is paused, and what it could not do.

use std::collections::BTreeMap;
use std::fmt;

use super::{Attempt, FailureCause, PodFailure};
use crate::checks::CheckFinding;
use crate::plan::Age;
use crate::rollout::event::Failure;
use crate::words::{count, grouped};
use daemonset::model::{NodeName, PullProblem, RevisionName, RevisionNumber};

/// The reason why a run paused.
#[derive(Clone, Debug, PartialEq)]
pub enum PauseReason {
    /// New pods failed.
    Failed {
        /// Failures by node.
        failed: BTreeMap<NodeName, PodFailure>,
        /// The reason why the last good template was not restored, if it should have been.
        not_aborted: Option<NotAborted>,
        /// Set if it failed although no pod has.
        cause: Option<FailureCause>,
    },
    /// The answer of a check has been unknown for too long. What is live is the same as if the
    /// rollout waited.
    CheckUnknown {
        /// The check, since when, and why.
        finding: Box<CheckFinding>,
        /// Duration in seconds.
        seconds: i64,
        /// Seconds that the policy allows.
        allowed: u32,
    },
    /// `maxUnavailable` is reached or exceeded, and the unavailable nodes do not recover.
    MaxUnavailableReached {
        /// Unavailable nodes that count against the budget.
        unavailable: u32,
        /// Nodes that may be unavailable.
        allowed: u32,
        /// Duration in seconds.
        seconds: i64,
    },
    /// Nodes of the domains in progress are unavailable, and do not recover. No other node may begin
    /// meanwhile (`atOnce` and `maxUnavailable` of the domains).
    DomainsUnavailable {
        /// The number of those nodes, by domain; an empty name is that of nodes without a domain.
        domains: BTreeMap<String, u32>,
        /// Duration in seconds.
        seconds: i64,
    },
    /// `sharedBudget` is taken up, and the nodes do not recover.
    SharedBudgetReached {
        /// Nodes that are disturbed, or not finished.
        taken: u32,
        /// Their maximum.
        allowed: u32,
        /// Duration in seconds.
        seconds: i64,
    },
    /// Outdated pods are still Ready on nodes that are not Ready.
    OldPodsRemain {
        /// The nodes that are not Ready.
        nodes: Vec<NodeName>,
        /// Duration in seconds.
        seconds: i64,
    },
    /// The DaemonSet controller is stalled: it has not observed the write, has not created a
    /// revision of it, or does not replace pods.
    ControllerStalled {
        /// The work that is not done.
        work: ControllerWork,
        /// Duration in seconds.
        seconds: i64,
    },
    /// The in-process controller could not create the pods of all nodes.
    NotCreated {
        /// Nodes without a pod.
        nodes: Vec<NodeName>,
        /// Duration in seconds.
        seconds: i64,
        /// The server's message.
        message: Option<String>,
    },
    /// Images of the new pods could not be pulled in time (`prePull`): these nodes keep their old
    /// pods.
    NotPulled {
        /// The nodes.
        nodes: BTreeMap<NodeName, NotPulled>,
        /// Number of nodes that may be skipped, those that are not Ready among them.
        skippable: u32,
    },
    /// The watches are not current, so the cluster cannot be observed.
    Blind {
        /// Duration in seconds.
        seconds: i64,
        /// The error of a watch or of the lock, if one fails.
        failure: Option<String>,
    },
    /// The server does not answer.
    NoAnswer {
        /// The last request.
        request: Attempt,
        /// The result of that request.
        failure: Failure,
        /// Duration in seconds.
        seconds: i64,
    },
    /// The server rejected a request, and the live strategy is `OnDelete`.
    Refused {
        /// The rejected request.
        request: Attempt,
        /// The server's answer.
        failure: Failure,
    },
    /// The timeout of the whole run is reached.
    Timeout,
}

/// Why a node does not have the images of its new pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotPulled {
    /// Time for which they were waited for, in seconds.
    pub seconds: i64,
    /// The image, and what the kubelet or the server says.
    pub problem: PullProblem,
}

/// The work of the DaemonSet controller that a run waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControllerWork {
    /// Observe the write.
    Observe {
        /// Generation of the object.
        generation: i64,
        /// `status.observedGeneration`.
        observed: i64,
    },
    /// None: the watch does not show our own write yet.
    Appear,
    /// Create a revision of the template.
    MakeRevision,
    /// Remove duplicate revisions of the template.
    DropDuplicates {
        /// Number of revisions with this template.
        revisions: usize,
    },
    /// Replace outdated pods with surge.
    Roll {
        /// Nodes with an outdated pod.
        outdated: u32,
    },
}

/// The reason why the last good template was not restored.
#[derive(Clone, Debug, PartialEq)]
pub enum NotAborted {
    /// There is no earlier template.
    NothingBefore,
    /// The template that failed is the last good one itself: a commit went back to it.
    IsLastGood,
    /// It has failed itself since: a template that has failed is not written again.
    HasFailed {
        /// The name of its revision.
        name: RevisionName,
        /// The number of its revision.
        number: RevisionNumber,
    },
    /// Its revision no longer exists.
    RevisionGone {
        /// Its name.
        name: RevisionName,
        /// Its number.
        number: RevisionNumber,
    },
    /// Too many nodes with a pod, or about to get one, do not match its placement: the controller
    /// would evict those pods at once.
    WouldEvict {
        /// Pods that would be evicted.
        pods: u32,
        /// The part of them that is not available yet.
        to_come: u32,
        /// Pods that may be unavailable at once.
        allowed: u32,
    },
}

impl fmt::Display for PauseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed { failed, not_aborted, cause } => {
                failure(f, failed.len(), cause.as_ref())?;
                not_aborted.iter().try_for_each(|why| write!(f, "; not aborted: {why}"))
            }
            Self::CheckUnknown { finding, seconds, allowed } => write!(
                f,
                "unknown for {}, at most {} allowed (`unknownFor`): {finding}",
                Age(*seconds),
                Age((*allowed).into())
            ),
            Self::MaxUnavailableReached { unavailable, allowed, seconds } => write!(
                f,
                "`maxUnavailable` reached for {}: {} unavailable, at most {} allowed",
                Age(*seconds),
                grouped(*unavailable),
                grouped(*allowed)
            ),
            Self::DomainsUnavailable { domains, seconds } => {
                write!(f, "the limits of `domains` reached for {}: ", Age(*seconds))?;
                let of_domain = |(domain, nodes): (&String, &u32)| {
                    let domain = if domain.is_empty() { "no domain" } else { domain };
                    format!("{} unavailable in {domain}", count(*nodes, "node"))
                };
                f.write_str(&domains.iter().map(of_domain).collect::<Vec<_>>().join(", "))
            }
            Self::SharedBudgetReached { taken, allowed, seconds } => write!(
                f,
                "`sharedBudget` reached for {}: {} disturbed, at most {} allowed",
                Age(*seconds),
                count(*taken, "node"),
                grouped(*allowed)
            ),
            Self::OldPodsRemain { nodes, seconds } => write!(
                f,
                "outdated pods are Ready on {} that cannot be reached, for {}",
                count(nodes.len(), "node"),
                Age(*seconds)
            ),
            Self::ControllerStalled { work, seconds } => {
                write!(f, "the DaemonSet controller {work}, for {}", Age(*seconds))
            }
            Self::NotCreated { nodes, seconds, message } => {
                let (nodes, age) = (count(nodes.len(), "node"), Age(*seconds));
                write!(f, "pods of {nodes} could not be created for {age}")?;
                message.iter().try_for_each(|message| write!(f, ": {message}"))
            }
            Self::NotPulled { nodes, skippable } => write!(
                f,
                "images could not be pulled to {}, at most {} may be skipped; no pod there was \
                 deleted",
                count(nodes.len(), "node"),
                grouped(*skippable)
            ),
            Self::Blind { seconds, failure } => {
                write!(f, "the cluster could not be observed for {}", Age(*seconds))?;
                failure.iter().try_for_each(|failure| write!(f, ": {failure}"))
            }
            Self::NoAnswer { request, failure, seconds } => {
                write!(f, "{request} has failed for {}: {failure}", Age(*seconds))
            }
            Self::Refused { request, failure } => write!(
                f,
                "{request}: {failure}; the update strategy is OnDelete, so the other pods are not \
                 replaced until a run resumes the rollout"
            ),
            Self::Timeout => f.write_str("the run timed out"),
        }
    }
}

/// What has failed: what the run found, else the new pods.
fn failure(f: &mut fmt::Formatter<'_>, nodes: usize, cause: Option<&FailureCause>) -> fmt::Result {
    match cause {
        Some(cause) => write!(f, "{cause}"),
        None => write!(f, "new pods failed on {}", count(nodes, "node")),
    }
}

/// `registry/agent:2 not pulled after 10m: ErrImagePull: not found`.
impl fmt::Display for NotPulled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seconds, problem: PullProblem { image, reason, message } } = self;
        let image = if image.is_empty() { "its images" } else { image };
        write!(f, "{image} not pulled after {}", Age(*seconds))?;
        let details = [reason, message].into_iter().filter(|text| !text.is_empty());
        details.into_iter().try_for_each(|text| write!(f, ": {text}"))
    }
}

impl fmt::Display for ControllerWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Observe { generation, observed } => {
                write!(f, "has observed generation {observed}, not {generation}")
            }
            Self::Appear => {
                f.write_str("cannot be observed: the cache does not show our own write")
            }
            Self::MakeRevision => f.write_str("has not created a revision of the template"),
            Self::DropDuplicates { revisions } => {
                let revisions = count(*revisions, "revision");
                write!(f, "has not removed the duplicates of {revisions} of one template")
            }
            Self::Roll { outdated } => write!(f, "has not replaced {outdated} outdated pods"),
        }
    }
}

impl fmt::Display for NotAborted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingBefore => f.write_str("there is no earlier template to roll back to"),
            Self::IsLastGood => f.write_str("it is the last good template itself"),
            Self::HasFailed { name, number } => {
                write!(f, "revision {number} ({name}), which was live before, has failed too")
            }
            Self::RevisionGone { name, number } => {
                write!(f, "revision {number} ({name}) no longer exists")
            }
            Self::WouldEvict { pods, to_come, allowed } => {
                write!(f, "rolling back would evict {} at once", count(*pods, "pod"))?;
                if *to_come > 0 {
                    write!(f, " ({to_come} of them are not available yet)")?;
                }
                write!(f, ", at most {allowed} allowed")
            }
        }
    }
}
