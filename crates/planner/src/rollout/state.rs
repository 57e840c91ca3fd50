//! The state of a run between decisions: only what cannot be observed in the cluster.

mod answers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::answered_checks::Checks;
use super::event::{Failure, Written};
use super::outcome::{Attempt, ControllerWork, FailureCause, PodFailure, Replaced};
use super::progress::Progress;
use super::pulls::Pulls;
use super::request::{Precondition, Purpose, RequestState};
use super::task::Task;
use crate::shared::Share;
use crate::steps::WaitsFor;
use daemonset::model::{Approval, NodeName, RevisionName, RevisionRef, StepsNote, TextMap, Uid};

/// Time for which a permanent failure is tolerated.
pub(super) const GRACE: SignedDuration = SignedDuration::from_secs(30);

/// The state of a run. A run that is started again on a fresh plan resumes where it was; lost are
/// only the times that it has waited and the reason why it stopped.
#[derive(Clone, Debug)]
pub struct State {
    pub(super) task: Arc<Task>,
    /// Wave of each node, from 1.
    pub(super) waves: TextMap<NodeName, u32>,
    /// The uid of the DaemonSet, once it is known.
    pub(super) uid: Option<Uid>,
    /// Whether the DaemonSet has been observed.
    pub(super) seen: bool,
    /// The live template at the start of `roll`.
    pub(super) template: Option<Arc<Value>>,
    /// The revision to roll back to.
    pub(super) from: Option<RevisionRef>,
    pub(super) course: Course,
    pub(super) allowed_actions: AllowedActions,
    pub(super) creates: Creates,
    pub(super) stop: Option<Stop>,
    /// When it was noticed that the time of the run is over, and a surge is to be paused.
    pub(super) timed_out: Option<Timestamp>,
    pub(super) writing: Writing,
    pub(super) annotating: RequestState,
    /// Whether this run has annotated the revision.
    pub(super) annotated: bool,
    pub(super) remembering: Remembering,
    /// What is noted about the steps.
    pub(super) note: Option<StepsNote>,
    pub(super) noting: Noting,
    /// Whether a note is missing although the template was rolled out before this run; `None` until
    /// the DaemonSet is observed.
    pub(super) is_note_lost: Option<bool>,
    /// The approvals of steps, as they were last read.
    pub(super) approvals: BTreeMap<String, Approval>,
    /// Reading them again.
    pub(super) reading_approvals: RequestState,
    /// Set once the rollout has failed although no pod has.
    pub(super) cause: Option<FailureCause>,
    /// What the checks of the policy have answered.
    pub(super) checks: Checks,
    pub(super) pods: Pods,
    /// The images that are pulled before.
    pub(super) pulls: Pulls,
    /// The current series of failed requests, since the last success.
    pub(super) failing: Option<Failing>,
    /// The request that the server rejected permanently.
    pub(super) fatal: Option<(Attempt, Failure)>,
    /// Since when the watches have not been current.
    pub(super) blind: Option<Timestamp>,
    /// The stall and its start, while the rollout makes no progress.
    pub(super) stall: Option<(Timestamp, Stall)>,
    pub(super) shown: Shown,
    /// What this run has to do with the nodes of a shared budget, if it has one.
    pub(super) share: Option<Share>,
    pub(super) finished: bool,
}

/// The direction of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Course {
    /// Roll out the target.
    Forward,
    /// New pods, or a gate of the policy, have failed: the target is not rolled out further.
    Failed(BTreeMap<NodeName, PodFailure>),
    /// Nothing more may begin for now.
    Waiting(Vec<WaitsFor>),
}

/// The actions that a run allows its in-process controller, where no DaemonSet controller acts.
/// Pacing is never among them: the run itself deletes outdated pods, within its budget, wave by
/// wave. Only a surge is left to the controller, and only while the run judges the new pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AllowedActions {
    /// None: the live object is about to be written, and no pod is created from the template that is
    /// replaced; or it is not known yet whether that template stays.
    #[default]
    None,
    /// Create missing pods; delete none. The state after an interrupt.
    CreateOnly,
    /// Also delete failed, surplus and misplaced pods; outdated ones stay.
    Reconcile,
    /// Also create new pods next to outdated ones, within `maxSurge`.
    ReconcileAndSurge,
}

/// The nodes on which the in-process controller may create pods, until the next decision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Creates {
    /// All nodes.
    #[default]
    All,
    /// These nodes: the ramp limits the creation of pods too.
    Only(BTreeSet<NodeName>),
}

impl Creates {
    /// Whether a pod may be created on this node.
    pub fn may(&self, node: &NodeName) -> bool {
        match self {
            Self::All => true,
            Self::Only(nodes) => nodes.contains(node),
        }
    }
}

/// The reason why a run stops early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Interrupted: the run waits for the replacements of the pods that it has deleted.
    Interrupted,
    /// Interrupted twice: the run ends at once.
    InterruptedTwice,
    /// Another run holds the lock. After an interrupt, the run does not wait for answers either.
    LockLost {
        /// Whether the run was interrupted, before or after.
        interrupted: bool,
    },
}

