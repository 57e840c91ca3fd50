//! The plan as a document: the output of `-o json`, the content of a saved plan, and the input of
//! every renderer. Its JSON schema is generated from these types.

mod checks;
mod daemon_set_forecast;
mod new_pods;
mod nodes;
mod notices;
mod origin;
mod totals;

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::pause::PausedRollout;
use crate::steps::WaitsFor;
pub use checks::{CheckPlan, CheckRole};
pub use daemon_set_forecast::{
    DaemonSetForecast, ForecastSpan, PrePullForecast, SpanKind, StepForecast,
};
use daemonset::model::{
    Cascade, DaemonSetKey, DaemonSetName, ManagedBy, NamespaceName, NodeName, RevisionName,
    RevisionNumber, RevisionRef, Uid,
};
pub use new_pods::{Access, NewPods};
pub(super) use nodes::rounds;
pub use nodes::{Action, Approved, Fate, NodePlan, PodPlan, StepPlan, StepState, Wave};
pub use notices::{Guard, GuardCode, Warning};
pub use origin::{ClusterSummary, SourceInfo, Zones, zones};
pub use totals::{ActionTotals, Counters, RevisionTotals, Totals};

/// All changes that applying the source would make to the cluster, with their reasons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// Version of this document's format.
    pub api_version: ApiVersion,
    /// Always `Plan`.
    pub kind: PlanKind,
    /// When the plan was made. The only field that differs between two runs on the same input.
    pub created_at: Timestamp,
    /// Whether it is of a rehearsal: applying it changed nothing on the cluster itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rehearsal: bool,
    /// Version of the program that made it.
    pub tool_version: String,
    /// Digest of the planned changes; texts, paths and times are not part of it.
    pub digest: String,
    /// Origin of the manifests.
    pub source: SourceInfo,
    /// The cluster, and the time of its snapshot.
    pub cluster: ClusterSummary,
    /// One entry per DaemonSet, ordered by namespace and name.
    pub daemon_sets: Vec<DaemonSetPlan>,
    /// Sums over all DaemonSets.
    pub totals: Totals,
    /// Estimated duration of the apply; none when no pod is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Forecast>,
    /// Guards that block `ds-apply` until their flag is passed.
    pub guards: Vec<Guard>,
    /// Warnings; they do not block `ds-apply`.
    pub warnings: Vec<Warning>,
}

/// Version of the document's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ApiVersion {
    /// The first version; fields may be added.
    #[serde(rename = "ds-plan.dev/v1alpha1")]
    V1Alpha1,
}

/// Kind of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PlanKind {
    /// A plan.
    Plan,
}

/// Estimated duration of the apply without failures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Forecast {
    /// Seconds from the first change to the last available pod, one DaemonSet after another.
    pub seconds: u64,
    /// Number of pods in the cluster from whose start times it is estimated.
    pub starts_seen: u32,
    /// Assumed start time in seconds for images with too few started pods; none when not needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_start_seconds: Option<u64>,
    /// The earliest end of all parts, waits included; none if no policy makes a rollout wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earliest_end: Option<Timestamp>,
    /// Its parts, in the order in which the DaemonSets are applied; those that create no pod are
    /// left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub daemon_sets: Vec<DaemonSetForecast>,
}

/// The plan of one DaemonSet and its pods.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DaemonSetPlan {
    /// `metadata.namespace`.
    pub namespace: NamespaceName,
    /// `metadata.name`.
    pub name: DaemonSetName,
    /// Uid of the live object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<Uid>,
    /// Generation of the live object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Change of the object itself.
    pub change: Change,
    /// Whether the pods of a deleted DaemonSet are deleted or orphaned; none for other changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cascade: Option<Cascade>,
    /// The controller that manages the pods.
    pub managed_by: ManagedBy,
    /// Name of the `RolloutPolicy` that applies to it; none when only its update strategy does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// `NAMESPACE/NAME` of the DaemonSets that must be done before it begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// The budget that it shares with other DaemonSets; none if its policy has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_budget: Option<SharedBudget>,
    /// The checks of the policy; empty if it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckPlan>,
    /// The images that are pulled to nodes before their pods are replaced; none if the policy does not
    /// ask for that, or the nodes have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_pull: Option<PrePullPlan>,
    /// Update strategy, resolved to numbers for this cluster; while paused, the declared one.
    pub strategy: Strategy,
    /// The paused or aborted rollout that this plan resumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<PausedRollout>,
    /// Digest of the live pod template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_template: Option<String>,
    /// Digest of the target pod template; for a deleted DaemonSet, of the live one.
    pub target_template: String,
    /// Current and target revision.
    pub revision: RevisionPlan,
    /// Fields that change between the live object and the result of server-side apply.
    pub changes: Vec<FieldChange>,
    /// Fields that are kept although the manifest does not have them, and their managers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leftovers: Vec<FieldOwner>,
    /// Fields of other managers that the manifest sets to another value. The plan assumes that
    /// these conflicts are forced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<FieldOwner>,
    /// Field managers whose fields `ds-apply` overwrites or removes: those in conflict, and those
    /// of `--force-conflicts`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forced_conflicts: Vec<String>,
    /// Change since the merge base; none without a base.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<BaseChange>,
    /// Images, privileges and host access of its pods; none unless the DaemonSet is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_pods: Option<NewPods>,
    /// The steps of the policy; empty if it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepPlan>,
    /// Key of the node label by which the policy divides nodes into domains; none without domains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain_key: Option<String>,
    /// Numbers of the waves that come next: their step is in progress, and their domain may be
    /// updated. `waitsFor` may still keep them from beginning. Empty without steps and domains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next_waves: Vec<u32>,
    /// What keeps the next wave from beginning, beside the budget.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<WaitsFor>,
    /// Nodes that are replaced together under one budget, in order.
    pub waves: Vec<Wave>,
    /// Plan of each node; nodes with nothing to do are left out unless requested.
    pub nodes: Vec<NodePlan>,
    /// Number of nodes with each action.
    pub totals: ActionTotals,
    /// The status counters by upstream's rules before the apply; none for a new DaemonSet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Counters>,
}

