//! What decides where a pod may run: taints, tolerations, node selectors and node affinity.
//!
//! Operators stay text here. The API server refuses unknown ones, but the controller's rules say
//! what an unknown one means (it never matches), and those rules live in `controller`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Labels, NodeName};

/// What a taint does to pods that do not tolerate it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum TaintEffect {
    /// They do not start there; running ones stay.
    NoSchedule,
    /// The scheduler avoids the node; the DaemonSet controller does not care.
    PreferNoSchedule,
    /// They do not start there, and running ones are removed.
    NoExecute,
}

impl TaintEffect {
    /// The word as it stands in a manifest.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

/// A taint of a node.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct Taint {
    /// Name of the taint, such as `node.kubernetes.io/unschedulable`.
    pub key: Box<str>,
    /// Value, often empty.
    #[serde(default)]
    pub value: Box<str>,
    /// What it does.
    pub effect: TaintEffect,
}

/// A toleration of a pod; empty texts are wildcards as upstream reads them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Toleration {
    /// Taint key; empty means every key (with operator `Exists`).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// `Equal` (or empty) or `Exists`; 1.36 also knows `Gt` and `Lt`, off by default.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub operator: String,
    /// Value to compare with under `Equal`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// Effect; empty means every effect.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub effect: String,
    /// How long a `NoExecute` taint is tolerated. The DaemonSet controller ignores it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

/// One requirement of a node selector term, on a label or a field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeSelectorRequirement {
    /// Label key, or field name (`metadata.name` is the only one).
    pub key: String,
    /// `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt` or `Lt`.
    pub operator: String,
    /// Operands.
    #[serde(deserialize_with = "null_as_default")]
    pub values: Vec<String>,
}

/// One term of required node affinity: all of its requirements must hold. Of several terms, one must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelectorTerm {
    /// Requirements on the node's labels.
    #[serde(deserialize_with = "null_as_default")]
    pub match_expressions: Vec<NodeSelectorRequirement>,
    /// Requirements on the node's fields.
    #[serde(deserialize_with = "null_as_default")]
    pub match_fields: Vec<NodeSelectorRequirement>,
}

/// The part of a pod template's `spec` that decides on which nodes its pods belong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodPlacement {
    /// `spec.nodeName`: pins every pod to one node.
    pub node_name: Option<NodeName>,
    /// `spec.nodeSelector`.
    pub node_selector: Labels,
    /// `requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms`; `None` without
    /// required node affinity, an empty list matches no node.
    pub required_terms: Option<Vec<NodeSelectorTerm>>,
    /// `spec.tolerations` as written, without the automatic ones.
    pub tolerations: Vec<Toleration>,
    /// `spec.hostNetwork`.
    pub host_network: bool,
}

/// `null` reads as the empty value, as the API server's decoder reads it.
pub(crate) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
