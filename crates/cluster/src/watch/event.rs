//! The events of a watch, in both formats.

use crate::decode::Encoded;

/// The longest accepted event, in bytes. etcd allows objects of 1.5 MB.
pub(super) const LONGEST: usize = 16 * 1024 * 1024;

/// A change of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It was added or modified, or now matches the selectors.
    Put,
    /// It was deleted, or no longer matches the selectors.
    Gone,
}

/// One event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event<'a> {
    Change {
        change: Change,
        version: String,
        object: Encoded<'a>,
    },
    /// Nothing has changed up to this version.
    Bookmark {
        version: String,
    },
    /// The server ends the watch.
    Error {
        code: u16,
        message: String,
    },
}

/// The kind of an event (upstream: `watch.EventType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventType {
    Change(Change),
    Bookmark,
    Error,
}

impl EventType {
    /// Reads one.
    ///
    /// # Errors
    /// It is unknown.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        Ok(match text {
            "ADDED" | "MODIFIED" => Self::Change(Change::Put),
            "DELETED" => Self::Change(Change::Gone),
            "BOOKMARK" => Self::Bookmark,
            "ERROR" => Self::Error,
            other => return Err(format!("unknown event type {other:?}")),
        })
    }
}

/// The received bytes that are not read yet.
#[derive(Debug, Default)]
pub(super) struct Unread {
    bytes: Vec<u8>,
    /// The number of these that are read already.
    read: usize,
}

impl Unread {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.read);
        self.read = 0;
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.read..]
    }

    /// Reads the next `length` bytes, which must be there.
    pub(super) fn take(&mut self, length: usize) -> &[u8] {
        let start = self.read;
        self.read += length;
        &self.bytes[start..self.read]
    }
}
