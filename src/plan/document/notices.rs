//! What stands in the way of a plan, and what should be known before it is carried out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::NodeName;

/// Something that `ds-apply` refuses to do without being told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Guard {
    /// One word for programs.
    pub code: GuardCode,
    /// What it is, and what to do.
    pub message: String,
    /// The flag that allows it; none when nothing does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_flag: Option<String>,
    /// `NAMESPACE/NAME` of the DaemonSet it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daemon_set: Option<String>,
    /// The nodes it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeName>,
}

/// What a guard is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum GuardCode {
    /// `spec.selector` is immutable: the DaemonSet would have to be deleted and made anew.
    SelectorChange,
    /// More pods than the budget would be removed at once, because their nodes are no longer
    /// eligible.
    MassEviction,
    /// Somebody else owns fields that the manifest sets.
    TakeOver,
    /// A running GitOps controller applies the object, and would undo a hold.
    GitOps,
    /// The same template failed before.
    FailedTemplate,
    /// Pods that the plan does not replace use up the budget: it cannot finish.
    Deadlock,
    /// More than half of what a source applied would be deleted.
    MassDeletion,
    /// The other one acts on it, the DaemonSet controller or `ds-apply`: the two are never mixed.
    ManagedBy,
    /// What is to be deleted was applied from another place, under the same id.
    OtherSource,
    /// The request deletes or loosens the policy that judges it.
    PolicyChange,
}

/// Something that a careful reader should know before going on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Warning {
    /// One word for programs.
    pub code: String,
    /// What it is, and what to do.
    pub message: String,
    /// `NAMESPACE/NAME` of the DaemonSet it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daemon_set: Option<String>,
    /// The nodes it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeName>,
}
