//! Output formats: plans, status, explanations, history, diffs and drift as text; plans, drift and
//! diffs as Markdown ([`plan_markdown`]); plans, drift and rollouts as HTML ([`plan_html`]); and
//! any document as JSON ([`json`], the interface for programs) or YAML ([`yaml`]).
//!
//! What is shown of plans, drift and rollouts, and in which words, is decided once, in `view`:
//! plain structs, made by pure functions. `text`, `markdown` and `html` only lay them out. Sentences
//! come from the `Display` implementations of the types.
//!
//! All text from manifests and clusters is made harmless before it is printed ([`neutral`]).

mod data;
mod error;
mod escape;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod hostile_tests;
mod html;
mod markdown;
mod metrics;
pub mod neutral;
mod schema;
mod text;
mod view;

pub use data::{json, json_line, write_json, yaml};
pub use error::Error;
pub use html::{HtmlOptions, RolloutReport, checks_html, drift_html, plan_html, rollout_html};
pub use markdown::{
    CommentId, MARKDOWN_LIMIT, MarkdownOptions, NotACommentId, checks_markdown, diff_markdown,
    drift_markdown, plan_markdown,
};
pub use metrics::metrics;
pub use schema::{Document, schema};
pub use text::{
    StatusRows, TextOptions, checks_text, diff_text, drift_name, drift_text, explain_text,
    history_text, plan_name, plan_text, rollout_charts, status_name, status_text,
};