impl Stop {
    /// Whether the run ends at once, without waiting for the answers to its requests.
    pub(super) fn leaves(self) -> bool {
        match self {
            Self::InterruptedTwice | Self::LockLost { interrupted: true } => true,
            Self::Interrupted | Self::LockLost { interrupted: false } => false,
        }
    }
}

/// The writes of the DaemonSet by this run.
#[derive(Clone, Debug, Default)]
pub(super) struct Writing {
    pub(super) request: RequestState,
    /// The purpose of the last write.
    pub(super) last: Option<Purpose>,
    /// The precondition of the last write.
    pub(super) against: Option<Precondition>,
    /// The purposes of all writes that were sent, whatever the result.
    pub(super) sent: BTreeSet<Purpose>,
    /// The purposes that the server has confirmed, or that were found in place.
    pub(super) done: BTreeSet<Purpose>,
    /// Whether the target was written or found paused, so that any other strategy was set by
    /// another client.
    pub(super) paused: bool,
    /// Whether the live template is about to be replaced: no pod is created from it.
    pub(super) replaces_template: bool,
    /// The last written object: an observation with an older version does not contain the write.
    pub(super) version: Option<Written>,
}

/// Remembering the failed template, or forgetting it. A run does at most one of the two.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Remembering {
    pub(super) request: RequestState,
    pub(super) attempts: u32,
    pub(super) done: bool,
}

/// Writing the note about the steps.
#[derive(Clone, Debug, Default)]
pub(super) struct Noting {
    pub(super) request: RequestState,
    /// The note that was sent last, if its answer has not come: it may have arrived.
    pub(super) sent: Option<StepsNote>,
    /// Whether the end of the rollout is noted, or about to be.
    pub(super) has_ended: bool,
}

/// The pods that the run has deleted, and the nodes that wait for one.
#[derive(Clone, Debug, Default)]
pub(super) struct Pods {
    /// Pods that were sent a delete: they count as gone, whatever an old observation shows.
    pub(super) deleted: TextMap<Uid, RequestState>,
    /// Number of deletes that were sent, without rejected ones.
    pub(super) count: u32,
    /// Nodes whose pod was deleted and that have no available pod yet, with the time of the delete.
    pub(super) replacing: BTreeMap<NodeName, Timestamp>,
    /// Nodes on which this run has deleted a pod.
    pub(super) renewed: BTreeSet<NodeName>,
    /// Nodes on which this run has deleted a pod to have a new one, with the time of the last delete. A
    /// rollback begins without any: it is not held up by the nodes that the failed version has cost.
    pub(super) begun: BTreeMap<NodeName, Timestamp>,
    /// Nodes that waited for a new pod and now have an available one.
    pub(super) arrived: BTreeSet<NodeName>,
    /// Nodes on which an old or an available pod was observed; all others wait for their first one.
    pub(super) had_pod: BTreeSet<NodeName>,
    /// Nodes that wait for a pod to leave or to become available.
    pub(super) waiting: BTreeMap<NodeName, Waiting>,
    /// Pods with a permanent failure, with the time when it was first observed.
    pub(super) failing_since: BTreeMap<Uid, Timestamp>,
    /// Updated pods that failed before this rollout; `None` until the DaemonSet is observed.
    pub(super) failing_before: Option<BTreeSet<Uid>>,
    /// The last `FailedCreate` event of the controller.
    pub(super) create_failed: Option<CreateFailure>,
    /// No wait begins before this time: after an outage of the API server, the controllers and
    /// kubelets may need until then.
    pub(super) begin: Option<Timestamp>,
    /// The time that they were given for it.
    pub(super) catching_up: SignedDuration,
    /// How long the watches were not current, together.
    pub(super) outages: SignedDuration,
    /// The nodes that this run has finished: the new pod was available.
    pub(super) replaced: Vec<Replaced>,
}

impl Pods {
    /// The failed creation that explains why a node without a pod waits since then. The events of the
    /// controller name no node.
    pub(super) fn create_failure(&self, since: Timestamp) -> Option<&CreateFailure> {
        self.create_failed.as_ref().filter(|failure| failure.at + GRACE >= since)
    }
}

/// The reason why the controller could not create a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CreateFailure {
    pub(super) at: Timestamp,
    pub(super) message: String,
    /// Whether the server rejects the pod itself, and so will continue to do so.
    pub(super) refused: bool,
}

/// Since when and for what a node waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) since: Timestamp,
    pub(super) what: Awaited,
}

/// The condition that a node waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    /// The old pod is gone.
    Departure,
    /// A new pod exists and is available.
    Pod,
}

/// A series of failed requests.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Failing {
    pub(super) since: Timestamp,
    /// Time of the last failure.
    pub(super) last: Timestamp,
    pub(super) request: Attempt,
    pub(super) failure: Failure,
}

