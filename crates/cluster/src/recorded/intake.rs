//! Finds the kind of each object and decodes it. Objects of other kinds are only counted.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::decode::SnapshotBuilder;
use crate::{Error, Kind};

/// The longest name of a kind in messages, in bytes.
const LONGEST_NAME: usize = 253;
/// The number of other kinds that are counted separately.
const MOST_KINDS: usize = 200;

/// The objects of a recording that one thread has read.
pub(super) struct Intake {
    file: Arc<str>,
    pub(super) snapshot_builder: SnapshotBuilder,
    /// The number of objects of each other kind.
    pub(super) skipped: BTreeMap<String, usize>,
}

/// The kind and API version of an object.
#[derive(Debug, Default, PartialEq, Eq)]
struct What<'a> {
    kind: Option<Cow<'a, str>>,
    api_version: Option<Cow<'a, str>>,
}

impl Intake {
    pub(super) fn new(file: Arc<str>) -> Self {
        Self { file, snapshot_builder: SnapshotBuilder::default(), skipped: BTreeMap::new() }
    }

    /// Decodes one object, or counts it as skipped. `of_list` is the kind of a typed list
    /// (`PodList`), whose items have no kind of their own.
    ///
    /// # Errors
    /// It is not JSON, not an object, or invalid. For text that is not JSON, the error may be any
    /// of these.
    pub(super) fn take(
        &mut self,
        of_list: Option<Kind>,
        index: usize,
        json: &str,
    ) -> Result<(), Error> {
        let Some(what) = What::of(json) else { return Err(self.no_object(index)) };
        match self.kind(of_list, index, &what)? {
            Some(kind) => self
                .snapshot_builder
                .add(kind, index, json)
                .map_err(|object| Error::Object { origin: Arc::clone(&self.file), object }),
            None => serde_json::from_str::<IgnoredAny>(json)
                .map(drop)
                .map_err(|_| self.no_object(index)),
        }
    }

    /// Adds the objects that another thread has read.
    pub(super) fn merge(&mut self, other: Self) {
        self.snapshot_builder.merge(other.snapshot_builder);
        for (kind, count) in other.skipped {
            self.pass_over(kind, count);
        }
    }

    /// Counts objects of another kind. Too long names, and names beyond the limit, share one count.
    fn pass_over(&mut self, kind: String, count: usize) {
        let is_known = self.skipped.contains_key(&kind);
        let is_name = kind.len() <= LONGEST_NAME && self.skipped.len() < MOST_KINDS;
        let kind = if is_known || is_name { kind } else { "of other kinds".to_owned() };
        *self.skipped.entry(kind).or_default() += count;
    }

    /// The error of an item that is not an object.
    pub(super) fn no_object(&self, index: usize) -> Error {
        self.not_a_list(format!("item {} is not an object", index + 1))
    }

    /// The error of a recording that is not a list of objects.
    pub(super) fn not_a_list(&self, reason: String) -> Error {
        Error::NotAList { file: Arc::clone(&self.file), reason }
    }

    fn kind(
        &mut self,
        of_list: Option<Kind>,
        index: usize,
        what: &What<'_>,
    ) -> Result<Option<Kind>, Error> {
        let Some(word) = what.kind.as_deref() else {
            let reason = || format!("item {} has no kind", index + 1);
            return of_list.map(Some).ok_or_else(|| self.not_a_list(reason()));
        };
        let version = what.api_version.as_deref().unwrap_or_default();
        let group = version.rsplit_once('/').map_or("", |(group, _)| group);
        match Kind::of(word) {
            Some(kind) if version == kind.api_version() => Ok(Some(kind)),
            // The same name in another API group is another kind.
            Some(kind) if [kind.group(), "", "extensions"].contains(&group) => {
                Err(Error::Version {
                    file: Arc::clone(&self.file),
                    index,
                    kind,
                    found: format!("`{version}`"),
                    wanted: kind.api_version(),
                })
            }
            Some(_) | None => {
                self.pass_over(word.to_owned(), 1);
                Ok(None)
            }
        }
    }
}

impl<'a> What<'a> {
    /// Reads the kind and API version, no further than necessary; `None` when `json` is not an
    /// object.
    fn of(json: &'a str) -> Option<Self> {
        let mut what = Self::default();
        let read = serde_json::Deserializer::from_str(json).deserialize_map(Words(&mut what));
        // serde_json reports an error when reading stops before the end of the object.
        (read.is_ok() || what.is_complete()).then_some(what)
    }

    fn is_complete(&self) -> bool {
        self.kind.is_some() && self.api_version.is_some()
    }
}

/// Reads an object until its kind and API version are known.
struct Words<'w, 'a>(&'w mut What<'a>);

impl<'de> Visitor<'de> for Words<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        #[derive(Deserialize)]
        struct Word<'a>(#[serde(borrow)] Cow<'a, str>);
        let Self(what) = self;
        while !what.is_complete() {
            let Some(Word(key)) = map.next_key()? else { break };
            let field = match &*key {
                "kind" => &mut what.kind,
                "apiVersion" => &mut what.api_version,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            *field = map.next_value::<Option<Word<'de>>>()?.map(|Word(text)| text);
        }
        Ok(())
    }
}
