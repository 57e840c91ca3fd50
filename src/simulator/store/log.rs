//! What has happened to the objects of one kind lately: what watches and consistent pages of a
//! list go by (upstream: the watch cache).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::simulator::{Object, ObjectKey};

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was not there before.
    Added,
    /// It was another version before.
    Modified,
    /// It is gone.
    Deleted,
}

/// One change of one object.
#[derive(Clone, Debug)]
pub struct Event {
    /// What happened.
    pub change: Change,
    /// The object afterwards; of one that is gone, the last state under the version of its end.
    pub object: Arc<Object>,
    /// The object before; `None` when there was none.
    pub previous: Option<Arc<Object>>,
}

impl Event {
    /// The version that the change made.
    pub fn version(&self) -> u64 {
        self.object.version()
    }
}

/// The version is older than anything that is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired {
    /// The version that was asked for.
    pub wanted: u64,
    /// The oldest one from which on everything is known.
    pub oldest: u64,
}

/// The latest events, oldest first.
#[derive(Debug, Default)]
pub(super) struct Log {
    events: VecDeque<Event>,
    /// Everything after this version is here.
    oldest: u64,
}

impl Log {
    /// Adds an event, and forgets the oldest ones beyond `limit`.
    pub(super) fn push(&mut self, event: Event, limit: usize) {
        self.events.push_back(event);
        while self.events.len() > limit {
            self.oldest = self.events.pop_front().map_or(self.oldest, |event| event.version());
        }
    }

    /// Forgets everything up to `version`.
    pub(super) fn forget(&mut self, version: u64) {
        let gone = self.events.partition_point(|event| event.version() <= version);
        self.events.drain(..gone);
        self.oldest = self.oldest.max(version);
    }

    /// What happened after `version`.
    pub(super) fn after(&self, version: u64) -> Result<impl Iterator<Item = &Event>, Expired> {
        if version < self.oldest {
            return Err(Expired { wanted: version, oldest: self.oldest });
        }
        let start = self.events.partition_point(|event| event.version() <= version);
        Ok(self.events.range(start..))
    }

    /// What has changed since `version`, as it was then.
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
