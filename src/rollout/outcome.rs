//! How a run ends, and why: data first, one sentence each.

use std::collections::BTreeMap;
use std::fmt;

use super::event::Failure;
use crate::model::{NodeName, PodName, RevisionName, RevisionNumber, Uid};
use crate::plan::{Age, Reason};

/// How a run ended, and what it did.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    /// How it ended.
    pub outcome: Outcome,
    /// Whether an interrupt came meanwhile, however it ended: nothing else is to be begun.
    pub interrupted: bool,
    /// Nodes whose pod this run replaced, in the order in which they were well again.
    pub replaced: Vec<Replaced>,
    /// Nodes that are not as they should be, and why.
    pub left: BTreeMap<NodeName, Vec<Reason>>,
}

/// A node whose pod was replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The node.
    pub node: NodeName,
    /// In which wave, if it was planned.
    pub wave: Option<u32>,
    /// From the delete until the new pod was available, in seconds.
    pub seconds: i64,
    /// Of these, until the old pod was gone, if that was seen.
    pub leaving: Option<i64>,
    /// How often the new pod's containers were started again meanwhile.
    pub restarts: u32,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It is as it was asked for. Nodes that were skipped or wait for `OnDelete` are in
    /// [`Ending::left`].
    Done,
    /// Stopped where it is; can be continued.
    Held {
        /// Why.
        why: Held,
    },
    /// It failed, and the last good template is live again, under the hold.
    Parked {
        /// What failed, by node; empty when that was in an earlier run.
        failed: BTreeMap<NodeName, Trouble>,
        /// The revision whose template is live.
        to: RevisionName,
        /// Whether the pods of the failed template have been replaced too.
        rolled_back: Option<RolledBack>,
    },
    /// Somebody else interfered.
    Stale {
        /// What they did.
        change: Interference,
        /// Whether the DaemonSet is still held, so that nothing goes on by itself.
        held: bool,
    },
    /// The DaemonSet is gone, or on its way out.
    Gone {
        /// Another one of its name is there.
        replaced_by: Option<Uid>,
    },
    /// Ctrl-C or SIGTERM; the DaemonSet is left as it is.
    Interrupted,
    /// The lock is another run's.
    LockLost,
    /// The server does not let it go on.
    Failed {
        /// What was tried.
        request: Attempt,
        /// What the server answered.
        failure: Failure,
    },
}

/// Whether the replacing of failed pods came to its end.
#[derive(Clone, Debug, PartialEq)]
pub enum RolledBack {
    /// All of them.
    Fully,
    /// It failed as well, on these nodes.
    Failed(BTreeMap<NodeName, Trouble>),
    /// It came to a stand.
    Stopped(Box<Held>),
}

/// Why a run stopped where it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Held {
    /// New pods failed.
    Failed {
        /// What failed, by node.
        failed: BTreeMap<NodeName, Trouble>,
        /// Why the last good template was not put back, if it should have been.
        not_parked: Option<NotParked>,
    },
    /// More nodes are without an available pod than may be, and nothing here mends them.
    BudgetTaken {
        /// Nodes that count.
        unavailable: u32,
        /// How many may.
        allowed: u32,
        /// For how long, in seconds.
        seconds: i64,
    },
    /// Outdated pods remain that are Ready, on nodes that are not.
    OldPodsRemain {
        /// Those nodes.
        nodes: Vec<NodeName>,
        /// For how long, in seconds.
        seconds: i64,
    },
    /// The controller does not do what it should: it has not seen the write, or makes no revision
    /// of it, or does not go on rolling.
    ControllerStands {
        /// What it has not done.
        step: ControllerStep,
        /// For how long, in seconds.
        seconds: i64,
    },
    /// Where the run is the controller: it could not create the pods of all nodes.
    NotCreated {
        /// Nodes that have none.
        nodes: Vec<NodeName>,
        /// For how long, in seconds.
        seconds: i64,
        /// What the server says.
        message: Option<String>,
    },
    /// What happens in the cluster cannot be seen.
    Blind {
        /// For how long, in seconds.
        seconds: i64,
    },
    /// The server does not answer.
    NoAnswer {
        /// What was tried last.
        request: Attempt,
        /// What came of it.
        failure: Failure,
        /// For how long, in seconds.
        seconds: i64,
    },
    /// The server does not let it go on, and the live strategy is `OnDelete`.
    Refused {
        /// What was tried.
        request: Attempt,
        /// What the server answered.
        failure: Failure,
    },
    /// The time of the whole run is over.
    Timeout,
}

