//! What a run remembers from step to step: only what cannot be seen in the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::effect::{Precondition, Purpose};
use super::event::{Answer, Event, Failure, Written};
use super::gate::GRACE;
use super::outcome::{Attempt, ControllerStep, Replaced, Trouble};
use super::progress::Progress;
use super::refusal::is_refusal;
use super::task::{Goal, Task};
use crate::model::{NodeName, RevisionName, TextMap, Uid};
use crate::plan::RevisionRef;
use crate::planted::planted;

/// How long before a request that came to nothing is made again.
const RETRY: SignedDuration = SignedDuration::from_secs(2);

/// How long before a write is made again that somebody else's came before: until that is seen. The
/// controller, which writes the status after each pod, is somebody else.
const OVERTAKEN: SignedDuration = SignedDuration::from_millis(200);

/// How long after a failure another one is no longer part of the same trouble.
const FORGOTTEN: SignedDuration = SignedDuration::from_secs(120);

/// How often a failed template is tried to be remembered, or forgotten.
const REMEMBER_ATTEMPTS: u32 = 3;

/// A run, as it remembers itself. Thrown away, and begun anew on a fresh plan, it goes on where it
/// was: what it loses is how long it has waited already, and why it stopped.
#[derive(Clone, Debug)]
pub struct State {
    pub(super) task: Arc<Task>,
    /// Wave of each node, from 1.
    pub(super) waves: TextMap<NodeName, u32>,
    /// The object that this is about, once it is known.
    pub(super) uid: Option<Uid>,
    /// Whether the object has been seen in the world.
    pub(super) seen: bool,
    /// The template that `roll` began with.
    pub(super) template: Option<Arc<Value>>,
    /// The revision to go back to.
    pub(super) from: Option<RevisionRef>,
    pub(super) course: Course,
    pub(super) leave: Leave,
    pub(super) creates: Creates,
    pub(super) stop: Option<Stop>,
    pub(super) writing: Writing,
    pub(super) recording: Request,
    /// Whether the provenance has been recorded by this run.
    pub(super) recorded: bool,
    pub(super) remembering: Remembering,
    pub(super) pods: Pods,
    /// The last that went wrong, since nothing went well.
    pub(super) failing: Option<Failing>,
    /// What the server will not do.
    pub(super) fatal: Option<(Attempt, Failure)>,
    /// Since when what happens cannot be seen.
    pub(super) blind: Option<Timestamp>,
    /// Since when nothing moves, and what it looked like.
    pub(super) standstill: Option<(Timestamp, Standstill)>,
    pub(super) told: Told,
    pub(super) finished: bool,
}

/// Where a run is heading.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Course {
    /// To the target.
    Forward,
    /// A gate has failed: no further with the target.
    Failed(BTreeMap<NodeName, Trouble>),
}

/// What a run leaves to the controller that it brings along, where no other one acts: never the
/// pace. Outdated pods go by the run's own deletes, within its budget, wave by wave. Only a surge is
/// the controller's, and only as long as the run stands by it with its gates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leave {
    /// Nothing yet. What is live is about to be written, and nothing is made of the template that
    /// goes.
    #[default]
    Nothing,
    /// Nodes get the pod that they lack. After an interrupt nothing is deleted any more.
    Fill,
    /// That, and failed, surplus and misplaced pods go; outdated ones stay.
    Upkeep,
    /// All of that, and new pods beside outdated ones, within `maxSurge`.
    Surge,
}

/// On which nodes a controller that the run brings along may create pods, until the next step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Creates {
    /// On all.
    #[default]
    All,
    /// On these: the ramp goes for pods that are created, too.
    Only(BTreeSet<NodeName>),
}

impl Creates {
    /// Whether one may be created there.
    pub fn may(&self, node: &NodeName) -> bool {
        match self {
            Self::All => true,
            Self::Only(nodes) => nodes.contains(node),
        }
    }
}

/// Why a run stops before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Interrupted: waits for pods that it has deleted.
    Interrupted,
    /// Interrupted twice.
    InterruptedTwice,
    /// Another run has the lock. After an interrupt, answers are not waited for either.
    LockLost {
        /// Whether one has come, before or after.
        interrupted: bool,
    },
}

impl Stop {
    /// Whether the run leaves at once, without the answers to its requests.
    pub(super) fn leaves(self) -> bool {
        match self {
            Self::InterruptedTwice | Self::LockLost { interrupted: true } => true,
            Self::Interrupted | Self::LockLost { interrupted: false } => false,
        }
    }
}

/// A kind of request of which at most one is out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Request {
    #[default]
    Idle,
    Out,
    /// It came to nothing; not again before this moment.
    RetryAt(Timestamp),
}

