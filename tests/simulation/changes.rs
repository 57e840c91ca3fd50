//! What has become of each DaemonSet and through whom, and from when on the program must know.

use std::collections::BTreeMap;

use ds_plan::model::{DaemonSet, DaemonSetKey, Uid};
use ds_plan::simulator::{Change, Event};
use jiff::{SignedDuration, Timestamp};

use crate::objects::daemon_set;

/// What somebody else may write of a DaemonSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Template,
    /// The strategy, or the annotation that remembers it.
    Hold,
}

/// The changes of all DaemonSets.
#[derive(Default)]
pub(crate) struct Changes {
    /// When somebody else last wrote a DaemonSet's template, and its strategy or hold.
    meddled: BTreeMap<(DaemonSetKey, Part), Timestamp>,
    /// The generations of each DaemonSet, and from when on the program must know of them.
    generations: BTreeMap<Uid, Vec<(Timestamp, i64)>>,
}

impl Changes {
    /// Something has changed; `sight` is how long it may take until the program sees what it has
    /// not done itself.
    pub(crate) fn hear(
        &mut self,
        event: &Event,
        ours: bool,
        sight: SignedDuration,
        now: Timestamp,
    ) {
        let Some(live) = daemon_set(&event.object) else { return };
        let before = event.previous.as_ref().and_then(|it| daemon_set(it));
        if before.is_none_or(|it| it.generation != live.generation) {
            let from = if ours { now } else { now + sight };
            self.generations.entry(live.uid.clone()).or_default().push((from, live.generation));
        }
        if ours {
            return;
        }
        let strategy = |it: &DaemonSet| it.raw["spec"]["updateStrategy"].clone();
        let gone = event.change == Change::Deleted;
        let same = |is_same: &dyn Fn(&DaemonSet) -> bool| !gone && before.is_some_and(is_same);
        if !same(&|it| it.spec.template.raw() == live.spec.template.raw()) {
            self.meddled.insert((live.key.clone(), Part::Template), now);
        }
        if !same(&|it| it.annotations == live.annotations && strategy(it) == strategy(live)) {
            self.meddled.insert((live.key.clone(), Part::Hold), now);
        }
    }

    /// Whether the program must know how a part of a DaemonSet stands, when it has seen what was
    /// there at `seen`.
    pub(crate) fn is_known(&self, key: &DaemonSetKey, part: Part, seen: Timestamp) -> bool {
        self.meddled.get(&(key.clone(), part)).is_none_or(|at| *at <= seen)
    }

    /// The newest generation that the program must know of.
    pub(crate) fn known_generation(&self, uid: &Uid, now: Timestamp) -> Option<i64> {
        let all = self.generations.get(uid).into_iter().flatten();
        all.filter(|(at, _)| *at <= now).map(|(_, generation)| *generation).max()
    }

    /// Whether anybody but the program ever wrote a DaemonSet.
    pub(crate) fn was_meddled(&self, key: &DaemonSetKey) -> bool {
        self.meddled.keys().any(|(meddled, _)| meddled == key)
    }
}
