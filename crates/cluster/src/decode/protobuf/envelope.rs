//! What is around the objects: the envelope of an answer, a page of a list, and a `Status`.

use super::{Field, Fields, Malformed, Message, Reason, merge, read};
use crate::Kind;
use crate::decode::context::Text;

/// The beginning of an answer (upstream: `protoEncodingPrefix`), before a `runtime.Unknown`.
const MAGIC: &[u8] = b"k8s\0";

/// `k8s.io.apimachinery.pkg.runtime.Unknown`.
#[derive(Default)]
struct Unknown<'a> {
    of: TypeMeta<'a>,
    raw: Option<&'a [u8]>,
}

impl<'a> Message<'a> for Unknown<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => field.merge("typeMeta", &mut self.of),
            2 => field.bytes("raw").map(|raw| self.raw = Some(raw)),
            _ => Ok(()),
        }
    }
}

/// `k8s.io.apimachinery.pkg.runtime.TypeMeta`.
#[derive(Default)]
struct TypeMeta<'a> {
    api_version: Text<'a>,
    kind: Text<'a>,
}

impl<'a> Message<'a> for TypeMeta<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => field.text("apiVersion").map(|text| self.api_version = text),
            2 => field.text("kind").map(|text| self.kind = text),
            _ => Ok(()),
        }
    }
}

/// Opens the envelope of an answer. One without content is cut off: even an empty list has some.
fn open(answer: &[u8]) -> Result<(TypeMeta<'_>, &[u8]), Malformed> {
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

/// The metadata of a list, read from the beginning of a page: it comes before the items. `None`:
/// more of the page is needed, or it is not a page.
pub(crate) fn list_metadata(beginning: &[u8]) -> Option<ListMeta<'_>> {
    let list = Fields(beginning.strip_prefix(MAGIC)?).beginning_of(2)?;
    let first = Fields(list).next()?.ok().filter(|field| field.number == METADATA)?;
    read(first.bytes("metadata").ok()?).ok()
}

/// A page of a list, such as `k8s.io.api.core.v1.PodList`.
pub(crate) struct ListPage<'a> {
    raw: &'a [u8],
    pub(crate) metadata: ListMeta<'a>,
}

/// `k8s.io.apimachinery.pkg.apis.meta.v1.ListMeta`.
#[derive(Default)]
pub(crate) struct ListMeta<'a> {
    version: Option<Text<'a>>,
    next: Option<Text<'a>>,
}

impl ListMeta<'_> {
    /// The resource version of the list.
    pub(crate) fn version(&self) -> Option<String> {
        self.version.as_ref().map(|text| text.0.to_string())
    }

    /// The token of the next page.
    pub(crate) fn next(&self) -> Option<String> {
        self.next.as_ref().map(|text| text.0.to_string())
    }
}

impl<'a> Message<'a> for ListMeta<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            2 => field.optional_text("resourceVersion").map(|text| self.version = text),
            3 => field.optional_text("continue").map(|text| self.next = text),
            _ => Ok(()),
        }
    }
}

/// Finds the metadata of a list, and checks the wire format of the rest.
#[derive(Default)]
struct Skeleton<'a>(ListMeta<'a>);

impl<'a> Message<'a> for Skeleton<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            METADATA => field.merge("metadata", &mut self.0),
            ITEMS => field.bytes("items").map(drop),
            _ => Ok(()),
        }
    }
}

const METADATA: u32 = 1;
const ITEMS: u32 = 2;

impl<'a> ListPage<'a> {
    /// Opens an answer, which has to be a list of this kind.
    ///
    /// # Errors
    /// The reason, for a message.
    pub(crate) fn open(answer: &'a [u8], kind: Kind) -> Result<Self, String> {
        let place = |Malformed { path, reason }: Malformed| match path.as_str() {
            "" => reason.to_string(),
            path => format!("{path}: {reason}"),
        };
        let (of, raw) = open(answer).map_err(place)?;
        let wanted = format!("{kind}List");
        if of.api_version.0 != kind.api_version() || of.kind.0 != wanted {
            let found = [&of.api_version, &of.kind].map(|it| it.0.escape_debug().to_string());
            let version = kind.api_version();
            return Err(format!("it is a {} {}, not a {version} {wanted}", found[0], found[1]));
        }
        let Skeleton(metadata) = read(raw).map_err(place)?;
        Ok(Self { raw, metadata })
    }

    /// The messages of the objects.
    pub(crate) fn items(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        // Errors were found by opening it.
        let fields = Fields(self.raw).filter_map(Result::ok);
        fields.filter(|field| field.number == ITEMS).filter_map(|item| item.bytes("items").ok())
    }
}

/// The parts of a `k8s.io.apimachinery.pkg.apis.meta.v1.Status` that lists need.
#[derive(Default)]
struct Status<'a> {
    message: Text<'a>,
    reason: Text<'a>,
}

impl<'a> Message<'a> for Status<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            3 => field.text("message").map(|text| self.message = text),
            4 => field.text("reason").map(|text| self.reason = text),
            _ => Ok(()),
        }
    }
}

/// The message and the reason of a `Status`; `None` when the answer is none.
pub(crate) fn status(answer: &[u8]) -> Option<(String, String)> {
    let (_, raw) = open(answer).ok().filter(|(of, _)| of.kind.0 == "Status")?;
    let Status { message, reason } = read(raw).ok()?;
    Some((message.0.into_owned(), reason.0.into_owned()))
}

/// `NAMESPACE/NAME` of an object that could not be decoded, as far as they can be read.
pub(crate) fn name_of(object: &[u8]) -> Option<String> {
    let mut named = Named::default();
    // What was read before the error counts.
    let _ = merge(&mut named, object);
    let Named { namespace, name } = named;
    let name = name?.0;
    Some(namespace.map_or_else(|| name.to_string(), |namespace| format!("{}/{name}", namespace.0)))
}

/// The names in an object.
#[derive(Default)]
struct Named<'a> {
    namespace: Option<Text<'a>>,
    name: Option<Text<'a>>,
}

impl<'a> Message<'a> for Named<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        if field.number != METADATA {
            return Ok(());
        }
        // `k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta`.
        for field in Fields(field.bytes("metadata")?) {
            let field = field?;
            match field.number {
                1 => self.name = field.optional_text("name")?,
                3 => self.namespace = field.optional_text("namespace")?,
                _ => {}
            }
        }
        Ok(())
    }
}
