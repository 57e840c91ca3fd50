//! Text from others, as a short piece of one line that a terminal can show.

/// Characters of foreign text in a message.
const LONGEST: usize = 200;

/// The beginning of `text`: line breaks become spaces, other characters that print nothing are
/// spelled out.
pub(crate) fn quoted(text: &str) -> String {
    let mut shown = String::new();
    let mut characters = text.trim().chars();
    for c in characters.by_ref().take(LONGEST) {
        match c {
            '\n' | '\r' | '\t' => shown.push(' '),
            ' '..='~' => shown.push(c),
            // A printable character is its own escape.
            c if c.escape_debug().count() == 1 => shown.push(c),
            c => shown.extend(c.escape_unicode()),
        }
    }
    if characters.next().is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_a_terminal_unseen() {
        for (text, want) in [
            ("plain \"text\" – ä", "plain \"text\" – ä"),
            ("  two\nlines\r\n", "two lines"),
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("a\u{202e}b\u{301}", "a\\u{202e}b\\u{301}"),
        ] {
            assert_eq!(quoted(text), want, "{text:?}");
        }
        assert_eq!(quoted(&"x".repeat(5000)), format!("{}…", "x".repeat(LONGEST)));
    }
}
