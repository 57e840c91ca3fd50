//! The events of a run as documents: the lines of `ds-apply -o json`, some of which are also posted
//! as notifications (`notification`). Their JSON schema is generated from these types.
//!
//! The first event of a run is its plan, the last one is `runEnded`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::outcome::{FailedGate, NotPulled, Replaced};
use super::progress::{Arrival, Progress, Report};
use super::request::Delete;
use super::task::Task;
use crate::checks::CheckFinding;
use crate::plan::{ApiVersion, ContainerLog, LockStatus, Plan};
use crate::steps::WaitsFor;
use daemonset::model::{NodeName, PodName, RevisionName, Uid};

/// One event of a run: one line of `ds-apply -o json`, or a notification.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunEvent {
    /// Version of this document's format.
    pub api_version: ApiVersion,
    /// Always `RunEvent`.
    pub kind: RunEventKind,
    /// The time of the event, by the server's clock.
    pub time: Timestamp,
    /// Whether the run is a rehearsal: nothing happened on the cluster itself.
    pub rehearsal: bool,
    /// The cluster's name in the kubeconfig. Only notifications have it, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// `NAMESPACE/NAME` of the DaemonSet; none for an event of the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daemon_set: Option<String>,
    /// The event as a sentence.
    pub message: String,
    /// The event, and its data.
    #[serde(flatten)]
    pub event: RunEventData,
}

/// Kind of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum RunEventKind {
    /// An event of a run.
    RunEvent,
}

/// An event, and its data.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RunEventData {
    /// The plan that the run applies. `undo`, `roll`, `step` and `release` print one for each
    /// DaemonSet; a rehearsal prints another one after its end, of what is left.
    Plan {
        /// The plan.
        plan: Box<Plan>,
    },
    /// Another run holds the lock of the DaemonSet; this one waits.
    WaitingForLock {
        /// The lock and its holder.
        lock: LockStatus,
        /// Seconds after which this run gives up.
        wait_seconds: u64,
        /// Seconds after which the lock is free, unless it is renewed.
        free_in_seconds: u64,
    },
    /// The clocks of the API servers differ.
    ClocksDiffer {
        /// The difference, in seconds.
        seconds: i64,
    },
    /// The rollout of a DaemonSet begins.
    Started {
        /// The URL of the CI run, else user and host.
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// The commit, with `-dirty` if files differ from it; a digest of the files without one.
        #[serde(skip_serializing_if = "Option::is_none")]
        commit: Option<String>,
        /// Number of nodes in the waves of the plan.
        nodes: usize,
    },
    /// The DaemonSet is about to be written.
    Writing,
    /// The revision of the target template exists.
    Revision {
        /// Its name.
        revision: RevisionName,
    },
    /// A pod is about to be deleted.
    Deleting {
        /// The node.
        node: NodeName,
        /// The pod.
        pod: PodName,
        /// Uid of the pod.
        uid: Uid,
        /// Code of the reason.
        reason: String,
    },
    /// A node whose pod was deleted has an available one again.
    Recovered {
        /// The node.
        node: NodeName,
        /// Seconds since the delete.
        seconds: i64,
    },
    /// A node has an available new pod for which this run has deleted no other one.
    Arrived {
        /// The node.
        node: NodeName,
        /// How the node got the pod.
        how: Arrival,
        /// Seconds for which the run has waited for it.
        seconds: i64,
    },
    /// The run was interrupted, and waits for the pods in flight.
    Stopping {
        /// Number of nodes in flight.
        in_flight: u32,
    },
    /// Many pods became NotReady at the same time: no pods are deleted until they recover.
    LostReady {
        /// Number of nodes.
        nodes: u32,
    },
    /// The cluster cannot be observed, or the lock not be renewed: no pods are deleted until then.
    NotObserved {
        /// The error.
        failure: String,
    },
    /// The policy lets no more nodes begin for now, and the run itself waits.
    WaitingFor {
        /// What is waited for.
        waits_for: Vec<WaitsFor>,
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
        /// Seconds that it took.
        seconds: i64,
    },
    /// The images of its new pod could not be pulled to a node in time: it is skipped.
    NotPulled {
        /// The node.
        node: NodeName,
        /// The image; none if the pod that pulls them failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        image: Option<String>,
        /// Seconds for which it was waited for.
        seconds: i64,
    },
    /// Pods that pull images, of this run or an earlier one, are of no use any more and are removed.
    RemovingPullers {
        /// Number of these pods.
        pods: usize,
    },
    /// A new pod failed.
    Failed {
        /// The node.
        node: NodeName,
    },
    /// The numbers have changed.
    Progress {
        /// The numbers.
        progress: Progress,
    },
    /// The DaemonSet is about to be deleted, because its source no longer contains it.
    DeletingDaemonSet,
    /// The DaemonSet to delete does not exist any more.
    Gone,
    /// The run is done with the DaemonSet.
    Ended {
        /// The exit code that this outcome alone would have.
        exit_code: u8,
        /// Number of nodes whose pod this run replaced.
        replaced: usize,
        /// The slowest of these nodes, the slowest first.
        slowest: Vec<ReplacedNode>,
        /// Details of the failed pods, by node.
        evidence: BTreeMap<NodeName, PodEvidence>,
        /// What a later run has to wait for.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        waits_for: Vec<WaitsFor>,
        /// The gate of the policy that has failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failed_gate: Option<Box<FailedGate>>,
        /// The check that has been unknown for too long.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unknown_check: Option<Box<CheckFinding>>,
        /// Nodes that are not in the desired state, with the codes of the reasons.
        left: BTreeMap<NodeName, Vec<String>>,
    },
    /// The whole run has ended; always the last event.
    RunEnded {
        /// The exit code of the process. A run that SIGTERM has ended has 130 here, and exits with
        /// 143.
        exit_code: u8,
    },
}

