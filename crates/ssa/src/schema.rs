//! The merge schema of a DaemonSet: fields are merged as a whole, by key or by value.
//!
//! The table is generated from the API server's `/openapi/v3/apis/apps/v1`; a control-plane test
//! generates it again and compares. It lists the non-scalar fields by their schema, without those
//! below an atomic field.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

use daemonset::model::{Literal, PathStep};

/// All schemas inside a DaemonSet, by the last part of their name; the root is `DaemonSet`.
static TABLE: LazyLock<BTreeMap<String, Struct>> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "the table is part of the program; a test loads it")]
    serde_json::from_str(include_str!("schema.json")).expect("schema.json is a table of shapes")
});

/// The non-scalar fields of one schema.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Struct(BTreeMap<String, Entry>);

/// One entry of the table.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Entry {
    /// `atomic`, `set`, `map`, or the name of a schema.
    Word(String),
    /// A list with map keys.
    Keyed {
        /// The key fields with their defaults.
        keys: BTreeMap<String, Value>,
        /// The schema of the elements, or `atomic`.
        of: String,
    },
}

/// The merge rule of a value (upstream: `schema.Atom`).
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// A scalar, or a value that is not in the table.
    Scalar,
    /// A list, map or struct that has one owner as a whole.
    Atomic,
    /// A list of scalars, each with its own owners.
    Set,
    /// A map of scalars, each with its own owners.
    Map,
    /// A struct: named fields, each with its own owners.
    Struct(&'static Struct),
    /// A list of structs with map keys; without a schema, each element has one owner.
    Keyed(Keys, Option<&'static Struct>),
}

/// The key fields of a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys(&'static BTreeMap<String, Value>);

static NO_FIELDS: Struct = Struct(BTreeMap::new());

impl Shape {
    /// The shape of a DaemonSet.
    pub(super) fn daemon_set() -> Self {
        Self::of_struct("DaemonSet")
    }

    fn of_struct(name: &str) -> Self {
        Self::Struct(structure(name))
    }

    fn of_entry(entry: &'static Entry) -> Self {
        match entry {
            Entry::Keyed { keys, of } => {
                Self::Keyed(Keys(keys), (of != "atomic").then(|| structure(of)))
            }
            Entry::Word(word) => match word.as_str() {
                "atomic" => Self::Atomic,
                "set" => Self::Set,
                "map" => Self::Map,
                name => Self::of_struct(name),
            },
        }
    }

    /// The shape of a field or map entry.
    pub(super) fn field(self, name: &str) -> Self {
        match self {
            Self::Struct(fields) => fields.0.get(name).map_or(Self::Scalar, Self::of_entry),
            Self::Scalar | Self::Atomic | Self::Set | Self::Map | Self::Keyed(..) => Self::Scalar,
        }
    }

    /// The shape of a list's elements.
    pub(super) fn element(self) -> Self {
        match self {
            Self::Keyed(_, element) => element.map_or(Self::Atomic, Self::Struct),
            Self::Scalar | Self::Atomic | Self::Set | Self::Map | Self::Struct(_) => Self::Scalar,
        }
    }

    /// The shape of the value at a step.
    pub(super) fn step(self, step: &PathStep) -> Self {
        match step {
            PathStep::Field(name) => self.field(name),
            PathStep::Key(_) => self.element(),
            PathStep::Value(_) | PathStep::Index(_) => Self::Scalar,
        }
    }

    /// Whether a step leads to a named field, not to a map entry or list element.
    pub(super) fn names(self, step: &PathStep) -> bool {
        matches!((self, step), (Self::Struct(_), PathStep::Field(_)))
    }
}

impl Keys {
    /// The key of an element; `None` when it is not an object (upstream:
    /// `keyedAssociativeListItemToPathElement`).
    pub(super) fn of(self, element: &Value) -> Option<PathStep> {
        let element = element.as_object()?;
        let key = |(name, default): (&String, &'static Value)| {
            let value = element.get(name).unwrap_or(default);
            let left_out = value.is_null() && !element.contains_key(name);
            (!left_out).then(|| (name.clone(), Literal::from(value)))
        };
        let keys: Vec<_> = self.0.iter().filter_map(key).collect();
        (!keys.is_empty()).then_some(PathStep::Key(keys))
    }
}

fn structure(name: &str) -> &'static Struct {
    TABLE.get(name).unwrap_or(&NO_FIELDS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_schema_that_is_named_is_there() {
        for (owner, fields) in &*TABLE {
            for (field, entry) in &fields.0 {
                let (Entry::Keyed { of: name, .. } | Entry::Word(name)) = entry;
                let known = ["atomic", "set", "map"].contains(&name.as_str());
                assert!(known || TABLE.contains_key(name), "{owner}.{field}: {name}");
            }
        }
    }

    #[test]
    fn elements_are_named_by_their_keys_and_what_those_default_to() {
        let pod = Shape::daemon_set().field("spec").field("template").field("spec");
        let ports = pod.field("containers").element().field("ports");
        let Shape::Keyed(keys, _) = ports else { panic!("{ports:?}") };
        for (element, want) in [
            (json!({"containerPort": 53, "protocol": "UDP"}), Some("53/UDP")),
            (json!({"containerPort": 53}), Some("53/TCP")),
            (json!({}), Some("0/TCP")),
            (json!(53), None),
        ] {
            let step =
                keys.of(&element).map(|step| daemonset::model::FieldPath(vec![step]).to_string());
            assert_eq!(step, want.map(|text| format!("[{text}]")), "{element}");
        }
    }
}
