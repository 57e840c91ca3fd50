//! Limits the text of a recording outside of complete objects: a string, a key or a comment there
//! is in memory as a whole, and gzip can compress it to a thousandth.

use std::cell::Cell;
use std::io::{self, BufRead, Read};

/// The largest object that is read into memory, in bytes. The API server accepts objects of about
/// 1.5 MiB; indented, they may be several times as large.
pub(super) const LARGEST_OBJECT: usize = 32 << 20;

/// Counts the bytes of one document.
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// Bytes outside of the list's items.
    beside: Cell<usize>,
    /// Bytes since the last complete item.
    since: Cell<usize>,
    passed: Cell<bool>,
}

impl Meter {
    /// Counts bytes that were read.
    ///
    /// # Errors
    /// The sum is above the limit.
    pub(super) fn count(&self, bytes: usize) -> io::Result<()> {
        self.since.set(self.since.get().saturating_add(bytes));
        if self.beside.get().saturating_add(self.since.get()) > LARGEST_OBJECT {
            self.passed.set(true);
            return Err(io::Error::other("too much"));
        }
        Ok(())
    }

    /// Starts the items; the bytes before them stay counted.
    pub(super) fn items_begin(&self) {
        self.beside.set(self.beside.get() + self.since.take());
    }

    /// Ends an item.
    pub(super) fn item_done(&self) {
        self.since.set(0);
    }

    /// Ends a document.
    pub(super) fn document_done(&self) {
        self.beside.set(0);
        self.since.set(0);
    }

    /// Whether the limit was passed.
    pub(super) fn is_passed(&self) -> bool {
        self.passed.get()
    }
}

/// A reader whose bytes are counted.
pub(super) struct Metered<'m, R> {
    text: R,
    meter: &'m Meter,
}

impl<'m, R: BufRead> Metered<'m, R> {
    pub(super) fn new(text: R, meter: &'m Meter) -> Self {
        Self { text, meter }
    }
}

impl<R: BufRead> Read for Metered<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.text.read(buffer)?;
        self.meter.count(length)?;
        Ok(length)
    }
}
