//! Decodes and encodes JSON as the API server's Go types do.
//!
//! Wrong types and unknown fields are problems; empty fields are omitted or added as the Go tags of
//! each field say; quantities and times are written in canonical form. Names are case-sensitive, as
//! in upstream's decoder. Not here: defaults (`defaults`), rules about values (`validate`).

use std::collections::BTreeSet;
use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::error::{BOOLEAN, INTEGER, JsonKind, STRING, TypeProblem};
use super::fields::{Field, Omit, Struct, Type, structure};
use super::go_number::number_text;
use super::quantity::{self, Rounding};
use super::warning::{FieldHint, UnknownField};

/// Minimum similarity of a suggested name.
const LIKENESS: f64 = 0.8;

/// A problem of a value, by path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// A value of the wrong kind or form.
    Type {
        /// Path of the field.
        path: String,
        /// The problem.
        problem: TypeProblem,
    },
    /// A field that the API does not have.
    Unknown(UnknownField),
}

/// Decodes `object` as a DaemonSet; returns it as it would be served, without `status`, and all
/// problems, those of `status` included: the server decodes it before it ignores it.
pub(super) fn daemon_set(mut object: Value) -> (Value, Vec<Problem>) {
    let mut decoder = Decoder::default();
    if let Some(fields) = structure("DaemonSet") {
        object = decoder.structure(fields, object);
    }
    if let Value::Object(fields) = &mut object {
        fields.remove("status");
    }
    (object, decoder.problems)
}

/// The paths of the unknown fields.
pub(super) fn unknown_paths(problems: &[Problem]) -> BTreeSet<String> {
    let unknown = problems.iter().filter_map(|problem| match problem {
        Problem::Unknown(field) => Some(field.path.clone()),
        Problem::Type { .. } => None,
    });
    unknown.collect()
}

#[derive(Default)]
struct Decoder {
    path: String,
    /// The structs that enclose the current value, each with the length of its path.
    enclosing: Vec<(&'static Struct, usize)>,
    problems: Vec<Problem>,
}

impl Decoder {
    fn value(&mut self, kind: &Type, value: Value) -> Value {
        match (kind, value) {
            (Type::Raw, value)
            | (Type::String | Type::IntOrString, value @ Value::String(_))
            | (Type::Bool, value @ Value::Bool(_)) => value,
            (Type::Pointer(_), Value::Null) => Value::Null,
            (Type::Pointer(inner), value) => self.value(inner, value),
            (kind, Value::Null) => self.zero(kind),
            (Type::Int32 | Type::IntOrString, Value::Number(number)) => self.integer(&number, 32),
            (Type::Int64, Value::Number(number)) => self.integer(&number, 64),
            (Type::Quantity, value) => self.quantity(&value, Rounding::Exact),
            (Type::Time, Value::String(text)) => self.time(&text),
            (Type::Struct(name), value @ Value::Object(_)) => match structure(name) {
                Some(fields) => self.structure(fields, value),
                None => value,
            },
            (Type::List(inner), Value::Array(items)) => self.list(inner, items),
            (Type::Map(inner), Value::Object(entries)) => {
                self.map(entries, |decoder, value| decoder.value(inner, value))
            }
            (Type::ResourceList, Value::Object(entries)) => {
                self.map(entries, |decoder, value| decoder.quantity(&value, Rounding::Milli))
            }
            (kind, value) => {
                let have = JsonKind::of(&value);
                self.problem(TypeProblem::Kind { want: wanted(kind), have });
                self.zero(kind)
            }
        }
    }

    fn structure(&mut self, fields: &'static Struct, value: Value) -> Value {
        let mut given = match value {
            Value::Object(given) => given,
            _ => Map::new(),
        };
        let length = self.path.len();
        self.enclosing.push((fields, length));
        let mut decoded = Map::new();
        for (name, field) in fields {
            self.enter(name);
            let value = self.value(&field.kind, given.remove(name).unwrap_or_default());
            self.path.truncate(length);
            if !is_omitted(field, &value) {
                decoded.insert(name.clone(), empty_as_null(&field.kind, value));
            }
        }
        for name in given.into_iter().map(|(name, _)| name) {
            self.unknown(&name);
        }
        self.enclosing.pop();
        Value::Object(decoded)
    }

    fn list(&mut self, kind: &Type, items: Vec<Value>) -> Value {
        let length = self.path.len();
        let mut decoded = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            // Writing to a String cannot fail.
            let _ = write!(self.path, "[{index}]");
            decoded.push(self.value(kind, item));
            self.path.truncate(length);
        }
        Value::Array(decoded)
    }

    fn map(
        &mut self,
        entries: Map<String, Value>,
        mut decode: impl FnMut(&mut Self, Value) -> Value,
    ) -> Value {
        let length = self.path.len();
        let mut decoded = Map::new();
        for (key, value) in entries {
            let _ = write!(self.path, "[{key}]");
            decoded.insert(key, decode(self, value));
            self.path.truncate(length);
        }
        Value::Object(decoded)
    }

    fn integer(&mut self, number: &serde_json::Number, bits: u8) -> Value {
        let fits = number.as_i64().filter(|value| bits == 64 || i32::try_from(*value).is_ok());
        if let Some(value) = fits {
            return value.into();
        }
        self.problem(TypeProblem::Integer { have: number_text(number), bits });
        0.into()
    }

