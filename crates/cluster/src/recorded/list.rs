//! Reads the `List` object by object, with its keys in any order, and with any other objects and
//! keys in it.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, Read};
use std::marker::PhantomData;
use std::sync::Arc;
use std::thread;

use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::batches::Decoders;
use super::bytes::reading;
use super::intake::Intake;
use super::list_skeleton::{ListSkeleton, Notes};
use super::meter::LARGEST_OBJECT;
use super::meter::Metered;
use super::place::Place;
use crate::decode::reason_alone;
use crate::header::{self, Header};
use crate::{Error, Kind};

/// The nesting limit of a YAML recording, so that the stack of a small thread suffices.
const DEPTH: usize = 64;

/// The part of a recording that has been read.
pub(super) struct Recording {
    file: Arc<str>,
    pub(super) intake: Intake,
    pub(super) header: Option<Header>,
    /// The error that stopped reading, unless it was a syntax error.
    failure: Option<Error>,
}

/// The kind and API version of a document.
#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct What {
    kind: Option<String>,
    api_version: Option<String>,
}

impl Recording {
    pub(super) fn new(file: Arc<str>) -> Self {
        let intake = Intake::new(Arc::clone(&file));
        Self { file, intake, header: None, failure: None }
    }

    /// Reads consecutive JSON documents. The objects of lists are decoded concurrently.
    pub(super) fn read_json(&mut self, bytes: impl BufRead) -> Result<(), Error> {
        let notes = Notes::default();
        thread::scope(|scope| {
            let mut decoders = Decoders::start(scope, &self.file);
            let list_skeleton = ListSkeleton::new(bytes, &notes, &mut decoders);
            let read = self.read_documents(list_skeleton, &notes);
            // Errors of the decoders come first: they are at earlier positions.
            decoders.finish(&mut self.intake)?;
            read
        })
    }

    fn read_documents(&mut self, list_skeleton: impl Read, notes: &Notes) -> Result<(), Error> {
        let mut json = serde_json::Deserializer::from_reader(list_skeleton);
        loop {
            let document = Document::<Box<RawValue>>::of(self, notes);
            let read = document.deserialize(&mut json);
            read.map_err(|error| self.json_error(error, notes))?;
            match json.end() {
                Ok(()) => return Ok(()),
                Err(error) if error.is_io() => return Err(self.json_error(error, notes)),
                Err(_another_document) => notes.meter.document_done(),
            }
        }
    }

    /// Reads one YAML document. The parser's default limits are for configuration files; a
    /// recording may be large, so only nesting and aliases stay limited.
    pub(super) fn read_yaml(&mut self, bytes: impl BufRead) -> Result<(), Error> {
        let notes = Notes::default();
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! {
                max_reader_input_bytes: None,
                max_events: usize::MAX,
                max_nodes: usize::MAX,
                max_total_scalar_bytes: usize::MAX,
                max_depth: DEPTH,
            },
            legacy_octal_numbers: true,
            with_snippet: false,
        };
        let bytes = Metered::new(bytes, &notes.meter);
        let read =
            serde_saphyr::with_deserializer_from_reader_with_options(bytes, options, |yaml| {
                Document::<Value>::of(self, &notes).deserialize(yaml)
            });
        read.map_err(|error| self.yaml_error(error, &notes))
    }

    fn json_error(&mut self, error: serde_json::Error, notes: &Notes) -> Error {
        if let Some(failure) = self.failure.take().or_else(|| self.too_much(notes)) {
            return failure;
        }
        if let Some(number) = notes.too_large() {
            let reason = format!("item {number} is too large for a Kubernetes object");
            return self.intake.not_a_list(reason);
        }
        let file = Arc::clone(&self.file);
        let place = notes.in_file(Place { line: error.line(), column: error.column() });
        let reason = || place.message(&reason_alone(&error));
        match error.classify() {
            serde_json::error::Category::Io => reading(&file, error.into()),
            serde_json::error::Category::Eof => {
                Error::CutOff { file, at: Some((place.line, place.column)) }
            }
            serde_json::error::Category::Syntax => {
                Error::Syntax { file, format: "JSON", reason: reason() }
            }
            serde_json::error::Category::Data => Error::NotAList { file, reason: reason() },
        }
    }

    /// The error of a recording with too much text outside of its objects, if it has.
    fn too_much(&self, notes: &Notes) -> Option<Error> {
        let reason = || {
            let most = LARGEST_OBJECT >> 20;
            format!("it has more than {most} MiB outside of its objects, or in one of them")
        };
        notes.meter.is_passed().then(|| self.intake.not_a_list(reason()))
    }

    fn yaml_error(&mut self, error: serde_saphyr::Error, notes: &Notes) -> Error {
        if let Some(failure) = self.failure.take().or_else(|| self.too_much(notes)) {
            return failure;
        }
        let file = Arc::clone(&self.file);
        match error {
            serde_saphyr::Error::IOError { cause } => reading(&file, cause),
            // Almost any text is valid YAML, such as the table that kubectl prints without `-o`.
            serde_saphyr::Error::Unexpected { .. } => {
                Error::NotAList { file, reason: error.to_string() }
            }
            error => Error::Syntax { file, format: "YAML", reason: error.to_string() },
        }
    }

    /// Stores the error, and stops the deserializer.
    fn stop<E: de::Error>(&mut self, failure: Error) -> E {
        self.failure = Some(failure);
        E::custom("stopped")
    }

    /// Checks that a document with `items` is a list of a supported version.
    fn check_list(&self, what: &What) -> Result<(), Error> {
        let reason = match (what.kind.as_deref(), what.api_version.as_deref()) {
            (Some("List"), Some("v1")) => return Ok(()),
            (Some("List"), version) => {
                format!("its apiVersion is `{}`, not `v1`", version.unwrap_or_default())
            }
            (Some(kind), _) if kind.ends_with("List") => return Ok(()),
            (kind, _) => format!("its kind is `{}`", kind.unwrap_or_default()),
        };
        Err(Error::NotAList { file: Arc::clone(&self.file), reason })
    }
}

