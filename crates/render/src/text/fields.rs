//! The change of one field: `-` the value before, `+` the value after.

use anstyle::Style;

use super::page::{ASIDE, CHANGE, GAIN, LOSS, Line, Page, TextOptions};
use crate::view::{FieldChange, FieldValue, FieldView, Row};

/// Adds the field's change to `page`, indented by `indent` columns.
pub(super) fn field_change(
    page: &mut Page,
    indent: usize,
    change: &FieldChange,
    options: TextOptions,
) {
    let FieldView { path, symbol, value } = FieldView::of(change, options.verbose);
    let style = match symbol {
        '+' => GAIN,
        '-' => LOSS,
        _ => CHANGE,
    };
    let title = Line::at(indent).whole().styled(style, symbol).plain(' ').plain(path);
    let rows = match value {
        FieldValue::Hidden(note) => return page.push(title.styled(ASIDE, note)),
        FieldValue::One(text) => return page.push(title.plain(": ").styled(style, text)),
        FieldValue::Rows(rows) => rows,
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
