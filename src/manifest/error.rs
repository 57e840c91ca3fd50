//! What can be wrong with manifests. The only place with the words for it; hints are `cli`'s.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::model::{DaemonSetKey, Place};

use super::field_error::FieldError;
use super::warning::UnknownField;

/// Largest file that is read, in bytes.
pub(super) const MAX_FILE_BYTES: usize = 3 << 20;
/// Most documents that are read from one file.
pub(super) const MAX_DOCUMENTS: usize = 10_000;
/// Deepest nesting of lists and mappings.
pub(super) const MAX_NESTING: usize = 64;

/// What a field of type `string` wants.
pub(super) const STRING: &str = "a string";
/// What a field of type `bool` wants.
pub(super) const BOOLEAN: &str = "true or false";
/// What an integer field wants.
pub(super) const INTEGER: &str = "a whole number";

/// Every error of every file, in order of place. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors(pub(super) Vec<Error>);

impl Errors {
    /// The errors, in order of place.
    pub fn iter(&self) -> std::slice::Iter<'_, Error> {
        self.0.iter()
    }

    /// How many there are; at least one.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl<'a> IntoIterator for &'a Errors {
    type Item = &'a Error;
    type IntoIter = std::slice::Iter<'a, Error>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Errors {
    /// One error a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, error) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Errors {}

/// One thing that is wrong with a manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bytes are no text.
    #[error("{place}: {problem}")]
    Encoding {
        /// The first byte that is wrong.
        place: Place,
        /// What is wrong with it.
        problem: EncodingProblem,
    },
    /// A bound was passed.
    #[error("{place}: {limit}")]
    Limit {
        /// Where it was passed.
        place: Place,
        /// Which bound.
        limit: Limit,
    },
    /// Neither YAML nor JSON.
    #[error("{place}: {message}")]
    Syntax {
        /// Where reading stopped.
        place: Place,
        /// Why.
        message: String,
    },
    /// A DaemonSet of an API version that servers no longer have.
    #[error("{place}: DaemonSet of {api_version}, which no server has any more; write apps/v1")]
    OldVersion {
        /// Where the object begins.
        place: Place,
        /// Its `apiVersion`.
        api_version: String,
    },
    /// `kind: daemonset`, or the like; kinds are told apart by case.
    #[error("{place}: kind `{kind}` is unknown; write `DaemonSet`")]
    KindCase {
        /// Where the object begins.
        place: Place,
        /// Its `kind`.
        kind: String,
    },
    /// An object without `apiVersion`, or without `kind`.
    #[error("{place}: {missing} is missing")]
    Incomplete {
        /// Where the object begins.
        place: Place,
        /// `apiVersion` or `kind`.
        missing: &'static str,
    },
    /// A policy is not as it must be.
    #[error("{place}: RolloutPolicy: {}{message}", prefix(path))]
    Policy {
        /// Where the field stands, or its nearest parent.
        place: Place,
        /// Path of the field; empty for the whole.
        path: String,
        /// What is wrong with it.
        message: String,
    },
    /// Two policies select the same DaemonSet.
    #[error("{second}: a second RolloutPolicy for DaemonSet {key}; the first is at {first}")]
    TwoPolicies {
        /// The DaemonSet.
        key: DaemonSetKey,
        /// Where the first policy begins.
        first: Place,
        /// Where the second one begins.
        second: Place,
    },
    /// A field has a value of the wrong kind or form (upstream: a decoding error, HTTP 400).
    #[error("{place}: {path}: {problem}")]
    Type {
        /// Where the value stands.
        place: Place,
        /// Path of the field.
        path: String,
        /// What is wrong with it.
        problem: TypeProblem,
    },
    /// A field that the API does not know.
    #[error("{place}: {field}")]
    UnknownField {
        /// Where it stands.
        place: Place,
        /// Its path, and what it may have meant.
        field: UnknownField,
    },
    /// A rule of the API server is broken (HTTP 422), or one of ours.
    #[error("{place}: {error}")]
    Field {
        /// Where the field stands, or its nearest parent.
        place: Place,
        /// The rule, in the server's words.
        error: FieldError,
    },
    /// A DaemonSet without a name of its own.
    #[error("{place}: generateName makes a new DaemonSet each time; write metadata.name instead")]
    GeneratedName {
        /// Where `generateName` stands.
        place: Place,
    },
    /// The API server would take it, but this program cannot follow.
    #[error("{place}: this DaemonSet cannot be understood: {message}")]
    Unreadable {
        /// Where the object begins.
        place: Place,
        /// Why.
        message: String,
    },
    /// Two documents for one DaemonSet.
    #[error("{second}: DaemonSet {key} is already defined at {first}")]
    Duplicate {
        /// The DaemonSet.
        key: DaemonSetKey,
        /// Where the first one begins.
        first: Place,
        /// Where the second one begins.
        second: Place,
    },
    /// Nothing to plan.
    #[error("no DaemonSet found in {seen}")]
    NoDaemonSet {
        /// What was found instead.
        seen: Seen,
    },
}

