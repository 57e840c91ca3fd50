//! Pieces of Markdown in which text from outside is always code.

use std::borrow::Borrow;
use std::fmt::{self, Display, Write as _};

use crate::{escape, neutral, view};
use planner::words::{count, grouped};

/// Maximum length of names and texts from outside, in bytes.
pub(super) const LONGEST: usize = 300;
/// Maximum length of a sentence, in bytes.
const LONGEST_PROSE: usize = 1_200;
/// Maximum length of the names of counted things, such as zones, in bytes.
pub(super) const LONGEST_COUNTED: usize = 63;

/// `text` as a code span.
pub(super) fn code(text: impl Display) -> String {
    let mut inner = String::new();
    for c in unmarked(&text.to_string()).chars() {
        neutral::push(c, matches!(c, '`' | '|'), &mut inner);
    }
    let mut inner = clipped(&inner, LONGEST);
    // Markdown strips a space at either end, and does not accept an empty span.
    if inner.is_empty() || inner.starts_with(' ') || inner.ends_with(' ') {
        inner = format!("\"{inner}\"");
    }
    format!("`{inner}`")
}

/// `text` as a `<code>` element, for use inside of an HTML block.
pub(super) fn html_code(text: impl Display) -> String {
    format!("<code>{}</code>", escape::html(&clipped(&unmarked(&text.to_string()), LONGEST)))
}

/// `lines` in a fence that none of them can close.
pub(super) fn fence(language: &str, lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| unmarked(line)).collect();
    let longest = lines.iter().map(|line| longest_run(line, '`')).max().unwrap_or(0);
    let marks = "`".repeat(longest.max(2) + 1);
    format!("{marks}{language}\n{}\n{marks}", lines.join("\n"))
}

fn longest_run(line: &str, mark: char) -> usize {
    line.split(|c| c != mark).map(str::len).max().unwrap_or(0)
}

/// `body` collapsed under `summary`, which is HTML.
pub(super) fn folded(summary: &str, body: &str) -> String {
    format!("<details><summary>{summary}</summary>\n\n{body}\n\n</details>")
}

/// One visible line that contains no comment marker and no command to the CI system that logs it.
fn unmarked(text: &str) -> String {
    neutral::line(text).replace("<!--", "\\u{3c}!--")
}

/// `text` cut at `longest` bytes.
pub(super) fn clipped(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(longest);
    format!("{}… ({} more characters)", &text[..end], text[end..].chars().count())
}

/// A sentence in which everything except plain words is a code span.
///
/// Messages quote text from outside, so a sentence as a whole cannot be trusted. A plain word is
/// not Markdown syntax, a mention, a reference or an address.
pub(super) fn prose(sentence: &str) -> String {
    let mut out = String::new();
    // Text between backticks is already code.
    for (nth, part) in sentence.split('`').enumerate() {
        if nth % 2 == 1 {
            out.push_str(&code(part));
        } else {
            words(part, nth == 0, &mut out);
        }
    }
    if out.len() > LONGEST_PROSE { code(sentence) } else { out }
}

/// `starts` if the sentence begins with `part`, where `1.` would start a list.
fn words(part: &str, starts: bool, out: &mut String) {
    /// Punctuation before and after a word.
    const BEFORE: [char; 1] = ['('];
    const AFTER: [char; 5] = [',', '.', ';', ':', ')'];
    let mut quoted: Vec<&str> = Vec::new();
    for (nth, token) in part.split(' ').enumerate() {
        // A token of punctuation only has no core and is not Markdown syntax.
        let core = token.trim_start_matches(BEFORE).trim_end_matches(AFTER);
        let (before, after) = token.split_once(core).unwrap_or_default();
        let item = starts && nth == 0 && core.starts_with(|c: char| c.is_ascii_digit());
        let plain = core.is_empty() || is_plain_word(core) && (!item || after.is_empty());
        if (plain || !before.is_empty()) && !quoted.is_empty() {
            out.push_str(&code(quoted.join(" ")));
            quoted.clear();
        }
        if nth > 0 && quoted.is_empty() {
            out.push(' ');
        }
        if plain {
            out.push_str(token);
            continue;
        }
        out.push_str(before);
        quoted.push(core);
        if !after.is_empty() {
            out.push_str(&code(quoted.join(" ")));
            out.push_str(after);
            quoted.clear();
        }
    }
    if !quoted.is_empty() {
        out.push_str(&code(quoted.join(" ")));
    }
}

/// A word of letters, `read-only` and `node's` included, or a short number with its unit, `3h1m`.
fn is_plain_word(word: &str) -> bool {
    /// A number with at least this many digits may be a commit id.
    const COMMIT: usize = 7;
    let is_hex = word.len() >= COMMIT && word.chars().all(|c| c.is_ascii_hexdigit());
    let is_number = word.starts_with(|c: char| c.is_ascii_digit())
        && word.len() < COMMIT
        && word.chars().all(|c| c.is_ascii_alphanumeric());
    let is_number = is_number || is_grouped(word);
    let is_word = word
        .split(['-', '\''])
        .all(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphabetic()));
    (is_word || is_number) && !is_hex
}