/// A node whose pod was replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplacedNode {
    /// The node.
    pub node: NodeName,
    /// Seconds from the delete until the new pod was available.
    pub seconds: i64,
    /// Seconds of these until the old pod was gone, if that was observed.
    pub old_pod_gone_after: Option<i64>,
    /// Restarts of the new pod's containers in that time.
    pub restarts: u32,
}

/// Details of a failed pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodEvidence {
    /// The last warning event about it.
    pub warning: Option<String>,
    /// The last lines of its container's log, with `--logs`.
    pub log: Option<ContainerLog>,
}

impl From<&Task> for RunEventData {
    /// The start of this task.
    fn from(task: &Task) -> Self {
        Self::Started {
            by: task.provenance.by.clone(),
            commit: task.provenance.commit.clone(),
            nodes: task.waves.iter().map(|wave| wave.nodes.len()).sum(),
        }
    }
}

impl From<&Replaced> for ReplacedNode {
    fn from(replaced: &Replaced) -> Self {
        let Replaced { node, wave: _, seconds, terminating, restarts } = replaced;
        Self {
            node: node.clone(),
            seconds: *seconds,
            old_pod_gone_after: *terminating,
            restarts: *restarts,
        }
    }
}

impl From<&Report> for RunEventData {
    fn from(report: &Report) -> Self {
        match report {
            Report::Writing(_) => Self::Writing,
            Report::Revision(revision) => Self::Revision { revision: revision.clone() },
            Report::Deleting(Delete { pod, uid, node, reason, cost: _ }) => Self::Deleting {
                node: node.clone(),
                pod: pod.clone(),
                uid: uid.clone(),
                reason: reason.code().to_owned(),
            },
            Report::Recovered { node, seconds } => {
                Self::Recovered { node: node.clone(), seconds: *seconds }
            }
            Report::Arrived { node, how, seconds } => {
                Self::Arrived { node: node.clone(), how: *how, seconds: *seconds }
            }
            Report::Stopping { in_flight } => Self::Stopping { in_flight: *in_flight },
            Report::LostReady { nodes } => Self::LostReady { nodes: *nodes },
            Report::NotObserved { failure } => Self::NotObserved { failure: failure.clone() },
            Report::Pulling { node, images } => {
                Self::Pulling { node: node.clone(), images: *images }
            }
            Report::Pulled { node, seconds } => {
                Self::Pulled { node: node.clone(), seconds: *seconds }
            }
            Report::NotPulled { node, why: NotPulled { seconds, problem } } => Self::NotPulled {
                node: node.clone(),
                image: Some(problem.image.to_string()).filter(|image| !image.is_empty()),
                seconds: *seconds,
            },
            Report::RemovingPullers { pods } => Self::RemovingPullers { pods: *pods },
            Report::Failed { node, pod_failure: _ } => Self::Failed { node: node.clone() },
            Report::WaitingFor(waits_for) => Self::WaitingFor { waits_for: waits_for.clone() },
            Report::Progress(progress) => Self::Progress { progress: *progress },
        }
    }
}
