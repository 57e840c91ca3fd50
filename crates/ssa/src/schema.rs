//! The merge schema of a kind, which the caller gives (upstream: `schema.Schema`), and that of
//! DaemonSets.
//!
//! The table of DaemonSets is generated from the API server's `/openapi/v3/apis/apps/v1`; a control-plane test
//! generates it again and compares. It lists the non-scalar fields by their schema, without those
//! below an atomic field.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Value, json};

use super::field_path::{Literal, PathStep};

/// The schema of DaemonSets, `apps/v1`.
pub static DAEMON_SET: LazyLock<Schema> = LazyLock::new(|| {
    // As Go marshals it.
    let empty = json!({
        "metadata": {},
        "spec": {
            "selector": null,
            "template": { "metadata": {}, "spec": { "containers": null } },
            "updateStrategy": {},
        },
    });
    // The server counts the template's generation, and copies `serviceAccountName`.
    let is_derived = |name: &str, beside: &Value| {
        name == "deprecated.daemonset.template.generation"
            || name == "serviceAccount"
                && beside.get("serviceAccountName").is_some_and(|it| !it.is_null())
    };
    #[expect(clippy::expect_used, reason = "the table is part of the program; a test loads it")]
    Schema::new("apps/v1", "DaemonSet", include_str!("schema.json"), empty)
        .expect("schema.json is a table of shapes")
        .with_derived(is_derived)
});

/// How the objects of one kind are merged: each field as a whole, by key or by value.
#[derive(Debug)]
pub struct Schema {
    /// The served API version. Ownership recorded in another version is ignored, as the server
    /// does.
    pub(super) api_version: String,
    root: String,
    table: BTreeMap<String, Struct>,
    /// An object without fields, as the server stores it.
    pub(super) empty: Value,
    /// Whether the server sets a field by itself, by its name and the fields beside it.
    pub(super) is_derived: fn(&str, &Value) -> bool,
}

impl Schema {
    /// A schema whose `table` is the JSON of an object: by the name of each struct, its non-scalar
    /// fields. A field is `"atomic"`, `"set"`, `"map"`, the name of a struct, or a list with map
    /// keys: `{"keys": {"name": DEFAULT}, "of": STRUCT}`, where `STRUCT` may be `"atomic"`. A struct
    /// that is not in the table has only scalar fields. `root` is the struct of the whole object,
    /// and `empty` an object of which no field is set, as the server stores it.
    ///
    /// ```
    /// use serde_json::json;
    /// use ssa::{Manifest, Schema};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let table = r#"{"ConfigMap": {"data": "map"}}"#;
    /// let schema = Schema::new("v1", "ConfigMap", table, json!({"metadata": {}}))?;
    /// let applied = json!({"metadata": {"name": "a"}, "data": {"b": "2"}});
    /// let live = json!({"metadata": {"name": "a"}, "data": {"a": "1", "b": "1"}});
    /// let manifest = Manifest { applied: &applied, defaulted: &applied };
    /// let merged = ssa::apply(&schema, Some(&live), manifest, "me", "2026-01-01T00:00:00Z".parse()?)?;
    /// assert_eq!(merged.object["data"], json!({"a": "1", "b": "2"}));
    /// assert_eq!(merged.conflicts[0].path.to_string(), "data.b");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The table has another form.
    pub fn new(
        api_version: &str,
        root: &str,
        table: &str,
        empty: Value,
    ) -> Result<Self, serde_json::Error> {
        Ok(Self {
            api_version: api_version.to_owned(),
            root: root.to_owned(),
            table: serde_json::from_str(table)?,
            empty,
            is_derived: |_, _| false,
        })
    }

    /// The same schema with fields that the server sets by itself, chosen by their name and the
    /// object that they are in. They are no [`Leftover`](crate::Leftover)s.
    #[must_use]
    pub fn with_derived(self, is_derived: fn(&str, &Value) -> bool) -> Self {
        Self { is_derived, ..self }
    }

