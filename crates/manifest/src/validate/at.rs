//! A value of the manifest with the path under which its errors are reported.
//!
//! The manifest was decoded with the Go types before, so a value has the type that its rule
//! expects; an absent value (or `null`) reads as Go's zero value.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Bound;

use serde_json::Value;

use super::formats::Format;
use super::go_text::{json, quoted};
use crate::field_error::{ErrorKind, FieldError, RefusedBy};
use crate::warning::FieldWarning;

/// The errors and warnings found so far, in upstream's order.
#[derive(Debug, Default)]
pub(super) struct Reports {
    pub(super) errors: RefCell<Vec<FieldError>>,
    pub(super) warnings: RefCell<Vec<FieldWarning>>,
}

/// A value of the manifest, its path, and the place for its errors.
#[derive(Clone, Debug)]
pub(super) struct At<'a> {
    path: String,
    value: &'a Value,
    reports: &'a Reports,
}

/// Navigation.
impl<'a> At<'a> {
    /// The whole object.
    pub(super) fn root(value: &'a Value, reports: &'a Reports) -> Self {
        Self { path: String::new(), value, reports }
    }

    /// The field `name`, present or absent.
    pub(super) fn get(&self, name: &str) -> Self {
        self.child(self.path_of(name), self.value.get(name).unwrap_or(&Value::Null))
    }

    /// The field at a path of names, such as `securityContext.sysctls`.
    pub(super) fn nested(&self, path: &str) -> Self {
        path.split('.').fold(self.clone(), |at, name| at.get(name))
    }

    /// The fields at a path such as `hostAliases[*].hostnames[*]`, where `[*]` is each item of a
    /// list.
    pub(super) fn each(&self, path: &str) -> Vec<Self> {
        path.split('.').fold(vec![self.clone()], |all, step| match step.strip_suffix("[*]") {
            None => all.iter().map(|at| at.get(step)).collect(),
            Some(list) => all.iter().flat_map(|at| at.get(list).items()).collect(),
        })
    }

    /// The field `name` if it is present: a non-nil pointer upstream.
    pub(super) fn find(&self, name: &str) -> Option<Self> {
        Some(self.get(name)).filter(Self::is_set)
    }

    /// The fields of `names` that are present.
    pub(super) fn find_all(&self, names: &[&str]) -> Vec<Self> {
        names.iter().filter_map(|name| self.find(name)).collect()
    }

    /// The items of a list.
    pub(super) fn items(&self) -> impl ExactSizeIterator<Item = Self> + use<'a> {
        let list = self.clone();
        let items = self.value.as_array().map_or(&[][..], Vec::as_slice).iter().enumerate();
        items.map(move |(i, item)| list.child(format!("{}[{i}]", list.path), item))
    }

    /// The entries of a map, each at `path[key]`.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'a str, Self)> + Clone + use<'a> {
        let map = self.clone();
        let entries = self.value.as_object().into_iter().flatten();
        entries.map(move |(key, value)| {
            (key.as_str(), map.child(format!("{}[{key}]", map.path), value))
        })
    }

    /// The entry `key` of a map, present or absent.
    pub(super) fn entry(&self, key: &str) -> Self {
        self.get(key).reported_at(format!("{}[{key}]", self.path))
    }

    /// The same value with another path: upstream does not always report the path of the field.
    pub(super) fn reported_at(self, path: impl Into<String>) -> Self {
        Self { path: path.into(), ..self }
    }

    /// Another value that is reported here.
    pub(super) fn with_value<'b>(&'b self, value: &'b Value) -> At<'b> {
        self.child(self.path.clone(), value)
    }

    /// The path of the field `name` of this value.
    pub(super) fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// The path of this value.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    fn child<'b>(&self, path: String, value: &'b Value) -> At<'b>
    where
        'a: 'b,
    {
        At { path, value, reports: self.reports }
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

    /// `true` for an absent value, `false`, 0, and an empty string, list or map.
    pub(super) fn is_empty(&self) -> bool {
        match self.value {
            Value::Null => true,
            Value::Bool(value) => !value,
            Value::Number(number) => number.as_i64() == Some(0),
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.is_empty(),
        }
    }

    /// The items of a list of strings.
    pub(super) fn texts(&self) -> Vec<&'a str> {
        self.value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The value as JSON; an absent one is an empty string.
    pub(super) fn marshalled(&self) -> String {
        if self.is_set() { json(self.value) } else { quoted("") }
    }

    /// The value as upstream prints a plain string, a number or a boolean.
    fn shown(&self) -> String {
        self.value.as_str().map_or_else(|| self.marshalled(), quoted)
    }
}

/// Reports of errors and warnings.
impl<'a> At<'a> {
    /// The number of errors so far.
    pub(super) fn error_count(&self) -> usize {
        self.reports.errors.borrow().len()
    }

    pub(super) fn required(&self, why: &str) {
        self.error(ErrorKind::Required, None, why);
    }

    pub(super) fn required_if(&self, wrong: bool, why: &str) {
        if wrong {
            self.required(why);
        }
    }

    pub(super) fn forbidden(&self, why: &str) {
        self.error(ErrorKind::Forbidden, None, why);
    }

