//! Carries a rollout out: shows the world to `rollout::step`, performs what it wants, and tells it
//! what came of that.
//!
//! Nothing is decided here about nodes or pods. What comes before the first step (ownership,
//! preflight) is in `prepare`; requests and their answers are in `perform`.

mod keeper;
mod perform;
pub mod permissions;
mod prepare;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::cluster::{Lock, LockError, Observer, View};
use crate::controller::ground::Survey;
use crate::model::{DaemonSetKey, ManagedBy};
use crate::rollout::{
    Answer, Effect, Ending, Event, Leave, Outcome, Report, State, Task, World, Write, step,
};
use keeper::Keeper;
use perform::Hands;

pub use prepare::{PreflightError, Trial, preflight, take_over, try_pod};

/// Why an event says that no pod could be created (upstream: `FailedCreatePodReason`).
const FAILED_CREATE: &str = "FailedCreate";

/// The longest sleep between two looks: a clock may jump.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

/// The shortest one, so that what is overdue cannot spin.
const SHORTEST_SLEEP: Duration = Duration::from_millis(20);

/// A look at so many nodes is worth a millisecond of rest: what happens meanwhile is looked at
/// together, else a large cluster would have each of its changes cost a look at all of it.
const NODES_A_MILLISECOND: usize = 10;

/// Something that interrupts a run from outside: Ctrl-C or SIGTERM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt;

/// One rollout under way.
pub struct Run<'a> {
    /// Which DaemonSet.
    pub key: &'a DaemonSetKey,
    /// The lock on it, held.
    pub lock: Arc<Lock>,
    /// Who acts on it: without a controller in the cluster, the run brings its own.
    pub managed_by: ManagedBy,
    /// What is seen of it.
    pub observer: Observer,
    /// How it is asked to stop.
    pub interrupts: &'a mut mpsc::Receiver<Interrupt>,
    /// What is asked for.
    pub task: Task,
}

impl Run<'_> {
    /// Takes steps until the rollout has ended, and says when that was. `tell` is told what happens,
    /// and at what time by the server's clock. What the server refuses is in the ending.
    pub async fn to_its_end(mut self, tell: impl FnMut(&Report, Timestamp)) -> (Ending, Timestamp) {
        let mut keeper = match self.managed_by {
            ManagedBy::DaemonSetController => None,
            ManagedBy::DsApply => {
                Some(Keeper::begin(self.key.clone(), &self.lock, self.observer.clone()))
            }
        };
        let (ending, leave, now) = self.steps(keeper.as_mut(), tell).await;
        // Where nothing has been put in place, everything stays as it is.
        let goes_on = ending.outcome != Outcome::LockLost && leave != Leave::Nothing;
        if let Some(keeper) = keeper.filter(|_| goes_on) {
            tokio::select! {
                biased;
                Some(Interrupt) = self.interrupts.recv() => {}
                () = self.lock.lost() => {}
                () = keeper.settle(leave) => {}
            }
        }
        (ending, now)
    }

    async fn steps(
        &mut self,
        mut keeper: Option<&mut Keeper>,
        mut tell: impl FnMut(&Report, Timestamp),
    ) -> (Ending, Leave, Timestamp) {
        let mut hands = Hands::new(self.key.clone(), Arc::clone(&self.lock));
        let provenance = self.task.provenance.clone();
        let mut state = State::new(self.task.clone());
        let mut heard = Heard::default();
        let mut survey = Survey::default();
        let mut event = Event::Look;
        loop {
            let Looked { state: after, effects, now, nodes } = self.step(state, event, &mut survey);
            state = after;
            if let Some(keeper) = &keeper {
                keeper.may(state.leaves(), state.creates());
            }
            let rested = Instant::now() + rest(nodes);
            // Each step says anew when the next one is due.
            let mut wake = None;
            for effect in effects {
                match effect {
                    Effect::Report(report) => tell(&report, now),
                    Effect::WakeAt(at) => wake = Some(at),
                    Effect::Finish(ending) => return (*ending, state.leaves(), now),
                    Effect::Write(write) => self.write(&mut hands, *write, now),
                    Effect::Delete(delete) => hands.delete(delete),
                    Effect::Remember { digest } => {
                        hands.note(move |known| perform::remembered(known, &digest));
                    }
                    Effect::Forget { digest } => {
                        hands.note(move |known| perform::forgotten(known, &digest));
                    }
                    Effect::Record { revision, uid } => {
                        let seen = self.observer.look(|view| perform::revision(view, &uid));
                        hands.record(revision, seen, provenance.clone());
                    }
                }
            }
            let longest = until(wake, now);
            event = self.next(&mut hands.answers, &mut heard, keeper.as_deref_mut(), longest).await;
            while can_wait(&event) && Instant::now() < rested {
                state.note(event, self.now());
                event = self.next_in_rest(&mut hands.answers, &mut heard, rested).await;
            }
        }
    }

    /// Writes the DaemonSet, or the ledger that stands for it.
    fn write(&self, hands: &mut Hands, write: Write, now: Timestamp) {
        match self.managed_by {
            ManagedBy::DaemonSetController => hands.write(write),
            ManagedBy::DsApply => {
                let live = self.observer.look(|view| view.snapshot.daemon_set(self.key).cloned());
                hands.write_ledger(write, live, now);
            }
        }
    }

    /// One step on what is seen now, by the server's clock.
    fn step(&self, state: State, event: Event, survey: &mut Survey) -> Looked {
        let is_current = self.observer.is_current() && self.lock.is_fresh();
        self.observer.look(|View { snapshot, nodes_version, complaints: _ }| {
            let (now, nodes) = (snapshot.observed_at, &snapshot.nodes);
            let world = World::of(snapshot, self.key, is_current);
            let ground = world.daemon_set.map(|live| survey.ground(live, nodes, *nodes_version));
            let (state, effects) = step(state, event, &world.on(ground.as_deref()), now);
            Looked { state, effects, now, nodes: nodes.len() }
        })
    }

    /// What time it is, by the server's clock.
    fn now(&self) -> Timestamp {
        self.observer.look(|view| view.snapshot.observed_at)
    }

    /// Waits for what happens next, and not longer than that.
    async fn next(
        &mut self,
        answers: &mut JoinSet<Answer>,
        heard: &mut Heard,
        keeper: Option<&mut Keeper>,
        longest: Duration,
    ) -> Event {
        if let Some(message) = self.observer.look(|view| heard.news(view)) {
            return Event::CreateFailed { message };
        }
        // In this order, so that the same happens each time, and nothing that stops a run waits.
        tokio::select! {
            biased;
            () = self.lock.lost(), if !heard.lock_lost => heard.loss(),
            Some(Interrupt) = self.interrupts.recv() => Event::Interrupt,
            Some(answer) = answers.join_next() => answered(answer),
            Some(message) = complaint(keeper) => Event::CreateFailed { message },
            () = self.observer.changed() => Event::Look,
            () = tokio::time::sleep(longest) => Event::Look,
        }
    }

    /// Waits until the rest is over, or something happens that has to be known before.
    async fn next_in_rest(
        &mut self,
        answers: &mut JoinSet<Answer>,
        heard: &mut Heard,
        rested: Instant,
    ) -> Event {
        tokio::select! {
            biased;
            () = self.lock.lost(), if !heard.lock_lost => heard.loss(),
            Some(Interrupt) = self.interrupts.recv() => Event::Interrupt,
            Some(answer) = answers.join_next() => answered(answer),
            () = tokio::time::sleep_until(rested) => Event::Look,
        }
    }
}

