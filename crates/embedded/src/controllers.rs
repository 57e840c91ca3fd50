//! The actors inside the embedded cluster: the DaemonSet controller, the scheduler, the kubelets,
//! the controllers of lost nodes and of orphaned pods; and the node events of a rehearsal.
//!
//! One loop of discrete events. Work is done in the order of time, and in the order of insertion in
//! case of a tie; all random values come from a seed. So the same seed gives the same history. Each
//! actor receives a change a little after it was made, decides by pure rules on its cache, and
//! writes through the API's verbs like any client. Not here: the API.

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
mod moment;
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

use self::agenda::Agenda;
use self::cache::{Cache, KINDS};
pub(crate) use self::chance::Chance;
use self::daemon_sets::DaemonSets;
use self::kubelet::Kubelets;
use self::limiter::Limiter;
use self::moment::{Moment, Work};
use self::pod_gc::PodGc;
use self::scheduler::Scheduler;
use super::{Event, Kind, Server, Store, Timings, VirtualClock};
use daemonset::model::{Faults, NodeReadiness};

/// All actors, with their cache and their queue.
#[derive(Debug)]
pub(crate) struct Controllers {
    cache: Cache,
    /// Changes that are not received yet, and when they will be.
    inbox: VecDeque<(Timestamp, Event)>,
    /// The version up to which changes are in the inbox or received.
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
    /// The actors of the cluster in `store`, which start now.
    pub(crate) fn begin(
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

    /// Lists the objects at the start.
    fn take_up(&mut self, store: &mut Store, now: Timestamp) {
        let pods: Vec<_> = store.objects(Kind::Pod, None).cloned().collect();
        let Self { cache, agenda, timings, chance, kubelets, scheduler, pod_gc, .. } = self;
        let mut moment = Moment { store, cache, agenda, timings, chance: *chance, now };
        for node in &cache.nodes {
            match node.readiness {
                NodeReadiness::Ready => {}
                NodeReadiness::NotReady { since } | NodeReadiness::Unknown { since } => {
                    kubelets.die(&node.name, since.map_or(now, Timestamp::from));
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

    /// Does all work that is due by now; returns the time of the next work, unless another client
    /// changes something before.
    pub(crate) fn turn(&mut self, store: &mut Store, now: Timestamp) -> Option<Timestamp> {
        loop {
            self.listen(store, now);
            let heard = self.inbox.front().map(|(at, _)| *at);
            let due = self.agenda.next_due();
            let next = heard.into_iter().chain(due).min()?;
            if next > now {
                return Some(next);
            }
            // Changes that are received at that time come before the work of that time.
            if heard == Some(next)
                && let Some((_, event)) = self.inbox.pop_front()
            {
                self.hear(&event, store, now);
            } else if let Some(work) = self.agenda.pop(now) {
                self.work(work, store, now);
            }
        }
    }

    /// Puts the changes since the last call into the inbox.
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
                // A restarted controller manager loses its queues.
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
            Work::Kubelet(key) => kubelets.resume(&key, &mut moment),
            Work::Evict(key) => taint_eviction::evict(&key, &mut moment),
            Work::CheckNodes => node_monitor::check(kubelets.dead(), &mut moment),
            Work::TaintNode(name) => node_monitor::taint(&name, &mut moment),
            Work::CollectPods => pod_gc.collect(&mut moment),
            Work::CollectGarbage => garbage::collect(&mut moment),
        }
    }

    /// `true` while the controller manager is down.
    fn is_down(&self, now: Timestamp) -> bool {
        let elapsed = Duration::try_from(now.duration_since(self.began)).unwrap_or_default();
        self.faults.controller_manager_down.iter().any(|period| period.contains(elapsed))
    }

    /// Runs forever, on virtual time.
    pub(crate) async fn run(mut self, server: Server, clock: VirtualClock) {
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
                    // If a change and a timer coincide, the order is always the same.
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
