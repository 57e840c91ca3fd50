//! Progress reports of a run.

use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};

use super::outcome::PodFailure;
use super::request::{Delete, Purpose};
use crate::words::count;
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
    /// More nodes than `maxUnavailable` lost their Ready pod within a minute without a delete: no
    /// pods are deleted until they recover.
    LostReady {
        /// Number of nodes.
        nodes: u32,
    },
    /// A gate has failed.
    Failed {
        /// The node.
        node: NodeName,
        /// The failure.
        pod_failure: PodFailure,
    },
    /// The counts have changed.
    Progress(Progress),
}

impl Report {
    /// The machine-readable code of the report.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Writing(_) => "writing",
            Self::Revision(_) => "revision",
            Self::Deleting(_) => "deleting",
            Self::Recovered { .. } => "recovered",
            Self::LostReady { .. } => "lostReady",
            Self::Failed { .. } => "failed",
            Self::Progress(_) => "progress",
        }
    }

    /// The data of the report, for programs.
    pub fn data(&self) -> Value {
        match self {
            Self::Writing(_) => json!({}),
            Self::Revision(name) => json!({ "revision": name }),
            Self::Deleting(Delete { pod, uid, node, reason, cost: _ }) => {
                json!({ "node": node, "pod": pod, "uid": uid, "reason": reason.code() })
            }
            Self::Recovered { node, seconds } => json!({ "node": node, "seconds": seconds }),
            Self::LostReady { nodes } => json!({ "nodes": nodes }),
            Self::Failed { node, pod_failure: _ } => json!({ "node": node }),
            Self::Progress(progress) => json!({ "progress": progress }),
        }
    }
}

/// Rollout progress, as node counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// Nodes that should run a pod.
    pub desired: u32,
    /// Desired nodes with a pod of the target revision.
    pub updated: u32,
    /// Desired nodes with an available pod, of any revision.
    pub available: u32,
    /// Nodes without an available pod that count against the budget.
    pub unavailable: u32,
    /// Nodes that may be unavailable.
    pub allowed: u32,
    /// Nodes whose new pod is not available yet.
    pub recovering: u32,
    /// Nodes with an outdated pod.
    pub outdated: u32,
    /// Nodes that are skipped because they are not Ready.
    pub skipped: u32,
    /// The wave in progress, from 1; none when no outdated pod is left.
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
            Self::LostReady { nodes } => write!(
                f,
                "{} became NotReady within a minute: no pods are deleted until they recover",
                count(*nodes, "pod")
            ),
            Self::Failed { node, pod_failure } => write!(f, "{node}: {pod_failure}"),
            Self::Progress(progress) => write!(f, "{progress}"),
        }
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Apply => "applying",
            Self::Pause => "pausing the rollout",
            Self::Abort => "restoring the last good template",
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
            allowed,
            recovering,
            outdated: _,
            skipped,
            wave: _,
        } = self;
        write!(
            f,
            "{updated} of {desired} updated, {available} available, {recovering} recovering; \
             {unavailable} unavailable, at most {allowed} allowed"
        )?;
        if *skipped > 0 { write!(f, "; {skipped} skipped") } else { Ok(()) }
    }
}
