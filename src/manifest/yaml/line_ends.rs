//! Characters at which readers of YAML do not agree whether a line begins.

use std::ops::Range;

use granit_parser::{Event, ScalarStyle, Span};

/// Where go-yaml ends a line and YAML 1.2 does not, and the byte order mark, which go-yaml passes
/// over at the beginning of one (upstream: `is_break`, `is_bom`).
const DISPUTED: [char; 4] = ['\u{85}', '\u{2028}', '\u{2029}', '\u{feff}'];

/// The quoted scalars of a text that has such characters: only within quotes nothing can follow
/// from them. Behind one in a comment, what is a comment to one reader is a `kind` to the other.
pub(super) struct LineEnds {
    quoted: Option<Vec<Range<usize>>>,
}

impl LineEnds {
    pub(super) fn of(text: &str) -> Self {
        Self { quoted: text.contains(DISPUTED).then(Vec::new) }
    }

    /// Notes an event of the parser.
    pub(super) fn note(&mut self, event: &Event<'_>, span: Span) {
        use ScalarStyle::{DoubleQuoted, SingleQuoted};
        let Some(quoted) = &mut self.quoted else { return };
        if let Event::Scalar(_, SingleQuoted | DoubleQuoted, ..) = event {
            let ends = span.start.byte_offset().zip(span.end.byte_offset());
            quoted.extend(ends.map(|(start, end)| start..end));
        }
    }

    /// The first character of `text` that readers understand differently, once all of its events
    /// were noted.
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
