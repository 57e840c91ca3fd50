//! The wire format of protocol buffers, as far as the API server uses it, and the objects that are
//! decoded from it.
//!
//! Each kind has one struct for both formats (`Wire`), and one conversion of it to the model. So
//! the formats can only differ in how that struct is filled: by serde from JSON, here field by
//! field. Field numbers are those of upstream's `generated.proto` files; each message is named next
//! to them. All other fields are skipped by their length, unread.
//!
//! Nothing is allocated by a length that the input states, the depth of messages is that of the
//! types, and groups, which upstream does not use, are errors.

pub(crate) mod envelope;
pub(crate) mod page;
pub(crate) mod watch_event;

use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;

use super::lenient;
use super::text::Text;

/// The limit of the items of one repeated field: an object has at most some MiB, but an empty item
/// needs only two bytes of it and much more memory.
const MOST_ITEMS: usize = 20_000;

/// A message that does not have the wire format, and the place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Malformed {
    /// The path of the field, such as `status.conditions[2].type`; empty for the whole message.
    pub(super) path: String,
    pub(super) reason: Reason,
}

/// Why a message does not have the wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// It ends in the middle of a field.
    CutOff,
    /// An integer has more than 64 bits.
    LongInteger,
    /// A field number is 0 or too large.
    FieldNumber,
    /// A wire type that is unknown, or that of a group.
    WireType(u8),
    /// A field that is read does not have the wire type of its declaration.
    OtherType,
    /// A repeated field has too many items.
    TooMany,
    /// It does not begin like an answer of the API server.
    NoEnvelope,
    /// A field is there twice that upstream writes once.
    Twice,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CutOff => f.write_str("the protobuf message is cut off"),
            Self::LongInteger => {
                f.write_str("the protobuf message has an integer of more than 64 bits")
            }
            Self::FieldNumber => f.write_str("the protobuf message has an invalid field number"),
            Self::WireType(wire_type) => {
                write!(f, "the protobuf message has the wire type {wire_type}")
            }
            Self::OtherType => f.write_str("the protobuf field has another type"),
            Self::TooMany => write!(f, "the protobuf field has more than {MOST_ITEMS} items"),
            Self::Twice => f.write_str("the protobuf field is there twice"),
            Self::NoEnvelope => f.write_str("the answer is not a protobuf message of Kubernetes"),
        }
    }
}

/// `spec.containers[2]: the protobuf message is cut off`.
impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, reason } = self;
        if !path.is_empty() {
            write!(f, "{path}: ")?;
        }
        write!(f, "{reason}")
    }
}

impl From<Reason> for Malformed {
    fn from(reason: Reason) -> Self {
        Self { path: String::new(), reason }
    }
}

impl Malformed {
    /// Adds the field that contains the message.
    fn within(self, field: &str) -> Self {
        let Self { path, reason } = self;
        let path = if path.is_empty() { field.to_owned() } else { format!("{field}.{path}") };
        Self { path, reason }
    }
}

/// A message of which some fields are read.
pub(super) trait Message<'a> {
    /// Takes one field. Fields that are not read are left alone.
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed>;
}

/// Reads a message into a value that may have fields already, as upstream's decoder does.
pub(super) fn merge<'a>(into: &mut impl Message<'a>, bytes: &'a [u8]) -> Result<(), Malformed> {
    for field in Fields(bytes) {
        into.field(field?)?;
    }
    Ok(())
}

/// Reads a message.
pub(super) fn read<'a, M: Message<'a> + Default>(bytes: &'a [u8]) -> Result<M, Malformed> {
    let mut message = M::default();
    merge(&mut message, bytes)?;
    Ok(message)
}

/// The fields of a message, in the order of the bytes. Ends after an error.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field.map_err(Malformed::from))
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Result<Field<'a>, Reason> {
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).ok().filter(|number| (1..1 << 29).contains(number));
        let number = number.ok_or(Reason::FieldNumber)?;
        let value = match tag & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed(self.bytes(8)?),
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.bytes(length)?)
            }
            5 => Value::Fixed(self.bytes(4)?),
            #[expect(clippy::cast_possible_truncation, reason = "three bits")]
            other => return Err(Reason::WireType(other as u8)),
        };
        Ok(Field { number, value })
    }

    /// The next `length` bytes; the length is what the input states.
    fn bytes(&mut self, length: u64) -> Result<&'a [u8], Reason> {
        let length = usize::try_from(length).map_err(|_| Reason::CutOff)?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(Reason::CutOff)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn varint(&mut self) -> Result<u64, Reason> {
        // Tags and lengths mostly have one byte.
        if let [byte @ ..0x80, rest @ ..] = self.0 {
            self.0 = rest;
            return Ok(u64::from(*byte));
        }
        let mut value = 0;
        for (at, byte) in self.0.iter().enumerate().take(10) {
            if at == 9 && *byte > 1 {
                return Err(Reason::LongInteger);
            }
            value |= u64::from(byte & 0x7f) << (7 * at);
            if *byte < 0x80 {
                self.0 = &self.0[at + 1..];
                return Ok(value);
            }
        }
        Err(Reason::CutOff)
    }
}

