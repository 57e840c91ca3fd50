//! Documents as GitHub-flavoured Markdown, for the comment on a pull request and the summary of a
//! job: a summary first, details collapsed, and never too long to post.
//!
//! Text from a manifest or a cluster is always code: a code span, a fence, or an escaped `<code>`
//! element, in which nothing is markup, a link, a mention or a reference to an issue. Characters
//! that would end the code, or a table cell, are escaped like invisible ones (`neutral`). `fit`
//! divides the available length between the parts of a comment.
//!
//! A sentence of ours that quotes something is split word by word. Each part of a comment has
//! several length variants, and `fit` gives each part the longest one that leaves space for the
//! others. The tests with feature `web` check the tree that a browser would build, with a parser
//! that follows GitHub's.

mod checks;
mod comment;
mod daemon_set;
mod diff;
mod drift;
mod fields;
mod fit;
mod markup;
mod nodes;
mod notices;
mod origin;
mod plan;
#[cfg(test)]
mod plan_tests;

pub use checks::checks_markdown;
pub use comment::{CommentId, MARKDOWN_LIMIT, MarkdownOptions, NotACommentId};
pub use diff::diff_markdown;
pub use drift::drift_markdown;
pub use plan::plan_markdown;
