//! Guards that block a plan, and warnings that do not.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use daemonset::model::NodeName;

/// A condition that blocks `ds-apply` until the user passes its flag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Guard {
    /// Machine-readable code.
    pub code: GuardCode,
    /// Description and remedy.
    pub message: String,
    /// The flag that allows it; none when it cannot be allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_flag: Option<String>,
    /// `NAMESPACE/NAME` of the affected DaemonSet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daemon_set: Option<String>,
    /// The affected nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeName>,
}

/// Kind of a guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum GuardCode {
    /// `spec.selector` is immutable: the DaemonSet would have to be recreated.
    SelectorChange,
    /// More pods than the budget would be deleted at once, because their nodes are no longer
    /// eligible.
    MassEviction,
    /// Other field managers own fields that the manifest sets.
    ForceConflicts,
    /// A GitOps controller manages the object and would undo a pause.
    GitOps,
    /// The rollout of the same template failed before.
    FailedTemplate,
    /// The plan cannot finish: unavailable pods that it does not replace use up the budget.
    Deadlock,
    /// More than half of the DaemonSets of a source would be deleted.
    MassDeletion,
    /// The other controller (the DaemonSet controller or `ds-apply`) manages the DaemonSet.
    ManagedBy,
    /// A DaemonSet to be deleted was applied from other paths with the same source id.
    OtherSource,
    /// The pull request deletes or loosens its own RolloutPolicy.
    PolicyChange,
    /// A step of the policy selects no node.
    EmptyStep,
    /// The policy has domains, and the DaemonSet surges.
    SurgeUnderPolicy,
    /// No window of the policy is open for as long as the update of one node takes.
    WindowTooShort,
}

/// A condition that should be known before the apply but does not block it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Warning {
    /// Machine-readable code.
    pub code: String,
    /// Description and remedy.
    pub message: String,
    /// `NAMESPACE/NAME` of the affected DaemonSet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daemon_set: Option<String>,
    /// The affected nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeName>,
}
