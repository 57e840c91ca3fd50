//! The change of one field: `-` the value before, `+` the value after. Long texts are compared line
//! by line. Lines that are left out are counted.

use std::iter;

use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use crate::data;
use planner::plan::FieldChange;
use planner::words::count;

/// Number of equal lines that are shown around lines that differ.
const CONTEXT: usize = 2;
/// Maximum number of lines of a change.
const MOST_LINES: usize = 24;
/// Values with more lines than this, before and after together, are not compared: the time grows
/// quadratically with the size, which the author of the manifest controls.
const MOST_COMPARED: usize = 4000;
/// Maximum number of characters of a line.
const MOST_COLUMNS: usize = 160;
/// Number of equal characters that are shown before the first that differs.
const LEAD: usize = 20;

/// The change of one field.
#[derive(Clone, Debug)]
pub(crate) struct FieldView<'a> {
    pub path: &'a str,
    /// `+` for an added field, `-` for a removed one, `~` for a changed one.
    pub symbol: char,
    pub value: FieldValue,
}

/// The visible part of a field's values.
#[derive(Clone, Debug)]
pub(crate) enum FieldValue {
    /// Nothing but this note.
    Hidden(&'static str),
    /// Its only value, which fits on a line.
    One(String),
    /// A comparison.
    Rows(Vec<Row>),
}

/// One line of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Row {
    /// In both values.
    Same(String),
    /// Only in the value before.
    Gone(String),
    /// Only in the value after.
    New(String),
    /// A remark about the comparison, not part of a value.
    Note(String),
}

impl<'a> FieldView<'a> {
    /// Long values are shortened unless `verbose`.
    pub(crate) fn of(change: &'a FieldChange, verbose: bool) -> Self {
        Self { path: &change.path, symbol: symbol(change), value: value(change, verbose) }
    }
}

fn symbol(change: &FieldChange) -> char {
    match (&change.before, &change.after) {
        (None, Some(_)) => '+',
        (Some(_), None) => '-',
        (Some(_), Some(_)) | (None, None) => '~',
    }
}

fn value(change: &FieldChange, verbose: bool) -> FieldValue {
    let FieldChange { path: _, before, after, masked } = change;
    if *masked && (before == after || [before, after].into_iter().flatten().all(is_plain)) {
        return FieldValue::Hidden("   (sensitive value)");
    }
    if let (Some(value), None) | (None, Some(value)) = (before, after)
        && let text = shown(value)
        && !text.contains('\n')
        && text.chars().count() <= MOST_COLUMNS
    {
        return FieldValue::One(mark_end(&text));
    }
    let mut rows = compare(before.as_ref(), after.as_ref());
    if !verbose {
        shorten(&mut rows);
    }
    FieldValue::Rows(rows)
}

/// The field's change as lines of a diff: `@@ path @@`, then lines with their symbols in front.
pub(crate) fn diff_lines(change: &FieldChange, verbose: bool) -> Vec<String> {
    let FieldView { path, symbol, value } = FieldView::of(change, verbose);
    let title = format!("@@ {path} @@");
    match value {
        FieldValue::Hidden(note) => vec![title + note],
        FieldValue::One(text) => vec![title, format!("{symbol} {text}")],
        FieldValue::Rows(rows) => {
            let rows = rows.into_iter().map(|row| match row {
                Row::Same(text) | Row::Note(text) => format!("  {text}"),
                Row::Gone(text) => format!("- {text}"),
                Row::New(text) => format!("+ {text}"),
            });
            iter::once(title).chain(rows).collect()
        }
    }
}

/// The field's change, in one line.
pub(crate) fn field_title(change: &FieldChange) -> String {
    format!("{} {}", symbol(change), change.path)
}

fn is_plain(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        Value::Array(_) | Value::Object(_) => false,
    }
}

