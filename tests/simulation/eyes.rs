//! How long ago a run may have seen the cluster: by its lists and watches.

use std::collections::BTreeMap;

use ds_plan::simulator::{Fault, Kind, Seen};
use jiff::{SignedDuration, Timestamp};

/// Whoever has not seen these decides nothing.
const KINDS: [Kind; 3] = [Kind::DaemonSet, Kind::Node, Kind::Pod];

/// How long a watch that came to its end may go unnoticed.
const UNNOTICED: SignedDuration = SignedDuration::from_secs(30);

/// Until when each user sees each kind.
#[derive(Default)]
pub(crate) struct Eyes(BTreeMap<(String, Kind), Timestamp>);

impl Eyes {
    /// A list, or a watch until it is cut.
    pub(crate) fn look(&mut self, request: &Seen, kind: Kind, faults: &[Fault], now: Timestamp) {
        let fails = |fault: &Fault| matches!(fault, Fault::Answer(_) | Fault::Silence);
        if !matches!(request.verb, "list" | "watch") || faults.iter().any(fails) {
            return;
        }
        let cut = faults.iter().find_map(|fault| match fault {
            Fault::CutAfter(time) => SignedDuration::try_from(*time).ok(),
            Fault::Answer(_) | Fault::Delay(_) | Fault::Break | Fault::Silence => None,
        });
        let until = match (request.verb, cut) {
            ("watch", Some(cut)) => now + cut,
            ("watch", None) => Timestamp::MAX,
            _ => now,
        };
        let seen = self.0.entry((request.user.clone(), kind)).or_insert(until);
        *seen = until.max(*seen);
    }

    /// Whether a run decides on what may be old.
    pub(crate) fn broken(&self, user: &str, now: Timestamp) -> Option<String> {
        KINDS.into_iter().find_map(|kind| {
            let blind = now.duration_since(*self.0.get(&(user.to_owned(), kind))?);
            (blind > UNNOTICED).then(|| format!("{user} has not seen any {kind} for {blind:#}"))
        })
    }
}
