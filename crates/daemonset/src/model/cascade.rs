//! Whether the pods of a deleted DaemonSet are deleted too.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether the pods of a deleted DaemonSet are deleted too (upstream: `propagationPolicy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Cascade {
    /// The garbage collector deletes them too.
    Background,
    /// They are kept, without an owner.
    Orphan,
}