    pub(super) fn forbidden_if(&self, wrong: bool, why: &str) {
        if wrong {
            self.forbidden(why);
        }
    }

    /// An error of type Invalid; the value is a plain string, a number or a boolean upstream.
    pub(super) fn invalid(&self, why: &str) {
        self.invalid_as(self.shown(), why);
    }

    pub(super) fn invalid_if(&self, wrong: bool, why: &str) {
        if wrong {
            self.invalid(why);
        }
    }

    /// An error of type Invalid; the value is a named string type, a pointer, a list, a map or a
    /// struct upstream.
    pub(super) fn invalid_json(&self, why: &str) {
        self.invalid_as(self.marshalled(), why);
    }

    pub(super) fn invalid_json_if(&self, wrong: bool, why: &str) {
        if wrong {
            self.invalid_json(why);
        }
    }

    /// One such error for each of `reasons`.
    pub(super) fn invalids_json(&self, reasons: Vec<String>) {
        for why in reasons {
            self.invalid_json(&why);
        }
    }

    /// An error of type Invalid that shows another value.
    pub(super) fn invalid_as(&self, value: String, why: &str) {
        self.error(ErrorKind::Invalid, Some(value), why);
    }

    /// Invalid errors unless this text, which is not the value itself, is in the format.
    pub(super) fn text_follows(&self, text: &str, format: Format) {
        self.invalids_as(text, format(text));
    }

    /// One Invalid error for each of `reasons`, which shows another string.
    pub(super) fn invalids_as(&self, text: &str, reasons: Vec<String>) {
        for why in reasons {
            self.invalid_as(quoted(text), &why);
        }
    }

    /// The value is not one of the `known` values, which upstream lists in this order.
    pub(super) fn not_supported(&self, known: &[&str]) {
        self.not_supported_as(self.marshalled(), known);
    }

    /// The same error with another value.
    pub(super) fn not_supported_as(&self, value: String, known: &[&str]) {
        let known: Vec<String> = known.iter().map(|value| quoted(value)).collect();
        let why = format!("supported values: {}", known.join(", "));
        self.error(ErrorKind::NotSupported, Some(value), &why);
    }

    pub(super) fn duplicate(&self) {
        self.duplicate_as(self.shown());
    }

    /// An error of type Duplicate that shows another value.
    pub(super) fn duplicate_as(&self, value: String) {
        self.error(ErrorKind::Duplicate, Some(value), "");
    }

    /// Adds the string to those that must be unique; an error of type Duplicate if it is one of
    /// them already.
    pub(super) fn unique_in(&self, all: &mut BTreeSet<&'a str>) {
        if !all.insert(self.text()) {
            self.duplicate();
        }
    }

    /// A Duplicate error by a rule of `ds-plan`.
    pub(super) fn duplicate_for_us(&self, value: String, why: &str) {
        self.report(ErrorKind::Duplicate, Some(value), why, RefusedBy::DsPlan);
    }

    /// The paths of all Duplicate errors so far.
    pub(super) fn duplicate_paths(&self) -> BTreeSet<String> {
        let errors = self.reports.errors.borrow();
        let duplicates = errors.iter().filter(|error| error.kind == ErrorKind::Duplicate);
        duplicates.map(|error| error.path.clone()).collect()
    }

    /// `true` if one of the paths is that of this value, or of a field of it.
    pub(super) fn is_or_has_one_of(&self, paths: &BTreeSet<String>) -> bool {
        let from = (Bound::Included(self.path.as_str()), Bound::Unbounded);
        let next = paths.range::<str, _>(from).next();
        next.is_some_and(|path| path.starts_with(&self.path))
    }

    pub(super) fn not_found(&self) {
        self.not_found_as(self.shown(), "");
    }

    /// An error of type Not found that shows the value that upstream searched for.
    pub(super) fn not_found_as(&self, value: String, why: &str) {
        self.error(ErrorKind::NotFound, Some(value), why);
    }

    /// An error of type Too long if `length` is more than `max`, both in bytes.
    pub(super) fn too_long_if_over(&self, max: usize, length: usize) {
        if length > max {
            self.error(ErrorKind::TooLong, None, &format!("may not be more than {max} bytes"));
        }
    }

    /// An error of type Too many if the list has more than `max` items.
    pub(super) fn too_many_if_over(&self, max: usize) {
        let count = self.items().len();
        if count > max {
            let why = format!("must have at most {max} items");
            self.error(ErrorKind::TooMany, Some(count.to_string()), &why);
        }
    }

    pub(super) fn warn(&self, message: impl Into<String>) {
        let warning = FieldWarning { path: self.path.clone(), message: message.into() };
        self.reports.warnings.borrow_mut().push(warning);
    }

    fn error(&self, kind: ErrorKind, value: Option<String>, why: &str) {
        self.report(kind, value, why, RefusedBy::ApiServer);
    }

    fn report(&self, kind: ErrorKind, value: Option<String>, why: &str, refused_by: RefusedBy) {
        let (path, detail) = (self.path.clone(), why.to_owned());
        let error = FieldError { path, kind, value, detail, refused_by };
        self.reports.errors.borrow_mut().push(error);
    }
}
