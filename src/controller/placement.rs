//! Where a DaemonSet's pods may start, and where they may stay.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The first rule, in upstream's order, that keeps a pod off a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "code", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Obstacle {
    /// `nodeSelector` asks for a label that the node lacks or has another value of.
    NodeSelector {
        /// Label key.
        key: String,
        /// Value asked for.
        want: String,
        /// Value that the node has.
        #[serde(skip_serializing_if = "Option::is_none")]
        have: Option<String>,
    },
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NodeSelector { key, want, have: Some(have) } => {
                write!(f, "nodeSelector {key}={want} does not match (node has {key}={have})")
            }
            Self::NodeSelector { key, want, have: None } => {
                write!(f, "nodeSelector {key}={want} does not match (node has no {key})")
            }
        }
    }
}
