//! A run as it was told, kept for whoever looks at it afterwards.

use jiff::Timestamp;

use super::outcome::Ending;
use super::progress::Report;
use crate::model::DaemonSetKey;

/// What one run told while it went on, and how it ended; by the server's clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Which DaemonSet it was about.
    pub key: DaemonSetKey,
    /// What was told, and when.
    pub events: Vec<(Timestamp, Report)>,
    /// How it ended.
    pub ending: Ending,
}
