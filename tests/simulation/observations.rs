//! The age of each run's view of the cluster, according to its lists and watches.

use std::collections::BTreeMap;

use daemonset::model::ManagedBy;
use embedded::{Fault, Kind, Seen};
use jiff::{SignedDuration, Timestamp};

/// How long the end of a watch may go unnoticed.
const UNNOTICED: SignedDuration = SignedDuration::from_secs(30);

/// Until when each user has seen each kind.
pub(crate) struct ObservationTracker {
    /// The kinds that a run must have seen before it decides anything.
    kinds: [Kind; 3],
    until: BTreeMap<(String, Kind), Timestamp>,
}

impl ObservationTracker {
    /// The state at the beginning: no user has seen anything.
    pub(crate) fn new(managed_by: ManagedBy) -> Self {
        let owner = match managed_by {
            ManagedBy::DaemonSetController => Kind::DaemonSet,
            ManagedBy::DsApply => Kind::ConfigMap,
        };
        Self { kinds: [owner, Kind::Node, Kind::Pod], until: BTreeMap::new() }
    }

    /// Records a list, or a watch until it is cut.
    pub(crate) fn look(&mut self, request: &Seen, kind: Kind, faults: &[Fault], now: Timestamp) {
        let fails = |fault: &Fault| matches!(fault, Fault::Answer(_) | Fault::Silence);
        if !matches!(request.verb, "list" | "watch") || faults.iter().any(fails) {
            return;
        }
        let cut = faults.iter().find_map(|fault| match fault {
            Fault::CutAfter(time) => SignedDuration::try_from(*time).ok(),
            Fault::Answer(_)
            | Fault::Delay(_)
            | Fault::Break
            | Fault::Silence
            | Fault::Clock(_) => None,
        });
        let until = match (request.verb, cut) {
            ("watch", Some(cut)) => now + cut,
            ("watch", None) => Timestamp::MAX,
            _ => now,
        };
        let seen = self.until.entry((request.user.clone(), kind)).or_insert(until);
        *seen = until.max(*seen);
    }

    /// The broken law if a run decides on an outdated view.
    pub(crate) fn broken(&self, user: &str, now: Timestamp) -> Option<String> {
        self.kinds.into_iter().find_map(|kind| {
            let blind = now.duration_since(*self.until.get(&(user.to_owned(), kind))?);
            (blind > UNNOTICED).then(|| format!("{user} has not seen any {kind} for {blind:#}"))
        })
    }
}
