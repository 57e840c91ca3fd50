//! Reads a page of a list while it arrives, so that it is never in memory as a whole.
//!
//! Bytes are held only until the field that they belong to is complete: the envelope has few, and
//! the fields of the list in it are its metadata and one for each object.

use super::envelope::{ListMeta, MAGIC, RAW, TypeMeta};
use super::{Field, Fields, Malformed, Reason};
use crate::Kind;

/// A page such as `k8s.io.api.core.v1.PodList`, in its envelope (`runtime.Unknown`).
#[derive(Debug, Default)]
pub(crate) struct PageReader {
    place: Place,
    /// The beginning of a field that is not complete.
    held: Vec<u8>,
    of: TypeMeta,
    metadata: ListMeta,
    /// Whether the list begins with its metadata, and these were read.
    begins_with_metadata: bool,
    /// The errors of the two levels. The rest of the level is not looked at.
    of_envelope: Option<Malformed>,
    of_list: Option<Malformed>,
}

/// The place of the next byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// In the magic number.
    #[default]
    Beginning,
    /// In the envelope before the list.
    BeforeList,
    /// In the list, which has this many more bytes.
    InList { is_first: bool, left: u64 },
    /// In the envelope after the list.
    AfterList,
    /// After an error of the envelope.
    Broken,
}

/// The fields of a list.
const METADATA: u32 = 1;
const ITEMS: u32 = 2;

impl PageReader {
    /// Takes the next bytes, and passes on the message of each object that is complete.
    pub(crate) fn take(&mut self, bytes: &[u8], mut object: impl FnMut(&[u8])) {
        let mut held = std::mem::take(&mut self.held);
        held.extend_from_slice(bytes);
        let mut rest = &*held;
        while !rest.is_empty() {
            let used = match self.place {
                Place::Beginning => self.magic(rest),
                Place::BeforeList | Place::AfterList => self.field_of_envelope(rest),
                Place::InList { is_first, left } => {
                    self.field_of_list(rest, left, is_first, &mut object)
                }
                Place::Broken => Some(rest.len()),
            };
            let Some(used) = used else { break };
            rest = &rest[used..];
        }
        let used = held.len() - rest.len();
        held.drain(..used);
        self.held = held;
    }

    /// The metadata of the list, as soon as they are known. They come before the objects.
    pub(crate) fn metadata(&self) -> Option<&ListMeta> {
        self.begins_with_metadata.then_some(&self.metadata)
    }

    /// The number of bytes that are held.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// Whether what was taken ends in the middle. A page without content does: even an empty list
    /// has some.
    pub(crate) fn is_cut(&self) -> bool {
        match self.place {
            Place::Beginning | Place::BeforeList | Place::InList { .. } => true,
            Place::AfterList => !self.held.is_empty(),
            Place::Broken => self.of_envelope.as_ref().is_some_and(is_cut_off),
        }
    }

    /// Ends the page, which has to be a list of this kind.
    ///
    /// # Errors
    /// The reason, for a message.
    pub(crate) fn finish(self, kind: Kind) -> Result<ListMeta, String> {
        let place = |Malformed { path, reason }: Malformed| match path.as_str() {
            "" => reason.to_string(),
            path => format!("{path}: {reason}"),
        };
        let is_cut = self.is_cut().then(|| Malformed::from(Reason::CutOff));
        if let Some(malformed) = self.of_envelope.or(is_cut) {
            return Err(place(malformed));
        }
        self.of.is_list_of(kind)?;
        self.of_list.map_or(Ok(self.metadata), |malformed| Err(place(malformed)))
    }

    /// The steps through a page. Each returns how many bytes it used; `None`: it needs more.
    fn magic(&mut self, rest: &[u8]) -> Option<usize> {
        if rest.starts_with(MAGIC) {
            self.place = Place::BeforeList;
            return Some(MAGIC.len());
        }
        if MAGIC.starts_with(rest) {
            return None;
        }
        self.break_at(Reason::NoEnvelope.into());
        Some(rest.len())
    }

    fn field_of_envelope(&mut self, rest: &[u8]) -> Option<usize> {
        if let Some((header, left)) = header_of_list(rest) {
            match self.place {
                // Upstream's encoder writes one.
                Place::AfterList => self.break_at(Malformed::from(Reason::Twice).within("raw")),
                _ => self.place = Place::InList { is_first: true, left },
            }
            self.end_list();
            return Some(header);
        }
        let mut fields = Fields(rest);
        let taken = match fields.field() {
            Err(Reason::CutOff) => return None,
            Err(reason) => Err(reason.into()),
            Ok(field) => match field.number {
                1 => field.merge("typeMeta", &mut self.of),
                RAW => field.bytes("raw").map(drop),
                _ => Ok(()),
            },
        };
        taken.unwrap_or_else(|malformed| self.break_at(malformed));
        Some(rest.len() - fields.0.len())
    }

    fn break_at(&mut self, malformed: Malformed) {
        self.of_envelope = Some(malformed);
        self.place = Place::Broken;
    }

    fn field_of_list(
        &mut self,
        rest: &[u8],
        left: u64,
        is_first: bool,
        object: &mut impl FnMut(&[u8]),
    ) -> Option<usize> {
        let rest = &rest[..rest.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
        let mut fields = Fields(rest);
        let taken = match fields.field() {
            _ if self.of_list.is_some() => {
                fields = Fields(&[]);
                Ok(())
            }
            // The list may be cut off in its envelope, too.
            Err(Reason::CutOff) if (rest.len() as u64) < left => return None,
            Err(reason) => {
                fields = Fields(&[]);
                Err(reason.into())
            }
            Ok(field) => self.taken_of_list(field, is_first, object),
        };
        self.of_list = self.of_list.take().or(taken.err());
        let used = rest.len() - fields.0.len();
        self.place = Place::InList { is_first: false, left: left - used as u64 };
        self.end_list();
        Some(used)
    }

    fn taken_of_list(
        &mut self,
        field: Field<'_>,
        is_first: bool,
        object: &mut impl FnMut(&[u8]),
    ) -> Result<(), Malformed> {
        match field.number {
            METADATA => {
                field.merge("metadata", &mut self.metadata)?;
                self.begins_with_metadata |= is_first;
            }
            ITEMS => object(field.bytes("items")?),
            _ => {}
        }
        Ok(())
    }

    fn end_list(&mut self) {
        if let Place::InList { left: 0, .. } = self.place {
            self.place = Place::AfterList;
        }
    }
}

fn is_cut_off(malformed: &Malformed) -> bool {
    malformed.reason == Reason::CutOff
}

/// The length of the tag and of the length of the list, if it comes next, and the latter.
pub(super) fn header_of_list(rest: &[u8]) -> Option<(usize, u64)> {
    let mut fields = Fields(rest);
    let is_list = fields.varint().ok()? == u64::from(RAW) << 3 | 2;
    let left = fields.varint().ok().filter(|_| is_list)?;
    Some((rest.len() - fields.0.len(), left))
}