impl Plan {
    /// Whether applying it would change the cluster.
    pub fn has_changes(&self) -> bool {
        self.daemon_sets.iter().any(DaemonSetPlan::has_changes)
    }

    /// Time that the update of one node of a DaemonSet takes, in seconds, by its forecast; `None` if
    /// no pod of it was measured.
    pub fn node_seconds(&self, key: &DaemonSetKey) -> Option<u32> {
        let name = key.to_string();
        let mut forecasts = self.forecast.iter().flat_map(|forecast| &forecast.daemon_sets);
        forecasts.find(|it| it.daemon_set == name)?.node_seconds
    }
}

impl DaemonSetPlan {
    /// A guard of this DaemonSet.
    pub(super) fn guard(
        &self,
        code: GuardCode,
        message: String,
        allow_flag: Option<&str>,
        nodes: Vec<NodeName>,
    ) -> Guard {
        Guard {
            code,
            message,
            allow_flag: allow_flag.map(str::to_owned),
            daemon_set: Some(self.key().to_string()),
            nodes,
        }
    }

    /// Namespace and name.
    pub fn key(&self) -> DaemonSetKey {
        DaemonSetKey::new(self.namespace.clone(), self.name.clone())
    }

    /// Whether a rollout of the target template by `ds-apply` is paused, aborted, or waits. While it
    /// waits, the last good template may be live.
    pub fn is_under_way(&self) -> bool {
        let target = Some(&self.target_template);
        self.pause.as_ref().is_some_and(|pause| {
            self.live_template.as_ref() == target || pause.target.as_ref() == target
        })
    }

    /// Whether all that is left of a paused rollout is to restore its update strategy.
    pub fn only_ends_pause(&self) -> bool {
        let ActionTotals { create, delete, replace, surge, wait, keep: _ } = self.totals;
        let pods = [create, delete, replace, surge, wait] != [0; 5];
        self.pause.is_some() && self.change == Change::None && !pods
    }

    /// Whether applying it would change the object or pods. Waiting nodes do not count. A paused
    /// rollout does, because its strategy must be restored.
    pub fn has_changes(&self) -> bool {
        let ActionTotals { create, delete, replace, surge, wait: _, keep: _ } = self.totals;
        let object = self.change != Change::None || self.pause.is_some();
        object || [create, delete, replace, surge] != [0; 4]
    }
}

/// Change of the DaemonSet object.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// It is created.
    Create,
    /// Some of its fields change.
    Update,
    /// Its selector changes, which an update cannot do. Never applied.
    Recreate,
    /// It was applied from the source and is no longer in it.
    Delete,
    /// It does not change.
    None,
}

/// `updateStrategy`, percentages resolved against the desired nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum Strategy {
    /// Pods are replaced by `ds-apply roll`, or after they are deleted.
    OnDelete,
    /// Pods are replaced within a budget.
    RollingUpdate {
        /// Maximum number of desired nodes without an available pod.
        max_unavailable: u32,
        /// Maximum number of nodes that run an old and a new pod at the same time.
        max_surge: u32,
        /// Number of desired nodes after the apply, from which percentages were resolved.
        desired: u32,
    },
}

/// The budget of several DaemonSets together, resolved to a number for this cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SharedBudget {
    /// Maximum number of nodes that all of them together disturb at the same time.
    pub nodes: u32,
    /// `NAMESPACE/NAME` of each, in the order in which their pods on a node are replaced.
    pub daemon_sets: Vec<String>,
}

/// Images that are pulled to nodes before their pods are replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrePullPlan {
    /// The images, each once.
    pub images: Vec<String>,
    /// Number of nodes that pull them.
    pub nodes: u32,
    /// Maximum number of nodes that pull at the same time.
    pub parallel: u32,
    /// Seconds after which a node is skipped that did not get them.
    pub timeout_seconds: u32,
}

/// Current and target revision of a DaemonSet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevisionPlan {
    /// The revision of the live template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<RevisionRef>,
    /// The revision of the target template.
    pub target: TargetRevision,
    /// Whether the target revision is new, reused or unchanged.
    pub kind: RevisionKind,
}

/// The revision after the apply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetRevision {
    /// Name of the ControllerRevision; a new one is named by the controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<RevisionName>,
    /// Revision number after the apply.
    pub number: RevisionNumber,
}

/// Origin of the target revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RevisionKind {
    /// No revision has this template yet.
    New,
    /// An earlier revision has it; its number is raised.
    Reused,
    /// It is the current revision.
    Unchanged,
}

impl fmt::Display for RevisionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::New => "new",
            Self::Reused => "reused",
            Self::Unchanged => "unchanged",
        })
    }
}

/// A field and one of its managers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldOwner {
    /// Path of the field; list elements by their key.
    pub path: String,
    /// The field manager that owns it; none for a field without an owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manager: Option<String>,
}

/// Change of a pull request itself: its manifest compared with the one at the merge base.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BaseChange {
    /// Change of the manifest.
    pub change: Change,
    /// Fields that differ between the two manifests, both with defaults.
    pub changes: Vec<FieldChange>,
}

/// One field that changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldChange {
    /// Path of the field; list elements by their key: `containers[agent].image`.
    pub path: String,
    /// Current value; absent when the field is added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// New value; absent when the field is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    /// Whether a value was replaced by a mask because it may be secret.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
}
