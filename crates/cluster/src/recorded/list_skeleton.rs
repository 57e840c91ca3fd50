//! The skeleton of a JSON recording: the text without the items of its lists, which are sent to the
//! decoder threads while reading.
//!
//! `serde_json` parses the skeleton, so that the text around the objects has the usual syntax
//! checks. An empty object replaces each item, and line breaks stay, so that positions are right.

use std::cell::Cell;
use std::io::{self, BufRead, Read};

use super::batches::Decoders;
use super::meter::{LARGEST_OBJECT, Meter};
use super::object_scanner::ObjectScanner;
use super::place::Place;
use crate::Kind;

/// The state shared by the skeleton and its parser.
#[derive(Debug, Default)]
pub(super) struct Notes {
    within: Cell<Within>,
    /// The kind of the items of a typed list.
    of: Cell<Option<Kind>>,
    /// The number of items so far.
    items: Cell<usize>,
    /// The last line of the skeleton from which an object was removed, and the number of its bytes
    /// that are not in the skeleton.
    left_out: Cell<(usize, usize)>,
    /// Whether an object was too large.
    too_large: Cell<bool>,
    /// Limits the text outside of the objects.
    pub(super) meter: Meter,
}

/// The position of the skeleton in a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Within {
    /// Outside of a list.
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
    /// Records that the key `items` was read and its value comes next.
    pub(super) fn items_follow(&self, of: Option<Kind>) {
        self.within.set(Within::BeforeItems);
        self.of.set(of);
        self.items.set(0);
    }

    /// Converts a position in the skeleton into one in the file.
    pub(super) fn in_file(&self, Place { line, column }: Place) -> Place {
        let (of_line, left_out) = self.left_out.get();
        Place { line, column: if line == of_line { column + left_out } else { column } }
    }

    /// The number (from 1) of the item that was too large, if any.
    pub(super) fn too_large(&self) -> Option<usize> {
        self.too_large.get().then(|| self.items.get() + 1)
    }
}

/// A reader that returns the skeleton.
pub(super) struct ListSkeleton<'o, 'scope, R> {
    text: R,
    notes: &'o Notes,
    decoders: &'o mut Decoders<'scope>,
    /// The position of the next byte of `text` in the file.
    place: Place,
    /// Bytes to return before the next byte of `text`, and how many of them were returned.
    instead: Vec<u8>,
    given: usize,
}

impl<'o, 'scope, R: BufRead> ListSkeleton<'o, 'scope, R> {
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
            // The end of the list, or not a list of objects, which the parser reports.
            (_, _) => self.notes.within.set(Within::Elsewhere),
        }
        self.place = self.place.further(usize::from(byte == b'\n'), usize::from(byte != b'\n'));
        self.text.consume(1);
        Ok(Some(byte))
    }

    /// Sends an object to the decoders.
    fn take_object(&mut self) -> io::Result<()> {
        if self.decoders.have_failed() {
            return Err(io::Error::other("stopped"));
        }
        let mut object_scanner = ObjectScanner::default();
        loop {
            let bytes = self.text.fill_buf()?;
            if bytes.is_empty() {
                self.give_unfinished();
                return Ok(());
            }
            let end = object_scanner.end_in(bytes);
            let length = end.unwrap_or(bytes.len());
            self.decoders.push(&bytes[..length]);
            self.text.consume(length);
            if end.is_some() {
                self.stand_in(&object_scanner);
                return Ok(());
            }
            if self.decoders.unfinished().len() > LARGEST_OBJECT {
                self.notes.too_large.set(true);
                return Err(io::Error::other("too large"));
            }
        }
    }

    /// Replaces a complete object by an empty one in the skeleton.
    fn stand_in(&mut self, object_scanner: &ObjectScanner) {
        let (breaks, since_break) = object_scanner.lines();
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

    /// The file ends within an object: returns its beginning as part of the skeleton, so that the
    /// parser reports the position, or an earlier error.
    fn give_unfinished(&mut self) {
        self.instead.clear();
        self.instead.extend_from_slice(self.decoders.unfinished());
        self.given = 0;
        self.notes.within.set(Within::Elsewhere);
    }
}

impl<R: BufRead> Read for ListSkeleton<'_, '_, R> {
    /// Returns one byte at a time, because the next one may depend on the parser's notes.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(slot) = buffer.first_mut() else { return Ok(0) };
        let Some(byte) = self.next()? else { return Ok(0) };
        *slot = byte;
        Ok(1)
    }
}