/// A field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field<'a> {
    pub(super) number: u32,
    value: Value<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value<'a> {
    Varint(u64),
    /// 32 or 64 bits; upstream's objects have no such field that is read.
    Fixed(&'a [u8]),
    /// Text, bytes or a message.
    Bytes(&'a [u8]),
}

/// Reads the field as what it is declared. `name` is its name, for errors.
impl<'a> Field<'a> {
    fn other_type(name: &str) -> Malformed {
        Malformed::from(Reason::OtherType).within(name)
    }

    pub(super) fn bytes(self, name: &str) -> Result<&'a [u8], Malformed> {
        match self.value {
            Value::Bytes(bytes) => Ok(bytes),
            Value::Varint(_) | Value::Fixed(_) => Err(Self::other_type(name)),
        }
    }

    fn varint(self, name: &str) -> Result<u64, Malformed> {
        match self.value {
            Value::Varint(value) => Ok(value),
            Value::Bytes(_) | Value::Fixed(_) => Err(Self::other_type(name)),
        }
    }

    pub(super) fn text(self, name: &str) -> Result<Text<'a>, Malformed> {
        self.bytes(name).map(|bytes| Text(text(bytes)))
    }

    /// A text that JSON does not have when it is empty (upstream: `omitempty`).
    pub(super) fn optional_text(self, name: &str) -> Result<Option<Text<'a>>, Malformed> {
        self.text(name).map(|text| Some(text).filter(|text| !text.0.is_empty()))
    }

    pub(super) fn boolean(self, name: &str) -> Result<bool, Malformed> {
        self.varint(name).map(|value| value != 0)
    }

    pub(super) fn int64(self, name: &str) -> Result<i64, Malformed> {
        self.varint(name).map(u64::cast_signed)
    }

    /// An `int32`, of which upstream ignores higher bits.
    pub(super) fn int32(self, name: &str) -> Result<i32, Malformed> {
        let [a, b, c, d, ..] = self.varint(name)?.to_le_bytes();
        Ok(i32::from_le_bytes([a, b, c, d]))
    }

    /// A `Time`; `None` is the zero time, which JSON has as `null`.
    pub(super) fn moment(self, name: &str) -> Result<Option<Timestamp>, Malformed> {
        let mut time = Time::default();
        self.merge(name, &mut time)?;
        Ok(time.seconds.and_then(lenient::from_seconds))
    }

    /// A message.
    pub(super) fn message<M: Message<'a> + Default>(self, name: &str) -> Result<M, Malformed> {
        let mut message = M::default();
        self.merge(name, &mut message)?;
        Ok(message)
    }

    /// A message, read into a value that may have fields already.
    pub(super) fn merge(self, name: &str, into: &mut impl Message<'a>) -> Result<(), Malformed> {
        let bytes = self.bytes(name)?;
        merge(into, bytes).map_err(|error| error.within(name))
    }

    /// An optional message.
    pub(super) fn merge_optional<M: Message<'a> + Default>(
        self,
        name: &str,
        into: &mut Option<M>,
    ) -> Result<(), Malformed> {
        self.merge(name, into.get_or_insert_default())
    }

    /// An item of a repeated message.
    pub(super) fn push<M: Message<'a> + Default>(
        self,
        name: &str,
        onto: &mut Vec<M>,
    ) -> Result<(), Malformed> {
        let item = self.bytes(name).and_then(read);
        let place = |error: Malformed| error.within(&format!("{name}[{}]", onto.len()));
        let item = item.map_err(place)?;
        push_item(name, onto, item)
    }

    /// An item of a repeated text.
    pub(super) fn push_text(self, name: &str, onto: &mut Vec<Text<'a>>) -> Result<(), Malformed> {
        let item = self.text(name)?;
        push_item(name, onto, item)
    }
}

/// Adds an item of a repeated field, up to a limit.
pub(super) fn push_item<T>(name: &str, onto: &mut Vec<T>, item: T) -> Result<(), Malformed> {
    if onto.len() >= MOST_ITEMS {
        return Err(Malformed::from(Reason::TooMany).within(name));
    }
    onto.push(item);
    Ok(())
}

/// Text, with a replacement character for each invalid byte, as in upstream's JSON.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Cow::Owned(text)
}

/// `k8s.io.apimachinery.pkg.apis.meta.v1.Time`. Its nanoseconds are not used, as in upstream.
#[derive(Default)]
struct Time {
    seconds: Option<i64>,
}

impl<'a> Message<'a> for Time {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        // The message of the zero time has no fields; otherwise both are written.
        let seconds = self.seconds.get_or_insert_default();
        if field.number == 1 {
            *seconds = field.int64("seconds")?;
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests;
