//! The history of one run, for what is shown after its end.

use jiff::Timestamp;

use super::outcome::Ending;
use super::progress::Report;
use daemonset::model::DaemonSetKey;

/// The reports and the ending of one run; times are by the server's clock.
#[derive(Clone, Debug, PartialEq)]
pub struct RunHistory {
    /// The DaemonSet of the run.
    pub key: DaemonSetKey,
    /// The label by which the policy divides nodes into domains.
    pub domain_key: Option<String>,
    /// The reports, each with its time.
    pub events: Vec<(Timestamp, Report)>,
    /// How the run ended.
    pub ending: Ending,
}
