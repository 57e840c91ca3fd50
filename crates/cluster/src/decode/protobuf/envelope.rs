//! What is around the objects: the envelope of an answer, the metadata of a list, and a `Status`.

use super::{Field, Fields, Malformed, Message, Reason, merge, read};
use crate::Kind;
use crate::decode::text::Text;

/// The beginning of an answer (upstream: `protoEncodingPrefix`), before a `runtime.Unknown`.
pub(super) const MAGIC: &[u8] = b"k8s\0";

/// `k8s.io.apimachinery.pkg.runtime.Unknown`.
#[derive(Default)]
struct Unknown<'a> {
    of: TypeMeta,
    raw: Option<&'a [u8]>,
}

/// The field of the envelope with the content.
pub(super) const RAW: u32 = 2;

impl<'a> Message<'a> for Unknown<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => field.merge("typeMeta", &mut self.of),
            RAW => field.bytes("raw").map(|raw| self.raw = Some(raw)),
            _ => Ok(()),
        }
    }
}

/// `k8s.io.apimachinery.pkg.runtime.TypeMeta`.
#[derive(Debug, Default)]
pub(super) struct TypeMeta {
    api_version: String,
    kind: String,
}

impl TypeMeta {
    /// Checks that it is the type of a list of this kind.
    ///
    /// # Errors
    /// The reason, for a message.
    pub(super) fn is_list_of(&self, kind: Kind) -> Result<(), String> {
        let wanted = format!("{kind}List");
        if self.api_version == kind.api_version() && self.kind == wanted {
            return Ok(());
        }
        let found = [&self.api_version, &self.kind].map(|it| it.escape_debug().to_string());
        let version = kind.api_version();
        Err(format!("it is a {} {}, not a {version} {wanted}", found[0], found[1]))
    }
}

impl<'a> Message<'a> for TypeMeta {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => field.text("apiVersion").map(|text| self.api_version = text.0.into_owned()),
            2 => field.text("kind").map(|text| self.kind = text.0.into_owned()),
            _ => Ok(()),
        }
    }
}

/// Opens the envelope of an answer. One without content is cut off: even an empty list has some.
pub(super) fn open(answer: &[u8]) -> Result<(TypeMeta, &[u8]), Malformed> {
    if MAGIC.starts_with(answer) {
        return Err(Reason::CutOff.into());
    }
    let Unknown { of, raw } = read(answer.strip_prefix(MAGIC).ok_or(Reason::NoEnvelope)?)?;
    Ok((of, raw.ok_or(Reason::CutOff)?))
}

/// Whether an answer ends in the middle of the envelope.
pub(crate) fn ends_in_the_middle(answer: &[u8]) -> bool {
    open(answer).is_err_and(|malformed| malformed.reason == Reason::CutOff)
}

/// `k8s.io.apimachinery.pkg.apis.meta.v1.ListMeta`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListMeta {
    /// The resource version of the list.
    pub(crate) version: Option<String>,
    /// The token of the next page.
    pub(crate) next: Option<String>,
}

impl<'a> Message<'a> for ListMeta {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        let text = |name| field.optional_text(name).map(|text| text.map(|it| it.0.into_owned()));
        match field.number {
            2 => self.version = text("resourceVersion")?,
            3 => self.next = text("continue")?,
            _ => {}
        }
        Ok(())
    }
}

/// The parts of a `k8s.io.apimachinery.pkg.apis.meta.v1.Status` that are needed.
#[derive(Default)]
pub(super) struct Status<'a> {
    pub(super) message: Text<'a>,
    reason: Text<'a>,
    pub(super) code: i32,
}

impl<'a> Message<'a> for Status<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            3 => field.text("message").map(|text| self.message = text),
            4 => field.text("reason").map(|text| self.reason = text),
            6 => field.int32("code").map(|code| self.code = code),
            _ => Ok(()),
        }
    }
}

/// The message and the reason of a `Status`; `None` when the answer is none.
pub(crate) fn status(answer: &[u8]) -> Option<(String, String)> {
    let (_, raw) = open(answer).ok().filter(|(of, _)| of.kind == "Status")?;
    let Status { message, reason, code: _ } = read(raw).ok()?;
    Some((message.0.into_owned(), reason.0.into_owned()))
}

/// `NAMESPACE/NAME` of an object that could not be decoded, as far as they can be read.
pub(crate) fn name_of(object: &[u8]) -> Option<String> {
    let mut named = Named::default();
    // What was read before the error counts.
    let _ = merge(&mut named, object);
    let Named { namespace, name, version: _ } = named;
    let name = name?.0;
    Some(namespace.map_or_else(|| name.to_string(), |namespace| format!("{}/{name}", namespace.0)))
}

/// What identifies an object and its version.
#[derive(Default)]
pub(super) struct Named<'a> {
    namespace: Option<Text<'a>>,
    name: Option<Text<'a>>,
    pub(super) version: Option<Text<'a>>,
}

impl<'a> Message<'a> for Named<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        if field.number != 1 {
            return Ok(());
        }
        // `k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta`.
        for field in Fields(field.bytes("metadata")?) {
            let field = field?;
            match field.number {
                1 => self.name = field.optional_text("name")?,
                3 => self.namespace = field.optional_text("namespace")?,
                6 => self.version = field.optional_text("resourceVersion")?,
                _ => {}
            }
        }
        Ok(())
    }
}
