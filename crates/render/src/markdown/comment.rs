//! The document around its parts: its options, its length, and the marker by which a comment is
//! found.

use std::str::FromStr;

use planner::plan::Zones;

/// Maximum length of a document, in bytes of UTF-8, and so also in characters and UTF-16 units.
/// GitHub refuses comments of more than 65,536 characters.
pub const MARKDOWN_LIMIT: usize = 60_000;

/// Options of a Markdown document.
#[derive(Clone, Debug, Default)]
pub struct MarkdownOptions {
    /// The id in the hidden marker.
    pub comment: CommentId,
    /// Whether every node is listed with its pods, and values are in full length, within the limit.
    pub verbose: bool,
    /// The zone of each node, if known.
    pub zones: Zones,
}

/// The id of a comment, unique in a pull request, by which the comment is found and updated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommentId(String);

impl Default for CommentId {
    fn default() -> Self {
        Self("default".to_owned())
    }
}

/// The text is not a valid comment id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("1 to 63 letters, digits, dots or single dashes")]
pub struct NotACommentId;

impl FromStr for CommentId {
    type Err = NotACommentId;

    fn from_str(text: &str) -> Result<Self, NotACommentId> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        // Two dashes could end the HTML comment that contains the id.
        let fits = (1..=63).contains(&text.len()) && text.chars().all(plain);
        let ends = text.contains("--") || text.starts_with('-') || text.ends_with('-');
        if fits && !ends { Ok(Self(text.to_owned())) } else { Err(NotACommentId) }
    }
}

impl CommentId {
    /// The marker: an invisible HTML comment.
    fn marker(&self) -> String {
        format!("<!-- ds-plan:{} -->", self.0)
    }
}

/// `blocks` with empty lines between them and the marker at the end, on the same line if there is
/// only one line.
pub(super) fn document(blocks: &[String], comment: &CommentId) -> String {
    let text = blocks.join("\n\n");
    let between = if text.contains('\n') { "\n\n" } else { " " };
    let marked = format!("{text}{between}{}\n", comment.marker());
    debug_assert!(marked.len() <= MARKDOWN_LIMIT, "{} bytes", marked.len());
    marked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_has_a_plain_name() {
        for name in ["default", "prod-eu.1", "a_b", &"x".repeat(63)] {
            assert_eq!(name.parse(), Ok(CommentId(name.to_owned())));
        }
        for name in ["", "a--b", "-a", "a-", "a b", "a>", "é", &"x".repeat(64)] {
            assert_eq!(name.parse::<CommentId>(), Err(NotACommentId), "{name}");
        }
    }
}
