//! What may go wrong with a request: the one place where faults come in, and where requests are
//! seen.

use std::time::Duration;

use jiff::SignedDuration;

use crate::simulator::{Route, Status, Store};

/// A request, as hooks see it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// How many requests came before it.
    pub number: u64,
    /// What RBAC calls it: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`,
    /// `deletecollection`; `get` for what is no object.
    pub verb: &'static str,
    /// What it is about.
    pub route: Route,
    /// Whether it is only tried out.
    pub dry_run: bool,
    /// Who sends it.
    pub user: String,
    /// What is sent.
    pub body: Vec<u8>,
}

/// Something that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// This is answered instead. Before the request, nothing is carried out.
    Answer(Status),
    /// It takes so much longer, in tokio's time.
    Delay(Duration),
    /// The connection breaks. Before the request, nothing is carried out; after it, only the
    /// answer is lost.
    Break,
    /// No answer comes, ever.
    Silence,
    /// A watch breaks off so long after it began.
    CutAfter(Duration),
    /// It is answered by an API server whose clock is so far ahead, or behind.
    Clock(SignedDuration),
}

/// Decides what goes wrong, and sees what was done.
pub trait Hook: Send {
    /// What goes wrong before a request is carried out, in this order.
    fn before(&mut self, _request: &Seen, _store: &Store) -> Vec<Fault> {
        Vec::new()
    }

    /// What goes wrong after it was carried out with this HTTP status code.
    fn after(&mut self, _request: &Seen, _code: u16, _store: &Store) -> Vec<Fault> {
        Vec::new()
    }
}
