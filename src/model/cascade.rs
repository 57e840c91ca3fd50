//! What becomes of the pods of a DaemonSet that is deleted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What becomes of the pods of a DaemonSet that is deleted (upstream: `propagationPolicy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Cascade {
    /// They are deleted too, by the garbage collector.
    Background,
    /// They stay, and belong to nobody.
    Orphan,
}
