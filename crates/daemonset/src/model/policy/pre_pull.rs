//! Pulling the images of new pods before old ones are deleted.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Deadline;

/// The images of the new pods are pulled to a node before its old pod is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PrePull {
    /// Maximum number of nodes that pull at the same time.
    pub parallel: u32,
    /// Maximum time for a node to get all images, such as `10m`. Then the node is skipped, as one
    /// that is not Ready.
    pub timeout: Deadline,
}

impl Default for PrePull {
    fn default() -> Self {
        Self { parallel: 10, timeout: Deadline::default() }
    }
}
