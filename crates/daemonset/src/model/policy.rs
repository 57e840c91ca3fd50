//! `RolloutPolicy`: settings of a rollout that a DaemonSet itself does not have.
//!
//! A document of ds-plan next to the manifests. It is never sent to the cluster.

mod checks;
mod loosened;
mod pre_pull;
mod steps;

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

pub use checks::{
    Bound, Check, CheckKind, EmptyAnswer, ExpectedPods, HttpCheck, PodsCheck, PodsOn,
    PrometheusCheck,
};
pub use pre_pull::PrePull;
pub use steps::{Domains, PolicyStep, Soak, StepNodes, StepSelector, WhileWaiting};

use super::{
    DaemonSetKey, DaemonSetSpec, Exclusion, IntOrPercent, Labels, ManagedBy, MinReady, Window,
};

/// A policy, as written in a file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RolloutPolicy {
    /// Version of this document's form.
    pub api_version: PolicyVersion,
    /// Always `RolloutPolicy`.
    pub kind: PolicyKind,
    /// Its metadata.
    pub metadata: PolicyMetadata,
    /// Its settings.
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

/// The metadata of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicyMetadata {
    /// Its name, which plans show.
    pub name: String,
}

/// The settings of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicySpec {
    /// The DaemonSets to which the policy applies. No DaemonSet may have two policies.
    pub selects: Selects,
    /// The controller that creates and replaces pods.
    #[serde(default)]
    pub managed_by: ManagedBy,
    /// The reaction to a failed rollout.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// Maximum number of desired nodes without an available pod. Makes the DaemonSet's own limit
    /// stricter, never looser. A percentage is rounded up, as in Kubernetes.
    #[serde(default)]
    #[schemars(with = "Option<IntOrPercentSchema>")]
    pub max_unavailable: Option<IntOrPercent>,
    /// Seconds that a new pod must be Ready to count as available, with no container restarted or
    /// terminated meanwhile. Makes the DaemonSet's own `minReadySeconds` stricter, never looser.
    /// Default: 10 for the first node of every rollout, and for every node if a long-running
    /// container has no readiness probe; else 0.
    #[serde(default)]
    pub min_ready_seconds: Option<u32>,
    /// Growth of the number of nodes that are replaced at the same time.
    #[serde(default)]
    pub ramp: Ramp,
    /// `NAMESPACE/NAME` of DaemonSets that must be done first: their plan is empty, and their
    /// rollout is neither paused nor aborted.
    #[serde(default, deserialize_with = "keys")]
    #[schemars(with = "Vec<String>")]
    pub after: Vec<DaemonSetKey>,
    /// Maximum number of nodes that all selected DaemonSets together may disturb at the same time: a
    /// node counts while one of them should have a pod there and has no available one. A percentage
    /// is of the nodes on which any of them should have a pod, rounded up.
    #[serde(default)]
    #[schemars(with = "Option<IntOrPercentSchema>")]
    pub shared_budget: Option<IntOrPercent>,
    /// Groups of nodes, such as zones, that are updated one after the other in every step.
    #[serde(default)]
    pub domains: Option<Domains>,
    /// Sets of nodes that are updated one after the other. Each contains the nodes of the earlier
    /// ones; all other nodes are an implied last step.
    #[serde(default)]
    pub steps: Vec<PolicyStep>,
    /// Maintenance windows: a node begins only while one is open and long enough for it; what began is
    /// finished. Always open without windows.
    #[serde(default, deserialize_with = "Window::list")]
    pub windows: Vec<Window>,
    /// Periods in which no window is open.
    #[serde(default)]
    pub exclusions: Vec<Exclusion>,
    /// Checks that must pass before a node begins; until then, the rollout waits.
    #[serde(default)]
    #[schemars(with = "Vec<checks::WrittenCheck>")]
    pub preconditions: Vec<Check>,
    /// Checks that must pass while nodes run the new version; if one fails, the rollout fails.
    #[serde(default)]
    #[schemars(with = "Vec<checks::WrittenCheck>")]
    pub gates: Vec<Check>,
    /// Pulls the images of the new pods to a node before its old pod is deleted. Default: none.
    #[serde(default)]
    pub pre_pull: Option<PrePull>,
    /// The template that is live between the runs of a rollout that waits.
    #[serde(default)]
    pub while_waiting: WhileWaiting,
    /// Maximum time from the first delete to the end of the rollout, waiting included; then it
    /// fails.
    #[serde(default)]
    pub max_duration: Option<Deadline>,
    /// Maximum time for a node's new pod to become available, such as `10m` or `1h30m`.
    #[serde(default)]
    pub progress_deadline: Deadline,
    /// Nodes that are not Ready are skipped and updated when they are Ready again.
    #[serde(default)]
    pub skip_unready_nodes: SkipUnreadyNodes,
    /// A new pod fails if its containers restart more often than this.
    #[serde(default = "three")]
    pub max_restarts: u32,
}

