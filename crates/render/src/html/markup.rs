//! HTML fragments that text from outside cannot break: text becomes markup only here, neutralised
//! and escaped.

use std::fmt::{Display, Write as _};

use serde::{Serialize, Serializer};

use crate::{escape, neutral};

/// Well-formed HTML: every text in it is escaped, every element closed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Html(String);

impl Html {
    /// `text` as text, and nothing else.
    pub(super) fn text(text: impl Display) -> Self {
        Self(escape::html(&neutral::line(&text.to_string())))
    }

    /// An element without attributes around `content`.
    pub(super) fn of(tag: &'static str, content: impl Into<Self>) -> Self {
        Self::with(tag, &[], content)
    }

    /// An element of a class around `content`.
    pub(super) fn class(tag: &'static str, class: &'static str, content: impl Into<Self>) -> Self {
        Self::with(tag, &[("class", class)], content)
    }

    /// An element around `content`. The values of attributes are escaped.
    pub(super) fn with(
        tag: &'static str,
        attributes: &[(&'static str, &str)],
        content: impl Into<Self>,
    ) -> Self {
        let mut html = Self(format!("<{tag}"));
        for (name, value) in attributes {
            let _ = write!(html.0, " {name}=\"{}\"", Self::text(value).0);
        }
        html.0.push('>');
        html.0.push_str(&content.into().0);
        let _ = write!(html.0, "</{tag}>");
        html
    }

    /// Whether there is nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The markup as text.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Escapes the text.
impl From<&str> for Html {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Html {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

/// Concatenates fragments, each on its own line, so that files can be read and compared.
impl FromIterator<Html> for Html {
    fn from_iter<I: IntoIterator<Item = Html>>(pieces: I) -> Self {
        let mut all = Self::default();
        for Self(piece) in pieces {
            if !all.0.is_empty() && !piece.is_empty() && piece.starts_with('<') {
                all.0.push('\n');
            }
            all.0.push_str(&piece);
        }
        all
    }
}

impl<const N: usize> From<[Html; N]> for Html {
    fn from(pieces: [Html; N]) -> Self {
        pieces.into_iter().collect()
    }
}

/// Text for the script, neutralised; the script inserts it as text, never as HTML.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Text(String);

impl Text {
    pub(super) fn of(text: impl Display) -> Self {
        Self(neutral::line(&text.to_string()).into_owned())
    }

    /// Whether it is this text.
    pub(super) fn is(&self, text: &str) -> bool {
        self.0 == neutral::line(text)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// `data` as JSON that can be embedded in a `<script>`: it contains no tag and no comment.
pub(super) fn embedded(data: &impl Serialize) -> serde_json::Result<String> {
    Ok(escape::json_in_script(&serde_json::to_string(data)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_attributes_stay_text() {
        let hostile = "</script><img src=x onerror='a'>\u{202e}\"&amp;";
        let safe = "&lt;/script&gt;&lt;img src=x onerror=&#39;a&#39;&gt;\\u{202e}&quot;&amp;amp;";
        assert_eq!(Html::text(hostile).as_str(), safe);
        let element = Html::with("p", &[("title", hostile)], hostile);
        assert_eq!(element.as_str(), format!("<p title=\"{safe}\">{safe}</p>"));
    }

    #[test]
    fn elements_are_on_separate_lines_except_for_text() {
        let pieces = [Html::of("b", "a"), Html::of("b", "c"), Html::text(" and "), Html::text("d")];
        assert_eq!(Html::from(pieces).as_str(), "<b>a</b>\n<b>c</b> and d");
    }

    #[test]
    fn data_cannot_end_its_script() {
        let hostile = "</script><!-- & -->\u{2028}";
        let json = embedded(&[Text::of(hostile)]).unwrap();
        let reported = r#"["\u003c/script\u003e\u003c!-- \u0026 --\u003e\\u{2028}"]"#;
        assert_eq!(json, reported);
        let read: Vec<String> = serde_json::from_str(&json).unwrap();
        assert_eq!(read, ["</script><!-- & -->\\u{2028}"]);
    }
}
