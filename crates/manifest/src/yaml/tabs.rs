//! Finds tabs that go-yaml rejects and `granit-parser` accepts (upstream:
//! `yaml_parser_scan_to_next_token`, `yaml_parser_scan_plain_scalar`,
//! `yaml_parser_scan_block_scalar_breaks`).
//!
//! At the beginning of a line, and after its `-`, `?` and `:`, go-yaml accepts a tab only within
//! quotes and brackets, within the text of a block scalar, and after a plain scalar if the spaces
//! before the tab indent it more than the collection around it. Blank lines and comments are no
//! exception.

use std::ops::Range;

use granit_parser::{Event, ScalarStyle, Span, StructureStyle};

/// The parts of a text with tabs in which a tab may begin a line.
pub(super) struct Tabs<'t> {
    text: &'t str,
    /// Whether the text has any tab.
    is_concerned: bool,
    accepted: Vec<Accepted>,
    /// The open collections, innermost last.
    open: Vec<Open>,
}

/// A part of the text in which a tab is accepted from this column on (in characters, from 0).
struct Accepted {
    bytes: Range<usize>,
    from_column: usize,
}

/// A collection that has begun.
enum Open {
    /// A block mapping, and the column of its keys.
    Mapping(usize),
    /// A block sequence; the parser does not tell the column of its dashes.
    Sequence,
    /// A flow collection, and its first byte.
    Flow(usize),
}

impl<'t> Tabs<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        Self { text, is_concerned: text.contains('\t'), accepted: Vec::new(), open: Vec::new() }
    }

    /// Records an event of the parser.
    pub(super) fn note(&mut self, event: &Event<'_>, span: Span) {
        if !self.is_concerned {
            return;
        }
        let Some((start, end)) = span.start.byte_offset().zip(span.end.byte_offset()) else {
            return;
        };
        match event {
            Event::MappingStart(StructureStyle::Block, ..) => {
                self.open.push(Open::Mapping(span.start.col()));
            }
            Event::SequenceStart(StructureStyle::Block, ..) => self.open.push(Open::Sequence),
            Event::MappingStart(..) | Event::SequenceStart(..) => self.open.push(Open::Flow(start)),
            Event::MappingEnd | Event::SequenceEnd => {
                if let Some(Open::Flow(start)) = self.open.pop() {
                    self.accept(start..end, 0);
                }
            }
            Event::Scalar(_, style, ..) => self.scalar(*style, start..end, span.start.col()),
            _ => {}
        }
    }

    fn scalar(&mut self, style: ScalarStyle, bytes: Range<usize>, column: usize) {
        match style {
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => self.accept(bytes, 0),
            ScalarStyle::Literal | ScalarStyle::Folded => {
                // go-yaml detects the indentation only from spaces before other text.
                let detected = self.text[bytes.start..].starts_with('\t');
                let is_text = !detected || self.has_indicator(bytes.start);
                self.accept(bytes, if is_text { column } else { usize::MAX });
            }
            // An empty value is not a token of its own.
            ScalarStyle::Plain if bytes.is_empty() => {}
            ScalarStyle::Plain => {
                let rest = &self.text[bytes.end..];
                let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
                let from_column = self.enclosing_column(bytes.start).map_or(0, |it| it + 1);
                self.accept(bytes.start..bytes.end + blank, from_column);
            }
        }
    }

    /// `true` if the header of the block scalar whose text begins at the byte `start` tells its
    /// indentation, such as `|2-`.
    fn has_indicator(&self, start: usize) -> bool {
        let header = self.text[..start].trim_end().rsplit('\n').next().unwrap_or_default();
        let header = header.split(" #").next().unwrap_or_default().trim_end();
        header.trim_end_matches(['+', '-']).ends_with(|last: char| last.is_ascii_digit())
    }

    /// The column of the block collection around the plain scalar at the byte `start`; `None` for
    /// a scalar that is the whole document.
    fn enclosing_column(&self, start: usize) -> Option<usize> {
        match self.open.last()? {
            Open::Mapping(column) => Some(*column),
            Open::Flow(_) => None,
            Open::Sequence => {
                let before = self.text[..start].rsplit('\n').next().unwrap_or_default();
                Some(before.rfind("- ").unwrap_or(before.len()))
            }
        }
    }

    /// Records a part, unless it is within brackets: the parts are disjoint, and in order.
    fn accept(&mut self, bytes: Range<usize>, from_column: usize) {
        if !matches!(self.open.last(), Some(Open::Flow(_))) {
            self.accepted.extend(Some(Accepted { bytes, from_column }));
        }
    }

    /// The first byte of a tab that go-yaml rejects, after all events were recorded.
    pub(super) fn rejected(&self) -> Option<usize> {
        if !self.is_concerned {
            return None;
        }
        let mut line_start = 0;
        for line in self.text.split_inclusive('\n') {
            if let Some(column) = leading_tab(line) {
                let at = line_start + column;
                let next = self.accepted.partition_point(|it| it.bytes.end <= at);
                let around = self.accepted.get(next).filter(|it| it.bytes.contains(&at));
                if around.is_none_or(|it| column < it.from_column) {
                    return Some(at);
                }
            }
            line_start += line.len();
        }
        None
    }
}

/// The column of the first tab before the content of a line; `-`, `?` and `:` before a blank are
/// no content. All characters before it are single bytes.
fn leading_tab(line: &str) -> Option<usize> {
    let bytes = line.as_bytes();
    let is_blank = |at: usize| matches!(bytes.get(at), Some(b' ' | b'\t'));
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'\t' => return Some(at),
            b' ' => {}
            b'-' | b'?' | b':' if is_blank(at + 1) => {}
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use granit_parser::Parser;

    use super::*;

    /// Each row was tried with kubectl; a control-plane test compares random documents.
    #[test]
    fn tabs_are_accepted_where_go_yaml_does() {
        for (name, text, want) in [
            ("blank line", "k: x\n\t\nl: y\n", Some(5)),
            ("blank line, indented", "k: x\n \t\nl: y\n", None),
            ("as far as the keys", "k:\n  l: x\n  \t\n", Some(12)),
            ("as far as the dashes", "k:\n  - x\n  \t\n", Some(11)),
            ("after quotes", "k: 'x'\n  \t\n", Some(9)),
            ("after a key", "k:\n  \t\n  l: x\n", Some(5)),
            ("before a comment", "k: x # y\n  \t# z\n", Some(11)),
            ("after a dash", "- \tx\n", Some(2)),
            ("in the middle", "k:\tx\t# y\n", None),
            ("in quotes", "k: 'x\n  \ty'\n", None),
            ("in brackets", "k: [x,\n\t\n  y]\n", None),
            ("after brackets", "k: [x]\n\t\n", Some(7)),
            ("in a block", "k: |\n  x\n  \ty\n", None),
            ("first in a block", "k: |\n  \tx\n", Some(7)),
            ("with a given indentation", "k: |2-\n  \tx\n", None),
            ("less than a block", "k: |\n  x\n \t\nl: y\n", Some(10)),
        ] {
            let mut tabs = Tabs::of(text);
            for event in Parser::new_from_str(text) {
                let (event, span) = event.unwrap();
                tabs.note(&event, span);
            }
            assert_eq!(tabs.rejected(), want, "{name}");
        }
    }
}
