//! The plan as a document: what `-o json` prints, what a saved plan holds, and what every
//! renderer reads. Its JSON schema is generated from these types.

mod nodes;
mod notices;
mod origin;
mod totals;

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::hold::Hold;
use crate::model::{
    Cascade, DaemonSetKey, DaemonSetName, ManagedBy, NamespaceName, RevisionName, RevisionNumber,
    Uid,
};
pub(super) use nodes::rounds;
pub use nodes::{Action, Fate, NodePlan, PodPlan, Wave};
pub use notices::{Guard, GuardCode, Warning};
pub use origin::{ClusterSummary, SourceInfo};
pub use totals::{ActionTotals, Counters, RevisionTotals, Totals};

/// Everything that applying the source would do to the cluster, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// Version of this document's form.
    pub api_version: ApiVersion,
    /// Always `Plan`.
    pub kind: Kind,
    /// When the plan was made. The only field that differs between two runs on the same input.
    pub created_at: Timestamp,
    /// Version of the program that made it.
    pub tool_version: String,
    /// Digest over what the plan decides, not over texts, paths or times.
    pub digest: String,
    /// Where the manifests came from.
    pub source: SourceInfo,
    /// Which cluster was looked at, and when.
    pub cluster: ClusterSummary,
    /// One entry a DaemonSet, ordered by namespace and name.
    pub daemon_sets: Vec<DaemonSetPlan>,
    /// Sums over all DaemonSets.
    pub totals: Totals,
    /// How long carrying it out takes, roughly; none when no pod is to come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Forecast>,
    /// What `ds-apply` would refuse to do without being told.
    pub guards: Vec<Guard>,
    /// What a careful reader should know before going on.
    pub warnings: Vec<Warning>,
}

/// Version of the document's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ApiVersion {
    /// The first form; fields may be added.
    #[serde(rename = "ds-plan.dev/v1alpha1")]
    V1Alpha1,
}

/// Kind of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Kind {
    /// A plan.
    Plan,
}

/// How long it takes, roughly, when nothing goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Forecast {
    /// From the first change to the last available pod, one DaemonSet after the other.
    pub seconds: u64,
    /// So many pods of the cluster have told how long they took to start.
    pub starts_seen: u32,
    /// What is assumed for pods of whose images too few have told; none when all have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_start_seconds: Option<u64>,
}

/// What becomes of one DaemonSet and its pods.
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
    /// What happens to the object itself.
    pub change: Change,
    /// What becomes of the pods of one that is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cascade: Option<Cascade>,
    /// Who replaces pods.
    pub managed_by: ManagedBy,
    /// Name of the `RolloutPolicy` that paces it; none when its own strategy is the whole policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// How pods are replaced, resolved to numbers for this cluster; under a hold, as declared.
    pub strategy: Strategy,
    /// The rollout that `ds-apply` has begun and that this plan goes on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// Digest of the live pod template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_template: Option<String>,
    /// Digest of the pod template to come; of one that is deleted, of the live one.
    pub target_template: String,
    /// Which revision it has and will have.
    pub revision: RevisionPlan,
    /// Fields that change: live against what server-side apply makes of it.
    pub changes: Vec<FieldChange>,
    /// Fields that stay although the manifest does not have them, and who owns them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leftovers: Vec<FieldOwner>,
    /// Fields that others own and the manifest sets to something else. The plan assumes that they
    /// are taken over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<FieldOwner>,
    /// Field managers whose fields become those of `ds-apply` first: those in conflict, and those
    /// that were named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken_over: Vec<String>,
    /// What changes since the merge base; none when no base was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<BaseChange>,
    /// Nodes that are replaced together under one budget, in order.
    pub waves: Vec<Wave>,
    /// What happens on each node; nodes with nothing to do are left out unless asked for.
    pub nodes: Vec<NodePlan>,
    /// How many nodes get each action.
    pub totals: ActionTotals,
    /// The seven counters by upstream's rules, before any change; none for a new DaemonSet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Counters>,
}

impl Plan {
    /// Whether carrying it out would change anything.
    pub fn has_changes(&self) -> bool {
        self.daemon_sets.iter().any(DaemonSetPlan::has_changes)
    }
}

impl DaemonSetPlan {
    /// Namespace and name.
    pub fn key(&self) -> DaemonSetKey {
        DaemonSetKey::new(self.namespace.clone(), self.name.clone())
    }

    /// Whether `ds-apply` has begun to go to this very template, onward or back, and has stopped on
    /// the way.
    pub fn is_under_way(&self) -> bool {
        self.hold.is_some() && self.live_template.as_ref() == Some(&self.target_template)
    }

    /// Whether carrying it out would change anything: the object, or pods. Nodes that wait are no
    /// change, because waiting is all that happens. Under a hold there is a strategy to give back.
    pub fn has_changes(&self) -> bool {
        let ActionTotals { create, delete, replace, surge, wait: _, keep: _ } = self.totals;
        let object = self.change != Change::None || self.hold.is_some();
        object || [create, delete, replace, surge] != [0; 4]
    }
}

/// What happens to the DaemonSet object.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// It does not exist yet.
    Create,
    /// Some of its fields change.
    Update,
    /// Its selector changes, which no update can do. Never carried out.
    Recreate,
    /// The source applied it before and does not contain it any more.
    Delete,
    /// Nothing changes in it.
    None,
}

/// `updateStrategy`, percentages resolved against the desired nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum Strategy {
    /// Pods are replaced when somebody deletes them.
    OnDelete,
    /// Pods are replaced within a budget.
    RollingUpdate {
        /// So many desired nodes may be without an available pod.
        max_unavailable: u32,
        /// So many nodes may run an old and a new pod side by side.
        max_surge: u32,
        /// Nodes that will be desired, against which percentages were resolved.
        desired: u32,
    },
}

/// Which revision the DaemonSet has and will have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevisionPlan {
    /// The revision of the live template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<RevisionRef>,
    /// The revision of the template to come.
    pub target: TargetRevision,
    /// How the target comes about.
    pub kind: RevisionKind,
}

/// A revision that exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevisionRef {
    /// Name of the ControllerRevision.
    pub name: RevisionName,
    /// Its number.
    pub number: RevisionNumber,
}

/// The revision after the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetRevision {
    /// Name of the ControllerRevision; a new one is named by the controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<RevisionName>,
    /// Its number after the change.
    pub number: RevisionNumber,
}

/// How the target revision comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RevisionKind {
    /// No revision has this template yet.
    New,
    /// An earlier one has it; its number is raised.
    Reused,
    /// It is the current one already.
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

/// A field, and somebody who owns it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldOwner {
    /// Path of the field; list elements by their key.
    pub path: String,
    /// The field manager that owns it; none when nobody does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manager: Option<String>,
}

/// What a pull request itself changes, apart from what live and its base differ in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BaseChange {
    /// What happens to the manifest.
    pub change: Change,
    /// Fields that change, manifest against manifest, both defaulted.
    pub changes: Vec<FieldChange>,
}

/// One field that changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldChange {
    /// Path of the field; list elements by their key: `containers[agent].image`.
    pub path: String,
    /// Value now; absent when the field is added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// Value to come; absent when the field is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    /// Whether a value was replaced by a mask because it may be secret.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
}