impl Error {
    /// Where it is; `None` when it is nowhere in particular.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::Encoding { place, .. }
            | Self::Limit { place, .. }
            | Self::Syntax { place, .. }
            | Self::OldVersion { place, .. }
            | Self::KindCase { place, .. }
            | Self::Incomplete { place, .. }
            | Self::Type { place, .. }
            | Self::UnknownField { place, .. }
            | Self::Field { place, .. }
            | Self::GeneratedName { place }
            | Self::Unreadable { place, .. }
            | Self::Policy { place, .. }
            | Self::TwoPolicies { second: place, .. }
            | Self::Duplicate { second: place, .. } => Some(place),
            Self::NoDaemonSet { .. } => None,
        }
    }
}

/// `path: `, or nothing for the document as a whole.
fn prefix(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("{path}: ") }
}

/// What was found where no DaemonSet was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Files given.
    pub files: usize,
    /// Files parsed, because they mention a DaemonSet or a policy.
    pub parsed: usize,
    /// Objects of other kinds in them.
    pub other_kinds: BTreeMap<String, usize>,
    /// Documents in them without a kind.
    pub without_kind: usize,
}

/// Why bytes are no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodingProblem {
    /// Not UTF-8.
    NotUtf8,
    /// A UTF-16 byte order mark, but not UTF-16.
    NotUtf16,
}

/// The bounds on manifests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Bytes of a file.
    FileSize {
        /// How many it has.
        bytes: usize,
    },
    /// Documents in a file.
    Documents,
    /// Depth of lists and mappings.
    Nesting,
    /// What aliases expand to.
    Aliases,
}

/// What is wrong with a value. Values of the wrong kind are never printed: they may be secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeProblem {
    /// It is of another kind.
    Kind {
        /// What it must be, such as `a string`.
        want: &'static str,
        /// What it is.
        have: JsonKind,
    },
    /// A number that is not whole, or outside the field's range.
    Integer {
        /// The number.
        have: String,
        /// Bits of the field: 32 or 64.
        bits: u8,
    },
    /// Not a quantity such as `100m` or `64Mi`.
    Quantity {
        /// The text.
        have: String,
    },
    /// Not a point in time as RFC 3339 writes it.
    Time {
        /// The text.
        have: String,
    },
    /// The deprecated annotation `templateGeneration` lives in is not a whole number.
    TemplateGeneration {
        /// The text.
        have: String,
    },
}

/// The kinds of JSON values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonKind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A number.
    Number,
    /// A text.
    String,
    /// A list.
    List,
    /// A mapping.
    Map,
}

impl JsonKind {
    /// The kind of `value`.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Bool,
            Value::Number(_) => Self::Number,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::List,
            Value::Object(_) => Self::Map,
        }
    }
}

impl fmt::Display for JsonKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Bool => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::List => "a list",
            Self::Map => "a mapping",
        })
    }
}

impl fmt::Display for TypeProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind { want, have } => {
                write!(f, "must be {want}, not {have}")?;
                match (*want, have) {
                    (STRING, JsonKind::Bool | JsonKind::Number) => {
                        f.write_str("; put it in quotes")
                    }
                    (BOOLEAN | INTEGER, JsonKind::String) => {
                        f.write_str("; write it without quotes")
                    }
                    _fits_no_advice => Ok(()),
                }
            }
            Self::Integer { have, bits } => {
                write!(f, "must be a whole number of at most {bits} bits, not {have}")
            }
            Self::Quantity { have } => {
                write!(f, "`{have}` is no quantity; write one such as `100m` or `64Mi`")
            }
            Self::Time { have } => {
                write!(f, "`{have}` is no time; write one such as `2026-01-31T10:00:00Z`")
            }
            Self::TemplateGeneration { have } => write!(f, "`{have}` is no whole number"),
        }
    }
}

impl fmt::Display for EncodingProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotUtf8 => "not valid UTF-8; save the file as UTF-8",
            Self::NotUtf16 => "begins like UTF-16 but is not valid UTF-16; save the file as UTF-8",
        })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FileSize { bytes } => {
                write!(f, "the file has {bytes} bytes; at most {MAX_FILE_BYTES} are read")
            }
            Self::Documents => write!(f, "more than {MAX_DOCUMENTS} documents in one file"),
            Self::Nesting => write!(f, "lists and mappings nest more than {MAX_NESTING} deep"),
            Self::Aliases => f.write_str("aliases expand to too much"),
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { files, parsed, other_kinds, without_kind } = self;
        let plural = if *files == 1 { "" } else { "s" };
        write!(f, "{files} file{plural}")?;
        if parsed != files {
            write!(f, ", {parsed} of them parsed")?;
        }
        if !other_kinds.is_empty() {
            let kinds: Vec<_> =
                other_kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
            write!(f, "; other objects: {}", kinds.join(", "))?;
        }
        match without_kind {
            0 => Ok(()),
            1 => f.write_str("; 1 document has no kind"),
            count => write!(f, "; {count} documents have no kind"),
        }
    }
}
