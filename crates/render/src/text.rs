//! Documents as text: lines for a terminal or a log.

mod checks;
mod daemon_set;
mod diff;
mod drift;
mod explain;
mod fields;
mod history;
mod nodes;
mod notices;
mod page;
mod plan;
#[cfg(test)]
mod plan_tests;
mod rollout;
mod status;
mod template;
mod unified;

pub use checks::checks_text;
pub use diff::diff_text;
pub(crate) use diff::one_text;
pub use drift::{drift_name, drift_text};
pub use explain::explain_text;
pub use history::history_text;
pub use page::TextOptions;
pub use plan::{plan_name, plan_text};
pub use rollout::rollout_charts;
pub use status::{StatusRows, status_name, status_text};