/// The selected DaemonSets: those named, and those with all of the labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Selects {
    /// `NAMESPACE/NAME` of each.
    #[serde(deserialize_with = "keys")]
    #[schemars(with = "Vec<String>")]
    pub names: Vec<DaemonSetKey>,
    /// Labels that a DaemonSet object must have, all of them.
    #[schemars(with = "BTreeMap<String, String>")]
    pub labels: Labels,
}

/// The reaction to a failed rollout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OnFailure {
    /// Restores the last good template and pauses the rollout; no pod is deleted.
    #[default]
    Abort,
    /// Pauses the rollout and keeps the failed template.
    Pause,
    /// Restores the last good template and replaces the failed pods.
    Rollback,
}

/// Growth of the number of nodes in flight: nodes whose new pod is not available yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Ramp {
    /// The first node alone; one more for each new pod that becomes available, up to the budget. A
    /// version that fails everywhere affects only one node.
    #[default]
    Double,
    /// As many nodes as the budget allows, from the beginning.
    None,
}

impl Ramp {
    /// Maximum number of nodes in flight after `available` new pods have become available; at most
    /// `budget`.
    pub fn window(self, available: usize, budget: u32) -> u32 {
        match self {
            Self::Double => u32::try_from(available).map_or(budget, |it| budget.min(1 + it)),
            Self::None => budget,
        }
    }
}

/// Maximum time for a node's new pod to become available. Default: ten minutes.
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
        let error = || format!("`{text}` is not a duration such as 90s, 10m or 1h30m");
        let span: jiff::SignedDuration = text.parse().map_err(|_| error())?;
        let seconds = u32::try_from(span.as_secs()).map_err(|_| error())?;
        if seconds == 0 { Err(error()) } else { Ok(Self(seconds)) }
    }
}

/// Maximum number of nodes that are not Ready and are skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SkipUnreadyNodes {
    /// Maximum number of skipped nodes, or percentage of the desired nodes, but at least one.
    /// Further nodes that are not Ready count as unavailable.
    #[schemars(with = "IntOrPercentSchema")]
    pub max: IntOrPercent,
}

impl Default for SkipUnreadyNodes {
    fn default() -> Self {
        Self { max: IntOrPercent::Percent(5) }
    }
}

impl SkipUnreadyNodes {
    /// Maximum number of skipped nodes for `desired` nodes.
    pub fn of(self, desired: u32) -> u32 {
        self.max.scaled(desired).max(1)
    }
}

impl PolicySpec {
    /// The stricter of the DaemonSet's own limit and the policy's, for `desired` nodes.
    pub fn stricter(&self, max_unavailable: u32, desired: u32) -> u32 {
        let own = self.max_unavailable.map(|limit| limit.scaled(desired).max(1));
        own.map_or(max_unavailable, |limit| limit.min(max_unavailable))
    }

    /// Number of desired nodes that may be without an available pod while a run deletes pods; at
    /// least one node. A DaemonSet with `maxSurge` declares none (Kubernetes requires
    /// `maxUnavailable: 0` there), so the policy's limit applies, else one node.
    pub fn while_deleting(&self, max_unavailable: u32, desired: u32) -> u32 {
        let own = self.max_unavailable.map(|limit| limit.scaled(desired).max(1));
        match max_unavailable {
            0 => own.unwrap_or(1),
            declared => own.map_or(declared, |limit| limit.min(declared)),
        }
    }

    /// Only what limits how many nodes are disturbed at once: the way back waits for no steps, soaks,
    /// approvals and windows, and asks no checks.
    #[must_use]
    pub fn budgets(&self) -> Self {
        let domains = self.domains.as_ref();
        let domains = domains.map(|it| Domains { soak: Soak::default(), ..it.clone() });
        Self {
            domains,
            steps: Vec::new(),
            windows: Vec::new(),
            exclusions: Vec::new(),
            preconditions: Vec::new(),
            gates: Vec::new(),
            // The images of earlier pods are there.
            pre_pull: None,
            // If it has to wait for a budget, what is wanted stays.
            while_waiting: WhileWaiting::Target,
            max_duration: None,
            ..self.clone()
        }
    }

