//! Output formats: plans, status, explanations, history, diffs and drift as text; plans, drift and
//! diffs as Markdown ([`plan_markdown`]); plans, drift and rollouts as HTML ([`plan_html`]); and
//! any document as JSON ([`json`], the interface for programs) or YAML ([`yaml`]).
//!
//! Messages come from the `Display` implementations of the types; this module only lays them out.
//!
//! All text from manifests and clusters is made harmless before it is printed ([`neutral`]).

mod daemon_set_text;
mod data;
mod diff;
mod drift;
#[cfg(test)]
mod examples;
mod explain;
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

/// Options of text output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextOptions {
    /// Whether every node is listed with its pods, and values are shown in full length.
    pub verbose: bool,
    /// Whether output is coloured. Colours carry no information of their own.
    pub color: bool,
    /// The width, in columns, at which lines of prose are broken; `None` for no limit.
    pub width: Option<usize>,
}

/// A document could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Serializing to JSON failed.
    #[error("cannot write JSON")]
    Json(#[source] serde_json::Error),
    /// Encoding as OpenMetrics failed.
    #[error("cannot write metrics")]
    Metrics(#[source] std::fmt::Error),
    /// Serializing to YAML failed.
    #[error("cannot write YAML")]
    Yaml(#[source] serde_saphyr::ser::Error),
}
