//! A JSON recording without the objects of its lists, which go to the decoders on the way.
//!
//! `serde_json` reads what is left, so that whatever stands around the objects is checked, and
//! complained about, as in any other document: an empty object stands for each one that was taken
//! out, and its line breaks stay.

use std::cell::Cell;
use std::io::{self, BufRead, Read};

use super::batches::Decoders;
use super::border::Border;
use super::meter::Meter;
use super::place::Place;
use crate::cluster::Kind;

/// The API server takes no object of more than some 1.5 MiB; indented, it may be several times as
/// large. More than this is not read into memory, in bytes.
pub(super) const LARGEST_OBJECT: usize = 32 << 20;

/// What the outline and its reader tell each other.
#[derive(Debug, Default)]
pub(super) struct Notes {
    within: Cell<Within>,
    /// What the items are when the list says so.
    of: Cell<Option<Kind>>,
    /// How many items have come.
    items: Cell<usize>,
    /// The last line of the outline that an object was taken out of, and how many of its bytes
    /// are not in the outline.
    left_out: Cell<(usize, usize)>,
    /// Whether an object was too large.
    too_large: Cell<bool>,
    /// What stands beside the objects.
    pub(super) meter: Meter,
}

/// Where in a document the outline is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Within {
    /// Anywhere but in a list.
    #[default]
    Elsewhere,
    /// Between the key `items` and its value.
    BeforeItems,
    /// In the array, before an item.
    BeforeItem,
    /// In the array, after an item.
    AfterItem,
}

impl Notes {
    /// The key `items` was read: its value comes next.
    pub(super) fn items_follow(&self, of: Option<Kind>) {
        self.within.set(Within::BeforeItems);
        self.of.set(of);
        self.items.set(0);
    }

    /// The place in the file of something in the outline.
    pub(super) fn in_file(&self, Place { line, column }: Place) -> Place {
        let (of_line, left_out) = self.left_out.get();
        Place { line, column: if line == of_line { column + left_out } else { column } }
    }

    /// The number (from 1) of the item that was too large, if one was.
    pub(super) fn too_large(&self) -> Option<usize> {
        self.too_large.get().then(|| self.items.get() + 1)
    }
}

/// A reader of the outline.
pub(super) struct Outline<'o, 'scope, R> {
    text: R,
    notes: &'o Notes,
    decoders: &'o mut Decoders<'scope>,
    /// Where the next byte of `text` stands in the file.
    place: Place,
    /// What is to be read before the next byte of `text`, and how much of it has been.
    instead: Vec<u8>,
    given: usize,
}

impl<'o, 'scope, R: BufRead> Outline<'o, 'scope, R> {
    pub(super) fn new(text: R, notes: &'o Notes, decoders: &'o mut Decoders<'scope>) -> Self {
        Self { text, notes, decoders, place: Place::START, instead: Vec::new(), given: 0 }
    }

    /// The next byte; `None` at the end.
    fn next(&mut self) -> io::Result<Option<u8>> {
        if let Some(byte) = self.instead.get(self.given) {
            self.given += 1;
            return Ok(Some(*byte));
        }
        let Some(&byte) = self.text.fill_buf()?.first() else { return Ok(None) };
        match (self.notes.within.get(), byte) {
            (Within::Elsewhere, _) | (Within::BeforeItems, b':') => self.notes.meter.count(1)?,
            (_, b' ' | b'\t' | b'\r' | b'\n') => {}
            (Within::BeforeItems, b'[') | (Within::AfterItem, b',') => {
                self.notes.within.set(Within::BeforeItem);
            }
            (Within::BeforeItem, b'{') => {
                self.notes.within.set(Within::AfterItem);
                self.take_object()?;
                return self.next();
            }
            // The end of the list, or no list of objects, which its reader will notice.
            (_, _) => self.notes.within.set(Within::Elsewhere),
        }
        self.place = self.place.further(usize::from(byte == b'\n'), usize::from(byte != b'\n'));
        self.text.consume(1);
        Ok(Some(byte))
    }

    /// Hands an object over to the decoders.
    fn take_object(&mut self) -> io::Result<()> {
        if self.decoders.have_failed() {
            return Err(io::Error::other("stopped"));
        }
        let mut border = Border::default();
        loop {
            let bytes = self.text.fill_buf()?;
            if bytes.is_empty() {
                self.give_unfinished();
                return Ok(());
            }
            let end = border.end_in(bytes);
            let length = end.unwrap_or(bytes.len());
            self.decoders.push(&bytes[..length]);
            self.text.consume(length);
            if end.is_some() {
                self.stand_in(&border);
                return Ok(());
            }
            if self.decoders.unfinished().len() > LARGEST_OBJECT {
                self.notes.too_large.set(true);
                return Err(io::Error::other("too large"));
            }
        }
    }

    /// The object is complete: an empty one stands in the outline.
    fn stand_in(&mut self, border: &Border) {
        let (breaks, since_break) = border.lines();
        let start = self.place;
        let left_out = match self.notes.left_out.get() {
            _ if breaks > 0 => since_break,
            (line, more) if line == start.line => more + since_break - 2,
            _earlier_line => since_break - 2,
        };
        self.place = start.further(breaks, since_break);
        self.notes.left_out.set((self.place.line, left_out));
        self.instead.clear();
        self.instead.extend_from_slice(b"{}");
        self.instead.resize(2 + breaks, b'\n');
        self.given = 0;
        let index = self.notes.items.get();
        self.notes.items.set(index + 1);
        self.decoders.complete(self.notes.of.get(), index, start);
    }

    /// The file ends in an object: the outline ends in it too, so that its reader says where, or
    /// finds what is wrong before.
    fn give_unfinished(&mut self) {
        self.instead.clear();
        self.instead.extend_from_slice(self.decoders.unfinished());
        self.given = 0;
        self.notes.within.set(Within::Elsewhere);
    }
}

impl<R: BufRead> Read for Outline<'_, '_, R> {
    /// One byte at a time: what the next one is may depend on what its reader notes.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(slot) = buffer.first_mut() else { return Ok(0) };
        let Some(byte) = self.next()? else { return Ok(0) };
        *slot = byte;
        Ok(1)
    }
}