/// Writes of the DaemonSet.
#[derive(Clone, Debug, Default)]
pub(super) struct Writing {
    pub(super) request: Request,
    /// What the last one was for.
    pub(super) last: Option<Purpose>,
    /// What the last one was to find in place.
    pub(super) against: Option<Precondition>,
    /// What was sent, whatever came of it.
    pub(super) sent: BTreeSet<Purpose>,
    /// What the server has answered to, or what was found in place.
    pub(super) done: BTreeSet<Purpose>,
    /// Whether the target was written or found under a hold, so that any other strategy is
    /// somebody else's.
    pub(super) held: bool,
    /// What the server answered last: what is older has not seen the write.
    pub(super) version: Option<Written>,
}

/// Remembering what failed, or forgetting it. A run does one of the two at most.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Remembering {
    pub(super) request: Request,
    pub(super) attempts: u32,
    pub(super) done: bool,
}

/// Pods, and nodes that wait for one.
#[derive(Clone, Debug, Default)]
pub(super) struct Pods {
    /// Pods that were sent a delete: as good as gone, whatever an old observation says.
    pub(super) deleted: TextMap<Uid, Request>,
    /// How many deletes were sent, those that were refused apart.
    pub(super) count: u32,
    /// Nodes whose pod was deleted and that are not well again, and since when.
    pub(super) replacing: BTreeMap<NodeName, Timestamp>,
    /// Nodes from which this run has deleted a pod.
    pub(super) renewed: BTreeSet<NodeName>,
    /// Nodes that have waited for a new pod, and have got one that is available.
    pub(super) arrived: BTreeSet<NodeName>,
    /// Nodes that wait, since when, and for what.
    pub(super) waiting: BTreeMap<NodeName, Waiting>,
    /// Since when a pod has been in trouble that does not heal.
    pub(super) troubled: BTreeMap<Uid, Timestamp>,
    /// What the controller said when it could not create a pod.
    pub(super) create_failed: Option<Said>,
    /// No wait begins before this: until then those who act in the cluster may pause, after the
    /// server was away.
    pub(super) begin: Option<Timestamp>,
    /// How much time they were given for that.
    pub(super) catching_up: SignedDuration,
    pub(super) replaced: Vec<Replaced>,
}

/// Why the controller could not create a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) at: Timestamp,
    pub(super) message: String,
    /// Whether the server refuses the pod, and so will go on to.
    pub(super) refused: bool,
}

/// How long a node has been without what it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) since: Timestamp,
    pub(super) what: Awaited,
}

/// What a node waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    /// That the old pod goes.
    Departure,
    /// That a new one comes and is available.
    Pod,
}

/// Requests that do not succeed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Failing {
    pub(super) since: Timestamp,
    /// When it came to nothing last.
    pub(super) last: Timestamp,
    pub(super) request: Attempt,
    pub(super) failure: Failure,
}

/// What does not move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standstill {
    /// The controller.
    Controller(ControllerStep),
    /// The budget is used up: nodes that count, and outdated ones.
    Budget { unavailable: u32, outdated: u32 },
    /// Ready outdated pods on so many nodes that are not.
    OldPods { nodes: usize },
    /// So many nodes have no pod.
    Empty { nodes: usize },
}

/// What the user knows already.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    pub(super) progress: Option<Progress>,
    pub(super) revision: Option<RevisionName>,
    pub(super) failed: BTreeSet<NodeName>,
    /// That many pods have turned NotReady together.
    pub(super) lost_ready: bool,
}

impl Pods {
    /// What passes does not hide a refusal that was just said.
    fn note_create_failed(&mut self, message: String, now: Timestamp) {
        let refused = is_refusal(&message);
        let stands = |said: &Said| said.refused && now.duration_since(said.at) < GRACE;
        if refused || !self.create_failed.as_ref().is_some_and(stands) {
            self.create_failed = Some(Said { at: now, message, refused });
        }
    }
}

impl State {
    /// The beginning of a run, whether the cluster is untouched, held or parked.
    pub fn new(task: Task) -> Self {
        let nodes = task.waves.iter().flat_map(|wave| {
            let index = wave.index;
            wave.nodes.iter().map(move |node| (node.clone(), index))
        });
        Self {
            waves: nodes.collect(),
            uid: match &task.goal {
                Goal::Apply(target) => target.uid.clone(),
                Goal::GoBack | Goal::Roll(_) | Goal::Release { .. } => None,
            },
            seen: false,
            template: None,
            from: None,
            course: Course::Forward,
            leave: Leave::Nothing,
            creates: Creates::All,
            stop: None,
            writing: Writing::default(),
            recording: Request::Idle,
            recorded: false,
            remembering: Remembering::default(),
            pods: Pods::default(),
            failing: None,
            fatal: None,
            blind: None,
            standstill: None,
            told: Told::default(),
            finished: false,
            task: Arc::new(task),
        }
    }

