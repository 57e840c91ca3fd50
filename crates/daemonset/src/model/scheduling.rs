//! Fields that decide where a pod may run: taints, tolerations, node selectors and node affinity.
//!
//! Operators are text here. The API server refuses unknown operators; in the controller's rules
//! (`controller`), an unknown operator never matches.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Labels, NodeName};

/// The effect of a taint on pods that do not tolerate it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum TaintEffect {
    /// New pods do not start; running pods are kept.
    NoSchedule,
    /// The scheduler avoids the node; the DaemonSet controller ignores the taint.
    PreferNoSchedule,
    /// New pods do not start, and running pods are removed.
    NoExecute,
}

impl TaintEffect {
    /// The value as written in a manifest.
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
    /// Its effect.
    pub effect: TaintEffect,
}

/// A toleration of a pod; empty strings are wildcards, as upstream.
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
    /// Seconds for which a `NoExecute` taint is tolerated. The DaemonSet controller ignores it.
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

/// One term of required node affinity. All of its requirements must hold; of several terms, one.
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

/// The part of a pod template's `spec` that decides on which nodes its pods run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodPlacement {
    /// `spec.nodeName`: binds every pod to one node.
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

/// Decodes `null` as the empty value, as the API server does.
pub fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
