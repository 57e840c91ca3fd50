//! What all connections to the embedded cluster share.

use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use super::faults::Hook;
use crate::Store;
use crate::rules::Rules;

/// State shared by all connections.
pub(super) struct Shared {
    pub(super) state: Mutex<State>,
    pub(super) clock: Box<dyn Fn() -> Timestamp + Send + Sync>,
}

/// The mutable state.
pub(super) struct State {
    pub(super) store: Store,
    pub(super) rules: Rules,
    pub(super) hook: Option<Box<dyn Hook>>,
    /// Number of requests so far.
    pub(super) requests: u64,
    /// Number of times that all watches were cut.
    pub(super) cuts: u64,
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // A test that panics in a hook leaves the state consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
