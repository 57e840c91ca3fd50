//! Everybody who acts on the embedded cluster from inside: the DaemonSet controller, the scheduler,
//! the kubelets, the controllers of lost nodes and of orphaned pods; and what a rehearsal lets
//! happen to nodes.
//!
//! One loop of discrete events. What is due is done in the order of time, and of its coming in case
//! of a tie; all chance comes from a seed. So the same seed gives the same history. Each of them
//! hears of a change a little after it was made, decides by pure rules on what it has heard, and
//! writes through the API's verbs as anybody else. Not here: the API.

mod agenda;
mod cache;
mod chance;
mod complaints;
mod daemon_sets;
mod expectations;
mod garbage;
mod happenings;
mod kubelet;
mod limiter;
mod node_monitor;
mod pod_gc;
mod scheduler;
mod taint_eviction;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use jiff::Timestamp;

pub(in crate::simulator) use kubelet::whole_second;

use self::agenda::Agenda;
use self::cache::{Cache, KINDS};
pub(in crate::simulator) use self::chance::Chance;
use self::daemon_sets::DaemonSets;
use self::kubelet::Kubelets;
use self::limiter::Limiter;
use self::pod_gc::PodGc;
use self::scheduler::Scheduler;
use super::{Event, Kind, ObjectKey, Server, Store, Timings, VirtualClock};
use crate::model::{DaemonSetKey, Faults, NodeName, NodeReadiness};

/// A piece of work.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Work {
    /// The node event of that number happens.
    Happening(usize),
    /// The controller manager starts again.
    Restart,
    /// A DaemonSet is synced.
    Sync(DaemonSetKey),
    /// A DaemonSet is synced once more, which an earlier sync does not make up for (upstream:
    /// `AddAfter`).
    SyncLater(DaemonSetKey),
    /// A sync goes on.
    GoOn(DaemonSetKey),
    /// A pod is bound.
    Bind(ObjectKey),
    /// A kubelet goes on with a pod.
    Kubelet(ObjectKey),
    /// A pod is evicted from a tainted node.
    Evict(ObjectKey),
    /// Nodes are looked at.
    CheckNodes,
    /// A node is tainted as it says of itself.
    TaintNode(NodeName),
    /// Pods are collected.
    CollectPods,
    /// What belongs to objects that are gone is looked at.
    CollectGarbage,
}

impl Work {
    /// Whether it is the controller manager's.
    fn is_of_controller_manager(&self) -> bool {
        match self {
            Self::Sync(_)
            | Self::SyncLater(_)
            | Self::GoOn(_)
            | Self::Evict(_)
            | Self::CheckNodes
            | Self::TaintNode(_)
            | Self::CollectPods
            | Self::CollectGarbage => true,
            Self::Happening(_) | Self::Restart | Self::Bind(_) | Self::Kubelet(_) => false,
        }
    }
}

/// What everybody has at hand at one moment.
struct Moment<'a> {
    store: &'a mut Store,
    cache: &'a Cache,
    agenda: &'a mut Agenda<Work>,
    timings: &'a Timings,
    chance: Chance,
    now: Timestamp,
}

/// All of them, and what they have heard and have to do.
#[derive(Debug)]
pub struct Controllers {
    cache: Cache,
    /// Changes that are on their way, and when they are heard of.
    inbox: VecDeque<(Timestamp, Event)>,
    /// The version up to which changes are on their way or heard of.
    seen: u64,
    agenda: Agenda<Work>,
    timings: Timings,
    chance: Chance,
    faults: Faults,
    began: Timestamp,
    daemon_sets: DaemonSets,
    scheduler: Scheduler,
    kubelets: Kubelets,
    pod_gc: PodGc,
}

impl Controllers {
    /// Those of the cluster in `store`, which begin now.
    pub fn begin(
        store: &mut Store,
        timings: Timings,
        faults: Faults,
        seed: u64,
        now: Timestamp,
    ) -> Self {
        let cache = Cache::of(store);
        let limiter = limiter(&timings, now);
        let mut this = Self {
            seen: cache.version,
            cache,
            inbox: VecDeque::new(),
            agenda: Agenda::new(),
            timings,
            chance: Chance::new(seed),
            began: now,
            daemon_sets: DaemonSets::new(limiter),
            scheduler: Scheduler::default(),
            kubelets: Kubelets::new(faults.images.clone()),
            pod_gc: PodGc::default(),
            faults,
        };
        this.plan_faults();
        this.take_up(store, now);
        this
    }

    fn plan_faults(&mut self) {
        for (number, event) in self.faults.nodes.iter().enumerate() {
            self.agenda.add(self.began + event.at(), Work::Happening(number));
        }
        for period in &self.faults.controller_manager_down {
            if let Some(until) = period.until {
                self.agenda.add(self.began + until.0, Work::Restart);
            }
        }
    }

    /// What is there at the beginning.
    fn take_up(&mut self, store: &mut Store, now: Timestamp) {
        let pods: Vec<_> = store.objects(Kind::Pod, None).cloned().collect();
        let Self { cache, agenda, timings, chance, kubelets, scheduler, pod_gc, .. } = self;
        let mut moment = Moment { store, cache, agenda, timings, chance: *chance, now };
        for node in &cache.nodes {
            match node.readiness {
                NodeReadiness::Ready => {}
                NodeReadiness::NotReady { since } | NodeReadiness::Unknown { since } => {
                    kubelets.die(&node.name, since.unwrap_or(now));
                }
            }
        }
        taint_eviction::begin(&mut moment);
        garbage::begin(&mut moment);
        for object in &pods {
            kubelets.adopt(object, &mut moment);
            if let Some(pod) = object.pod() {
                scheduler.adopt(object.key(), pod, &mut moment);
            }
        }
        pod_gc.begin(&mut moment);
        node_monitor::begin(&mut moment);
        DaemonSets::wake_all(&mut moment);
    }