    /// Whether it has ended ([`Effect::Finish`](super::Effect::Finish) was given).
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// What a controller that the run brings along may do until the next step.
    pub fn leaves(&self) -> Leave {
        self.leave
    }

    /// On which nodes it may create pods until then.
    pub fn creates(&self) -> &Creates {
        &self.creates
    }

    /// Whether any request is without its answer.
    pub fn awaits_answers(&self) -> bool {
        self.writing.request == Request::Out
            || self.recording == Request::Out
            || self.remembering.request == Request::Out
            || self.deletes_out() > 0
    }

    /// Whether an interrupt has come.
    pub(super) fn is_interrupted(&self) -> bool {
        match self.stop {
            None => false,
            Some(Stop::Interrupted | Stop::InterruptedTwice) => true,
            Some(Stop::LockLost { interrupted }) => interrupted,
        }
    }

    /// How many deletes are without their answer.
    pub(super) fn deletes_out(&self) -> usize {
        self.pods.deleted.values().filter(|request| **request == Request::Out).count()
    }

    /// Takes in what happened; decides nothing. For events that come faster than the world can be
    /// looked at: the next [`step`](super::step) decides on all of them.
    pub fn note(&mut self, event: Event, now: Timestamp) {
        match event {
            Event::Look => {}
            Event::Answer(answer) => self.note_answer(answer, now),
            Event::CreateFailed { message } => self.pods.note_create_failed(message, now),
            Event::Interrupt => {
                let stop = match self.stop {
                    None => Stop::Interrupted,
                    Some(Stop::Interrupted | Stop::InterruptedTwice) => Stop::InterruptedTwice,
                    Some(Stop::LockLost { .. }) => Stop::LockLost { interrupted: true },
                };
                self.stop = planted!(Some(stop), "an interrupt is not heard" => None);
            }
            Event::LockLost => {
                self.stop = Some(Stop::LockLost { interrupted: self.is_interrupted() });
            }
        }
    }

    fn note_answer(&mut self, answer: Answer, now: Timestamp) {
        match answer {
            Answer::Written(Ok(written)) => {
                self.writing.request = Request::Idle;
                self.writing.done.extend(self.writing.last);
                self.uid.get_or_insert_with(|| written.uid.clone());
                self.writing.version = Some(written);
                self.failing = None;
            }
            Answer::Written(Err(failure)) => {
                self.writing.request = self.came_to_nothing(Attempt::Write, failure, now);
            }
            Answer::Deleted { uid, result } => self.note_deleted(uid, result, now),
            Answer::Recorded { revision: _, result } => {
                self.recording = match result {
                    Ok(()) => {
                        self.failing = None;
                        self.recorded = true;
                        Request::Idle
                    }
                    Err(failure) => self.came_to_nothing(Attempt::Record, failure, now),
                };
            }
            Answer::Remembered(result) => {
                self.remembering.attempts += 1;
                self.remembering.done =
                    result.is_ok() || self.remembering.attempts >= REMEMBER_ATTEMPTS;
                self.remembering.request = Request::RetryAt(now + RETRY);
            }
        }
    }

    fn note_deleted(&mut self, uid: Uid, result: Result<(), Failure>, now: Timestamp) {
        match result {
            // Whoever deleted it: it is gone or going.
            Ok(()) | Err(Failure::Conflict | Failure::Gone) => {
                self.failing = None;
                self.pods.deleted.insert(uid, Request::Idle);
            }
            Err(failure @ Failure::Unknown { .. }) => {
                let retry = self.came_to_nothing(Attempt::Delete, failure, now);
                self.pods.deleted.insert(uid, retry);
            }
            Err(
                failure @ (Failure::Forbidden { .. }
                | Failure::Refused { .. }
                | Failure::ChangesTemplate),
            ) => {
                // Its node keeps its entry in `replacing` until an available pod is seen there.
                self.pods.deleted.remove(&uid);
                self.fatal = Some((Attempt::Delete, failure));
            }
        }
    }

    /// What becomes of a request that failed: made again later, or never.
    fn came_to_nothing(&mut self, request: Attempt, failure: Failure, now: Timestamp) -> Request {
        let pause = if failure == Failure::Conflict { OVERTAKEN } else { RETRY };
        match failure {
            Failure::Forbidden { .. } | Failure::Refused { .. } | Failure::ChangesTemplate => {
                self.fatal = Some((request, failure));
            }
            Failure::Conflict | Failure::Gone | Failure::Unknown { .. } => {
                let before = self.failing.as_ref().filter(|failing| {
                    failing.request == request && now.duration_since(failing.last) < FORGOTTEN
                });
                let since = before.map_or(now, |failing| failing.since);
                self.failing = Some(Failing { since, last: now, request, failure });
            }
        }
        Request::RetryAt(now + pause)
    }
}
