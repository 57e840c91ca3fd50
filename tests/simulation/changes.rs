//! The changes of each DaemonSet: by whom, and from which time on the program must know of them.

use std::collections::BTreeMap;

use daemonset::model::{DaemonSet, DaemonSetKey, Uid};
use embedded::{Change, Event};
use jiff::{SignedDuration, Timestamp};

use crate::objects::daemon_set;

/// The part of a DaemonSet that another client changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Template,
    /// The strategy, or the annotation that records the pause.
    PausedRollout,
}

/// The changes of all DaemonSets.
#[derive(Default)]
pub(crate) struct Changes {
    /// When another client last wrote a DaemonSet's template, and its strategy or pause.
    interfered: BTreeMap<(DaemonSetKey, Part), Timestamp>,
    /// The generations of each DaemonSet, and from which time on the program must know of each.
    generations: BTreeMap<Uid, Vec<(Timestamp, i64)>>,
    /// When another client deleted each DaemonSet.
    deleted: BTreeMap<Uid, Timestamp>,
}

impl Changes {
    /// Records a change. `sight` is the longest delay until the program sees a change by another
    /// client.
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
        if gone {
            self.deleted.insert(live.uid.clone(), now);
        }
        let same = |is_same: &dyn Fn(&DaemonSet) -> bool| !gone && before.is_some_and(is_same);
        if !same(&|it| it.spec.template.raw() == live.spec.template.raw()) {
            self.interfered.insert((live.key.clone(), Part::Template), now);
        }
        if !same(&|it| it.annotations == live.annotations && strategy(it) == strategy(live)) {
            self.interfered.insert((live.key.clone(), Part::PausedRollout), now);
        }
    }

    /// Whether the program must know the current value of this part of a DaemonSet, given that it
    /// has seen the cluster as of `seen`.
    pub(crate) fn is_known(&self, key: &DaemonSetKey, part: Part, seen: Timestamp) -> bool {
        self.interfered.get(&(key.clone(), part)).is_none_or(|at| *at <= seen)
    }

    /// Whether another client deleted this DaemonSet after `seen`: the program may not know it yet.
    pub(crate) fn may_seem_live(&self, uid: &Uid, seen: Timestamp) -> bool {
        self.deleted.get(uid).is_some_and(|at| *at > seen)
    }

    /// The newest generation that the program must know of.
    pub(crate) fn known_generation(&self, uid: &Uid, now: Timestamp) -> Option<i64> {
        let all = self.generations.get(uid).into_iter().flatten();
        all.filter(|(at, _)| *at <= now).map(|(_, generation)| *generation).max()
    }

    /// Whether another client than the program ever wrote the DaemonSet.
    pub(crate) fn was_interfered_with(&self, key: &DaemonSetKey) -> bool {
        self.interfered.keys().any(|(interfered, _)| interfered == key)
    }
}
