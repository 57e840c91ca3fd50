//! Decodes `metadata`: the fields that any of the kinds needs.

mod protobuf;

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::context::{Cause, Context};
use super::lenient;
use super::text::Text;
use daemonset::model::{
    ControllerRef, Interner, Labels, NamespaceName, Time, Uid, null_as_default,
};

/// `metadata` with annotations.
pub(super) type Annotated<'a> = Metadata<'a, Pairs<'a>>;

/// `metadata`. Without annotations by default, because nodes and pods have many.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Metadata<'a, A = IgnoredAny> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    namespace: Option<Text<'a>>,
    #[serde(borrow)]
    uid: Option<Text<'a>>,
    #[serde(borrow)]
    labels: Pairs<'a>,
    annotations: A,
    #[serde(borrow, deserialize_with = "null_as_default")]
    owner_references: Vec<OwnerReference<'a>>,
    #[serde(deserialize_with = "null_as_default")]
    managed_fields: Vec<ManagedFields>,
    #[serde(deserialize_with = "lenient::moment")]
    pub(super) creation_timestamp: Option<Timestamp>,
    #[serde(deserialize_with = "lenient::moment")]
    deletion_timestamp: Option<Timestamp>,
    pub(super) generation: i64,
}

#[derive(Default, Deserialize)]
struct OwnerReference<'a> {
    #[serde(borrow, default)]
    kind: Text<'a>,
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, default)]
    uid: Text<'a>,
    controller: Option<bool>,
}

#[derive(Default, Deserialize)]
struct ManagedFields {
    #[serde(default, deserialize_with = "lenient::moment")]
    time: Option<Timestamp>,
}

impl Annotated<'_> {
    pub(super) fn annotations(&self, interner: &mut Interner) -> Labels {
        self.annotations.shared(interner)
    }

    /// The value of one annotation.
    pub(super) fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key)
    }
}

impl<A> Metadata<'_, A> {
    pub(super) fn name(&self) -> Result<&str, Cause> {
        required(self.name.as_ref()).ok_or(Cause::Missing("metadata.name"))
    }

    pub(super) fn namespace(&self, interner: &mut Interner) -> Result<NamespaceName, Cause> {
        let text = required(self.namespace.as_ref()).ok_or(Cause::Missing("metadata.namespace"))?;
        Ok(interner.share(text).into())
    }

    pub(super) fn uid(&self) -> Result<Uid, Cause> {
        required(self.uid.as_ref()).map(Uid::from).ok_or(Cause::Missing("metadata.uid"))
    }

    pub(super) fn labels(&self, interner: &mut Interner) -> Labels {
        self.labels.shared(interner)
    }

    /// The owner reference with `controller: true` (upstream: `GetControllerOf`).
    pub(super) fn controller(&self, interner: &mut Interner) -> Option<Arc<ControllerRef>> {
        let owner = self.owner_references.iter().find(|owner| owner.controller == Some(true))?;
        Some(interner.controller(&owner.kind.0, &owner.name.0, &owner.uid.0))
    }

    pub(super) fn created(&self) -> Option<Time> {
        self.creation_timestamp.map(Time::from)
    }

    pub(super) fn is_terminating(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    pub(super) fn has_managed_fields(&self) -> bool {
        !self.managed_fields.is_empty()
    }

    /// Records the past times in it. `deletionTimestamp` may be in the future: it is the end of the
    /// grace period.
    pub(super) fn note(&self, context: &mut Context<'_>) {
        context.saw(self.creation_timestamp);
        context.saw(self.managed_fields.iter().filter_map(|entry| entry.time).max());
    }
}

fn required<'t>(text: Option<&'t Text<'_>>) -> Option<&'t str> {
    text.map(|text| &*text.0).filter(|text| !text.is_empty())
}

/// Labels or annotations, in the order of the text.
#[derive(Default)]
pub(super) struct Pairs<'a>(Vec<(Text<'a>, Text<'a>)>);

impl Pairs<'_> {
    /// The value under `key`.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(it, _)| it.0 == key).map(|(_, value)| &*value.0)
    }

    pub(super) fn shared(&self, interner: &mut Interner) -> Labels {
        interner.labels(self.0.iter().map(|(Text(key), Text(value))| (&**key, &**value)))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PairsVisitor)
    }
}

pub(super) struct PairsVisitor;

impl<'de> Visitor<'de> for PairsVisitor {
    type Value = Pairs<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of strings")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Pairs::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::with_capacity(map.size_hint().unwrap_or(8));
        while let Some((key, value)) = map.next_entry::<Text<'de>, Option<Text<'de>>>()? {
            pairs.push((key, value.unwrap_or_default()));
        }
        Ok(Pairs(pairs))
    }
}
