//! The fields of a DaemonSet: their types, and how empty ones are encoded.
//!
//! The table is generated from upstream's Go types (`tests/control_plane/tools/kubernetes/fields`);
//! a control-plane test generates it again and compares. Not here: decoding by the table
//! (`decode`).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// All structs of a DaemonSet, by Go name; the root is `DaemonSet`.
static TABLE: LazyLock<BTreeMap<String, Struct>> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "the table is part of the program; a test loads it")]
    serde_json::from_str(include_str!("fields.json")).expect("fields.json is a field table")
});

/// The fields of one struct, by JSON name; embedded structs are inlined.
pub(super) type Struct = BTreeMap<String, Field>;

/// A field of a struct.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Field {
    /// Type of the field.
    #[serde(rename = "type")]
    pub(super) kind: Type,
    /// Rule for omitting the field.
    #[serde(default)]
    pub(super) omit: Omit,
}

/// A rule for omitting a field from JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Omit {
    /// The field is never omitted.
    #[default]
    Never,
    /// Go's `omitempty`: omits empty strings, lists and maps, `false`, 0, absent pointers.
    Empty,
    /// Go's `omitzero`: omits zero values.
    Zero,
}

/// The type of a field, parsed from an expression such as `*int32` or `map[string]string`.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) enum Type {
    String,
    Bool,
    Int32,
    Int64,
    Quantity,
    IntOrString,
    Time,
    /// Any JSON.
    Raw,
    Struct(String),
    Pointer(Box<Self>),
    List(Box<Self>),
    Map(Box<Self>),
    /// A map of resource names to quantities, which are rounded up to thousandths.
    ResourceList,
}

impl TryFrom<String> for Type {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if let Some(inner) = text.strip_prefix('*') {
            return Ok(Self::Pointer(Box::new(inner.to_owned().try_into()?)));
        }
        if let Some(inner) = text.strip_prefix("[]") {
            return Ok(Self::List(Box::new(inner.to_owned().try_into()?)));
        }
        if let Some((key, value)) = text.strip_prefix("map[").and_then(|map| map.split_once(']')) {
            return match key {
                "ResourceName" => Ok(Self::ResourceList),
                "string" => Ok(Self::Map(Box::new(value.to_owned().try_into()?))),
                other => Err(format!("no rule for maps by {other}")),
            };
        }
        Ok(match text.as_str() {
            "string" => Self::String,
            "bool" => Self::Bool,
            "int32" => Self::Int32,
            "int64" => Self::Int64,
            "Quantity" => Self::Quantity,
            "IntOrString" => Self::IntOrString,
            "Time" => Self::Time,
            "Raw" => Self::Raw,
            name if name.starts_with(|first: char| first.is_ascii_uppercase()) => {
                Self::Struct(text)
            }
            other => return Err(format!("no rule for type {other}")),
        })
    }
}

impl Type {
    /// The struct of this type, or of its pointer's target.
    pub(super) fn as_struct(&self) -> Option<&'static Struct> {
        match self {
            Self::Struct(name) => structure(name),
            Self::Pointer(inner) => inner.as_struct(),
            Self::String
            | Self::Bool
            | Self::Int32
            | Self::Int64
            | Self::Quantity
            | Self::IntOrString
            | Self::Time
            | Self::Raw
            | Self::List(_)
            | Self::Map(_)
            | Self::ResourceList => None,
        }
    }
}

/// The struct with that Go name.
pub(super) fn structure(name: &str) -> Option<&'static Struct> {
    TABLE.get(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named<'t>(kind: &'t Type, names: &mut Vec<&'t str>) {
        match kind {
            Type::Struct(name) => names.push(name),
            Type::Pointer(inner) | Type::List(inner) | Type::Map(inner) => named(inner, names),
            _ => {}
        }
    }

    #[test]
    fn the_table_loads_and_knows_every_struct_that_it_names() {
        assert!(TABLE.len() > 100);
        let mut names = vec!["DaemonSet"];
        for field in TABLE.values().flat_map(BTreeMap::values) {
            named(&field.kind, &mut names);
        }
        for name in names {
            assert!(structure(name).is_some(), "{name}");
        }
    }

    #[test]
    fn types_are_read_from_expressions() {
        for (text, want) in [
            ("*int32", Type::Pointer(Box::new(Type::Int32))),
            ("[]EnvVar", Type::List(Box::new(Type::Struct("EnvVar".into())))),
            ("map[string]string", Type::Map(Box::new(Type::String))),
            ("map[ResourceName]Quantity", Type::ResourceList),
        ] {
            assert_eq!(Type::try_from(text.to_owned()), Ok(want), "{text}");
        }
        for text in ["float64", "map[int]string", ""] {
            assert!(Type::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
