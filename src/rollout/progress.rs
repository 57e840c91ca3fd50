//! What a run tells while it goes on.

use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};

use super::effect::{Delete, Purpose};
use super::outcome::Trouble;
use crate::model::{NodeName, RevisionName};

/// One thing that is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// The DaemonSet is about to be written.
    Writing(Purpose),
    /// The revision of the target is there.
    Revision(RevisionName),
    /// A pod is about to be deleted.
    Deleting(Delete),
    /// A node whose pod was replaced has an available one again.
    Recovered {
        /// The node.
        node: NodeName,
        /// From the delete until then, in seconds.
        seconds: i64,
    },
    /// More nodes than the budget have lost their Ready pod within a minute, by nobody's delete:
    /// nothing is deleted until that is over.
    LostReady {
        /// How many.
        nodes: u32,
    },
    /// A gate has failed.
    Failed {
        /// On this node.
        node: NodeName,
        /// With what.
        trouble: Trouble,
    },
    /// The numbers have changed.
    Progress(Progress),
}

impl Report {
    /// One word for programs.
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

    /// What it is about, for programs.
    pub fn data(&self) -> Value {
        match self {
            Self::Writing(_) => json!({}),
            Self::Revision(name) => json!({ "revision": name }),
            Self::Deleting(Delete { pod, uid, node, reason, cost: _ }) => {
                json!({ "node": node, "pod": pod, "uid": uid, "reason": reason.code() })
            }
            Self::Recovered { node, seconds } => json!({ "node": node, "seconds": seconds }),
            Self::LostReady { nodes } => json!({ "nodes": nodes }),
            Self::Failed { node, trouble: _ } => json!({ "node": node }),
            Self::Progress(progress) => json!({ "progress": progress }),
        }
    }
}

/// How far it is, in nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// That should run a pod.
    pub desired: u32,
    /// Of these, with a pod of the target revision.
    pub updated: u32,
    /// Of these, with an available pod, of whatever revision.
    pub available: u32,
    /// Without an available pod, as the budget counts them.
    pub unavailable: u32,
    /// That may be without one.
    pub allowed: u32,
    /// Whose new pod is on its way.
    pub recovering: u32,
    /// With an outdated pod.
    pub outdated: u32,
    /// Left for later because they are not Ready.
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
                "{nodes} pods turned NotReady within a minute: nothing is deleted until they have \
                 settled"
            ),
            Self::Failed { node, trouble } => write!(f, "{node}: {trouble}"),
            Self::Progress(progress) => write!(f, "{progress}"),
        }
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Apply => "applying",
            Self::Hold => "setting the hold",
            Self::Park => "putting the last good template back",
            Self::GiveBack => "giving the declared strategy back",
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
