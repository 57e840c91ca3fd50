//! The part of a forecast that is one DaemonSet.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::nodes::is_zero;
use daemonset::model::TimeZoneName;

/// The part of a forecast that is one DaemonSet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DaemonSetForecast {
    /// `NAMESPACE/NAME`.
    pub daemon_set: String,
    /// Seconds in which its pods are created and replaced, without waits between two runs.
    pub seconds: u64,
    /// Seconds of each of its waves on its own. Without domains that are updated at once, waves
    /// follow one another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waves: Vec<u64>,
    /// Seconds that the update of one node takes, if it could be measured; only if a policy makes
    /// the rollout wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_seconds: Option<u32>,
    /// What pulling images before does to the time of a node; none without it, or if no pod was
    /// measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_pull: Option<PrePullForecast>,
    /// Seconds in which only soaks pass.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub soak_seconds: u64,
    /// Each step that is not done; empty if the policy has no steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepForecast>,
    /// Its course over time: updates, soaks, and what else is waited for; empty if no policy makes the
    /// rollout wait. Spans of different waves may overlap.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<ForecastSpan>,
    /// The first opening of a maintenance window that has to be waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_opens: Option<Timestamp>,
    /// Time zone of the policy's windows, for showing times; UTC if they differ, none without
    /// windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<TimeZoneName>,
    /// The time at which everything is done, if nothing fails, runs come when they can continue, and
    /// approvals are given at once. None if no policy makes the rollout wait, or no window opens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earliest_end: Option<Timestamp>,
}

/// Times with and without images that are pulled before, from the start times of pods in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrePullForecast {
    /// Seconds for which a node has no Ready pod if its images are there: by the fastest start.
    pub node_seconds: u64,
    /// The same if it pulls them meanwhile: by the median.
    pub without_seconds: u64,
}

/// The part of a forecast that is one step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepForecast {
    /// Its name.
    pub name: String,
    /// Seconds in which its nodes are updated.
    pub seconds: u64,
    /// Seconds in which only its soaks pass, those of its domains included.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub soak_seconds: u64,
    /// The time at which it begins, waits before it included.
    pub begins: Timestamp,
    /// The time at which its last soak ends.
    pub ends: Timestamp,
}

/// A part of the course of a rollout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForecastSpan {
    /// What happens.
    pub kind: SpanKind,
    /// The step; none if the policy has no steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Number of the wave; none if it is about the whole step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wave: Option<u32>,
    /// Its beginning.
    pub from: Timestamp,
    /// Its end. That of a wait for an approval is its beginning: its length is unknown.
    pub until: Timestamp,
}

/// The kind of a part of the course of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SpanKind {
    /// The nodes of a wave are updated.
    Update,
    /// New pods must stay up.
    Soak,
    /// No window is open for long enough.
    Closed,
    /// A person must approve the step, which has no approval yet.
    Approval,
}
