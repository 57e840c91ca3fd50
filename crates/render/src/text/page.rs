//! The output of all text renderers: lines of styled pieces. Each piece is made harmless here, so
//! no renderer can forget it; colour and width are applied here, so no renderer depends on them.

use std::fmt::Display;
use std::ops::Range;

use anstyle::{AnsiColor, Style};

use crate::neutral;
use planner::plan::Action;

/// Options of text output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextOptions {
    /// Whether every node is listed with its pods, and values are shown in full length.
    pub verbose: bool,
    /// Whether output is coloured. Colours carry no information of their own.
    pub color: bool,
    /// The width, in columns, at which lines of prose are broken; `None` for no limit.
    pub width: Option<usize>,
    /// Whether a table of DaemonSets shows their namespaces, as `kubectl get -A` does; if there are
    /// several, it always does.
    pub namespaces: bool,
}

/// Additions.
pub(super) const GAIN: Style = AnsiColor::Green.on_default();
/// Deletions.
pub(super) const LOSS: Style = AnsiColor::Red.on_default();
/// Changes.
pub(super) const CHANGE: Style = AnsiColor::Yellow.on_default();
/// Blocked or waiting actions.
pub(super) const HALT: Style = AnsiColor::Magenta.on_default();
/// Names and headings.
pub(super) const NAME: Style = Style::new().bold();
/// Explanations.
pub(super) const ASIDE: Style = Style::new().dimmed();

/// The style of an action's symbol.
pub(super) fn style_of(action: Action) -> Style {
    match action {
        Action::Create => GAIN,
        Action::Delete => LOSS,
        Action::Replace | Action::Surge => CHANGE,
        Action::Wait => HALT,
        Action::Keep => ASIDE,
    }
}

/// Indentation of the continuation of a broken line.
const HANG: usize = 6;
/// Lines are not broken on terminals narrower than this.
const NARROWEST: usize = 40;

/// Lines of output.
#[derive(Debug, Default)]
pub(super) struct Page(Vec<Line>);

/// One line: pieces of text, each with its style.
#[derive(Debug, Default)]
pub(super) struct Line {
    indent: usize,
    whole: bool,
    pieces: Vec<(Style, String)>,
}

impl Line {
    /// An empty line, indented by `indent` columns.
    pub(super) fn at(indent: usize) -> Self {
        Self { indent, ..Self::default() }
    }

    /// The same line, never broken to fit the width: for values and tables.
    pub(super) fn whole(self) -> Self {
        Self { whole: true, ..self }
    }

    /// Appends `piece`.
    pub(super) fn plain(self, piece: impl Display) -> Self {
        self.styled(Style::new(), piece)
    }

    /// Appends `piece` in `style`.
    pub(super) fn styled(mut self, style: Style, piece: impl Display) -> Self {
        self.pieces.push((style, neutral::characters(&piece.to_string()).into_owned()));
        self
    }

    /// Width in columns.
    pub(super) fn width(&self) -> usize {
        self.indent + self.pieces.iter().map(|(_, piece)| piece.chars().count()).sum::<usize>()
    }

    /// Appends spaces up to a width of `width` columns.
    pub(super) fn padded_to(self, width: usize) -> Self {
        let missing = width.saturating_sub(self.width());
        self.plain(" ".repeat(missing))
    }

    fn write(&self, options: TextOptions, out: &mut String) {
        let Self { indent, whole, pieces } = self;
        let text: String = pieces.iter().map(|(_, piece)| piece.as_str()).collect();
        let width = options.width.filter(|width| !whole && *width >= NARROWEST);
        for (nth, row) in rows(&text, width.map(|width| width.saturating_sub(*indent))).enumerate()
        {
            let hang = if nth == 0 { 0 } else { HANG };
            let row = row.start..row.start + text[row.clone()].trim_end().len();
            if !row.is_empty() {
                out.extend(std::iter::repeat_n(' ', indent + hang));
            }
            self.write_row(&text, row, options.color, out);
            out.push('\n');
        }
    }

    /// Writes the bytes `row` of `text`, this line's whole text, in the styles of its pieces.
    fn write_row(&self, text: &str, row: Range<usize>, color: bool, out: &mut String) {
        let commands = neutral::commands(&text[row.clone()]);
        let mut end = 0;
        for (style, piece) in &self.pieces {
            let start = end;
            end += piece.len();
            let part = start.max(row.start)..end.min(row.end);
            if part.is_empty() {
                continue;
            }
            let painted = color && *style != Style::new();
            if painted {
                out.extend([style.render().to_string()]);
            }
            for (at, c) in text[part.clone()].char_indices() {
                let order = commands.contains(&(part.start + at - row.start));
                neutral::push(c, order, out);
            }
            if painted {
                out.extend([style.render_reset().to_string()]);
            }
        }
    }
}

/// `text` broken at spaces into rows of at most `width` columns, if its words are short enough;
/// the rows after the first are shorter because they are indented.
fn rows(text: &str, width: Option<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut rows = Vec::new();
    let (mut start, mut columns, mut gap) = (0, 0, None);
    for (at, c) in text.char_indices() {
        columns += 1;
        let room =
            width.map(|width| if rows.is_empty() { width } else { width.saturating_sub(HANG) });
        if c == ' ' {
            gap = Some((at, columns));
        } else if let (Some(room), Some((cut, taken))) = (room, gap)
            && columns > room
            && !text[start..cut].trim().is_empty()
        {
            rows.push(start..cut);
            (start, columns, gap) = (cut + 1, columns - taken, None);
        }
    }
    rows.push(start..text.len());
    rows.into_iter()
}

impl Page {
    /// One name per line.
    pub(super) fn of_names(names: impl Iterator<Item = impl Display>) -> String {
        let page = Self(names.map(|name| Line::at(0).whole().plain(name)).collect());
        page.write(TextOptions::default())
    }

    /// Adds `line`.
    pub(super) fn push(&mut self, line: Line) {
        self.0.push(line);
    }

    /// Adds the rows, aligned: columns are at least `narrowest` wide, with `padding` included.
    pub(super) fn table(
        &mut self,
        rows: &[impl AsRef<[String]>],
        padding: usize,
        narrowest: usize,
    ) {
        let columns = rows.first().map_or(0, |row| row.as_ref().len());
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.as_ref().get(column));
            let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
            (widest + padding).max(narrowest)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in rows {
            let (mut line, mut start) = (Line::at(0).whole(), 0);
            for (cell, width) in row.as_ref().iter().zip(&widths) {
                line = line.padded_to(start).plain(cell);
                start += width;
            }
            self.push(line);
        }
    }

    /// Adds an empty line, unless the page has none yet or ends with one.
    pub(super) fn gap(&mut self) {
        if self.0.last().is_some_and(|last| !last.pieces.is_empty()) {
            self.0.push(Line::default());
        }
    }

    /// The whole page as text; empty lines at its end are left out.
    pub(super) fn write(&self, options: TextOptions) -> String {
        let mut out = String::new();
        let last = self.0.iter().rposition(|line| !line.pieces.is_empty());
        for line in self.0.iter().take(last.map_or(0, |last| last + 1)) {
            line.write(options, &mut out);
        }
        out
    }
}
