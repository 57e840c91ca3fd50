//! Makes text from manifests and clusters harmless: a user who can name a pod or write a label must
//! not be able to move the cursor, hide or reverse text, or run commands in the CI system that
//! shows the output. Nothing is dropped: unsafe characters are spelled out, `\u{202e}`.
//!
//! JSON and YAML use their own escapes (`data`).

use std::borrow::Cow;

/// Characters that print nothing although Unicode counts them among letters, marks and symbols:
/// joiners, fillers, variation selectors, the empty Braille cell.
const BLANKS: [std::ops::RangeInclusive<char>; 9] = [
    '\u{34f}'..='\u{34f}',
    '\u{115f}'..='\u{1160}',
    '\u{17b4}'..='\u{17b5}',
    '\u{180b}'..='\u{180f}',
    '\u{2800}'..='\u{2800}',
    '\u{3164}'..='\u{3164}',
    '\u{fe00}'..='\u{fe0f}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{e0000}'..='\u{e0fff}',
];

/// Whether `line` can be shown unchanged.
pub(super) fn is_harmless(line: &str) -> bool {
    line.chars().all(is_visible) && commands(line).is_empty()
}

/// `text` as one harmless line: line breaks are spelled out too.
pub fn line(text: &str) -> Cow<'_, str> {
    let spelled = characters(text);
    if commands(&spelled).is_empty() { spelled } else { Cow::Owned(spell_commands(&spelled)) }
}

/// `text` as harmless lines; line breaks are kept. For messages that quote text from outside.
pub fn text(text: &str) -> String {
    let lines: Vec<_> = text.split('\n').map(line).collect();
    lines.join("\n")
}

/// Spells out every character that is invisible or that a terminal interprets.
pub(super) fn characters(text: &str) -> Cow<'_, str> {
    let shown = |(at, c): (usize, char)| is_visible(c) && (at > 0 || stands_alone(c));
    if text.char_indices().all(shown) {
        return Cow::Borrowed(text);
    }
    let mut spelled = String::with_capacity(text.len() + 16);
    for (at, c) in text.char_indices() {
        match c {
            c if shown((at, c)) => spelled.push(c),
            '\n' | '\r' | '\t' => spelled.extend(c.escape_default()),
            c => spelled.extend(c.escape_unicode()),
        }
    }
    Cow::Owned(spelled)
}

/// Whether `c` is visible, at its position in the text.
///
/// The standard library knows which code points print (no controls, formats, surrogates, private
/// or unassigned ones, no separators but the space); a letter goes before `c`, because in second
/// place a combining mark counts as printing.
pub(super) fn is_visible(c: char) -> bool {
    match c {
        ' '..='~' => true,
        '\0'..='\u{a0}' => false,
        c if BLANKS.iter().any(|blanks| blanks.contains(&c)) => false,
        c => String::from_iter(['x', c]).escape_debug().count() == 2,
    }
}

/// Whether `c` may begin a piece of text: a combining mark would change the character before it.
fn stands_alone(c: char) -> bool {
    c.is_ascii() || c.escape_debug().count() == 1
}

/// Positions in `row`, one line of output, that a CI system would read as a command: the byte
/// offsets of the characters to spell out.
///
/// GitHub takes `::command` at the start of a line, blanks ignored, and `##[command]` anywhere;
/// Azure Pipelines takes `##vso[…]` anywhere; `TeamCity` takes `##teamcity[…]`.
pub(super) fn commands(row: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let start = row.trim_start();
    if start.starts_with("::") {
        found.push(row.len() - start.len());
    }
    found.extend(row.match_indices("##").filter_map(|(at, _)| {
        let hashes = row[at..].trim_start_matches('#');
        let word = hashes.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        word.starts_with('[').then_some(row.len() - hashes.len() - 1)
    }));
    found.dedup();
    found
}

/// Adds `c` to `out`, spelled out if `spell` is set.
pub(super) fn push(c: char, spell: bool, out: &mut String) {
    if spell {
        out.extend(c.escape_unicode());
    } else {
        out.push(c);
    }
}

fn spell_commands(row: &str) -> String {
    let commands = commands(row);
    let mut spelled = String::with_capacity(row.len() + 16);
    for (at, c) in row.char_indices() {
        push(c, commands.contains(&at), &mut spelled);
    }
    spelled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_spelled_out() {
        for (what, given, want) in [
            ("plain", "edge-a-01 … \"x\" 'y' \\z é 字 🚀", "edge-a-01 … \"x\" 'y' \\z é 字 🚀"),
            ("accents on a letter", "e\u{301}", "e\u{301}"),
            ("an accent without a letter", "\u{301}e", "\\u{301}e"),
            ("colour", "\u{1b}[31mred", "\\u{1b}[31mred"),
            ("C1 control sequence", "\u{9b}31m", "\\u{9b}31m"),
            ("line breaks", "a\nb\r\nc\td\u{2028}e\u{85}", "a\\nb\\r\\nc\\td\\u{2028}e\\u{85}"),
            ("bell, backspace, delete", "\u{7}\u{8}\u{7f}", "\\u{7}\\u{8}\\u{7f}"),
            ("right-to-left override", "a\u{202e}b\u{202c}", "a\\u{202e}b\\u{202c}"),
            ("isolates", "\u{2066}a\u{2069}", "\\u{2066}a\\u{2069}"),
            ("marks of direction", "\u{200e}\u{200f}\u{61c}", "\\u{200e}\\u{200f}\\u{61c}"),
            ("zero width", "a\u{200b}\u{200d}\u{feff}b", "a\\u{200b}\\u{200d}\\u{feff}b"),
            ("soft hyphen", "a\u{ad}b", "a\\u{ad}b"),
            ("a no-break space", "a\u{a0}b", "a\\u{a0}b"),
            ("tags", "\u{e0041}", "\\u{e0041}"),
            ("variation selectors", "a\u{fe0f}\u{e0101}", "a\\u{fe0f}\\u{e0101}"),
            ("fillers", "\u{3164}\u{115f}\u{2800}\u{ffa0}", "\\u{3164}\\u{115f}\\u{2800}\\u{ffa0}"),
            ("private and unassigned", "\u{e000}\u{378}", "\\u{e000}\\u{378}"),
        ] {
            assert_eq!(line(given), want, "{what}");
        }
    }

    #[test]
    fn commands_to_a_ci_system_are_spelled_out() {
        for (given, want) in [
            ("::error::x", "\\u{3a}:error::x"),
            ("  ::set-output name=a::b", "  \\u{3a}:set-output name=a::b"),
            ("see ::1 and ::/0", "see ::1 and ::/0"),
            ("##[error]x", "#\\u{23}[error]x"),
            ("a ##[group]x", "a #\\u{23}[group]x"),
            ("a ##vso[task.complete]", "a #\\u{23}vso[task.complete]"),
            ("a ##VSO[task.complete]", "a #\\u{23}VSO[task.complete]"),
            ("##teamcity[x]", "#\\u{23}teamcity[x]"),
            ("####[x]", "###\\u{23}[x]"),
            ("## heading [x]", "## heading [x]"),
            ("# a[0]", "# a[0]"),
        ] {
            assert_eq!(line(given), want);
            assert_eq!(commands(&line(given)), [0; 0], "still a command: {given}");
        }
    }

    #[test]
    fn a_text_keeps_its_lines() {
        assert_eq!(text("a\n ::b\n\u{1b}c\n"), "a\n \\u{3a}:b\n\\u{1b}c\n");
    }
}
