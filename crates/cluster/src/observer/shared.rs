//! The state shared by the watches of an observer: the view, their health, and the notification.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::view::{View, WatchHealth};
use crate::{Clock, Resource};

pub(super) struct Shared {
    pub(super) clock: Clock,
    view: Mutex<View>,
    pulses: Mutex<Vec<Pulse>>,
    /// The counter of changes, which notifies the observers.
    changes: watch::Sender<u64>,
}

/// The state of one watch.
struct Pulse {
    resource: Resource,
    /// The time of the last event.
    last: Duration,
    failure: Option<String>,
    /// Whether the watch has ended, and is not open again yet.
    is_closed: bool,
}

impl Shared {
    pub(super) fn new(clock: Clock, view: View, resources: &[Resource]) -> Self {
        let now = clock.now();
        let pulse = |resource: &Resource| Pulse {
            resource: *resource,
            last: now,
            failure: None,
            is_closed: false,
        };
        let pulses = Mutex::new(resources.iter().map(pulse).collect());
        Self { clock, view: Mutex::new(view), pulses, changes: watch::Sender::new(0) }
    }

    pub(super) fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Changes the view, and notifies the observers if `change` returns true.
    pub(super) fn change(&self, change: impl FnOnce(&mut View) -> bool) {
        if change(&mut self.view()) {
            self.notify();
        }
    }

    pub(super) fn health(&self) -> Vec<WatchHealth> {
        let now = self.clock.now();
        let pulses = self.pulses();
        let health = |pulse: &Pulse| WatchHealth {
            resource: pulse.resource,
            silent: now.saturating_sub(pulse.last),
            failure: pulse.failure.clone(),
            is_closed: pulse.is_closed,
        };
        pulses.iter().map(health).collect()
    }

    pub(super) fn last_life(&self, number: usize) -> Duration {
        self.pulses()[number].last
    }

    pub(super) fn life(&self, number: usize) {
        self.pulses()[number].last = self.clock.now();
    }

    pub(super) fn record_failure(&self, number: usize, failure: String) {
        tracing::debug!(number, failure, "a watch failed");
        let before = self.pulses()[number].failure.replace(failure);
        if before.is_none() {
            self.notify();
        }
    }

    /// The watch has ended. Nobody is notified: as a rule it is open again at once.
    pub(super) fn closed(&self, number: usize) {
        self.pulses()[number].is_closed = true;
    }

    /// The watch is open, and has shown what was missed. Those changes have notified the observers, so that
    /// only the end of a failure does.
    pub(super) fn opened(&self, number: usize) {
        let failure = {
            let pulse = &mut self.pulses()[number];
            pulse.is_closed = false;
            pulse.failure.take()
        };
        if failure.is_some() {
            self.notify();
        }
    }

    fn pulses(&self) -> MutexGuard<'_, Vec<Pulse>> {
        self.pulses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notify(&self) {
        self.changes.send_modify(|count| *count += 1);
    }
}