    /// Does everything that is due by now; when the next thing is, unless somebody else changes
    /// something before.
    pub fn turn(&mut self, store: &mut Store, now: Timestamp) -> Option<Timestamp> {
        loop {
            self.listen(store, now);
            let heard = self.inbox.front().map(|(at, _)| *at);
            let due = self.agenda.next_due();
            let next = heard.into_iter().chain(due).min()?;
            if next > now {
                return Some(next);
            }
            // What was heard of at that time comes before what is done at it.
            if heard == Some(next)
                && let Some((_, event)) = self.inbox.pop_front()
            {
                self.hear(&event, store, now);
            } else if let Some(work) = self.agenda.pop(now) {
                self.work(work, store, now);
            }
        }
    }

    /// Puts what has happened since into the inbox.
    fn listen(&mut self, store: &Store, now: Timestamp) {
        if store.version() == self.seen {
            return;
        }
        let mut news: Vec<Event> = Vec::new();
        for kind in KINDS {
            match store.events_after(kind, self.seen) {
                Ok(events) => news.extend(events.cloned()),
                Err(expired) => tracing::error!(?expired, "the controllers have missed changes"),
            }
        }
        news.sort_by_key(Event::version);
        let at = now + self.timings.informer;
        self.inbox.extend(news.into_iter().map(|event| (at, event)));
        self.seen = store.version();
    }

    fn hear(&mut self, event: &Event, store: &mut Store, now: Timestamp) {
        self.cache.hear(event);
        let Self {
            cache, agenda, timings, chance, daemon_sets, scheduler, kubelets, pod_gc, ..
        } = self;
        let mut moment = Moment { store, cache, agenda, timings, chance: *chance, now };
        daemon_sets.hear(event, &mut moment);
        scheduler.hear(event, &mut moment);
        kubelets.hear(event, &mut moment);
        taint_eviction::hear(event, &mut moment);
        node_monitor::hear(event, &mut moment);
        pod_gc.hear(event, &mut moment);
        garbage::hear(event, &mut moment);
    }

    fn work(&mut self, work: Work, store: &mut Store, now: Timestamp) {
        if work.is_of_controller_manager() && self.is_down(now) {
            return;
        }
        let limiter = limiter(&self.timings, now);
        let Self {
            cache,
            agenda,
            timings,
            chance,
            daemon_sets,
            scheduler,
            kubelets,
            pod_gc,
            faults,
            ..
        } = self;
        let mut moment = Moment { store, cache, agenda, timings, chance: *chance, now };
        match work {
            Work::Happening(number) => {
                if let Some(event) = faults.nodes.get(number) {
                    happenings::happen(event, kubelets, &mut moment);
                }
            }
            Work::Restart => {
                // It remembers nothing of what it was about to do.
                *daemon_sets = DaemonSets::new(limiter);
                *pod_gc = PodGc::default();
                pod_gc.begin(&mut moment);
                garbage::begin(&mut moment);
                node_monitor::begin(&mut moment);
                taint_eviction::begin(&mut moment);
                DaemonSets::wake_all(&mut moment);
            }
            Work::Sync(key) | Work::SyncLater(key) => daemon_sets.sync(&key, &mut moment),
            Work::GoOn(key) => daemon_sets.go(&key, &mut moment),
            Work::Bind(key) => scheduler.bind(&key, &mut moment),
            Work::Kubelet(key) => kubelets.go_on(&key, &mut moment),
            Work::Evict(key) => taint_eviction::evict(&key, &mut moment),
            Work::CheckNodes => node_monitor::check(kubelets.dead(), &mut moment),
            Work::TaintNode(name) => node_monitor::taint(&name, &mut moment),
            Work::CollectPods => pod_gc.collect(&mut moment),
            Work::CollectGarbage => garbage::collect(&mut moment),
        }
    }

    /// Whether the controller manager does not run now.
    fn is_down(&self, now: Timestamp) -> bool {
        let elapsed = Duration::try_from(now.duration_since(self.began)).unwrap_or_default();
        self.faults.controller_manager_down.iter().any(|period| period.contains(elapsed))
    }

    /// Goes on for ever, on virtual time.
    pub async fn run(mut self, server: Server, clock: VirtualClock) {
        loop {
            let due = self.turn(&mut server.store(), clock.now());
            let change = poll_fn(|context| {
                let mut store = server.store();
                if store.version() != self.seen {
                    return Poll::Ready(());
                }
                for kind in KINDS {
                    store.wake_on(kind, context.waker());
                }
                Poll::Pending
            });
            match due {
                None => change.await,
                Some(due) => {
                    // A change and a time at once: the order is the same each time.
                    tokio::select! {
                        biased;
                        () = change => {}
                        () = clock.reach(due) => {}
                    }
                }
            }
        }
    }
}

fn limiter(timings: &Timings, now: Timestamp) -> Limiter {
    Limiter::new(timings.requests_per_second, timings.burst, now)
}
