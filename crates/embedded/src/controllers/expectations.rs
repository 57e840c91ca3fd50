//! Writes of a controller that it has not seen yet (upstream: `ControllerExpectations`). Until it
//! has seen them, or a timeout has passed, its cache is too old to act on.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use daemonset::controller::sync;
use daemonset::model::DaemonSetKey;

/// Timeout after which expectations are ignored (upstream: `ExpectationsTimeout`).
const TIMEOUT: SignedDuration = SignedDuration::from_mins(5);

/// Creations and deletions that were not seen yet, by DaemonSet.
#[derive(Clone, Debug, Default)]
pub(super) struct Expectations(BTreeMap<DaemonSetKey, Counts>);

#[derive(Clone, Copy, Debug)]
struct Counts {
    creates: i64,
    deletes: i64,
    since: Timestamp,
}

impl Expectations {
    /// Sets the expectations, replacing earlier ones (upstream: `SetExpectations`).
    pub(super) fn set(
        &mut self,
        key: &DaemonSetKey,
        creates: usize,
        deletes: usize,
        now: Timestamp,
    ) {
        let count = |n| i64::try_from(n).unwrap_or(i64::MAX);
        let counts = Counts { creates: count(creates), deletes: count(deletes), since: now };
        self.0.insert(key.clone(), counts);
    }

    /// Records creations that were seen or have failed.
    pub(super) fn created(&mut self, key: &DaemonSetKey, count: usize) {
        if let Some(counts) = self.0.get_mut(key) {
            counts.creates -= i64::try_from(count).unwrap_or(i64::MAX);
        }
    }

    /// Records a deletion that was seen or has failed.
    pub(super) fn deleted(&mut self, key: &DaemonSetKey) {
        if let Some(counts) = self.0.get_mut(key) {
            counts.deletes -= 1;
        }
    }

    /// Removes a deleted DaemonSet.
    pub(super) fn forget(&mut self, key: &DaemonSetKey) {
        self.0.remove(key);
    }

    /// The state of the expectations for a sync (upstream: `SatisfiedExpectations`).
    pub(super) fn of(&self, key: &DaemonSetKey, now: Timestamp) -> sync::Expectations {
        let outstanding = self.0.get(key).is_some_and(|counts| {
            let open = counts.creates > 0 || counts.deletes > 0;
            open && now.duration_since(counts.since) <= TIMEOUT
        });
        if outstanding { sync::Expectations::Outstanding } else { sync::Expectations::Satisfied }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use daemonset::controller::test_cluster::at;

    #[test]
    fn both_counts_must_be_seen_or_the_timeout_passes() {
        use sync::Expectations::{Outstanding, Satisfied};
        let key = DaemonSetKey::new("ns", "agent");
        let mut all = Expectations::default();
        assert_eq!(all.of(&key, at(0)), Satisfied, "nothing is expected");
        all.set(&key, 2, 1, at(0));
        all.created(&key, 1);
        all.deleted(&key);
        all.deleted(&key);
        assert_eq!(all.of(&key, at(0)), Outstanding, "over-counting deletes makes up for nothing");
        assert_eq!(all.of(&key, at(300)), Outstanding);
        assert_eq!(all.of(&key, at(301)), Satisfied, "it has been too long");
        all.created(&key, 1);
        assert_eq!(all.of(&key, at(0)), Satisfied);
        all.set(&key, 0, 1, at(0));
        all.forget(&key);
        assert_eq!(all.of(&key, at(0)), Satisfied);
    }
}