/// What the DaemonSet controller is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControllerStep {
    /// See the write.
    Observe {
        /// Generation of the object.
        generation: i64,
        /// Generation that the controller has seen.
        observed: i64,
    },
    /// Nothing; but what is observed does not show our own write.
    Appear,
    /// Make a revision of the template.
    MakeRevision,
    /// Leave one revision of the template.
    DropDuplicates {
        /// How many there are.
        revisions: usize,
    },
    /// Replace outdated pods with surge.
    Roll {
        /// Nodes with an outdated pod.
        outdated: u32,
    },
}

/// Why the last good template was not put back.
#[derive(Clone, Debug, PartialEq)]
pub enum NotParked {
    /// There was none before.
    NothingBefore,
    /// Its revision does not exist any more.
    RevisionGone {
        /// Its name.
        name: RevisionName,
        /// Its number.
        number: RevisionNumber,
    },
    /// It may not run on so many nodes that have a pod now, or are about to.
    WouldEvict {
        /// How many pods.
        pods: u32,
        /// How many of them are not available yet.
        to_come: u32,
        /// How many may go at once.
        allowed: u32,
    },
}

/// What is wrong with a new pod, or with its absence.
#[derive(Clone, Debug, PartialEq)]
pub enum Trouble {
    /// It is not available in time.
    TooLate {
        /// The pod.
        pod: PodName,
        /// How long it had, in seconds.
        seconds: i64,
        /// What the kubelet or scheduler says.
        reason: Reason,
    },
    /// A container waits for a reason that does not heal by itself.
    DoesNotHeal {
        /// The pod.
        pod: PodName,
        /// How long it has said so, in seconds.
        seconds: i64,
        /// What the kubelet says.
        reason: Reason,
    },
    /// Its containers restart again and again.
    Restarts {
        /// The pod.
        pod: PodName,
        /// How often.
        restarts: u32,
        /// How often they may.
        allowed: u32,
    },
    /// There is none.
    NoPod {
        /// For how long, in seconds.
        seconds: i64,
        /// What the controller says.
        message: Option<String>,
    },
    /// The old one does not go.
    StillTerminating {
        /// The pod.
        pod: PodName,
        /// For how long, in seconds.
        seconds: i64,
    },
}

impl Outcome {
    /// Nodes that failed, of an outcome that has some.
    pub fn failed(&self) -> Option<&BTreeMap<NodeName, Trouble>> {
        match self {
            Self::Held { why: Held::Failed { failed, not_parked: _ } }
            | Self::Parked { failed, .. } => Some(failed),
            Self::Done
            | Self::Held { .. }
            | Self::Stale { .. }
            | Self::Gone { .. }
            | Self::Interrupted
            | Self::LockLost
            | Self::Failed { .. } => None,
        }
    }
}

impl Trouble {
    /// The pod that is in it, if there is one.
    pub fn pod(&self) -> Option<&PodName> {
        match self {
            Self::TooLate { pod, .. }
            | Self::DoesNotHeal { pod, .. }
            | Self::Restarts { pod, .. }
            | Self::StillTerminating { pod, .. } => Some(pod),
            Self::NoPod { .. } => None,
        }
    }
}

/// What somebody else did.
#[derive(Clone, Debug, PartialEq)]
pub enum Interference {
    /// The live template is another one, or the server made another one of ours.
    Template {
        /// The revision that it has, once there is one.
        revision: Option<RevisionName>,
    },
    /// The strategy, or the annotation that says what is held.
    Strategy,
    /// The rollout was parked or given back by another run.
    Hold,
}

