//! How often failed pods may be deleted (upstream: `failedPodsBackoff`, `flowcontrol.Backoff`).
//!
//! The state lives in the controller's memory. Who plans does not know it and passes
//! [`FailedPods::Unknown`].

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};

use super::Owner;
use crate::model::{NodeName, Uid};

/// The first delay.
const INITIAL: SignedDuration = SignedDuration::from_secs(1);

/// The longest delay.
const LONGEST: SignedDuration = SignedDuration::from_mins(15);

/// After so long without a deletion, the delay starts again from the first.
const EXPIRY: SignedDuration = SignedDuration::from_mins(30);

/// What is known about the back-off of failed pods.
#[derive(Clone, Copy, Debug)]
pub enum FailedPods<'a> {
    /// Nothing: each node is taken to be free to delete one failed pod now.
    Unknown,
    /// The state of the one who decides.
    Known(&'a Backoff),
}

impl FailedPods<'_> {
    /// How long the node's failed pods are left alone; `None` when one may be deleted now.
    pub(super) fn delay(
        self,
        owner: &Owner<'_>,
        node: &NodeName,
        now: Timestamp,
    ) -> Option<SignedDuration> {
        match self {
            Self::Unknown => None,
            Self::Known(backoff) => backoff.delay(owner, node, now),
        }
    }

    /// The delay that begins when a failed pod of the node is deleted now.
    pub(super) fn next_delay(
        self,
        owner: &Owner<'_>,
        node: &NodeName,
        now: Timestamp,
    ) -> SignedDuration {
        match self {
            Self::Unknown => INITIAL,
            Self::Known(backoff) => backoff.next_delay(owner, node, now),
        }
    }
}

/// Delays by DaemonSet, its observed generation, and node; a new generation starts afresh.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backoff(HashMap<Key, Entry>);

type Key = (Option<Uid>, i64, NodeName);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    delay: SignedDuration,
    since: Timestamp,
}

impl Entry {
    fn has_expired(self, now: Timestamp) -> bool {
        now.duration_since(self.since) > EXPIRY
    }
}

impl Backoff {
    /// The whole current delay while it runs (upstream: `IsInBackOffSinceUpdate`, `Get`).
    fn delay(&self, owner: &Owner<'_>, node: &NodeName, now: Timestamp) -> Option<SignedDuration> {
        let entry = self.entry(owner, node)?;
        let running = !entry.has_expired(now) && now.duration_since(entry.since) < entry.delay;
        running.then_some(entry.delay)
    }

    /// Records that a failed pod of the node is deleted now (upstream: `Next`).
    pub fn record(&mut self, owner: &Owner<'_>, node: &NodeName, now: Timestamp) {
        let entry = Entry { delay: self.next_delay(owner, node, now), since: now };
        self.0.insert(key(owner, node), entry);
    }

    /// Forgets what has expired.
    pub fn forget_expired(&mut self, now: Timestamp) {
        self.0.retain(|_, entry| !entry.has_expired(now));
    }

    fn next_delay(&self, owner: &Owner<'_>, node: &NodeName, now: Timestamp) -> SignedDuration {
        match self.entry(owner, node) {
            Some(entry) if !entry.has_expired(now) => (entry.delay * 2).min(LONGEST),
            Some(_) | None => INITIAL,
        }
    }

    fn entry(&self, owner: &Owner<'_>, node: &NodeName) -> Option<Entry> {
        self.0.get(&key(owner, node)).copied()
    }
}

fn key(owner: &Owner<'_>, node: &NodeName) -> Key {
    (owner.uid.cloned(), owner.status.observed_generation, node.clone())
}