fn compare(before: Option<&Value>, after: Option<&Value>) -> Vec<Row> {
    let (old, new) = (before.map(shown), after.map(shown));
    let (was, will) = (lines(old.as_deref()), lines(new.as_deref()));
    if was.len() + will.len() > MOST_COMPARED {
        let (was, will) = (count(was.len(), "line"), count(will.len(), "line"));
        return vec![Row::Note(format!("too long to compare: {was} before, {will} after"))];
    }
    let diff = TextDiff::from_slices(&was, &will);
    let mut rows = Vec::new();
    let mut compared = 0;
    for group in diff.grouped_ops(CONTEXT) {
        let start = group.first().map_or(compared, |op| op.old_range().start);
        skipped(start - compared, &mut rows);
        compared = group.last().map_or(compared, |op| op.old_range().end);
        for line in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let text = mark_end(line.value());
            rows.push(match line.tag() {
                ChangeTag::Equal => Row::Same(text),
                ChangeTag::Delete => Row::Gone(text),
                ChangeTag::Insert => Row::New(text),
            });
        }
    }
    skipped(was.len() - compared, &mut rows);
    rows.extend(last_line_note(old.as_deref(), new.as_deref()));
    rows
}

fn skipped(lines: usize, rows: &mut Vec<Row>) {
    if lines > 0 {
        rows.push(Row::Note(format!("… {} unchanged", count(lines, "line"))));
    }
}

/// A remark if two texts differ only in the newline at their end.
fn last_line_note(before: Option<&str>, after: Option<&str>) -> Option<Row> {
    let ends = |text: &str| text.ends_with('\n');
    match (before.map(ends)?, after.map(ends)?) {
        (true, false) => Some(Row::Note("(now without a newline at the end)".to_owned())),
        (false, true) => Some(Row::Note("(now with a newline at the end)".to_owned())),
        (true, true) | (false, false) => None,
    }
}

fn lines(text: Option<&str>) -> Vec<&str> {
    let text = text.map(|text| text.strip_suffix('\n').unwrap_or(text));
    text.into_iter().flat_map(|text| text.split('\n')).collect()
}

/// Quotes a line that ends with a space, which is easily overlooked.
pub(crate) fn mark_end(line: &str) -> String {
    match line.strip_suffix(' ') {
        Some(rest) => format!("{rest}\\u{{20}}"),
        None => line.to_owned(),
    }
}

/// `value` as text: strings without quotes if they are unambiguous, other values as YAML.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if text.contains('\n') || is_clear(text) => text.clone(),
        Value::Array(elements) if elements.is_empty() => "[]".to_owned(),
        Value::Object(fields) if fields.is_empty() => "{}".to_owned(),
        Value::Array(_) | Value::Object(_) => {
            let yaml = data::yaml_of(value).unwrap_or_else(|_| value.to_string());
            yaml.strip_suffix('\n').map_or(yaml.clone(), str::to_owned)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

/// Whether `text` is unambiguous without quotes: not empty, no spaces at its ends, not a number or
/// boolean.
fn is_clear(text: &str) -> bool {
    text.trim() == text
        && !text.starts_with(['"', '[', '{'])
        && serde_json::from_str::<Value>(text).is_err()
}

fn shorten(rows: &mut Vec<Row>) {
    if rows.len() > MOST_LINES {
        let left_out = rows.split_off(MOST_LINES - 1).len();
        rows.push(Row::Note(format!("… {} (-v shows them)", count(left_out, "more line"))));
    }
    let mut at = 0;
    while at < rows.len() {
        match &mut rows[at..] {
            [Row::Gone(old), Row::New(new), ..] => {
                let same = old.chars().zip(new.chars()).take_while(|(a, b)| a == b).count();
                (*old, *new) = (window(old, same), window(new, same));
                at += 2;
            }
            [Row::Same(text) | Row::Gone(text) | Row::New(text), ..] => {
                *text = window(text, 0);
                at += 1;
            }
            [Row::Note(_), ..] | [] => at += 1,
        }
    }
}

/// At most [`MOST_COLUMNS`] characters of `text`, including the first difference at character
/// `differs`.
fn window(text: &str, differs: usize) -> String {
    let length = text.chars().count();
    if length <= MOST_COLUMNS {
        return text.to_owned();
    }
    let start = differs.saturating_sub(LEAD).min(length - MOST_COLUMNS);
    let part: String = text.chars().skip(start).take(MOST_COLUMNS).collect();
    let before = if start > 0 { "…" } else { "" };
    let after = if start + MOST_COLUMNS < length { "…" } else { "" };
    let left_out = count(length - MOST_COLUMNS, "character");
    format!("{before}{part}{after} ({left_out} left out, -v shows them)")
}
