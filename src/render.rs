//! Shows what was found and decided: plans, status, explanations, history, diffs and drift as text;
//! plans, drift and diffs as Markdown ([`plan_markdown`]); plans, drift and rollouts as HTML
//! ([`plan_html`]); and any document as JSON ([`json`], the interface for programs) or YAML ([`yaml`]).
//!
//! Words come from the types' own `Display`; here they are only laid out.
//!
//! Whatever a manifest or a cluster says is made harmless on the way out ([`neutral`]).

mod daemon_set_text;
mod data;
mod diff;
mod drift;
#[cfg(test)]
mod examples;
mod explain;
#[cfg(test)]
#[path = "../tests/it/fertile.rs"]
mod fertile;
mod history;
#[cfg(test)]
mod hostile_tests;
mod html;
mod markdown;
mod metrics;
pub mod neutral;
mod nodes;
mod pace;
mod page;
mod plan_text;
#[cfg(test)]
mod plan_text_tests;
mod ranges;
mod schema;
mod status;
mod template;
mod unified;
mod values;

pub use data::{json, yaml};
pub use diff::diff_text;
pub use drift::{drift_name, drift_text};
pub use explain::explain_text;
pub use history::history_text;
pub use html::{HtmlOptions, RolloutReport, drift_html, plan_html, rollout_html};
pub use markdown::{
    CommentId, MARKDOWN_LIMIT, MarkdownOptions, NotACommentId, diff_markdown, drift_markdown,
    plan_markdown,
};
pub use metrics::metrics;
pub use plan_text::{plan_name, plan_text};
pub use schema::{Document, schema};
pub use status::{status_name, status_text};

/// How text is laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextOptions {
    /// Every node with its pods, and values in full length.
    pub verbose: bool,
    /// With colours; the text means the same without.
    pub color: bool,
    /// Lines of words are broken at this width, in columns. `None`: never.
    pub width: Option<usize>,
}

/// A document cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not as JSON.
    #[error("cannot write JSON")]
    Json(#[source] serde_json::Error),
    /// Not as OpenMetrics.
    #[error("cannot write metrics")]
    Metrics(#[source] std::fmt::Error),
    /// Not as YAML.
    #[error("cannot write YAML")]
    Yaml(#[source] serde_saphyr::ser::Error),
}
