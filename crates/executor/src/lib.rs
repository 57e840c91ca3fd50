//! Runs a rollout: passes the observed cluster to `rollout::decide`, performs its effects, and passes
//! their results to the next decision.
//!
//! This module decides nothing about nodes or pods. What comes before the first decision (ownership,
//! preflight) is in `prepare`; requests and their answers are in `perform`.

mod ask;
mod in_process_controller;
mod perform;
pub mod permissions;
mod prepare;
mod rest;
mod shared;
mod unreconciled;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use cluster::{FailedCreate, LiveCluster, Lock, LockError, Observer, View};
use daemonset::controller::node_placements::PlacementCache;
use daemonset::model::{DaemonSetKey, ManagedBy};
use in_process_controller::InProcessController;
use perform::RequestSender;
use planner::rollout::{
    AllowedActions, Answer, Cost, Delete, Effect, Ending, Event, ObservedCluster, Outcome, Report,
    State, Task, Write, decide,
};
use planner::shared::Siblings;
use rest::rest;

pub use ask::{Ask, Asked};
pub use prepare::{PreflightError, Trial, force_conflicts, preflight, try_pod};
pub use shared::{Member, Seat, SharedRun, together};
pub use unreconciled::Unreconciled;

/// Reason of the event for a pod that could not be created (upstream: `FailedCreatePodReason`).
const FAILED_CREATE: &str = "FailedCreate";

/// The longest sleep between two decisions: a clock may jump.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

/// The shortest sleep, so that an overdue decision cannot cause a busy loop.
const SHORTEST_SLEEP: Duration = Duration::from_millis(20);

/// An interrupt of a run: Ctrl-C or SIGTERM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt;

/// A rollout of one DaemonSet.
pub struct Run {
    /// The DaemonSet.
    pub key: DaemonSetKey,
    /// The lock on it, which this run holds.
    pub lock: Arc<Lock>,
    /// The controller of the DaemonSet. Without a DaemonSet controller in the cluster, the run
    /// starts its in-process controller.
    pub managed_by: ManagedBy,
    /// The cluster, for what is not watched.
    pub cluster: LiveCluster,
    /// The observer of the DaemonSet, its nodes, pods and revisions.
    pub observer: Observer,
    /// The task of the run.
    pub task: Task,
    /// Asks the checks of the policy.
    pub ask: Arc<dyn Ask>,
    /// The place of the run among those that share a budget, if it has one.
    pub seat: Option<Seat>,
}

impl Run {
    /// Decides and performs until the rollout has ended, or interrupts stop it; returns the ending and its time. `on_report`
    /// receives each report with its time. Times are by the server's clock. Rejections by the server are in
    /// the ending.
    pub async fn to_its_end(
        mut self,
        interrupts: &mut mpsc::Receiver<Interrupt>,
        on_report: impl FnMut(&Report, Timestamp),
    ) -> (Ending, Timestamp) {
        let mut controller = match self.managed_by {
            ManagedBy::DaemonSetController => None,
            ManagedBy::DsApply => Some(InProcessController::begin(
                self.key.clone(),
                &self.lock,
                self.observer.clone(),
            )),
        };
        let (ending, state, now) = self.decisions(controller.as_mut(), interrupts, on_report).await;
        let allowed_actions = state.allowed_actions();
        if let Some(seat) = &self.seat {
            seat.end(&ending.outcome, state);
        }
        // Without a write, everything stays as it is.
        let resumes =
            ending.outcome != Outcome::LockLost && allowed_actions != AllowedActions::None;
        if let Some(controller) = controller.filter(|_| resumes) {
            tokio::select! {
                biased;
                Some(Interrupt) = interrupts.recv() => {}
                () = lost(&self.lock, self.seat.as_ref().map(Seat::shared)) => {}
                _ = controller.drain(allowed_actions) => {}
            }
        }
        (ending, now)
    }

