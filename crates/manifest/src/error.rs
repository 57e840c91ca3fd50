//! Errors of manifests and their messages; hints are in the root package.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use daemonset::model::{DaemonSetKey, Place};

use super::field_error::FieldError;
use super::warning::UnknownField;

/// Size limit of a file, in bytes.
pub(super) const MAX_FILE_BYTES: usize = 3 << 20;
/// Limit of documents in one file.
pub(super) const MAX_DOCUMENTS: usize = 10_000;
/// Limit of nested lists and mappings.
pub(super) const MAX_NESTING: usize = 64;
/// Limit of the expanded size of aliases in one file, in values and bytes of text.
pub(super) const MAX_ALIAS_WEIGHT: usize = 8 << 20;

/// Expected value of a field of type `string`, for messages.
pub(super) const STRING: &str = "a string";
/// Expected value of a field of type `bool`, for messages.
pub(super) const BOOLEAN: &str = "true or false";
/// Expected value of an integer field, for messages.
pub(super) const INTEGER: &str = "a whole number";

/// Every error of every file, in order of place. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors(pub(super) Vec<Error>);

impl Errors {
    /// The errors, in order of place.
    pub fn iter(&self) -> std::slice::Iter<'_, Error> {
        self.0.iter()
    }

    /// Number of errors; at least one.
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
    /// Prints one error on each line.
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

/// One error of a manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bytes are not valid text.
    #[error("{place}: {problem}")]
    Encoding {
        /// Position of the first invalid byte.
        place: Place,
        /// The problem.
        problem: EncodingProblem,
    },
    /// A limit was exceeded.
    #[error("{place}: {limit}")]
    Limit {
        /// Position at which the limit was exceeded.
        place: Place,
        /// The limit.
        limit: Limit,
    },
    /// The text is neither valid YAML nor valid JSON.
    #[error("{place}: {message}")]
    Syntax {
        /// Position at which parsing stopped.
        place: Place,
        /// The cause.
        message: String,
    },
    /// A DaemonSet of an API version that servers no longer have.
    #[error("{place}: DaemonSet of {api_version}, which servers no longer support; use apps/v1")]
    OldVersion {
        /// Position of the object.
        place: Place,
        /// The object's `apiVersion`.
        api_version: String,
    },
    /// `kind: daemonset` or the like; kinds are case-sensitive.
    #[error("{place}: unknown kind `{kind}`; write `DaemonSet`")]
    KindCase {
        /// Position of the object.
        place: Place,
        /// The object's `kind`.
        kind: String,
    },
    /// An object of the group `ds-plan.dev` with a kind that it does not have: mostly a misspelled
    /// policy.
    #[error("{place}: unknown kind `{kind}` of ds-plan.dev; did you mean `{expected}`?")]
    UnknownKind {
        /// Position of the object.
        place: Place,
        /// The object's `kind`.
        kind: String,
        /// A kind that the group has.
        expected: &'static str,
    },
    /// A DaemonSet or a policy without `apiVersion`, or an object of `apps/v1` or `ds-plan.dev`
    /// without `kind`.
    #[error("{place}: {missing}")]
    Incomplete {
        /// Position of the object.
        place: Place,
        /// What is missing.
        missing: Missing,
    },
    /// A document or an item of a list that is not a Kubernetes object.
    #[error("{place}: not a Kubernetes object: {problem}")]
    NotAnObject {
        /// Position of the document or item.
        place: Place,
        /// The problem.
        problem: NotAnObject,
    },
    /// A list that kubectl does not expand, or not in that way.
    #[error("{place}: {problem}")]
    List {
        /// Position of the list, or of the item.
        place: Place,
        /// The problem.
        problem: ListProblem,
    },
    /// An invalid policy.
    #[error("{place}: RolloutPolicy: {}{message}", prefix(path))]
    Policy {
        /// Position of the field, or of its nearest parent.
        place: Place,
        /// Path of the field; empty for the whole document.
        path: String,
        /// The problem.
        message: String,
    },
    /// Two policies select the same DaemonSet.
    #[error("{second}: a second RolloutPolicy for DaemonSet {key}; the first is at {first}")]
    TwoPolicies {
        /// The DaemonSet.
        key: DaemonSetKey,
        /// Position of the first policy.
        first: Place,
        /// Position of the second one.
        second: Place,
    },
    /// A DaemonSet that comes after itself.
    #[error("{}", after_itself(circle, places))]
    AfterItself {
        /// The DaemonSets: each comes after the next one, and the last one after the first one.
        circle: Vec<DaemonSetKey>,
        /// Position of the item of `spec.after` of each.
        places: Vec<Place>,
    },
    /// A value of the wrong type or format (upstream: a decoding error, HTTP 400).
    #[error("{place}: {path}: {problem}")]
    Type {
        /// Position of the value.
        place: Place,
        /// Path of the field.
        path: String,
        /// The problem.
        problem: TypeProblem,
    },
    /// A field that the API does not have.
    #[error("{place}: {field}")]
    UnknownField {
        /// Position of the field.
        place: Place,
        /// Path of the field, and a suggestion.
        field: UnknownField,
    },
    /// A violation of a rule of the API server (HTTP 422) or of `ds-plan`.
    #[error("{place}: {error}")]
    Field {
        /// Position of the field, or of its nearest parent.
        place: Place,
        /// The violation, in the server's words.
        error: FieldError,
    },
    /// A DaemonSet with `generateName` instead of `name`.
    #[error("{place}: generateName creates a new DaemonSet each time; use metadata.name instead")]
    GeneratedName {
        /// Position of `generateName`.
        place: Place,
    },
    /// The API server would accept the object, but `ds-plan` cannot read it.
    #[error("{place}: this DaemonSet cannot be read: {message}")]
    Unreadable {
        /// Position of the object.
        place: Place,
        /// The cause.
        message: String,
    },
    /// Two documents for one DaemonSet.
    #[error("{second}: DaemonSet {key} is already defined at {first}")]
    Duplicate {
        /// The DaemonSet.
        key: DaemonSetKey,
        /// Position of the first one.
        first: Place,
        /// Position of the second one.
        second: Place,
    },
    /// The files contain no DaemonSet.
    #[error("no DaemonSet found in {seen}")]
    NoDaemonSet {
        /// The content of the files.
        seen: Seen,
    },
}

