//! Recent events of the objects of one kind, for watches and consistent pages of a list (upstream:
//! the watch cache).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::{Object, ObjectKey};

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The object was created.
    Added,
    /// The object was changed.
    Modified,
    /// The object was deleted.
    Deleted,
}

/// One change of one object.
#[derive(Clone, Debug)]
pub struct Event {
    /// Type of the change.
    pub change: Change,
    /// The object after the change; for a deleted one the last state with the version of its
    /// deletion.
    pub object: Arc<Object>,
    /// The object before the change; `None` if it was created.
    pub previous: Option<Arc<Object>>,
}

impl Event {
    /// The version of the change.
    pub fn version(&self) -> u64 {
        self.object.version()
    }
}

/// The version is older than all kept events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired {
    /// The requested version.
    pub wanted: u64,
    /// The oldest version from which all events are kept.
    pub oldest: u64,
}

/// The latest events, oldest first.
#[derive(Debug, Default)]
pub(super) struct Log {
    events: VecDeque<Event>,
    /// All events after this version are kept.
    oldest: u64,
}

impl Log {
    /// Adds an event, and drops the oldest ones beyond `limit`.
    pub(super) fn push(&mut self, event: Event, limit: usize) {
        self.events.push_back(event);
        while self.events.len() > limit {
            self.oldest = self.events.pop_front().map_or(self.oldest, |event| event.version());
        }
    }

    /// Drops all events up to `version`.
    pub(super) fn forget(&mut self, version: u64) {
        let gone = self.events.partition_point(|event| event.version() <= version);
        self.events.drain(..gone);
        self.oldest = self.oldest.max(version);
    }

    /// The events after `version`.
    pub(super) fn after(&self, version: u64) -> Result<impl Iterator<Item = &Event>, Expired> {
        if version < self.oldest {
            return Err(Expired { wanted: version, oldest: self.oldest });
        }
        let start = self.events.partition_point(|event| event.version() <= version);
        Ok(self.events.range(start..))
    }

    /// The objects that have changed since `version`, as they were then.
    pub(super) fn as_of(
        &self,
        version: u64,
    ) -> Result<BTreeMap<ObjectKey, Option<Arc<Object>>>, Expired> {
        let mut before = BTreeMap::new();
        for event in self.after(version)? {
            before.entry(event.object.key().clone()).or_insert_with(|| event.previous.clone());
        }
        Ok(before)
    }
}
