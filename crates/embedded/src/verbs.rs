//! The API's rules for all readers and writers: requests over HTTP and controllers.
//!
//! One file for each verb, following the API server's generic registry. A [`Verbs`] is one request,
//! or several at one time by one manager. It neither waits nor reads a clock. Watches are streams
//! and are in `http`; controllers use [`Store::events_after`].

mod apply;
mod create;
mod delete;
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
use ssa::{self, DAEMON_SET, Manager, Operation};

pub(super) use self::apply::no_manager;
pub(crate) use self::delete::{DeleteOptions, Deleted, Propagation};
pub(crate) use self::list::{ListOptions, Page};
pub(super) use self::list::{too_old, unparsable_version};
pub(crate) use self::patch::Patch;
pub(super) use self::strategy::default as with_defaults;

/// Options of a write.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WriteOptions<'a> {
    /// The field manager (`fieldManager`, otherwise the first part of the user agent).
    pub(crate) manager: &'a str,
    /// `dryRun=All`: everything is validated, nothing is stored.
    pub(crate) dry_run: bool,
}

/// The part of an object that a write may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The object, without its status.
    Main,
    /// Its status alone.
    Status,
}

/// The treatment of `managedFields` in a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ownership {
    /// An apply has set them.
    Applied,
    /// The writer becomes the owner of the fields that it changes.
    Recorded,
}

/// An object, and a part of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    /// Kind of the object.
    pub(crate) kind: Kind,
    /// Namespace; empty for cluster-scoped kinds.
    pub(crate) namespace: &'a str,
    /// Name of the object.
    pub(crate) name: &'a str,
    /// The part of the object.
    pub(crate) part: Part,
}

impl<'a> Target<'a> {
    /// The object without its status.
    pub(crate) fn new(kind: Kind, namespace: &'a str, name: &'a str) -> Self {
        Self { kind, namespace, name, part: Part::Main }
    }

    /// The target of an object that was read.
    pub(crate) fn of(object: &'a Object) -> Self {
        Self::new(object.kind(), object.key().namespace(), object.key().name())
    }

    /// The status of the same object.
    #[must_use]
    pub(crate) fn status(self) -> Self {
        Self { part: Part::Status, ..self }
    }
}

/// The verbs of the API, at one time and for one writer.
#[derive(Debug)]
pub(crate) struct Verbs<'s> {
    store: &'s mut Store,
    now: Timestamp,
    options: WriteOptions<'s>,
}

impl Store {
    /// Reads and writes at `now` on behalf of a field manager.
    pub(crate) fn verbs<'s>(&'s mut self, now: Timestamp, manager: &'s str) -> Verbs<'s> {
        self.verbs_with(now, WriteOptions { manager, dry_run: false })
    }

    /// Reads and writes at `now` with options.
    pub(crate) fn verbs_with<'s>(
        &'s mut self,
        now: Timestamp,
        options: WriteOptions<'s>,
    ) -> Verbs<'s> {
        Verbs { store: self, now, options }
    }
}

impl Verbs<'_> {
    /// Reads one object.
    ///
    /// # Errors
    /// 404: the object does not exist.
    pub(crate) fn get(&self, target: Target<'_>) -> Result<Arc<Object>, Status> {
        let Target { kind, namespace, name, part: _ } = target;
        let found = self.store.get(kind, namespace, name);
        found.cloned().ok_or_else(|| Status::not_found(kind, name))
    }

    /// Updates `managedFields` after a write that is not an apply. Only DaemonSets have them here:
    /// the crate `ssa` has their schema.
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
        let manager = Manager {
            name: self.options.manager.to_owned(),
            operation: Operation::Update,
            api_version: kind.api_version().to_owned(),
            subresource: subresource.to_owned(),
        };
        let owners = ssa::update(&DAEMON_SET, old, object, &manager, self.now)
            .map_err(|error| Status::bad_request(error.to_string()))?;
        let record = if owners.is_empty() { None } else { Some(owners.to_value()) };
        metadata::set(object, "managedFields", record);
        Ok(())
    }

    /// Stores an object, except for a dry run.
    fn keep(&mut self, kind: Kind, draft: impl Into<Draft>) -> Result<Arc<Object>, Status> {
        let draft = draft.into();
        if !self.options.dry_run {
            return self.store.put(kind, draft).map_err(unreadable);
        }
        let version = draft.value["metadata"]["resourceVersion"].as_str();
        let version = version.and_then(|text| text.parse().ok()).unwrap_or_default();
        self.store.read(kind, version, &draft).map(Arc::new).map_err(unreadable)
    }

    /// Removes an object, except for a dry run.
    fn take_away(&mut self, kind: Kind, draft: Draft) -> Result<Arc<Object>, Status> {
        if self.options.dry_run {
            return self.keep(kind, draft);
        }
        self.store.remove(kind, draft).map_err(unreadable)
    }
}

fn unreadable(error: UnreadableObject) -> Status {
    let UnreadableObject { kind, key: _, reason } = error;
    Status::wrong_type(kind, &reason)
}
