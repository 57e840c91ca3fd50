//! How much of a recording is read outside of complete objects: a string, a key or a comment there
//! would be in memory as a whole, and packed it is a thousandth of that.

use std::cell::Cell;
use std::io::{self, BufRead, Read};

use super::outline::LARGEST_OBJECT;

/// Counts bytes, in one document at a time.
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// Beside the items of the list.
    beside: Cell<usize>,
    /// Since the last item was complete.
    since: Cell<usize>,
    passed: Cell<bool>,
}

impl Meter {
    /// So many more bytes were read.
    ///
    /// # Errors
    /// They are more than any object has.
    pub(super) fn count(&self, bytes: usize) -> io::Result<()> {
        self.since.set(self.since.get().saturating_add(bytes));
        if self.beside.get().saturating_add(self.since.get()) > LARGEST_OBJECT {
            self.passed.set(true);
            return Err(io::Error::other("too much"));
        }
        Ok(())
    }

    /// Items come next; what came before them stays counted.
    pub(super) fn items_begin(&self) {
        self.beside.set(self.beside.get() + self.since.take());
    }

    /// An item is complete.
    pub(super) fn item_done(&self) {
        self.since.set(0);
    }

    /// A document is complete.
    pub(super) fn document_done(&self) {
        self.beside.set(0);
        self.since.set(0);
    }

    /// Whether there was too much.
    pub(super) fn is_passed(&self) -> bool {
        self.passed.get()
    }
}

/// A reader whose bytes are counted as they are taken.
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
