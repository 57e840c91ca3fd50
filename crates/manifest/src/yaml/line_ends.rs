//! Detects characters that YAML parsers disagree on as line ends.

use std::ops::Range;

use granit_parser::{Event, ScalarStyle, Span};

/// Characters that end a line for go-yaml but not for YAML 1.2, and the byte order mark, which
/// go-yaml skips at the beginning of a line (upstream: `is_break`, `is_bom`).
const DISPUTED: [char; 4] = ['\u{85}', '\u{2028}', '\u{2029}', '\u{feff}'];

/// The quoted scalars of a text with such characters: they are harmless only within quotes. After
/// one in a comment, the rest of the line is a comment to one parser and a `kind` to another.
pub(super) struct LineEnds {
    quoted: Option<Vec<Range<usize>>>,
}

impl LineEnds {
    pub(super) fn of(text: &str) -> Self {
        Self { quoted: text.contains(DISPUTED).then(Vec::new) }
    }

    /// Records an event of the parser.
    pub(super) fn note(&mut self, event: &Event<'_>, span: Span) {
        use ScalarStyle::{DoubleQuoted, SingleQuoted};
        let Some(quoted) = &mut self.quoted else { return };
        if let Event::Scalar(_, SingleQuoted | DoubleQuoted, ..) = event {
            let ends = span.start.byte_offset().zip(span.end.byte_offset());
            quoted.extend(ends.map(|(start, end)| start..end));
        }
    }

    /// The first character of `text` that parsers disagree on, after all events were recorded.
    pub(super) fn disputed(&self, text: &str) -> Option<(usize, char)> {
        let mut quoted = self.quoted.as_ref()?.iter().peekable();
        text.match_indices(DISPUTED).find_map(|(at, found)| {
            while quoted.next_if(|range| range.end <= at).is_some() {}
            let within = quoted.peek().is_some_and(|range| range.contains(&at));
            let character = found.chars().next()?;
            let mid_line = character == '\u{feff}' && !text[..at].ends_with(['\n', '\r']) && at > 0;
            (!within && !mid_line).then_some((at, character))
        })
    }
}