/// The cause of a stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stall {
    /// The DaemonSet controller.
    Controller(ControllerWork),
    /// `maxUnavailable`, also that of the step in progress, is reached: number of unavailable nodes,
    /// of those that may be, and of outdated ones.
    Budget { unavailable: u32, allowed: u32, outdated: u32 },
    /// Nodes of domains are unavailable, so no other node may begin: number of unavailable nodes, and of
    /// outdated ones.
    Domains { unavailable: u32, outdated: u32 },
    /// `sharedBudget` is taken up: number of nodes, their maximum, and outdated nodes.
    SharedBudget { taken: u32, allowed: u32, outdated: u32 },
    /// Outdated pods are Ready on this number of nodes that are not Ready.
    OldPods { nodes: usize },
    /// This number of nodes has no pod.
    Empty { nodes: usize },
}

impl Stall {
    /// Whether anything has changed since a stall before, other than that more nodes take up the
    /// budget: pods that crash again and again are Ready for a moment each time.
    pub(super) fn is_progress_since(self, before: Self) -> bool {
        let without_more = match (self, before) {
            (
                Self::Budget { unavailable, allowed, outdated },
                Self::Budget { unavailable: least, .. },
            ) => Self::Budget { unavailable: unavailable.min(least), allowed, outdated },
            (Self::Domains { unavailable, outdated }, Self::Domains { unavailable: least, .. }) => {
                Self::Domains { unavailable: unavailable.min(least), outdated }
            }
            (
                Self::SharedBudget { taken, allowed, outdated },
                Self::SharedBudget { taken: least, .. },
            ) => Self::SharedBudget { taken: taken.min(least), allowed, outdated },
            (stall, _) => stall,
        };
        without_more != before
    }
}

/// The reports that the user has received already.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown {
    pub(super) progress: Option<Progress>,
    pub(super) revision: Option<RevisionName>,
    pub(super) failed: BTreeSet<NodeName>,
    /// Whether the loss of many Ready pods was reported ([`Report::LostReady`](super::Report)).
    pub(super) lost_ready: bool,
    /// Whether it was reported why the cluster cannot be observed.
    pub(super) not_observed: bool,
    /// Whether it was reported that the interrupted run waits for pods in flight.
    pub(super) stopping: bool,
    /// What the run itself waits for.
    pub(super) waits_for: Vec<WaitsFor>,
}

impl State {
    /// The initial state of a run, whether the DaemonSet is untouched, paused or aborted.
    pub fn new(task: Task) -> Self {
        let nodes = task.waves.iter().flat_map(|wave| {
            let index = wave.index;
            wave.nodes.iter().map(move |node| (node.clone(), index))
        });
        Self {
            waves: nodes.collect(),
            uid: task.goal.target().and_then(|target| target.uid.clone()),
            seen: false,
            template: None,
            from: None,
            course: Course::Forward,
            allowed_actions: AllowedActions::None,
            creates: Creates::All,
            stop: None,
            timed_out: None,
            writing: Writing::default(),
            annotating: RequestState::Idle,
            annotated: false,
            remembering: Remembering::default(),
            note: task.note.clone(),
            noting: Noting::default(),
            is_note_lost: None,
            approvals: task.approvals.clone(),
            reading_approvals: RequestState::Idle,
            cause: None,
            checks: Checks::default(),
            pods: Pods::default(),
            pulls: Pulls::default(),
            failing: None,
            fatal: None,
            blind: None,
            stall: None,
            shown: Shown::default(),
            share: None,
            finished: false,
            task: Arc::new(task),
        }
    }

    /// The actions that the in-process controller may take until the next decision.
    pub fn allowed_actions(&self) -> AllowedActions {
        if self.writing.replaces_template {
            return AllowedActions::None;
        }
        self.allowed_actions
    }

    /// The nodes on which the in-process controller may create pods until the next decision.
    pub fn creates(&self) -> &Creates {
        &self.creates
    }

    /// What the run has to do with the nodes of a shared budget, after the last decision; `None` if it
    /// has none.
    pub fn share(&self) -> Option<&Share> {
        self.share.as_ref()
    }

    /// Whether any request is pending.
    pub fn awaits_answers(&self) -> bool {
        self.writing.request == RequestState::Out
            || self.annotating == RequestState::Out
            || self.remembering.request == RequestState::Out
            || self.noting.request == RequestState::Out
            || self.reading_approvals == RequestState::Out
            || self.pulls.awaits_answers()
            || self.deletes_out() > 0
    }

    /// Whether the run was interrupted.
    pub(super) fn is_interrupted(&self) -> bool {
        match self.stop {
            None => false,
            Some(Stop::Interrupted | Stop::InterruptedTwice) => true,
            Some(Stop::LockLost { interrupted }) => interrupted,
        }
    }

    /// Whether images could not be pulled to a node in time. A rollback needs no images.
    pub(super) fn is_dropped(&self, node: &NodeName) -> bool {
        self.course == Course::Forward && self.pulls.dropped.contains_key(node)
    }

    /// Number of pending deletes.
    pub(super) fn deletes_out(&self) -> usize {
        self.pods.deleted.values().filter(|request| **request == RequestState::Out).count()
    }
}