    async fn decisions(
        &mut self,
        mut controller: Option<&mut InProcessController>,
        interrupts: &mut mpsc::Receiver<Interrupt>,
        mut on_report: impl FnMut(&Report, Timestamp),
    ) -> (Ending, State, Timestamp) {
        let mut sender = RequestSender::new(self.key.clone(), Arc::clone(&self.lock));
        let mut state = State::new(self.task.clone());
        let mut heard = Heard::since(self.now());
        let mut placement_cache = PlacementCache::default();
        let mut event = Event::Observed;
        loop {
            let Looked { state: after, effects, now, nodes } =
                self.decide(state, event, &mut placement_cache);
            state = after;
            if let Some(controller) = &controller {
                controller.may(state.allowed_actions(), state.creates());
            }
            let rested = Instant::now() + rest(nodes);
            // Each decision sets the next wake-up again.
            let mut wake = None;
            for effect in effects {
                match effect {
                    Effect::Report(report) => on_report(&report, now),
                    Effect::WakeAt(at) => wake = Some(at),
                    Effect::Finish(ending) => return (*ending, state, now),
                    Effect::Write(write) => self.write(&mut sender, *write, now),
                    Effect::Delete(delete) => {
                        log(&self.key, &delete);
                        sender.delete(delete);
                    }
                    Effect::Remember { digest } => sender.remember_failed_template(digest),
                    Effect::Forget { digest } => sender.forget_failed_template(digest),
                    Effect::Ask(questions) => sender.ask(&self.ask, questions),
                    Effect::CreatePuller(new) => sender.create_puller(*new),
                    Effect::RemovePuller { pod, uid } => sender.remove_puller(pod, uid),
                    Effect::ReadApprovals => sender.read_approvals(self.cluster.clone()),
                    Effect::Note(note) => sender.note_steps(*note),
                    Effect::Annotate { revision, uid } => {
                        let seen = self.observer.look(|view| perform::revision(view, &uid));
                        sender.annotate(revision, seen, self.task.provenance.clone());
                    }
                }
            }
            let longest = until(wake, now);
            let mut sources = Sources {
                answers: &mut sender.answers,
                heard: &mut heard,
                interrupts: &mut *interrupts,
            };
            event = self.next(&mut sources, controller.as_deref_mut(), longest).await;
            while can_wait(&event) && Instant::now() < rested {
                state.receive(event, self.now());
                event = self.next_in_rest(&mut sources, rested).await;
            }
        }
    }

    /// Writes the DaemonSet, or its record ConfigMap.
    fn write(&self, sender: &mut RequestSender, write: Write, now: Timestamp) {
        tracing::info!("{}: {}", self.key, write.purpose);
        match self.managed_by {
            ManagedBy::DaemonSetController => sender.write(write),
            ManagedBy::DsApply => {
                let live = self.observer.look(|view| view.snapshot.daemon_set(&self.key).cloned());
                sender.write_record(write, live, now);
            }
        }
    }

    /// Decides once on the current view, by the server's clock; among the others that share a
    /// budget, if there are any.
    fn decide(&self, state: State, event: Event, placement_cache: &mut PlacementCache) -> Looked {
        match &self.seat {
            None => self.decide_beside(None, true, state, event, placement_cache),
            Some(seat) => seat.decide(self.now(), |siblings, is_current| {
                let looked =
                    self.decide_beside(Some(siblings), is_current, state, event, placement_cache);
                let share = looked.state.share().cloned();
                (looked, share)
            }),
        }
    }

    fn decide_beside(
        &self,
        siblings: Option<&Siblings>,
        are_current: bool,
        state: State,
        event: Event,
        placement_cache: &mut PlacementCache,
    ) -> Looked {
        let is_current = are_current && self.observer.is_current() && self.lock.is_fresh();
        let failure = || self.observer.failure().or_else(|| self.lock.failure());
        let failure = if is_current { None } else { failure() };
        self.observer.look(|view| {
            let View { snapshot, nodes_version, failed_creates: _, pullers, neighbours } = view;
            let (now, nodes) = (snapshot.observed_at, &snapshot.nodes);
            let observed = ObservedCluster::of(snapshot, &self.key, is_current);
            let observed = observed.beside(siblings).pulling(pullers).among(neighbours);
            let observed = observed.failing(failure.as_deref());
            let node_placements = observed
                .daemon_set
                .map(|live| placement_cache.node_placements(live, nodes, *nodes_version));
            let (state, effects) =
                decide(state, event, &observed.on(node_placements.as_deref()), now);
            Looked { state, effects, now, nodes: nodes.len() }
        })
    }

