//! An event of a watch (`k8s.io.apimachinery.pkg.apis.meta.v1.WatchEvent`). Its object has an envelope
//! like an answer of its own.

use super::envelope::{Named, Status, open};
use super::{Field, Malformed, Message, Reason, read};
use crate::decode::text::Text;

/// An event, with the content of its object.
pub(crate) struct WatchEvent<'a> {
    kind: Text<'a>,
    /// The object, without its envelope.
    pub(crate) object: &'a [u8],
}

impl<'a> WatchEvent<'a> {
    /// Reads one.
    ///
    /// # Errors
    /// It is broken, or without an object.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, String> {
        let Wire { kind, object: RawExtension(raw) } = read(bytes).map_err(string)?;
        let object = raw.ok_or(Reason::CutOff.into()).and_then(open);
        let (_, object) = object.map_err(|error| string(error.within("object")))?;
        Ok(Self { kind, object })
    }

    /// Its type, such as `ADDED`.
    pub(crate) fn kind(&self) -> &str {
        &self.kind.0
    }

    /// `metadata.resourceVersion` of the object.
    ///
    /// # Errors
    /// It has none.
    pub(crate) fn version(&self) -> Result<String, String> {
        let Named { version, .. } = read(self.object).map_err(string)?;
        version.map(|it| it.0.into_owned()).ok_or("metadata.resourceVersion is missing".to_owned())
    }

    /// The code and the message of the object, which is a `Status`.
    ///
    /// # Errors
    /// It is not.
    pub(crate) fn status(&self) -> Result<(u16, String), String> {
        let Status { code, message, .. } = read(self.object).map_err(string)?;
        Ok((code.try_into().unwrap_or_default(), message.0.into_owned()))
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn string(malformed: Malformed) -> String {
    malformed.to_string()
}

/// `WatchEvent`.
#[derive(Default)]
struct Wire<'a> {
    kind: Text<'a>,
    object: RawExtension<'a>,
}

impl<'a> Message<'a> for Wire<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => field.text("type").map(|text| self.kind = text),
            2 => field.merge("object", &mut self.object),
            _ => Ok(()),
        }
    }
}

/// `k8s.io.apimachinery.pkg.runtime.RawExtension`.
#[derive(Default)]
struct RawExtension<'a>(Option<&'a [u8]>);

impl<'a> Message<'a> for RawExtension<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => field.bytes("raw").map(|raw| self.0 = Some(raw)),
            _ => Ok(()),
        }
    }
}
