//! The task of a run. It stays the same from the first decision to the last.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::extent::Extent;
use crate::plan::Wave;
use daemonset::model::{
    Approval, DaemonSet, PodTemplate, PolicySpec, StepsNote, Uid, UpdateStrategy,
};

/// The task of a run for one DaemonSet.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// The goal of the run.
    pub goal: Goal,
    /// The policy, with the command-line flags applied.
    pub policy: PolicySpec,
    /// The waves of the plan. Nodes that are in none of them come last.
    pub waves: Vec<Wave>,
    /// The provenance that is written with every change.
    pub provenance: Provenance,
    /// The time at which the run stops safely (`--timeout`).
    pub deadline: Option<Timestamp>,
    /// Whether a rollback may make the controller evict more pods at once than the budget allows
    /// (`--allow-mass-eviction`).
    pub allow_mass_eviction: bool,
    /// The digests of the templates that are recorded as failed. That of the target is among them
    /// only with `--retry`.
    pub failed_templates: BTreeSet<Box<str>>,
    /// What an earlier run has noted about the steps.
    pub note: Option<StepsNote>,
    /// The approvals of steps, by step.
    pub approvals: BTreeMap<String, Approval>,
    /// Time that the update of one node takes, in seconds, if it was measured; else it is the
    /// progress deadline.
    pub node_seconds: Option<u32>,
    /// Whether pods that pull images are left from an earlier run.
    pub has_pullers: bool,
    /// Who answers the checks about nodes and other pods.
    pub cluster_checks: ClusterChecks,
    /// The time until which the run itself waits for soaks and approvals (`--wait`).
    pub wait_until: Option<Timestamp>,
}

/// Who answers the checks about nodes and other pods (`nodeConditions` and `pods`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterChecks {
    /// The observed cluster.
    Observed,
    /// They are asked, as all others: the fault file of a rehearsal answers them.
    Asked,
}

/// The goal of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Goal {
    /// The live object equals the target, and all pods are updated: `apply`, and `undo` with an old
    /// template.
    Apply(Target),
    /// Complete a rollback that an earlier run began (`onFailure: rollback`): pods of the failed
    /// template are replaced by pods of the last good one, and the DaemonSet stays aborted. The
    /// object is not written.
    RollBack,
    /// All pods have the live template: `roll` and `step`. The object is not written.
    Roll(Extent),
    /// The declared strategy is restored, whatever the controller then does: `release`.
    Release {
        /// The fields of the live object that `ds-apply` owns, to be applied again.
        written: Arc<Value>,
    },
    /// Pods that pull images, left by a run that was killed, are removed. Nothing else changes.
    RemovePullers,
}

impl Goal {
    /// The target, if a template is rolled out.
    pub(super) fn target(&self) -> Option<&Target> {
        match self {
            Self::Apply(target) => Some(target),
            Self::RollBack | Self::Roll(_) | Self::Release { .. } | Self::RemovePullers => None,
        }
    }
}

/// The desired object of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The uid of the live object in the plan; `None` when it is to be created.
    pub uid: Option<Uid>,
    /// The pod template as the server will return it: the result of the dry run.
    pub template: PodTemplate,
    /// The declared strategy.
    pub declared: Declared,
    /// The object to apply, without defaults. The run adds strategy, pause and provenance.
    pub written: Arc<Value>,
    /// Whether the plan changes the object. Pause and provenance do not count as changes.
    pub changes: bool,
}

/// `spec.updateStrategy` as git declares it, with its defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Declared {
    value: Value,
    strategy: UpdateStrategy,
}

impl Declared {
    /// Parses a complete `spec.updateStrategy`.
    ///
    /// # Errors
    /// A field has a different type than in the API.
    pub fn from_json(value: Value) -> Result<Self, serde_json::Error> {
        let strategy = serde::Deserialize::deserialize(&value)?;
        Ok(Self { value, strategy })
    }

    /// The strategy as JSON.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The parsed strategy.
    pub fn strategy(&self) -> &UpdateStrategy {
        &self.strategy
    }
}

/// The live object with the template of the target.
pub(super) fn with_template(live: &DaemonSet, target: &Target) -> DaemonSet {
    let mut after = live.clone();
    after.spec.template = target.template.clone();
    after
}

/// The provenance of a change: written to the DaemonSet, and so to the revision that the controller
/// creates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The commit, with `-dirty` if files differ from it; a digest of the files without one.
    pub commit: Option<String>,
    /// Digest of the plan.
    pub plan_digest: String,
    /// The change cause that `kubectl rollout history` prints.
    pub change_cause: Option<String>,
    /// The user who runs it.
    pub by: Option<String>,
}