impl Error {
    /// Position of the error; `None` if it concerns no single position.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::Encoding { place, .. }
            | Self::Limit { place, .. }
            | Self::Syntax { place, .. }
            | Self::OldVersion { place, .. }
            | Self::KindCase { place, .. }
            | Self::UnknownKind { place, .. }
            | Self::Incomplete { place, .. }
            | Self::NotAnObject { place, .. }
            | Self::List { place, .. }
            | Self::Type { place, .. }
            | Self::UnknownField { place, .. }
            | Self::Field { place, .. }
            | Self::GeneratedName { place }
            | Self::Unreadable { place, .. }
            | Self::Policy { place, .. }
            | Self::TwoPolicies { second: place, .. }
            | Self::Duplicate { second: place, .. } => Some(place),
            Self::AfterItself { circle: _, places } => places.first(),
            Self::NoDaemonSet { .. } => None,
        }
    }
}

/// `f.yaml:9:10: RolloutPolicy: spec.after: a DaemonSet comes after itself: a/b -> a/c -> a/b; …`.
fn after_itself(circle: &[DaemonSetKey], places: &[Place]) -> String {
    let names = circle.iter().chain(circle.first()).map(ToString::to_string);
    let names = names.collect::<Vec<_>>().join(" -> ");
    let mut places = places.iter().map(ToString::to_string);
    let first = places.next().map(|place| format!("{place}: ")).unwrap_or_default();
    let others = places.collect::<Vec<_>>().join(", ");
    let others = if others.is_empty() { others } else { format!(" (also at {others})") };
    format!("{first}RolloutPolicy: spec.after: a DaemonSet comes after itself: {names}{others}")
}

/// `path: `, or an empty string for the whole document.
fn prefix(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("{path}: ") }
}

/// The content of files without a DaemonSet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Number of files given.
    pub files: usize,
    /// Number of files parsed, because they mention a DaemonSet or a policy.
    pub parsed: usize,
    /// Number of objects of other kinds in the parsed files, by kind.
    pub other_kinds: BTreeMap<String, usize>,
    /// Number of documents in the parsed files that are not Kubernetes objects.
    pub not_objects: usize,
}

/// The fields that an object lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// `apiVersion`, or it is not a string.
    #[error("apiVersion is missing")]
    ApiVersion,
    /// `kind`, or it is not a string.
    #[error("kind is missing")]
    Kind,
    /// Both.
    #[error("apiVersion and kind are missing")]
    Both,
}

impl Missing {
    /// What an object lacks, of which at least one is `None`.
    pub(super) fn of(version: Option<&str>, kind: Option<&str>) -> Self {
        match (version, kind) {
            (Some(_), _) => Self::Kind,
            (None, Some(_)) => Self::ApiVersion,
            (None, None) => Self::Both,
        }
    }
}

