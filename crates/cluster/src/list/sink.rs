//! What the pages of a list are read into.

use crate::decode::Encoded;
use crate::request::Accept;
use crate::{Error, Kind};

/// Receives the objects of one list.
pub(crate) trait Sink: Send + 'static {
    /// The formats that it reads for objects of a kind.
    fn accepts(kind: Kind) -> Accept;

    /// Adds one object; `index` is its place in the list, from 0.
    fn object(&mut self, kind: Kind, index: usize, object: Encoded<'_>) -> Result<(), Error>;

    /// Adds the objects of the next page, which were decoded apart.
    fn append(&mut self, page: Self);

    /// Whether any of the objects is owned by a record.
    fn has_seen_record(&self) -> bool;

    /// Sets the resource version of the list, where a watch can continue. Called before any object.
    fn version(&mut self, _version: &str) {}
}

/// The token in a page.
pub(super) struct Next {
    /// The index of the page.
    pub(super) page: usize,
    /// The token of the page after it; `None` for the last page.
    pub(super) token: Option<String>,
}
