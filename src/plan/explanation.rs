//! One DaemonSet on one node, rule by rule: what `explain -o json` prints.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::{Action, ApiVersion, ClusterSummary, Coded, PodPlan};
use super::reason::Reason;
use crate::model::{DaemonSetKey, NodeName};

/// Every rule in the order in which the controller evaluates it, and what follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// Version of this document's form.
    pub api_version: ApiVersion,
    /// Always `Explanation`.
    pub kind: ExplanationKind,
    /// Which cluster was looked at, and when.
    pub cluster: ClusterSummary,
    /// Which DaemonSet.
    pub daemon_set: DaemonSetKey,
    /// Which node.
    pub node: NodeName,
    /// The rules of placement, in upstream's order.
    pub rules: Vec<RuleReport>,
    /// Whether a new pod may start here.
    pub may_start: bool,
    /// Whether a pod that runs here may stay.
    pub may_stay: bool,
    /// Pods of this DaemonSet on this node, and what becomes of each.
    pub pods: Vec<PodPlan>,
    /// The net effect.
    pub action: Action,
    /// Index of the wave; none for what the controller does at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wave: Option<u32>,
    /// Why; the first one is the main one.
    pub reasons: Vec<Coded<Reason>>,
}

/// Kind of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ExplanationKind {
    /// An explanation.
    Explanation,
}

/// How one rule came out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuleReport {
    /// The rule, such as `nodeSelector disk=ssd`.
    pub rule: String,
    /// How it came out.
    pub outcome: Outcome,
    /// Why, such as `node has disk=hdd`.
    pub message: String,
}

/// How a rule came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It has nothing against a pod here.
    Pass,
    /// A pod may stay but none may start: a `NoSchedule` taint.
    StayOnly,
    /// No pod may be here.
    Fail,
    /// The template or the node has nothing for this rule to look at.
    NotApplicable,
}