/// The reason why a document or an item of a list is not a Kubernetes object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAnObject {
    /// It is not a mapping.
    #[error("{0}")]
    Kind(JsonKind),
    /// It is a mapping without them.
    #[error(transparent)]
    Missing(Missing),
}

/// The reason why a list is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListProblem {
    /// An item of a list is a list.
    #[error("a list inside a list, which kubectl rejects; move its items to the outer list")]
    Nested,
    /// `items` is absent, or not a list.
    #[error("`items` must be a list")]
    NoItems,
    /// An object that is no list has `items`.
    #[error("kubectl reads an object with `items` as a list; remove them from this {kind}")]
    Named {
        /// The kind of the object.
        kind: String,
    },
    /// A DaemonSet or a policy in a list of other kinds.
    #[error("{kind} in {list}; move it to a `List` of v1, or to a document of its own")]
    Elsewhere {
        /// The kind of the item.
        kind: String,
        /// The list, such as `a FooList of example.dev/v1`.
        list: String,
    },
}

/// The reason why bytes are not valid text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodingProblem {
    /// Not UTF-8.
    #[error("not valid UTF-8; save the file as UTF-8")]
    NotUtf8,
    /// A UTF-16 byte order mark, but not UTF-16.
    #[error("has a UTF-16 byte order mark but is not valid UTF-16; save the file as UTF-8")]
    NotUtf16,
}

/// The limits on manifests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Limit {
    /// Size of a file.
    #[error("the file has {bytes} bytes; at most {MAX_FILE_BYTES} are read")]
    FileSize {
        /// Size of the file, in bytes.
        bytes: usize,
    },
    /// Number of documents in a file.
    #[error("more than {MAX_DOCUMENTS} documents in one file")]
    Documents,
    /// Depth of lists and mappings.
    #[error("lists and mappings nest more than {MAX_NESTING} deep")]
    Nesting,
    /// Expanded size of aliases.
    #[error("aliases expand to more than {MAX_ALIAS_WEIGHT} values and bytes of text in one file")]
    Aliases,
}

/// A problem of a value. Values of the wrong type are never printed: they may be secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypeProblem {
    /// The value has the wrong type.
    #[error("must be {want}, not {have}{}", advice(want, *have))]
    Kind {
        /// The expected type, such as `a string`.
        want: &'static str,
        /// The actual type.
        have: JsonKind,
    },
    /// A number that is not an integer, or outside the field's range.
    #[error("must be a whole number of at most {bits} bits, not {have}")]
    Integer {
        /// The number.
        have: String,
        /// Bits of the field: 32 or 64.
        bits: u8,
    },
    /// Not a quantity such as `100m` or `64Mi`.
    #[error("`{have}` is not a quantity; use for example `100m` or `64Mi`")]
    Quantity {
        /// The text of the value.
        have: String,
    },
    /// Not a time in RFC 3339 format.
    #[error("`{have}` is not a time; use for example `2026-01-31T10:00:00Z`")]
    Time {
        /// The text of the value.
        have: String,
    },
    /// The deprecated annotation with the `templateGeneration` is not an integer.
    #[error("`{have}` is not a whole number")]
    TemplateGeneration {
        /// The text of the value.
        have: String,
    },
}

/// The types of JSON values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonKind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A number.
    Number,
    /// A string.
    String,
    /// A list.
    List,
    /// A mapping.
    Map,
}

impl JsonKind {
    /// The type of `value`.
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

/// What to do about a value of the wrong type, if that is clear.
fn advice(want: &str, have: JsonKind) -> &'static str {
    match (want, have) {
        (STRING, JsonKind::Bool | JsonKind::Number) => "; put it in quotes",
        (BOOLEAN | INTEGER, JsonKind::String) => "; write it without quotes",
        _unclear => "",
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { files, parsed, other_kinds, not_objects } = self;
        let plural = if *files == 1 { "" } else { "s" };
        write!(f, "{files} file{plural}")?;
        if parsed != files {
            write!(f, ", {parsed} of them parsed")?;
        }
        let kinds = other_kinds.iter().map(|(kind, count)| format!("{count} {kind}"));
        let kinds = kinds.collect::<Vec<_>>().join(", ");
        let others = match not_objects {
            0 => String::new(),
            1 => "1 document that is not a Kubernetes object".to_owned(),
            count => format!("{count} documents that are not Kubernetes objects"),
        };
        let it = if *files == 1 { "it has" } else { "they have" };
        match (kinds.is_empty(), others.is_empty()) {
            (true, true) => Ok(()),
            (false, true) => write!(f, "; {it} {kinds}"),
            (true, false) => write!(f, "; {it} {others}"),
            (false, false) => write!(f, "; {it} {kinds} and {others}"),
        }
    }
}