    /// The shape of the whole object.
    pub(super) fn shape(&self) -> Shape<'_> {
        Shape::Struct(self.structure(&self.root))
    }

    fn structure(&self, name: &str) -> Fields<'_> {
        Fields { schema: self, of: self.table.get(name).unwrap_or(&NO_FIELDS) }
    }
}

/// The non-scalar fields of one schema.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
struct Struct(BTreeMap<String, Entry>);

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
pub(super) enum Shape<'s> {
    /// A scalar, or a value that is not in the table.
    Scalar,
    /// A list, map or struct that has one owner as a whole.
    Atomic,
    /// A list of scalars, each with its own owners.
    Set,
    /// A map of scalars, each with its own owners.
    Map,
    /// A struct: named fields, each with its own owners.
    Struct(Fields<'s>),
    /// A list of structs with map keys; without a schema, each element has one owner.
    Keyed(Keys<'s>, Option<Fields<'s>>),
}

/// The fields of a struct.
#[derive(Clone, Copy)]
pub(super) struct Fields<'s> {
    schema: &'s Schema,
    of: &'s Struct,
}

/// Without the schema, which would be printed with each shape.
impl fmt::Debug for Fields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.of.fmt(f)
    }
}

/// The key fields of a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys<'s>(&'s BTreeMap<String, Value>);

static NO_FIELDS: Struct = Struct(BTreeMap::new());

impl Shape<'_> {
    /// The shape of a field or map entry.
    pub(super) fn field(self, name: &str) -> Self {
        match self {
            Self::Struct(fields) => fields.field(name),
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

impl<'s> Fields<'s> {
    fn field(self, name: &str) -> Shape<'s> {
        let Self { schema, of } = self;
        match of.0.get(name) {
            None => Shape::Scalar,
            Some(Entry::Keyed { keys, of }) => {
                Shape::Keyed(Keys(keys), (of != "atomic").then(|| schema.structure(of)))
            }
            Some(Entry::Word(word)) => match word.as_str() {
                "atomic" => Shape::Atomic,
                "set" => Shape::Set,
                "map" => Shape::Map,
                name => Shape::Struct(schema.structure(name)),
            },
        }
    }
}

impl<'s> Keys<'s> {
    /// The key of an element; `None` when it is not an object (upstream:
    /// `keyedAssociativeListItemToPathElement`).
    pub(super) fn of(self, element: &Value) -> Option<PathStep> {
        let element = element.as_object()?;
        let key = |(name, default): (&'s String, &'s Value)| {
            let value = element.get(name).unwrap_or(default);
            let left_out = value.is_null() && !element.contains_key(name);
            (!left_out).then(|| (name.clone(), Literal::from(value)))
        };
        let keys: Vec<_> = self.0.iter().filter_map(key).collect();
        (!keys.is_empty()).then_some(PathStep::Key(keys))
    }
}

#[cfg(test)]
mod tests {
    use super::super::FieldPath;
    use super::*;

    #[test]
    fn every_schema_that_is_named_is_there() {
        for (owner, fields) in &DAEMON_SET.table {
            for (field, entry) in &fields.0 {
                let (Entry::Keyed { of: name, .. } | Entry::Word(name)) = entry;
                let known = ["atomic", "set", "map"].contains(&name.as_str());
                assert!(known || DAEMON_SET.table.contains_key(name), "{owner}.{field}: {name}");
            }
        }
    }

    #[test]
    fn elements_are_named_by_their_keys_and_what_those_default_to() {
        let pod = DAEMON_SET.shape().field("spec").field("template").field("spec");
        let ports = pod.field("containers").element().field("ports");
        let Shape::Keyed(keys, _) = ports else { panic!("{ports:?}") };
        for (element, want) in [
            (json!({"containerPort": 53, "protocol": "UDP"}), Some("53/UDP")),
            (json!({"containerPort": 53}), Some("53/TCP")),
            (json!({}), Some("0/TCP")),
            (json!(53), None),
        ] {
            let step = keys.of(&element).map(|step| FieldPath(vec![step]).to_string());
            assert_eq!(step, want.map(|text| format!("[{text}]")), "{element}");
        }
    }
}
