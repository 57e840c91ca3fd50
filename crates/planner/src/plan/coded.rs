//! A reason in a document: code and data for programs, and a sentence made from them.
//!
//! The sentence is made when the document is written and never read back, so it always matches the
//! data.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize, Serializer};

/// A typed reason, written with its sentence: `code`, the data, and `message`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Coded<T> {
    /// Code and data.
    #[serde(flatten)]
    pub reason: T,
}

impl<T: fmt::Display> fmt::Display for Coded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl<T> From<T> for Coded<T> {
    fn from(reason: T) -> Self {
        Self { reason }
    }
}

/// A reason in its serialized form.
#[derive(Serialize, JsonSchema)]
#[schemars(description = "A typed reason with its sentence: `code`, the data, and `message`.")]
struct Written<T> {
    /// The reason as a sentence, made from its data.
    message: String,
    /// Code and data.
    #[serde(flatten)]
    reason: T,
}

impl<T: fmt::Display + Serialize> Serialize for Coded<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Written { message: self.to_string(), reason: &self.reason }.serialize(serializer)
    }
}

impl<T: JsonSchema> JsonSchema for Coded<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("Coded{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Written::<T>::json_schema(generator)
    }
}
