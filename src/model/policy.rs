//! `RolloutPolicy`: how a rollout is to be paced, beyond what a DaemonSet itself can say.
//!
//! A document of our own beside the manifests. It is never sent to the cluster.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};

use super::{DaemonSetKey, IntOrPercent, Labels, ManagedBy};

/// A policy as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RolloutPolicy {
    /// Version of this document's form.
    pub api_version: PolicyVersion,
    /// Always `RolloutPolicy`.
    pub kind: PolicyKind,
    /// What it is called.
    pub metadata: PolicyMetadata,
    /// What it says.
    pub spec: PolicySpec,
}

/// Version of the document's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum PolicyVersion {
    /// The first form; fields may be added.
    #[serde(rename = "ds-plan.dev/v1alpha1")]
    V1Alpha1,
}

/// Kind of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum PolicyKind {
    /// A policy.
    RolloutPolicy,
}

/// What a policy is called.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicyMetadata {
    /// Its name, which plans show.
    pub name: String,
}

/// What a policy says.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicySpec {
    /// Which DaemonSets it is for. No DaemonSet may have two.
    pub selects: Selects,
    /// Who replaces pods.
    #[serde(default)]
    pub managed_by: ManagedBy,
    /// What becomes of a rollout that fails.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// At most so many desired nodes may be without an available pod. Makes the DaemonSet's own
    /// limit stricter, never looser. A percentage is rounded up, as upstream does it.
    #[serde(default)]
    #[schemars(with = "Option<IntOrPercentSchema>")]
    pub max_unavailable: Option<IntOrPercent>,
    /// DaemonSets with lower numbers are rolled first; those with equal ones by name.
    #[serde(default)]
    pub order: i32,
    /// How long a node's new pod may take to become available, such as `10m` or `1h30m`.
    #[serde(default)]
    pub progress_deadline: Deadline,
    /// Nodes that are not Ready are left for later.
    #[serde(default)]
    pub skip_unready_nodes: SkipUnreadyNodes,
    /// A new pod whose containers restart more often than this has failed.
    #[serde(default = "three")]
    pub max_restarts: u32,
}

/// Which DaemonSets: those named, and those with all of the labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Selects {
    /// `NAMESPACE/NAME` of each.
    #[serde(deserialize_with = "keys")]
    #[schemars(with = "Vec<String>")]
    pub names: Vec<DaemonSetKey>,
    /// Labels of the DaemonSet objects, all of which must be there.
    #[schemars(with = "BTreeMap<String, String>")]
    pub labels: Labels,
}

/// What becomes of a rollout that fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OnFailure {
    /// The last good template is put back and held; no pod is deleted.
    #[default]
    Park,
    /// Everything is left as it is.
    Hold,
    /// The last good template is put back, and the bad pods are replaced too.
    Rollback,
}

/// How long a node's new pod may take to become available; ten minutes if nothing is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub struct Deadline(
    /// Seconds; at least one.
    pub u32,
);

impl Default for Deadline {
    fn default() -> Self {
        Self(600)
    }
}

impl TryFrom<String> for Deadline {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let error = || format!("`{text}` is no span of time such as 90s, 10m or 1h30m");
        let span: jiff::SignedDuration = text.parse().map_err(|_| error())?;
        let seconds = u32::try_from(span.as_secs()).map_err(|_| error())?;
        if seconds == 0 { Err(error()) } else { Ok(Self(seconds)) }
    }
}

/// How many nodes that are not Ready are left for later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SkipUnreadyNodes {
    /// At most so many, of the desired nodes if it is a percentage, but one at least; further ones
    /// count as unavailable.
    #[schemars(with = "IntOrPercentSchema")]
    pub max: IntOrPercent,
}

impl Default for SkipUnreadyNodes {
    fn default() -> Self {
        Self { max: IntOrPercent::Percent(5) }
    }
}

impl SkipUnreadyNodes {
    /// How many of `desired` nodes may be skipped.
    pub fn of(self, desired: u32) -> u32 {
        self.max.scaled(desired).max(1)
    }
}

impl PolicySpec {
    /// The stricter of the DaemonSet's own limit and the policy's, for `desired` nodes. A policy
    /// never stops everything: it allows one node at least.
    pub fn stricter(&self, max_unavailable: u32, desired: u32) -> u32 {
        let own = self.max_unavailable.map(|limit| limit.scaled(desired).max(1));
        own.map_or(max_unavailable, |limit| limit.min(max_unavailable))
    }
}

impl Default for PolicySpec {
    /// What holds where there is no policy.
    fn default() -> Self {
        Self {
            selects: Selects::default(),
            managed_by: ManagedBy::default(),
            on_failure: OnFailure::default(),
            max_unavailable: None,
            order: 0,
            progress_deadline: Deadline::default(),
            skip_unready_nodes: SkipUnreadyNodes::default(),
            max_restarts: three(),
        }
    }
}

fn three() -> u32 {
    3
}

fn keys<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<DaemonSetKey>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts.iter().map(|text| text.parse().map_err(de::Error::custom)).collect()
}

/// How the schema tells of a number or a percentage.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum IntOrPercentSchema {
    /// So many nodes.
    Int(u32),
    /// A percentage such as `10%`.
    Percent(String),
}

impl RolloutPolicy {
    /// A policy that says nothing but its name, and selects nothing.
    pub fn named(name: &str) -> Self {
        Self {
            api_version: PolicyVersion::V1Alpha1,
            kind: PolicyKind::RolloutPolicy,
            metadata: PolicyMetadata { name: name.to_owned() },
            spec: PolicySpec::default(),
        }
    }

    /// Whether it is for the DaemonSet with this key and these labels.
    pub fn selects(&self, key: &DaemonSetKey, labels: &Labels) -> bool {
        let Selects { names, labels: wanted } = &self.spec.selects;
        let has_all = || wanted.iter().all(|(key, want)| labels.get(key) == Some(want));
        names.contains(key) || (!wanted.is_empty() && has_all())
    }
}
