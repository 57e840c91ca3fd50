//! Several rollouts that share a budget (`sharedBudget` of a policy), in one process.
//!
//! Each rollout decides as if it were alone. Under one mutex, a decision reads the shares of all
//! other selected DaemonSets, decides, and publishes its own share, with the pods that it is about
//! to delete: so two rollouts never take the same slot. DaemonSets that this run does not roll out
//! are observed and counted. A change of any share wakes the others.
//!
//! Nothing about nodes is decided here (`planner::shared`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all, select_all};
use jiff::Timestamp;
use tokio::sync::{mpsc, watch};

use super::Interrupt;
use cluster::{Lock, Observer, View};
use daemonset::model::{DaemonSetKey, IntOrPercent, PolicySpec};
use planner::rollout::{ObservedCluster, Outcome, State, counted, observing};
use planner::shared::{Share, ShareCourse, Siblings};

/// One of the DaemonSets of a shared budget.
pub struct Member {
    /// The DaemonSet.
    pub key: DaemonSetKey,
    /// Its observer.
    pub observer: Observer,
    /// The lock on it, which this run holds; none if it does not exist.
    pub lock: Option<Arc<Lock>>,
    /// `Starting` if this run rolls it out, `Stopped` if it was to and cannot begin, else `Counted`.
    pub course: ShareCourse,
}

/// What several rollouts share.
pub struct SharedRun {
    budget: IntOrPercent,
    /// Whether one that fails does not stop the others (`--keep-going`).
    keep_going: bool,
    seats: Mutex<Vec<SeatState>>,
    locks: Vec<Arc<Lock>>,
    changes: watch::Sender<u64>,
}

struct SeatState {
    observer: Observer,
    share: Share,
    is_rolled: bool,
    /// What it is counted with: once its rollout has ended, the last state of that.
    state: State,
    /// Whether the rollout has looked at the cluster since its observer was not current. Until then, what it
    /// shares may be over.
    is_seen: bool,
}

/// The place of one rollout among those that share a budget.
#[derive(Clone)]
pub struct Seat {
    shared: Arc<SharedRun>,
    position: usize,
    changes: watch::Receiver<u64>,
}

impl SharedRun {
    /// The DaemonSets, in the order in which they follow on each node.
    pub fn of(
        budget: IntOrPercent,
        policy: &PolicySpec,
        keep_going: bool,
        members: Vec<Member>,
    ) -> Arc<Self> {
        let locks = members.iter().filter_map(|member| member.lock.clone()).collect();
        let seat = |Member { key, observer, lock: _, course }| {
            let is_rolled = course == ShareCourse::Starting;
            let is_stopped = course == ShareCourse::Stopped;
            let course = if is_stopped { after_failure(keep_going) } else { course };
            let state = observing(policy);
            let now = |view: &View| view.snapshot.observed_at;
            let share = observer.look(|view| share_of(view, &key, &state, now(view)));
            let share = Share { course, ..share };
            SeatState { observer, share, is_rolled, state, is_seen: true }
        };
        let seats = Mutex::new(members.into_iter().map(seat).collect());
        Arc::new(Self { budget, keep_going, seats, locks, changes: watch::Sender::new(0) })
    }

    /// The place of a DaemonSet; `None` if it is none of them.
    pub fn seat(self: &Arc<Self>, key: &DaemonSetKey) -> Option<Seat> {
        let position = self.seats().iter().position(|seat| seat.share.daemon_set == *key)?;
        Some(Seat { shared: Arc::clone(self), position, changes: self.changes.subscribe() })
    }

    fn seats(&self) -> MutexGuard<'_, Vec<SeatState>> {
        // No decision panics in between with half of a share written.
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the rollouts when a DaemonSet changes that this run does not roll out, or no longer.
    /// Never returns.
    async fn watch(&self) {
        let mut observers: Vec<Observer> =
            self.seats().iter().map(|seat| seat.observer.clone()).collect();
        if observers.is_empty() {
            return std::future::pending().await;
        }
        loop {
            let changes = observers.iter_mut().map(|observer| observer.changed().boxed());
            let ((), at, _) = select_all(changes.collect::<Vec<BoxFuture<'_, ()>>>()).await;
            if self.seats().get(at).is_some_and(|seat| !seat.is_rolled) {
                self.changes.send_modify(|version| *version += 1);
            }
        }
    }
}

impl Seat {
    /// Decides among the others: it gets their shares and whether those are current, and
    /// returns its own share. While one of them does not see the cluster, none of them acts.
    pub(crate) fn decide<T>(
        &self,
        now: Timestamp,
        decide: impl FnOnce(&Siblings, bool) -> (T, Option<Share>),
    ) -> T {
        let shared = &self.shared;
        let mut seats = shared.seats();
        let mut is_current = shared.locks.iter().all(|lock| lock.is_fresh());
        for (at, seat) in seats.iter_mut().enumerate() {
            if !seat.is_rolled {
                seat.refresh(now);
                is_current &= seat.observer.is_current();
            } else if at != self.position {
                seat.is_seen &= seat.observer.is_current();
                is_current &= seat.is_seen;
            }
        }
        let is_seen = seats[self.position].observer.is_current();
        let others = seats.iter().enumerate().filter(|(at, _)| *at != self.position);
        let siblings = Siblings {
            daemon_set: seats[self.position].share.daemon_set.clone(),
            budget: shared.budget,
            position: self.position,
            others: others.map(|(_, seat)| seat.share.clone()).collect(),
        };
        let (done, mut share) = decide(&siblings, is_current);
        if let Some(share) = &mut share
            && share.course == ShareCourse::Stopped
        {
            share.course = after_failure(shared.keep_going);
        }
        let own = &mut seats[self.position];
        let share = share.unwrap_or_else(|| own.share.clone());
        if (own.is_seen, &own.share) != (is_seen, &share) {
            (own.is_seen, own.share) = (is_seen, share);
            shared.changes.send_modify(|version| *version += 1);
        }
        done
    }