/// A request, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// Writing the DaemonSet.
    Write,
    /// Deleting a pod.
    Delete,
    /// Recording the change on its revision.
    Record,
    /// Remembering what failed.
    Remember,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLate { pod, seconds, reason } => {
                write!(f, "pod {pod} is not available after {}: {reason}", Age(*seconds))?;
                reason.details().iter().try_for_each(|detail| write!(f, ": {detail}"))
            }
            Self::DoesNotHeal { pod, seconds, reason } => {
                write!(f, "pod {pod}, for {}: {reason}", Age(*seconds))?;
                reason.details().iter().try_for_each(|detail| write!(f, ": {detail}"))
            }
            Self::Restarts { pod, restarts, allowed } => {
                write!(f, "pod {pod} restarted {restarts} times, at most {allowed} allowed")
            }
            Self::NoPod { seconds, message } => {
                write!(f, "no pod is created for {}", Age(*seconds))?;
                message.iter().try_for_each(|message| write!(f, ": {message}"))
            }
            Self::StillTerminating { pod, seconds } => {
                write!(f, "pod {pod} is terminating for {}", Age(*seconds))
            }
        }
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed { failed, not_parked } => {
                write!(f, "new pods failed on {}", Nodes(failed.len()))?;
                not_parked.iter().try_for_each(|why| write!(f, "; not parked: {why}"))
            }
            Self::BudgetTaken { unavailable, allowed, seconds } => write!(
                f,
                "budget taken for {}: {unavailable} unavailable, at most {allowed} allowed",
                Age(*seconds)
            ),
            Self::OldPodsRemain { nodes, seconds } => write!(
                f,
                "outdated pods are Ready on {} that cannot be reached, for {}",
                Nodes(nodes.len()),
                Age(*seconds)
            ),
            Self::ControllerStands { step, seconds } => {
                write!(f, "the DaemonSet controller {step}, for {}", Age(*seconds))
            }
            Self::NotCreated { nodes, seconds, message } => {
                let (nodes, age) = (Nodes(nodes.len()), Age(*seconds));
                write!(f, "the pods of {nodes} cannot be created for {age}")?;
                message.iter().try_for_each(|message| write!(f, ": {message}"))
            }
            Self::Blind { seconds } => {
                write!(f, "what happens in the cluster cannot be seen for {}", Age(*seconds))
            }
            Self::NoAnswer { request, failure, seconds } => {
                write!(f, "{request} does not succeed for {}: {failure}", Age(*seconds))
            }
            Self::Refused { request, failure } => write!(
                f,
                "{request}: {failure}; the update strategy is OnDelete, so the other pods stay as \
                 they are until a run goes on"
            ),
            Self::Timeout => f.write_str("the time of the run is over"),
        }
    }
}

impl fmt::Display for ControllerStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Observe { generation, observed } => {
                write!(f, "has seen generation {observed}, not {generation}")
            }
            Self::Appear => f.write_str("cannot be seen: our own write does not appear"),
            Self::MakeRevision => f.write_str("makes no revision of the template"),
            Self::DropDuplicates { revisions } => {
                write!(f, "leaves {revisions} revisions of one template")
            }
            Self::Roll { outdated } => write!(f, "leaves {outdated} outdated pods"),
        }
    }
}

impl fmt::Display for NotParked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingBefore => f.write_str("there is no template to go back to"),
            Self::RevisionGone { name, number } => {
                write!(f, "revision {number} ({name}) does not exist any more")
            }
            Self::WouldEvict { pods, to_come, allowed } => {
                write!(f, "going back would evict {pods} pods at once")?;
                if *to_come > 0 {
                    write!(f, " ({to_come} of them are not available yet)")?;
                }
                write!(f, ", at most {allowed} allowed")
            }
        }
    }
}

impl fmt::Display for Interference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Template { revision: Some(revision) } => {
                write!(f, "the live template is that of revision {revision}")
            }
            Self::Template { revision: None } => f.write_str("the live template is another one"),
            Self::Strategy => f.write_str("the update strategy was changed"),
            Self::Hold => f.write_str("the hold was changed"),
        }
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Write => "writing the DaemonSet",
            Self::Delete => "deleting a pod",
            Self::Record => "recording the change on its revision",
            Self::Remember => "remembering what failed",
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Held { why } => write!(f, "held: {why}"),
            Self::Parked { failed, to, rolled_back } => {
                match failed.len() {
                    0 => write!(f, "parked: new pods failed in an earlier run; {to} is live")?,
                    nodes => {
                        write!(f, "parked: new pods failed on {}; {to} is live", Nodes(nodes))?;
                    }
                }
                match rolled_back {
                    None => Ok(()),
                    Some(RolledBack::Fully) => f.write_str(", and all pods are back"),
                    Some(RolledBack::Failed(failed)) => {
                        write!(f, ", but going back failed on {}", Nodes(failed.len()))
                    }
                    Some(RolledBack::Stopped(why)) => write!(f, ", but going back stopped: {why}"),
                }
            }
            Self::Stale { change, held: true } => write!(f, "held: {change}"),
            Self::Stale { change, held: false } => write!(f, "stopped: {change}"),
            Self::Gone { replaced_by: None } => f.write_str("the DaemonSet is gone"),
            Self::Gone { replaced_by: Some(uid) } => {
                write!(f, "the DaemonSet is gone; another one has its name (uid {uid})")
            }
            Self::Interrupted => f.write_str("interrupted"),
            Self::LockLost => f.write_str("another run took the lock"),
            Self::Failed { request, failure } => write!(f, "{request}: {failure}"),
        }
    }
}

/// `1 node`, `2 nodes`.
struct Nodes(usize);

impl fmt::Display for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} node{}", self.0, if self.0 == 1 { "" } else { "s" })
    }
}
