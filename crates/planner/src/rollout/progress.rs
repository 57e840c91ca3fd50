//! Progress reports of a run.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::outcome::{NotPulled, PodFailure};
use super::request::{Delete, Purpose};
use crate::steps::WaitsFor;
use crate::words::{agree, count, grouped};
use daemonset::model::{NodeName, RevisionName};

/// One progress report.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// The DaemonSet is about to be written.
    Writing(Purpose),
    /// The revision of the target template exists.
    Revision(RevisionName),
    /// A pod is about to be deleted.
    Deleting(Delete),
    /// A node whose pod was replaced has an available one again.
    Recovered {
        /// The node.
        node: NodeName,
        /// Time since the delete, in seconds.
        seconds: i64,
    },
    /// A pod that this run did not make room for is available for the first time.
    Arrived {
        /// The node.
        node: NodeName,
        /// How the node got the pod.
        how: Arrival,
        /// Time for which the run has waited for it, in seconds.
        seconds: i64,
    },
    /// The run was interrupted: it starts nothing more, and waits for the pods in flight.
    Stopping {
        /// Number of nodes in flight.
        in_flight: u32,
    },
    /// More nodes than `maxUnavailable` lost their Ready pod within a minute without a delete: no
    /// pods are deleted until they recover.
    LostReady {
        /// Number of nodes.
        nodes: u32,
    },
    /// The cluster cannot be observed, or the lock not be renewed: no pods are deleted until then.
    NotObserved {
        /// The error.
        failure: String,
    },
    /// A node begins to pull the images of its new pod.
    Pulling {
        /// The node.
        node: NodeName,
        /// Number of images.
        images: usize,
    },
    /// The images of its new pod are on a node.
    Pulled {
        /// The node.
        node: NodeName,
        /// Time that it took, in seconds.
        seconds: i64,
    },
    /// The images of its new pod could not be pulled to a node in time.
    NotPulled {
        /// The node.
        node: NodeName,
        /// Why.
        why: NotPulled,
    },
    /// Pods that pull images, of this run or an earlier one, are of no use any more and are removed.
    RemovingPullers {
        /// Number of these pods.
        pods: usize,
    },
    /// A new pod has failed. What a gate has found is in the outcome.
    Failed {
        /// The node.
        node: NodeName,
        /// The failure.
        pod_failure: PodFailure,
    },
    /// The policy lets no more nodes begin for now, and the run itself waits.
    WaitingFor(Vec<WaitsFor>),
    /// The counts have changed.
    Progress(Progress),
}

/// How a node got a new pod that this run has not deleted another one for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Arrival {
    /// The node had no pod before.
    Created,
    /// The new pod was started next to the old one.
    Surged,
    /// The old pod went away without this run, such as a failed one that the controller replaced.
    Recreated,
}

/// Rollout progress, as node counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// Nodes that should run a pod.
    pub desired: u32,
    /// Desired nodes with a pod of the target revision.
    pub updated: u32,
    /// Desired nodes with an available pod, of any revision.
    pub available: u32,
    /// Nodes without an available pod that count against the budget.
    pub unavailable: u32,
    /// The part of `unavailable` that never had a pod: these nodes wait for their first one.
    pub awaiting_first_pod: u32,
    /// Nodes that may be unavailable.
    pub allowed: u32,
    /// Nodes with an old and a new pod.
    pub surging: u32,
    /// Nodes that may have an old and a new pod.
    pub may_surge: u32,
    /// Nodes whose new pod is not available yet.
    pub recovering: u32,
    /// Nodes with an outdated pod.
    pub outdated: u32,
    /// Nodes that are skipped because they are not Ready.
    pub skipped: u32,
    /// The wave in progress, from 1; none when no outdated pod is left. Plans have one wave, so it
    /// is not shown.
    #[serde(skip)]
    pub wave: Option<u32>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Writing(purpose) => write!(f, "{purpose}"),
            Self::Revision(name) => write!(f, "the target is revision {name}"),
            Self::Deleting(Delete { pod, uid: _, node, reason, cost: _ }) => {
                write!(f, "{node}: deleting pod {pod} ({reason})")
            }
            Self::Recovered { node, seconds } => write!(f, "{node}: available after {seconds}s"),
            Self::Arrived { node, how, seconds } => match how {
                Arrival::Created => {
                    write!(f, "{node}: its first pod is available after {seconds}s")
                }
                Arrival::Surged => write!(f, "{node}: its new pod is available after {seconds}s"),
                Arrival::Recreated => write!(f, "{node}: available again after {seconds}s"),
            },
            Self::Stopping { in_flight } => write!(
                f,
                "stopping after {} in flight; press again to stop at once",
                count((*in_flight).try_into().unwrap_or(usize::MAX), "pod")
            ),
            Self::LostReady { nodes } => write!(
                f,
                "{} became NotReady within a minute: no pods are deleted until they recover",
                count(*nodes, "pod")
            ),
            Self::NotObserved { failure } => write!(f, "no pods are deleted for now: {failure}"),
            Self::Pulling { node, images } => {
                write!(f, "{node}: pulling {}", count(*images, "image"))
            }
            Self::Pulled { node, seconds } => write!(f, "{node}: images pulled after {seconds}s"),
            Self::NotPulled { node, why } => write!(f, "{node}: {why}; the node is skipped"),
            Self::RemovingPullers { pods } => {
                let pull = agree(*pods, "pulls", "pull");
                write!(f, "removing {} that {pull} images", count(*pods, "pod"))
            }
            Self::Failed { node, pod_failure } => write!(f, "{node}: {pod_failure}"),
            Self::WaitingFor(waits_for) => {
                let waits: Vec<String> = waits_for.iter().map(ToString::to_string).collect();
                write!(f, "waiting: {}", waits.join("; "))
            }
            Self::Progress(progress) => write!(f, "{progress}"),
        }
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Apply => "applying",
            Self::Pause => "pausing the rollout",
            Self::AddFailedGate => "recording the gate that has failed",
            Self::Abort | Self::Wait => "restoring the last good template",
            Self::RestoreStrategy => "restoring the declared strategy",
        })
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            desired,
            updated,
            available,
            unavailable,
            awaiting_first_pod,
            allowed,
            recovering,
            surging,
            may_surge,
            outdated: _,
            skipped,
            wave: _,
        } = self;
        write!(
            f,
            "{} of {} updated, {} available, {} recovering; {} unavailable, at most {} allowed",
            grouped(*updated),
            grouped(*desired),
            grouped(*available),
            grouped(*recovering),
            grouped(unavailable.saturating_sub(*awaiting_first_pod)),
            grouped(*allowed),
        )?;
        if *may_surge > 0 {
            let (surging, may_surge) = (grouped(*surging), grouped(*may_surge));
            write!(f, "; {surging} surging, at most {may_surge} allowed")?;
        }
        if *awaiting_first_pod > 0 {
            write!(f, "; {} waiting for their first pod", grouped(*awaiting_first_pod))?;
        }
        if *skipped > 0 { write!(f, "; {} skipped", grouped(*skipped)) } else { Ok(()) }
    }
}
