//! The back-off between deletions of failed pods (upstream: `failedPodsBackoff`,
//! `flowcontrol.Backoff`).
//!
//! The state is in the controller's memory. A plan does not know it and passes
//! [`FailedPods::Unknown`].

use jiff::{SignedDuration, Timestamp};

use super::Owner;
use crate::model::{NodeName, TextMap, Uid};

/// Initial delay.
const INITIAL: SignedDuration = SignedDuration::from_secs(1);

/// Maximum delay.
const LONGEST: SignedDuration = SignedDuration::from_mins(15);

/// Time without a deletion after which the delay is reset.
const EXPIRY: SignedDuration = SignedDuration::from_mins(30);

/// The known state of the back-off of failed pods.
#[derive(Clone, Copy, Debug)]
pub enum FailedPods<'a> {
    /// Unknown: each node is assumed to allow the deletion of one failed pod now.
    Unknown,
    /// The controller's state.
    Known(&'a Backoff),
}

impl FailedPods<'_> {
    /// The time for which the node's failed pods are kept; `None` if one may be deleted now.
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

    /// The delay that starts if a failed pod of the node is deleted now.
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

/// Delays by DaemonSet, its observed generation, and node; a new generation resets the delays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backoff(TextMap<Key, Entry>);

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

    fn next_delay(&self, owner: &Owner<'_>, node: &NodeName, now: Timestamp) -> SignedDuration {
        match self.entry(owner, node) {
            Some(entry) if !entry.has_expired(now) => (entry.delay * 2).min(LONGEST),
            Some(_) | None => INITIAL,
        }
    }

    fn entry(&self, owner: &Owner<'_>, node: &NodeName) -> Option<Entry> {
        // Usually no pod has failed.
        if self.0.is_empty() { None } else { self.0.get(&key(owner, node)).copied() }
    }
}

fn key(owner: &Owner<'_>, node: &NodeName) -> Key {
    (owner.uid.cloned(), owner.status.observed_generation, node.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::test_cluster::{Cluster, at};

    #[test]
    fn delays_double_to_a_limit_and_start_again() {
        let cluster = Cluster::of(0);
        let owner = Owner::from(&cluster.daemon_set);
        let node = NodeName::from("n");
        let mut backoff = Backoff::default();
        let mut now = 0;
        let mut delays = Vec::new();
        for _ in 0..12 {
            assert_eq!(backoff.delay(&owner, &node, at(now)), None);
            backoff.record(&owner, &node, at(now));
            let delay = backoff.delay(&owner, &node, at(now)).unwrap().as_secs();
            assert!(backoff.delay(&owner, &node, at(now + delay - 1)).is_some());
            delays.push(delay);
            now += delay;
        }
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]);
        let last = now - 900;
        for (after, delay) in [(1800, 900), (1801, 1)] {
            let mut backoff = backoff.clone();
            backoff.record(&owner, &node, at(last + after));
            assert_eq!(backoff.delay(&owner, &node, at(last + after)).unwrap().as_secs(), delay);
        }
    }

    #[test]
    fn each_node_and_observed_generation_has_its_own() {
        let mut cluster = Cluster::of(0);
        let mut backoff = Backoff::default();
        backoff.record(&Owner::from(&cluster.daemon_set), &"a".into(), at(0));
        let delay = |cluster: &Cluster, node: &str| {
            backoff.delay(&Owner::from(&cluster.daemon_set), &node.into(), at(0)).is_some()
        };
        assert!(delay(&cluster, "a"));
        assert!(!delay(&cluster, "b"));
        cluster.daemon_set.status.observed_generation += 1;
        assert!(!delay(&cluster, "a"));
    }
}
