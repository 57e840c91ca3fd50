//! A value of the manifest with the path under which its errors are reported.
//!
//! The manifest was decoded with the Go types before, so a value has the type that its rule
//! expects; an absent value (or `null`) reads as Go's zero value.

use serde_json::Value;

use super::go_text::{json, quoted};
use crate::{ErrorKind, FieldError, RefusedBy};

/// The errors found, in upstream's order.
pub(super) type Errors = Vec<FieldError>;

/// A value of the manifest and its path.
#[derive(Clone, Debug)]
pub(super) struct At<'a> {
    path: String,
    value: &'a Value,
}

/// Navigation.
impl<'a> At<'a> {
    /// The whole object.
    pub(super) fn root(value: &'a Value) -> Self {
        Self { path: String::new(), value }
    }

    /// The field `name`, present or absent.
    pub(super) fn get(&self, name: &str) -> Self {
        Self { path: self.path_of(name), value: self.value.get(name).unwrap_or(&Value::Null) }
    }

    /// The field `name` if it is present: a non-nil pointer upstream.
    pub(super) fn find(&self, name: &str) -> Option<Self> {
        Some(self.get(name)).filter(Self::is_set)
    }

    /// The items of a list.
    pub(super) fn items(&self) -> impl ExactSizeIterator<Item = Self> + use<'a> {
        let items = self.value.as_array().map_or(&[][..], Vec::as_slice);
        let path = self.path.clone();
        items.iter().enumerate().map(move |(i, value)| Self { path: format!("{path}[{i}]"), value })
    }

    /// The entries of a map, each at `path[key]`.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'a str, Self)> + Clone + use<'a> {
        let path = self.path.clone();
        self.value
            .as_object()
            .into_iter()
            .flatten()
            .map(move |(key, value)| (key.as_str(), Self { path: format!("{path}[{key}]"), value }))
    }

    /// The same value with another path: upstream does not always report the path of the field.
    pub(super) fn reported_at(self, path: impl Into<String>) -> Self {
        Self { path: path.into(), value: self.value }
    }

    /// The path of the field `name` of this value.
    pub(super) fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// The path of this value.
    pub(super) fn path(&self) -> &str {
        &self.path
    }
}

/// Access to the value.
impl<'a> At<'a> {
    /// `true` if the value is present and not `null`.
    pub(super) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// The value as JSON.
    pub(super) fn json(&self) -> &'a Value {
        self.value
    }

    /// The string; empty when absent.
    pub(super) fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    /// The number; 0 when absent.
    pub(super) fn int(&self) -> i64 {
        self.value.as_i64().unwrap_or_default()
    }

    /// `true` if the value is `true`.
    pub(super) fn is_true(&self) -> bool {
        self.value.as_bool().unwrap_or_default()
    }

    /// `true` for an empty or absent list or map.
    pub(super) fn is_empty(&self) -> bool {
        match self.value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// The items of a list of strings.
    pub(super) fn texts(&self) -> Vec<&'a str> {
        self.value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }
}

