//! Shows what was found and decided: plans, status and explanations as text, JSON and YAML.
//! Words come from the types' own `Display`; here they are only laid out.
//!
//! Whatever a manifest or a cluster says is made harmless on the way out ([`neutral`]).

mod daemon_set_text;
mod data;
#[cfg(test)]
mod examples;
mod explain;
#[cfg(test)]
mod hostile_tests;
pub mod neutral;
mod nodes;
mod page;
mod plan_text;
#[cfg(test)]
mod plan_text_tests;
mod ranges;
mod schema;
mod status;
mod values;

pub use explain::{explain_json, explain_text, explain_yaml};
pub use plan_text::{plan_name, plan_text};
pub use schema::{Document, schema};
pub use status::{status_json, status_name, status_text, status_yaml};

use crate::plan::Plan;

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
    /// Not as YAML.
    #[error("cannot write YAML")]
    Yaml(#[source] serde_saphyr::ser::Error),
}

/// The plan as JSON: the interface for programs. Deterministic, fields in the order of the type.
pub fn plan_json(plan: &Plan) -> Result<String, Error> {
    data::json(plan)
}

/// The plan as YAML, with the same content as the JSON.
pub fn plan_yaml(plan: &Plan) -> Result<String, Error> {
    data::yaml(plan)
}
