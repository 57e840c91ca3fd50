//! Escapes names from outside, so that no name can imitate another one or control a terminal.

use std::path::Path;

/// Escapes a name: control and bidi characters, line separators, backslashes and bytes that are not
/// UTF-8 are written as escapes. Different names stay different.
pub(super) fn name(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character == '\\' {
                text.push_str("\\\\");
            } else if is_unsafe(character) {
                text.extend(character.escape_unicode());
            } else {
                text.push(character);
            }
        }
        for byte in chunk.invalid() {
            text.extend(std::ascii::escape_default(*byte).map(char::from));
        }
    }
    text
}

/// [`name`] of a path.
pub(super) fn path(path: &Path) -> String {
    name(path.as_os_str().as_encoded_bytes())
}

/// Cleans a line of text: unsafe characters become spaces, nothing else changes.
pub(super) fn line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars().map(|character| if is_unsafe(character) { ' ' } else { character }).collect()
}

fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_text() {
        for (case, bytes, expected) in [
            ("plain", &b"deploy/a.yaml"[..], "deploy/a.yaml"),
            ("accents stay", "d\u{e9}p/\u{65e5}.yaml".as_bytes(), "d\u{e9}p/\u{65e5}.yaml"),
            ("terminal escape", b"a\x1b[2J.yaml", "a\\u{1b}[2J.yaml"),
            ("line break", b"a\nb.yaml", "a\\u{a}b.yaml"),
            ("right-to-left override", "a\u{202e}b".as_bytes(), "a\\u{202e}b"),
            ("not UTF-8", b"a\xff.yaml", "a\\xff.yaml"),
            ("a backslash cannot forge an escape", b"a\\xff.yaml", "a\\\\xff.yaml"),
        ] {
            assert_eq!(name(bytes), expected, "{case}");
        }
    }

    #[test]
    fn a_line_stays_one_line() {
        assert_eq!(line(b"fix \x1b[31mred\nand more"), "fix  [31mred and more");
    }
}