/// An item of a list, in the parser's form.
trait Item: DeserializeOwned + Serialize {
    /// Decodes it. `of_list` is the kind of a typed list.
    fn take(self, intake: &mut Intake, of_list: Option<Kind>, index: usize) -> Result<(), Error>;
}

/// JSON: objects have gone to the decoders; any other item is still here, which is an error.
impl Item for Box<RawValue> {
    fn take(self, intake: &mut Intake, _: Option<Kind>, index: usize) -> Result<(), Error> {
        if self.get().starts_with('{') { Ok(()) } else { Err(intake.no_object(index)) }
    }
}

/// YAML: a whole object, which is converted to JSON for the decoder.
impl Item for Value {
    fn take(self, intake: &mut Intake, of_list: Option<Kind>, index: usize) -> Result<(), Error> {
        intake.take(of_list, index, &self.to_string())
    }
}

/// Reads one document into a recording. `W` is the form of an item: raw text in JSON, a value in
/// YAML.
struct Document<'r, W> {
    recording: &'r mut Recording,
    notes: &'r Notes,
    whole: PhantomData<W>,
}

impl<'r, W> Document<'r, W> {
    fn of(recording: &'r mut Recording, notes: &'r Notes) -> Self {
        Self { recording, notes, whole: PhantomData }
    }
}

impl<'de, W: Item> DeserializeSeed<'de> for Document<'_, W> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, W: Item> Visitor<'de> for Document<'_, W> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a List of objects")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { recording, notes, .. } = self;
        let mut what = What::default();
        let mut has_items = false;
        // Small in a List; the whole content of a single object.
        let mut fields: BTreeMap<String, W> = BTreeMap::new();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "kind" => what.kind = map.next_value()?,
                "apiVersion" => what.api_version = map.next_value()?,
                header::KEY => recording.header = Some(map.next_value()?),
                "items" => {
                    has_items = true;
                    let of = what.kind.as_deref().and_then(|kind| kind.strip_suffix("List"));
                    let of = of.and_then(Kind::of);
                    notes.items_follow(of);
                    notes.meter.items_begin();
                    map.next_value_seed(Items::<W> { recording, notes, of, whole: PhantomData })?;
                }
                _ => {
                    fields.insert(key, map.next_value()?);
                }
            }
        }
        let taken = if has_items {
            recording.check_list(&what)
        } else {
            let object = SingleObject { what, fields };
            let json = serde_json::to_string(&object).map_err(de::Error::custom)?;
            recording.intake.take(None, 0, &json)
        };
        taken.map_err(|failure| recording.stop(failure))
    }
}

/// A document that is a single object, serialized again.
#[derive(Serialize)]
struct SingleObject<W> {
    #[serde(flatten)]
    what: What,
    #[serde(flatten)]
    fields: BTreeMap<String, W>,
}

/// Reads the array `items` of a list.
struct Items<'r, W> {
    recording: &'r mut Recording,
    notes: &'r Notes,
    /// The kind of the items of a typed list.
    of: Option<Kind>,
    whole: PhantomData<W>,
}

impl<'de, W: Item> DeserializeSeed<'de> for Items<'_, W> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, W: Item> Visitor<'de> for Items<'_, W> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the items of a List")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut index = 0;
        while let Some(item) = items.next_element::<W>()? {
            let taken = item.take(&mut self.recording.intake, self.of, index);
            taken.map_err(|failure| self.recording.stop(failure))?;
            self.notes.meter.item_done();
            index += 1;
        }
        Ok(())
    }
}
