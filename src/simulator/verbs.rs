//! The API's rules for whoever reads and writes objects: requests over HTTP and controllers alike.
//!
//! One file a verb, after the API server's generic registry. A [`Verbs`] is one request, or several
//! at one moment by one manager. Nothing here waits, and nothing here knows the time. Watches are
//! streams and live in `http`; controllers follow [`Store::events_after`].

mod apply;
mod create;
mod delete;
mod evict;
mod garbage;
mod list;
mod metadata;
mod patch;
mod strategy;
mod update;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::object::Draft;
use super::{Kind, Object, Status, Store, UnreadableObject};
use crate::merge::{self, Manager};

pub(super) use self::apply::no_manager;
pub use self::delete::{DeleteOptions, Deleted, Propagation};
pub use self::list::{ListOptions, Page};
pub(super) use self::list::{too_old, unparsable_version};
pub use self::patch::Patch;
pub(super) use self::strategy::{LastSpec, default as with_defaults};

/// Whose write it is, and whether it counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions<'a> {
    /// The field manager (`fieldManager`, else what the user agent begins with).
    pub manager: &'a str,
    /// `dryRun=All`: everything is judged, nothing is kept.
    pub dry_run: bool,
}

/// Which part of an object a write may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The object, without its status.
    Main,
    /// Its status alone.
    Status,
}

/// Whether the ownership of a written object is still to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ownership {
    /// An apply has told it.
    Applied,
    /// The writer owns what it changes.
    Recorded,
}

/// Which object, and which part of it.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// What it is.
    pub kind: Kind,
    /// In which namespace; empty for kinds that live in none.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Which part.
    pub part: Part,
}

impl<'a> Target<'a> {
    /// The object itself.
    pub fn new(kind: Kind, namespace: &'a str, name: &'a str) -> Self {
        Self { kind, namespace, name, part: Part::Main }
    }

    /// That of an object that was read.
    pub fn of(object: &'a Object) -> Self {
        Self::new(object.kind(), object.key().namespace(), object.key().name())
    }

    /// Its status.
    #[must_use]
    pub fn status(self) -> Self {
        Self { part: Part::Status, ..self }
    }
}

/// The verbs of the API, at one moment and for one writer.
#[derive(Debug)]
pub struct Verbs<'s> {
    store: &'s mut Store,
    now: Timestamp,
    options: WriteOptions<'s>,
}

impl Store {
    /// Reads and writes at `now` on behalf of a field manager.
    pub fn verbs<'s>(&'s mut self, now: Timestamp, manager: &'s str) -> Verbs<'s> {
        self.verbs_with(now, WriteOptions { manager, dry_run: false })
    }

    /// The same with options.
    pub fn verbs_with<'s>(&'s mut self, now: Timestamp, options: WriteOptions<'s>) -> Verbs<'s> {
        Verbs { store: self, now, options }
    }
}

impl Verbs<'_> {
    /// The objects as they are now.
    pub fn store(&self) -> &Store {
        self.store
    }

    /// When it is.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// One object.
    ///
    /// # Errors
    /// 404.
    pub fn get(&self, target: Target<'_>) -> Result<Arc<Object>, Status> {
        let Target { kind, namespace, name, part: _ } = target;
        let found = self.store.get(kind, namespace, name);
        found.cloned().ok_or_else(|| Status::not_found(kind, name))
    }

    /// Notes who owns what after a write that is no apply. Only DaemonSets have such a record here:
    /// for them the room `merge` knows which fields there are.
    fn record(
        &self,
        kind: Kind,
        part: Part,
        old: Option<&Value>,
        object: &mut Value,
    ) -> Result<(), Status> {
        if kind != Kind::DaemonSet {
            let record = old.and_then(|old| old["metadata"].get("managedFields").cloned());
            metadata::set(object, "managedFields", record);
            return Ok(());
        }
        let subresource = match part {
            Part::Main => "",
            Part::Status => "status",
        };
        let manager = Manager::updating(self.options.manager, subresource);
        let owners = merge::update(old, object, &manager, self.now)
            .map_err(|error| Status::bad_request(error.to_string()))?;
        let record = if owners.is_empty() { None } else { Some(owners.to_value()) };
        metadata::set(object, "managedFields", record);
        Ok(())
    }

    /// Keeps an object in its place, unless it is a dry run.
    fn keep(&mut self, kind: Kind, draft: impl Into<Draft>) -> Result<Arc<Object>, Status> {
        let draft = draft.into();
        if !self.options.dry_run {
            return self.store.put(kind, draft).map_err(unreadable);
        }
        let version = draft.value["metadata"]["resourceVersion"].as_str();
        let version = version.and_then(|text| text.parse().ok()).unwrap_or_default();
        self.store.read(kind, version, &draft).map(Arc::new).map_err(unreadable)
    }

    /// Takes an object away, unless it is a dry run.
    fn take_away(&mut self, kind: Kind, draft: Draft) -> Result<Arc<Object>, Status> {
        if self.options.dry_run {
            return self.keep(kind, draft);
        }
        self.store.remove(kind, draft).map_err(unreadable)
    }
}

fn unreadable(error: UnreadableObject) -> Status {
    let UnreadableObject { kind, key: _, reason } = error;
    strategy::wrong_type(kind, &reason)
}