/// A number whose thousands are apart: `1,236`.
fn is_grouped(word: &str) -> bool {
    let mut groups = word.split(',');
    let digits = |group: &str| group.chars().all(|c| c.is_ascii_digit());
    let first = groups.next().is_some_and(|it| (1..=3).contains(&it.len()) && digits(it));
    first && word.contains(',') && groups.all(|group| group.len() == 3 && digits(group))
}

/// `names` as code, at most `most` of them, and the number of the others.
pub(super) fn few<T: Display>(names: impl ExactSizeIterator<Item = T>, most: usize) -> String {
    view::few(names.map(code), most)
}

/// A list item for each of at most `most` entries, and an item with the number of the others;
/// `noun` is the word for one of them.
pub(super) fn items(all: &[String], most: usize, noun: &str) -> String {
    let mut list = String::new();
    for item in all.iter().take(most) {
        // Writing to a string cannot fail.
        let _ = writeln!(list, "- {item}");
    }
    if all.len() > most {
        let more = count(all.len() - most, &format!("more {noun}"));
        let _ = writeln!(list, "- and {more}");
    }
    list.truncate(list.trim_end().len());
    list
}

/// Counts as text: `` `a` 3, `b` 2 ``; those beyond `most` are summed up.
pub(super) fn counted<K: Display>(counts: &[(K, usize)], most: usize) -> String {
    let word = |(key, count): &(K, usize)| {
        let key = prose(&clipped(&key.to_string(), LONGEST_COUNTED));
        format!("{key} {}", grouped(*count))
    };
    let mut words: Vec<String> = counts.iter().take(most).map(word).collect();
    let rest = counts.iter().skip(most);
    let others = rest.len();
    if others > 0 {
        let sum: usize = rest.map(|(_, count)| count).sum();
        words.push(format!("{} {}", count(others, "other"), grouped(sum)));
    }
    words.join(", ")
}

/// A GitHub table; each cell is already Markdown.
pub(super) struct Table(String);

impl Table {
    pub(super) fn new<T: Borrow<str>>(header: &[T]) -> Self {
        Self(format!("| {} |\n|{}", header.join(" | "), "---|".repeat(header.len())))
    }

    /// Adds a row, unless the table would become longer than `limit` bytes.
    #[must_use]
    pub(super) fn row(&mut self, cells: &[String], limit: usize) -> bool {
        let row = format!("\n| {} |", cells.join(" | "));
        let fits = self.0.len() + row.len() <= limit;
        if fits {
            self.0.push_str(&row);
        }
        fits
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_except_plain_words_is_code() {
        for (given, want) in [
            ("node has no pod yet", "node has no pod yet"),
            (
                "nodeSelector disk=ssd does not match (node has disk=hdd)",
                "nodeSelector `disk=ssd` does not match (node has `disk=hdd`)",
            ),
            (
                "node NotReady for 3h1m: skipped, it's back",
                "node NotReady for 3h1m: skipped, it's back",
            ),
            ("ask @octocat about #12, now", "ask `@octocat` about `#12`, now"),
            (
                "see https://x.example/y and www.x.example",
                "see `https://x.example/y` and `www.x.example`",
            ),
            ("*a* _b_ **c d** ~e~", "`*a* _b_ **c d** ~e~`"),
            ("<img src=x> [a](b)", "`<img src=x> [a](b`)"),
            ("pace with `ds-apply roll`.", "pace with `ds-apply roll`."),
            ("an odd ` one", "an odd `\" one\"`"),
            ("GH-12 T-1 4f2c9e1 deadbeef 1234567", "`GH-12 T-1 4f2c9e1 deadbeef 1234567`"),
            ("a|b c\\", "`a\\u{7c}b c\\`"),
            ("אב x", "`אב` x"),
            ("1. a 2. b", "`1`. a 2. b"),
            ("3 nodes (1)", "3 nodes (1)"),
            ("from 1,236 starts, 1,23 and 12,", "from 1,236 starts, `1,23` and 12,"),
            ("no .); (a (.", "no .); (a (."),
            ("", ""),
        ] {
            assert_eq!(prose(given), want, "{given}");
        }
    }

    #[test]
    fn any_text_can_be_code() {
        for (given, want) in [
            ("a", "`a`"),
            ("", "`\"\"`"),
            (" a", "`\" a\"`"),
            ("a`b``", "`a\\u{60}b\\u{60}\\u{60}`"),
            ("a|b", "`a\\u{7c}b`"),
            ("a\nb", "`a\\nb`"),
            ("<!-- ds-plan:default -->", "`\\u{3c}!-- ds-plan:default -->`"),
        ] {
            assert_eq!(code(given), want);
        }
        assert_eq!(
            code("x".repeat(400)),
            format!("`{}… (100 more characters)`", "x".repeat(LONGEST))
        );
        assert_eq!(html_code("</code>&\"'"), "<code>&lt;/code&gt;&amp;&quot;&#39;</code>");
    }

    #[test]
    fn no_line_closes_its_fence() {
        let lines = ["a", "```", "~~~", " ````` x"].map(str::to_owned);
        assert_eq!(fence("diff", &lines), "``````diff\na\n```\n~~~\n ````` x\n``````");
        assert_eq!(fence("", &["a".to_owned()]), "```\na\n```");
    }
}