    /// Waits until the share of any of them has changed.
    pub(crate) async fn changed(&mut self) {
        // Cannot fail: the sender is in `shared`.
        let _ = self.changes.changed().await;
    }

    /// What it shares with the others.
    pub(crate) fn shared(&self) -> Arc<SharedRun> {
        Arc::clone(&self.shared)
    }

    /// Sets how the rollout ended, and its last state. From then on, it is only observed.
    pub(crate) fn end(&self, outcome: &Outcome, state: State) {
        let course = match outcome {
            Outcome::Done => ShareCourse::Done,
            Outcome::Waiting { waits_for } => ShareCourse::Waiting(waits_for.clone()),
            Outcome::Paused { .. }
            | Outcome::Aborted { .. }
            | Outcome::Interrupted { .. }
            | Outcome::Stale { .. }
            | Outcome::Gone { .. }
            | Outcome::LockLost
            | Outcome::Failed { .. } => after_failure(self.shared.keep_going),
        };
        let mut seats = self.shared.seats();
        let seat = &mut seats[self.position];
        (seat.is_rolled, seat.state) = (false, state);
        seat.share.course = course;
        for here in seat.share.nodes.values_mut() {
            here.is_in_flight = false;
            here.may_begin = false;
        }
        self.shared.changes.send_modify(|version| *version += 1);
    }
}

impl SharedRun {
    /// Waits until one of the locks is lost.
    pub(crate) async fn lost(&self) {
        Lock::first_lost(self.locks.iter().map(|lock| ((), lock))).await;
    }
}

impl SeatState {
    /// What is disturbed now. What a rollout has left outdated when it ended stays so.
    fn refresh(&mut self, now: Timestamp) {
        let Self { observer, share: Share { daemon_set, .. }, state, .. } = &*self;
        let mut nodes = observer.look(|view| share_of(view, daemon_set, state, now)).nodes;
        for (name, here) in &mut nodes {
            if let Some(before) = self.share.nodes.get(name) {
                here.is_updated = before.is_updated;
                here.is_outdated = before.is_outdated;
            }
        }
        self.share.nodes = nodes;
    }
}

/// What the others of a shared budget see of one that has failed.
fn after_failure(keep_going: bool) -> ShareCourse {
    if keep_going { ShareCourse::Counted } else { ShareCourse::Stopped }
}

fn share_of(view: &View, key: &DaemonSetKey, state: &State, now: Timestamp) -> Share {
    counted(key, &ObservedCluster::of(&view.snapshot, key, true), state, now)
}

/// Runs `count` rollouts at the same time; `run` begins one of them, with its interrupts: an
/// interrupt is for all. Returns their results in the same order, and whether there was an interrupt,
/// whatever the results: nothing else starts then. One that comes after the last decision of a rollout
/// does not change its result. Several rollouts have a seat each.
pub async fn together<F: Future>(
    count: usize,
    shared: Option<&SharedRun>,
    interrupts: &mut mpsc::Receiver<Interrupt>,
    mut run: impl FnMut(usize, mpsc::Receiver<Interrupt>) -> F,
) -> (Vec<F::Output>, bool) {
    let mut senders = Vec::with_capacity(count);
    let mut runs = Vec::with_capacity(count);
    for at in 0..count {
        let (sender, receiver) = mpsc::channel(2);
        senders.push(sender);
        runs.push(run(at, receiver));
    }
    let is_interrupted = AtomicBool::new(false);
    let passing_on = async {
        while let Some(Interrupt) = interrupts.recv().await {
            is_interrupted.store(true, Ordering::Relaxed);
            for sender in &senders {
                // One that is full or closed has ended, or will.
                let _ = sender.try_send(Interrupt);
            }
        }
        std::future::pending::<()>().await;
    };
    let watching = async {
        match shared {
            Some(shared) => shared.watch().await,
            None => std::future::pending().await,
        }
    };
    let results = tokio::select! {
        biased;
        // Neither of the two returns.
        () = passing_on => Vec::new(),
        () = watching => Vec::new(),
        results = join_all(runs) => results,
    };
    (results, is_interrupted.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Found by seed 698619: a rollout was done, and its in-process controller finished its work. The
    /// interrupt ended that, and the next DaemonSet was rolled out.
    #[tokio::test]
    async fn an_interrupt_counts_also_after_the_last_decision_of_a_rollout() {
        let (sender, mut interrupts) = mpsc::channel(1);
        let run = |_, _interrupts| {
            let sender = sender.clone();
            async move {
                sender.send(Interrupt).await.unwrap();
                // It ends by itself, some time later.
                tokio::task::yield_now().await;
            }
        };
        assert_eq!(together(1, None, &mut interrupts, run).await, (vec![()], true));
        let run = |_, _interrupts| async {};
        assert_eq!(together(1, None, &mut interrupts, run).await, (vec![()], false));
    }
}