/// Construction of errors.
impl At<'_> {
    pub(super) fn required(&self, why: &str) -> FieldError {
        self.error(ErrorKind::Required, None, why)
    }

    pub(super) fn forbidden(&self, why: &str) -> FieldError {
        self.error(ErrorKind::Forbidden, None, why)
    }

    /// An error of type Invalid; the value is a plain string, a number or a boolean upstream.
    pub(super) fn invalid(&self, why: &str) -> FieldError {
        self.invalid_as(self.shown(), why)
    }

    /// One Invalid error for each of `reasons`.
    pub(super) fn invalids(&self, reasons: Vec<String>) -> impl Iterator<Item = FieldError> {
        reasons.into_iter().map(|why| self.invalid(&why))
    }

    /// An error of type Invalid; the value is a named string type, a pointer, a list, a map or a
    /// struct upstream.
    pub(super) fn invalid_json(&self, why: &str) -> FieldError {
        self.invalid_as(self.marshalled(), why)
    }

    /// One such error for each of `reasons`.
    pub(super) fn invalids_json(&self, reasons: Vec<String>) -> impl Iterator<Item = FieldError> {
        reasons.into_iter().map(|why| self.invalid_json(&why))
    }

    /// An error of type Invalid that shows another value.
    pub(super) fn invalid_as(&self, value: String, why: &str) -> FieldError {
        self.error(ErrorKind::Invalid, Some(value), why)
    }

    /// The value is not one of the `known` values, which upstream lists in this order.
    pub(super) fn not_supported(&self, known: &[&str]) -> FieldError {
        self.not_supported_as(self.marshalled(), known)
    }

    /// The same error with another value.
    pub(super) fn not_supported_as(&self, value: String, known: &[&str]) -> FieldError {
        let known: Vec<String> = known.iter().map(|value| quoted(value)).collect();
        let why = format!("supported values: {}", known.join(", "));
        self.error(ErrorKind::NotSupported, Some(value), &why)
    }

    pub(super) fn duplicate(&self) -> FieldError {
        self.duplicate_as(self.shown())
    }

    /// An error of type Duplicate that shows another value.
    pub(super) fn duplicate_as(&self, value: String) -> FieldError {
        self.error(ErrorKind::Duplicate, Some(value), "")
    }

    pub(super) fn not_found(&self) -> FieldError {
        self.not_found_as(self.shown(), "")
    }

    /// An error of type Not found that shows the value that upstream searched for.
    pub(super) fn not_found_as(&self, value: String, why: &str) -> FieldError {
        self.error(ErrorKind::NotFound, Some(value), why)
    }

    pub(super) fn too_long(&self, max: usize) -> FieldError {
        self.error(ErrorKind::TooLong, None, &format!("may not be more than {max} bytes"))
    }

    pub(super) fn too_many(&self, max: usize) -> FieldError {
        let count = self.items().len().to_string();
        self.error(ErrorKind::TooMany, Some(count), &format!("must have at most {max} items"))
    }

    /// A Duplicate error by a rule of `ds-plan`.
    pub(super) fn duplicate_for_us(&self, why: &str) -> FieldError {
        let error = self.error(ErrorKind::Duplicate, Some(self.shown()), why);
        FieldError { refused_by: RefusedBy::DsPlan, ..error }
    }

    fn shown(&self) -> String {
        self.value.as_str().map_or_else(|| self.marshalled(), quoted)
    }

    /// The value as JSON; an absent one is an empty string.
    pub(super) fn marshalled(&self) -> String {
        if self.is_set() { json(self.value) } else { quoted("") }
    }

    fn error(&self, kind: ErrorKind, value: Option<String>, why: &str) -> FieldError {
        let detail = why.to_owned();
        FieldError {
            path: self.path.clone(),
            kind,
            value,
            detail,
            refused_by: RefusedBy::ApiServer,
        }
    }
}

/// Common rules.
impl At<'_> {
    /// Must be one of `known`, or absent.
    pub(super) fn one_of_if_set(&self, known: &[&str], errors: &mut Errors) {
        if self.is_set() {
            self.one_of(known, errors);
        }
    }

    /// Must be one of `known`.
    pub(super) fn one_of(&self, known: &[&str], errors: &mut Errors) {
        if !known.contains(&self.text()) {
            errors.push(self.not_supported(known));
        }
    }

    /// Must be one of `known`; if absent, a Required error.
    pub(super) fn required_one_of(&self, known: &[&str], errors: &mut Errors) {
        if self.text().is_empty() {
            errors.push(self.required(""));
        } else {
            self.one_of(known, errors);
        }
    }

    /// Must not be empty.
    pub(super) fn not_empty(&self, errors: &mut Errors) {
        if self.is_empty() {
            errors.push(self.required(""));
        }
    }

    /// Must follow `format`, if there is any text.
    pub(super) fn follows_if_set(&self, format: fn(&str) -> Vec<String>, errors: &mut Errors) {
        if !self.text().is_empty() {
            self.follows(format, errors);
        }
    }

    /// Must follow `format`.
    pub(super) fn follows(&self, format: fn(&str) -> Vec<String>, errors: &mut Errors) {
        errors.extend(self.invalids(format(self.text())));
    }

    /// Must be there and follow `format`.
    pub(super) fn required_and_follows(
        &self,
        format: fn(&str) -> Vec<String>,
        errors: &mut Errors,
    ) {
        self.not_empty(errors);
        self.follows_if_set(format, errors);
    }

    /// Must be 0 or more (upstream: `ValidateNonnegativeField`).
    pub(super) fn not_negative(&self, errors: &mut Errors) {
        if self.int() < 0 {
            errors.push(self.invalid("must be greater than or equal to 0"));
        }
    }

    /// Must be a number from `low` to `high`.
    pub(super) fn within(&self, low: i64, high: i64, errors: &mut Errors) {
        if !(low..=high).contains(&self.int()) {
            errors.push(self.invalid(&format!("must be between {low} and {high}, inclusive")));
        }
    }
}
