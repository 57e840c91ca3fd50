//! One object after the other: of which kind it is, and decoding it. What a snapshot has no
//! use for is counted.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::cluster::decode::Gathered;
use crate::cluster::{Error, Kind};

/// The longest name of a kind that is told, in bytes.
const LONGEST_NAME: usize = 253;
/// How many other kinds are told apart.
const MOST_KINDS: usize = 200;

/// What has been read of a recording by one thread.
pub(super) struct Intake {
    file: Arc<str>,
    pub(super) gathered: Gathered,
    /// Objects of other kinds.
    pub(super) passed_over: BTreeMap<String, usize>,
}

/// What an object says that it is.
#[derive(Debug, Default, PartialEq, Eq)]
struct What<'a> {
    kind: Option<Cow<'a, str>>,
    api_version: Option<Cow<'a, str>>,
}

impl Intake {
    pub(super) fn new(file: Arc<str>) -> Self {
        Self { file, gathered: Gathered::default(), passed_over: BTreeMap::new() }
    }

    /// Takes one object in, or counts it as passed over. `of_list` is the kind of a typed list
    /// (`PodList`), whose items do not say it themselves.
    ///
    /// # Errors
    /// It is not JSON, no object, or not what the API server would serve. Of text that is not
    /// JSON, the error may also be another one.
    pub(super) fn take(
        &mut self,
        of_list: Option<Kind>,
        index: usize,
        json: &str,
    ) -> Result<(), Error> {
        let Some(what) = What::of(json) else { return Err(self.no_object(index)) };
        match self.kind(of_list, index, &what)? {
            Some(kind) => self
                .gathered
                .add(kind, index, json)
                .map_err(|object| Error::Object { origin: Arc::clone(&self.file), object }),
            None => serde_json::from_str::<IgnoredAny>(json)
                .map(drop)
                .map_err(|_| self.no_object(index)),
        }
    }

    /// Takes over what another thread has read.
    pub(super) fn absorb(&mut self, other: Self) {
        self.gathered.absorb(other.gathered);
        for (kind, count) in other.passed_over {
            self.pass_over(kind, count);
        }
    }

    /// Counts objects of another kind. What is no name of one, or one of too many, is not kept.
    fn pass_over(&mut self, kind: String, count: usize) {
        let is_known = self.passed_over.contains_key(&kind);
        let is_name = kind.len() <= LONGEST_NAME && self.passed_over.len() < MOST_KINDS;
        let kind = if is_known || is_name { kind } else { "of other kinds".to_owned() };
        *self.passed_over.entry(kind).or_default() += count;
    }

    /// The error of an item that is no object.
    pub(super) fn no_object(&self, index: usize) -> Error {
        self.not_a_list(format!("number {} of its items is no object", index + 1))
    }

    /// The error of a recording that is no list of objects.
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
            let reason = || format!("number {} of its items has no kind", index + 1);
            return of_list.map(Some).ok_or_else(|| self.not_a_list(reason()));
        };
        let version = what.api_version.as_deref().unwrap_or_default();
        let group = version.rsplit_once('/').map_or("", |(group, _)| group);
        match Kind::of(word) {
            Some(kind) if version == kind.api_version() => Ok(Some(kind)),
            // The same word in another group is another kind.
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
    /// What the object says of itself, read no further than to where it has said both; `None` when
    /// it is no object.
    fn of(json: &'a str) -> Option<Self> {
        let mut what = Self::default();
        let read = serde_json::Deserializer::from_str(json).deserialize_map(Words(&mut what));
        // What stops early has not seen the end of the object, which is an error to serde_json.
        (read.is_ok() || what.is_complete()).then_some(what)
    }

    fn is_complete(&self) -> bool {
        self.kind.is_some() && self.api_version.is_some()
    }
}

/// Reads an object up to where it has said what it is.
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