    /// Upstream reads a quantity from a text, a number, or `null`.
    fn quantity(&mut self, value: &Value, rounding: Rounding) -> Value {
        let text = match value {
            Value::Null => "0".to_owned(),
            Value::String(text) => text.clone(),
            Value::Number(number) => number_text(number),
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                let have = JsonKind::of(value);
                self.problem(TypeProblem::Kind { want: wanted(&Type::Quantity), have });
                return "0".into();
            }
        };
        let Ok(canonical) = quantity::canonical(&text, rounding) else {
            self.problem(TypeProblem::Quantity { have: text });
            return "0".into();
        };
        canonical.into()
    }

    /// Times are served in UTC and in whole seconds.
    fn time(&mut self, text: &str) -> Value {
        match text.parse::<Timestamp>() {
            Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into(),
            Err(_not_rfc_3339) => {
                self.problem(TypeProblem::Time { have: text.to_owned() });
                Value::Null
            }
        }
    }

    /// The zero value of an absent field of this type.
    fn zero(&mut self, kind: &Type) -> Value {
        match kind {
            Type::String => "".into(),
            Type::Bool => false.into(),
            Type::Int32 | Type::Int64 | Type::IntOrString => 0.into(),
            Type::Quantity => "0".into(),
            Type::Struct(name) => match structure(name) {
                Some(fields) => self.structure(fields, Value::Null),
                None => Value::Null,
            },
            Type::Time
            | Type::Raw
            | Type::Pointer(_)
            | Type::List(_)
            | Type::Map(_)
            | Type::ResourceList => Value::Null,
        }
    }

    fn enter(&mut self, name: &str) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(name);
    }

    fn unknown(&mut self, name: &str) {
        let hint: Option<FieldHint> = hint(&self.enclosing, &self.path, name);
        let length = self.path.len();
        self.enter(name);
        self.problems.push(Problem::Unknown(UnknownField { path: self.path.clone(), hint }));
        self.path.truncate(length);
    }

    fn problem(&mut self, problem: TypeProblem) {
        self.problems.push(Problem::Type { path: self.path.clone(), problem });
    }
}

fn wanted(kind: &Type) -> &'static str {
    match kind {
        Type::String => STRING,
        Type::Bool => BOOLEAN,
        Type::Int32 | Type::Int64 => INTEGER,
        Type::Quantity => "a quantity",
        Type::IntOrString => "a whole number or a string",
        Type::Time => "a time",
        Type::Raw => "anything",
        Type::Struct(_) | Type::Map(_) | Type::ResourceList => "a mapping",
        Type::List(_) => "a list",
        Type::Pointer(inner) => wanted(inner),
    }
}

fn is_omitted(field: &Field, value: &Value) -> bool {
    if field.omit == Omit::Never {
        return false;
    }
    match &field.kind {
        Type::Pointer(_) | Type::Raw => value.is_null(),
        Type::List(_) | Type::Map(_) | Type::ResourceList => is_empty(value),
        Type::String => value.as_str() == Some(""),
        Type::Bool => value == &Value::Bool(false),
        Type::Int32 | Type::Int64 => value.as_i64() == Some(0),
        // Times are structs to Go, and only `omitzero` leaves out structs.
        Type::Time => field.omit == Omit::Zero && value.is_null(),
        Type::Struct(_) | Type::Quantity | Type::IntOrString => false,
    }
}

/// Empty lists and maps without `omitempty` are served as `null`, because storage does not
/// distinguish them from absent ones.
fn empty_as_null(kind: &Type, value: Value) -> Value {
    match kind {
        Type::List(_) | Type::Map(_) | Type::ResourceList if is_empty(&value) => Value::Null,
        _ => value,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// A suggestion for the field `name`, which the innermost of the `enclosing` structs does not have: a
/// known field at another depth, or one with a similar name in the same struct; or that the document
/// is a patch. Each struct comes with the length of its `path`.
fn hint(enclosing: &[(&'static Struct, usize)], path: &str, name: &str) -> Option<FieldHint> {
    if name.starts_with('$') {
        return Some(FieldHint::PatchDirective);
    }
    let (innermost, outer) = enclosing.split_last()?;
    let fields = innermost.0;
    let join = |prefix: &str, rest: &str| match prefix {
        "" => rest.to_owned(),
        prefix => format!("{prefix}.{rest}"),
    };
    let above = outer.iter().rev().find(|(fields, _)| fields.contains_key(name));
    if let Some((_, length)) = above {
        return Some(FieldHint::Elsewhere { path: join(&path[..*length], name) });
    }
    let nearest = fields.keys().map(|known| (likeness(known, name), known));
    let nearest = nearest.filter(|(likeness, _)| *likeness >= LIKENESS);
    if let Some((_, known)) = nearest.max_by(|(a, _), (b, _)| a.total_cmp(b)) {
        return Some(FieldHint::Nearest { name: known.clone() });
    }
    let below = fields
        .iter()
        .find(|(_, field)| field.kind.as_struct().is_some_and(|inner| inner.contains_key(name)));
    let (parent, _) = below?;
    Some(FieldHint::Elsewhere { path: join(path, &format!("{parent}.{name}")) })
}

fn likeness(known: &str, name: &str) -> f64 {
    if known.eq_ignore_ascii_case(name) {
        return 1.0;
    }
    strsim::normalized_damerau_levenshtein(known, name).max(strsim::jaro_winkler(known, name) - 0.1)
}
