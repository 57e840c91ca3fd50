//! The change of one field: `-` the value before, `+` the value after. Long texts are compared line
//! by line. Lines that are left out are counted.

use std::iter;

use anstyle::Style;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use super::TextOptions;
use super::data;
use super::page::{ASIDE, CHANGE, GAIN, LOSS, Line, Page, count};
use planner::plan::FieldChange;

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

/// One line of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Row {
    /// In both values.
    Same(String),
    /// Only in the value before.
    Gone(String),
    /// Only in the value after.
    New(String),
    /// A remark about the comparison, not part of a value.
    Note(String),
}

/// The visible part of a field's change.
enum Shown {
    /// One line: the field's title, followed by this text.
    Title(&'static str),
    /// One line: the field's title, and its only value.
    Value(String),
    /// Lines below the title.
    Rows(Vec<Row>),
}

/// The symbol of the field's change.
fn sign(change: &FieldChange) -> (Style, char) {
    match (&change.before, &change.after) {
        (None, Some(_)) => (GAIN, '+'),
        (Some(_), None) => (LOSS, '-'),
        (Some(_), Some(_)) | (None, None) => (CHANGE, '~'),
    }
}

fn reported(change: &FieldChange, verbose: bool) -> Shown {
    let FieldChange { path: _, before, after, masked } = change;
    if *masked && (before == after || [before, after].into_iter().flatten().all(is_plain)) {
        return Shown::Title("   (sensitive value)");
    }
    if let (Some(value), None) | (None, Some(value)) = (before, after)
        && let text = shown(value)
        && !text.contains('\n')
        && text.chars().count() <= MOST_COLUMNS
    {
        return Shown::Value(mark_end(&text));
    }
    let mut rows = compare(before.as_ref(), after.as_ref());
    if !verbose {
        shorten(&mut rows);
    }
    Shown::Rows(rows)
}

/// Adds the field's change to `page`, indented by `indent` columns.
pub(super) fn field_change(
    page: &mut Page,
    indent: usize,
    change: &FieldChange,
    options: TextOptions,
) {
    let (style, symbol) = sign(change);
    let title = Line::at(indent).whole().styled(style, symbol).plain(' ').plain(&change.path);
    let rows = match reported(change, options.verbose) {
        Shown::Title(note) => return page.push(title.styled(ASIDE, note)),
        Shown::Value(text) => return page.push(title.plain(": ").styled(style, text)),
        Shown::Rows(rows) => rows,
    };
    page.push(title);
    for row in rows {
        let (style, sign, text) = match row {
            Row::Same(text) => (Style::new(), ' ', text),
            Row::Gone(text) => (LOSS, '-', text),
            Row::New(text) => (GAIN, '+', text),
            Row::Note(text) => (ASIDE, ' ', text),
        };
        page.push(Line::at(indent + 4).whole().styled(style, sign).plain(' ').styled(style, text));
    }
}

/// The field's change as lines of a diff: `@@ path @@`, then lines with their symbols in front.
pub(super) fn diff_lines(change: &FieldChange, verbose: bool) -> Vec<String> {
    let (_, symbol) = sign(change);
    let title = format!("@@ {} @@", change.path);
    match reported(change, verbose) {
        Shown::Title(note) => vec![title + note],
        Shown::Value(text) => vec![title, format!("{symbol} {text}")],
        Shown::Rows(rows) => {
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
pub(super) fn title(change: &FieldChange) -> String {
    format!("{} {}", sign(change).1, change.path)
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
pub(super) fn mark_end(line: &str) -> String {
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
        rows.push(Row::Note(format!("… {} more (-v shows them)", count(left_out, "line"))));
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