    /// The current time, by the server's clock.
    fn now(&self) -> Timestamp {
        self.observer.look(|view| view.snapshot.observed_at)
    }

    /// Waits for the next event, at most for `longest`.
    async fn next(
        &mut self,
        sources: &mut Sources<'_>,
        controller: Option<&mut InProcessController>,
        longest: Duration,
    ) -> Event {
        if let Some(message) = self.observer.look(|view| sources.heard.news(&view.failed_creates)) {
            return Event::CreateFailed { message };
        }
        // Biased order: deterministic, and what stops a run comes first.
        tokio::select! {
            biased;
            event = sources.next(lost(&self.lock, self.seat.as_ref().map(Seat::shared))) => event,
            Some(message) = failed_create(controller) => Event::CreateFailed { message },
            () = self.observer.changed() => Event::Observed,
            () = sibling_changed(self.seat.as_mut()) => Event::Observed,
            () = tokio::time::sleep(longest) => Event::Observed,
        }
    }

    /// Waits until the rest is over, or for an event that does not come from the cluster.
    async fn next_in_rest(&self, sources: &mut Sources<'_>, rested: Instant) -> Event {
        let next = sources.next(lost(&self.lock, self.seat.as_ref().map(Seat::shared)));
        tokio::time::timeout_at(rested, next).await.unwrap_or(Event::Observed)
    }
}

/// Where the events of a run come from that are no changes of the cluster.
struct Sources<'a> {
    answers: &'a mut JoinSet<Answer>,
    heard: &'a mut Heard,
    interrupts: &'a mut mpsc::Receiver<Interrupt>,
}

impl Sources<'_> {
    /// The next event of them; `lost` returns when the lock is lost.
    async fn next(&mut self, lost: impl Future<Output = ()>) -> Event {
        let Self { answers, heard, interrupts } = self;
        tokio::select! {
            biased;
            () = lost, if !heard.lock_lost => heard.loss(),
            Some(Interrupt) = interrupts.recv() => Event::Interrupt,
            Some(answer) = answers.join_next() => answered(answer),
            else => std::future::pending().await,
        }
    }
}

/// Waits until the lock of the run is lost, or one of those of its shared budget.
async fn lost(lock: &Lock, shared: Option<Arc<SharedRun>>) {
    match shared {
        None => lock.lost().await,
        Some(shared) => shared.lost().await,
    }
}

/// Waits until another DaemonSet of the shared budget changes; never returns without one.
async fn sibling_changed(seat: Option<&mut Seat>) {
    match seat {
        Some(seat) => seat.changed().await,
        None => std::future::pending().await,
    }
}

/// Logs the decision to delete a pod, with the budget that allows it.
fn log(key: &DaemonSetKey, delete: &Delete) {
    let Delete { pod, uid: _, node, reason, cost } = delete;
    match cost {
        Cost::Nothing => tracing::info!("{key}: delete {pod} on {node} ({reason}): costs nothing"),
        Cost::One { unavailable, allowed } => tracing::info!(
            "{key}: delete {pod} on {node} ({reason}): {unavailable} of {allowed} unavailable"
        ),
    }
}

/// The next failed pod creation of the in-process controller; never returns without one.
async fn failed_create(controller: Option<&mut InProcessController>) -> Option<String> {
    match controller {
        Some(controller) => controller.create_failures.recv().await,
        None => std::future::pending().await,
    }
}

