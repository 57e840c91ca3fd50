//! The `List` itself, object by object: whatever comes first in it, and whatever is in it beside
//! what a snapshot holds.

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
use super::meter::Metered;
use super::outline::{LARGEST_OBJECT, Notes, Outline};
use super::place::Place;
use crate::cluster::decode::reason_alone;
use crate::cluster::header::{self, Header};
use crate::cluster::{Error, Kind};

/// How deep a YAML recording may be nested, so that the stack of a small thread suffices.
const DEPTH: usize = 64;

/// What has been read of a recording.
pub(super) struct Recording {
    file: Arc<str>,
    pub(super) intake: Intake,
    pub(super) header: Option<Header>,
    /// What stopped the reading, when it was not the syntax.
    failure: Option<Error>,
}

/// What a document says that it is.
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

    /// Reads one JSON document after the other. The objects of lists are decoded meanwhile.
    pub(super) fn read_json(&mut self, bytes: impl BufRead) -> Result<(), Error> {
        let notes = Notes::default();
        thread::scope(|scope| {
            let mut decoders = Decoders::start(scope, &self.file);
            let outline = Outline::new(bytes, &notes, &mut decoders);
            let read = self.read_documents(outline, &notes);
            // Whatever the decoders complain about stands before the place where reading ended.
            decoders.finish(&mut self.intake)?;
            read
        })
    }

    fn read_documents(&mut self, outline: impl Read, notes: &Notes) -> Result<(), Error> {
        let mut json = serde_json::Deserializer::from_reader(outline);
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

    /// Reads one YAML document. Its default bounds are for configuration; a recording may be
    /// large, so only nesting and aliases stay bounded.
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
            let reason = format!("number {number} of its items is larger than any object");
            return self.intake.not_a_list(reason);
        }
        let file = Arc::clone(&self.file);
        let place = notes.in_file(Place { line: error.line(), column: error.column() });
        let reason = || place.said(&reason_alone(&error));
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

    /// The error of a recording that has too much beside its objects, if it does.
    fn too_much(&self, notes: &Notes) -> Option<Error> {
        let reason = || {
            let most = LARGEST_OBJECT >> 20;
            format!("it has more than {most} MiB beside its objects, or in one of them")
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
            // Text of any kind is YAML: the table that kubectl prints without `-o`, say.
            serde_saphyr::Error::Unexpected { .. } => {
                Error::NotAList { file, reason: error.to_string() }
            }
            error => Error::Syntax { file, format: "YAML", reason: error.to_string() },
        }
    }

    /// Notes why reading must stop, and makes the deserializer stop.
    fn stop<E: de::Error>(&mut self, failure: Error) -> E {
        self.failure = Some(failure);
        E::custom("stopped")
    }

    /// Whether a document with `items` is a list of the version that is read.
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

/// An item of a list, as it comes from the parser.
trait Item: DeserializeOwned + Serialize {
    /// Takes it in. `of_list` is what the list says that it is.
    fn take(self, intake: &mut Intake, of_list: Option<Kind>, index: usize) -> Result<(), Error>;
}

/// JSON: objects were taken out and are with the decoders; anything else was not.
impl Item for Box<RawValue> {
    fn take(self, intake: &mut Intake, _: Option<Kind>, index: usize) -> Result<(), Error> {
        if self.get().starts_with('{') { Ok(()) } else { Err(intake.no_object(index)) }
    }
}

/// YAML: a whole object, which the decoder wants as JSON.
impl Item for Value {
    fn take(self, intake: &mut Intake, of_list: Option<Kind>, index: usize) -> Result<(), Error> {
        intake.take(of_list, index, &self.to_string())
    }
}

/// Reads one document into a recording. Each object passes through `W` whole: as its own text in
/// JSON, as a value in YAML.
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
        // Of a List these are small; of a single object they are the object.
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

/// A document that is an object itself, put together again.
#[derive(Serialize)]
struct SingleObject<W> {
    #[serde(flatten)]
    what: What,
    #[serde(flatten)]
    fields: BTreeMap<String, W>,
}

/// Reads `items`.
struct Items<'r, W> {
    recording: &'r mut Recording,
    notes: &'r Notes,
    /// What the items are when the list says so.
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