    /// Whether any step begins only after an approval.
    pub fn asks_for_approvals(&self) -> bool {
        self.steps.iter().any(|step| step.approve)
    }

    /// Whether a check looks at other pods, in the whole cluster.
    pub fn checks_pods(&self) -> bool {
        let mut all = self.checks();
        all.any(|check| matches!(check.kind, CheckKind::Pods(_)))
    }

    /// The preconditions and the gates.
    pub fn checks(&self) -> impl Iterator<Item = &Check> {
        self.preconditions.iter().chain(&self.gates)
    }

    /// Without preconditions and gates.
    #[must_use]
    pub fn without_checks(&self) -> Self {
        Self { preconditions: Vec::new(), gates: Vec::new(), ..self.clone() }
    }

    /// The time that new pods of a DaemonSet must stay up.
    pub fn min_ready(&self, spec: &DaemonSetSpec) -> MinReady {
        MinReady::of(spec, self.min_ready_seconds)
    }
}

impl Default for PolicySpec {
    /// The settings without a policy.
    fn default() -> Self {
        Self {
            selects: Selects::default(),
            managed_by: ManagedBy::default(),
            on_failure: OnFailure::default(),
            max_unavailable: None,
            min_ready_seconds: None,
            ramp: Ramp::default(),
            after: Vec::new(),
            shared_budget: None,
            domains: None,
            steps: Vec::new(),
            windows: Vec::new(),
            exclusions: Vec::new(),
            preconditions: Vec::new(),
            gates: Vec::new(),
            pre_pull: None,
            while_waiting: WhileWaiting::default(),
            max_duration: None,
            progress_deadline: Deadline::default(),
            skip_unready_nodes: SkipUnreadyNodes::default(),
            max_restarts: three(),
        }
    }
}

impl fmt::Display for OnFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Abort => "abort",
            Self::Pause => "pause",
            Self::Rollback => "rollback",
        })
    }
}

fn three() -> u32 {
    3
}

fn keys<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<DaemonSetKey>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts.iter().map(|text| text.parse().map_err(de::Error::custom)).collect()
}

/// The JSON schema of a number or a percentage.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum IntOrPercentSchema {
    /// A number of nodes.
    Int(u32),
    /// A percentage such as `10%`.
    Percent(String),
}

impl RolloutPolicy {
    /// A policy with a name and default settings that selects nothing.
    pub fn named(name: &str) -> Self {
        Self {
            api_version: PolicyVersion::V1Alpha1,
            kind: PolicyKind::RolloutPolicy,
            metadata: PolicyMetadata { name: name.to_owned() },
            spec: PolicySpec::default(),
        }
    }

    /// The same policy with only its [budgets](PolicySpec::budgets).
    #[must_use]
    pub fn budgets(&self) -> Self {
        Self { spec: self.spec.budgets(), ..self.clone() }
    }

    /// Whether it selects by labels, which may differ between clusters.
    pub fn goes_by_labels(&self) -> bool {
        !self.spec.selects.labels.is_empty()
    }

    /// Whether it selects the DaemonSet with this key and these labels.
    pub fn selects(&self, key: &DaemonSetKey, labels: &Labels) -> bool {
        let Selects { names, labels: wanted } = &self.spec.selects;
        let has_all = || wanted.iter().all(|(key, want)| labels.get(key) == Some(want));
        names.contains(key) || (!wanted.is_empty() && has_all())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_grows_by_one_for_each_new_pod_that_became_available() {
        for (ramp, available, budget, want) in [
            (Ramp::Double, 0, 42, 1),
            (Ramp::Double, 1, 42, 2),
            (Ramp::Double, 3, 42, 4),
            (Ramp::Double, 41, 42, 42),
            (Ramp::Double, 400, 42, 42),
            (Ramp::Double, usize::MAX, 42, 42),
            (Ramp::Double, 0, 0, 0),
            (Ramp::None, 0, 42, 42),
        ] {
            assert_eq!(ramp.window(available, budget), want, "{ramp:?} {available} of {budget}");
        }
    }
}