/// Reconciles a DaemonSet that no DaemonSet controller acts on, as far as possible at once: adopts
/// orphans, and updates the history and the status. Returns why it could not be done in half a minute,
/// if it was not.
///
/// # Errors
/// The lock was lost before that was done.
pub async fn reconcile(
    key: &DaemonSetKey,
    lock: &Arc<Lock>,
    observer: Observer,
) -> Result<Option<Unreconciled>, LockError> {
    let drained =
        InProcessController::begin(key.clone(), lock, observer).drain(AllowedActions::Reconcile);
    tokio::select! {
        biased;
        () = lock.lost() => Err(LockError::Lost { daemon_set: key.clone() }),
        unreconciled = drained => Ok(unreconciled),
    }
}

/// The result of a decision.
struct Looked {
    state: State,
    effects: Vec<Effect>,
    /// The time of the decision, by the server's clock.
    now: Timestamp,
    /// Number of nodes that were evaluated.
    nodes: usize,
}

/// Whether an event may wait until the end of the rest.
fn can_wait(event: &Event) -> bool {
    match event {
        Event::Observed | Event::Answer(_) => true,
        Event::CreateFailed { .. } | Event::Interrupt | Event::LockLost => false,
    }
}

fn answered(answer: Result<Answer, tokio::task::JoinError>) -> Event {
    match answer {
        Ok(answer) => Event::Answer(answer),
        // A request that panicked is a bug; the run must not wait for its answer indefinitely.
        Err(failed) => std::panic::resume_unwind(failed.into_panic()),
    }
}

/// The time to sleep until the wake-up.
fn until(wake: Option<Timestamp>, now: Timestamp) -> Duration {
    let due = wake.and_then(|at| Duration::try_from(at.duration_since(now)).ok());
    due.unwrap_or(LONGEST_SLEEP).clamp(SHORTEST_SLEEP, LONGEST_SLEEP)
}

/// Time before the run from which a `FailedCreate` event is of an earlier one: the clocks of the controller
/// and the server may differ. A watch of events begins with those of the last hour.
const EARLIER: SignedDuration = SignedDuration::from_mins(1);

/// The events that were passed to the run already.
struct Heard {
    /// When the run began.
    since: Timestamp,
    /// The count of each `FailedCreate` event.
    failed_creates: BTreeMap<String, u32>,
    /// Whether the loss of the lock was passed on: it stays lost, and would be reported again.
    lock_lost: bool,
}

impl Heard {
    /// Nothing yet, in a run that begins now.
    fn since(now: Timestamp) -> Self {
        Self { since: now, failed_creates: BTreeMap::new(), lock_lost: false }
    }

    /// The event of a lost lock, which is passed on once.
    fn loss(&mut self) -> Event {
        self.lock_lost = true;
        Event::LockLost
    }

    /// A `FailedCreate` event of this run that was not passed on yet.
    fn news(&mut self, failed_creates: &[FailedCreate]) -> Option<String> {
        let is_earlier = |at: Timestamp| at.duration_until(self.since) > EARLIER;
        let failed = failed_creates.iter().filter(|it| it.reason == FAILED_CREATE);
        failed
            .filter(|it| !it.last.is_some_and(is_earlier))
            .filter(|it| self.failed_creates.insert(it.event.clone(), it.count) != Some(it.count))
            .last()
            .map(|it| it.message.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The watch of events begins with those of the last hour, and a rejection counts after 30 s: a run that
    /// came after the quota had been raised failed by it.
    #[test]
    fn a_failed_create_of_an_earlier_run_is_no_news() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let event = |count, last| FailedCreate {
            event: "agent.1".into(),
            about: "1".into(),
            reason: FAILED_CREATE.into(),
            message: "exceeded quota".into(),
            count,
            last,
        };
        let mut heard = Heard::since(at(10_000));
        assert_eq!(heard.news(&[event(7, Some(at(9_700)))]), None);
        let quota = Some("exceeded quota".to_owned());
        assert_eq!(heard.news(&[event(8, Some(at(9_990)))]), quota, "the clocks may differ");
        assert_eq!(heard.news(&[event(8, Some(at(9_990)))]), None, "it was passed on");
        assert_eq!(heard.news(&[event(9, Some(at(10_001)))]), quota);
        assert_eq!(heard.news(&[event(10, None)]), quota, "its time is not known");
    }
}