/// What the run's own controller could not create; never, without one.
async fn complaint(keeper: Option<&mut Keeper>) -> Option<String> {
    match keeper {
        Some(keeper) => keeper.complaints.recv().await,
        None => std::future::pending().await,
    }
}

/// Does for a DaemonSet on which no controller acts what one would do at once: orphans are adopted,
/// the history and the status put in order.
///
/// # Errors
/// The lock was lost before all of that was done.
pub async fn tend(
    key: &DaemonSetKey,
    lock: &Arc<Lock>,
    observer: Observer,
) -> Result<(), LockError> {
    let settled = Keeper::begin(key.clone(), lock, observer).settle(Leave::Upkeep);
    tokio::select! {
        biased;
        () = lock.lost() => Err(LockError::Lost { daemon_set: key.clone() }),
        () = settled => Ok(()),
    }
}

/// What came of a step.
struct Looked {
    state: State,
    effects: Vec<Effect>,
    /// When it was taken, by the server's clock.
    now: Timestamp,
    /// How many nodes it looked at.
    nodes: usize,
}

/// How long to rest after a look at so many nodes.
fn rest(nodes: usize) -> Duration {
    Duration::from_millis(u64::try_from(nodes / NODES_A_MILLISECOND).unwrap_or(u64::MAX))
}

/// Whether what is to be done about an event may wait for the next look.
fn can_wait(event: &Event) -> bool {
    match event {
        Event::Look | Event::Answer(_) => true,
        Event::CreateFailed { .. } | Event::Interrupt | Event::LockLost => false,
    }
}

fn answered(answer: Result<Answer, tokio::task::JoinError>) -> Event {
    match answer {
        Ok(answer) => Event::Answer(answer),
        // A request that panicked is a bug; the run must not wait for it for ever.
        Err(failed) => std::panic::resume_unwind(failed.into_panic()),
    }
}

/// How long to sleep until then.
fn until(wake: Option<Timestamp>, now: Timestamp) -> Duration {
    let due = wake.and_then(|at| Duration::try_from(at.duration_since(now)).ok());
    due.unwrap_or(LONGEST_SLEEP).clamp(SHORTEST_SLEEP, LONGEST_SLEEP)
}

/// What has been passed on, and is not told again.
#[derive(Default)]
struct Heard {
    /// How often the controller had made each complaint.
    complaints: BTreeMap<String, u32>,
    /// The lock stays lost: whoever looked again would find nothing but that.
    lock_lost: bool,
}

impl Heard {
    /// The lock is lost, which is told once.
    fn loss(&mut self) -> Event {
        self.lock_lost = true;
        Event::LockLost
    }

    /// A complaint that was not passed on yet.
    fn news(&mut self, view: &View) -> Option<String> {
        let failed = view.complaints.iter().filter(|it| it.reason == FAILED_CREATE);
        failed
            .filter(|it| self.complaints.insert(it.event.clone(), it.count) != Some(it.count))
            .last()
            .map(|it| it.message.clone())
    }
}
