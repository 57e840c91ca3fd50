//! Faults of requests, and hooks that inject them and observe requests.

use std::time::Duration;

use jiff::SignedDuration;

use crate::{Route, Status, Store};

/// A request as seen by hooks.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Number of requests before this one.
    pub number: u64,
    /// The RBAC verb: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`,
    /// `deletecollection`; `get` for requests without an object.
    pub verb: &'static str,
    /// The requested resource.
    pub route: Route,
    /// `true` for a dry run.
    pub dry_run: bool,
    /// The user that sends it.
    pub user: String,
    /// The request body.
    pub body: Vec<u8>,
}

/// A fault of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// This status is the answer. Before the request, the request is not executed.
    Answer(Status),
    /// The answer is delayed, in tokio's time.
    Delay(Duration),
    /// The connection breaks. Before the request, the request is not executed; after it, only the
    /// answer is lost.
    Break,
    /// The request is never answered.
    Silence,
    /// A watch is cut this long after it began.
    CutAfter(Duration),
    /// The answer comes from an API server whose clock is this far ahead, or behind.
    Clock(SignedDuration),
}

/// Decides the faults of requests, and observes them.
pub trait Hook: Send {
    /// Faults before a request is executed, in this order.
    fn before(&mut self, _request: &Seen, _store: &Store) -> Vec<Fault> {
        Vec::new()
    }

    /// Faults after a request was executed with this HTTP status code.
    fn after(&mut self, _request: &Seen, _code: u16, _store: &Store) -> Vec<Fault> {
        Vec::new()
    }
}
