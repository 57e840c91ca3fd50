//! What a run is asked to do. It stays the same from the first step to the last.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::model::{NodeName, PodTemplate, PolicySpec, Uid, UpdateStrategy};
use crate::plan::Wave;

/// What a run is asked to do with one DaemonSet.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Where it is to end.
    pub goal: Goal,
    /// How fast, and when it has failed: the policy, with what the command line says over it.
    pub pace: PolicySpec,
    /// The waves of the plan. Nodes that are in none of them come last.
    pub waves: Vec<Wave>,
    /// What is written beside every change.
    pub provenance: Provenance,
    /// When the whole run stops, safely (`--timeout`).
    pub deadline: Option<Timestamp>,
    /// Going back may make the controller evict more pods at once than the budget
    /// (`--allow-mass-eviction`).
    pub allow_mass_eviction: bool,
    /// The template is remembered as failed (`--retry`).
    pub failed_before: bool,
}

/// Where a run is to end.
#[derive(Clone, Debug, PartialEq)]
pub enum Goal {
    /// The object is the target, and all of its pods are: `apply`, and `undo` with an old template.
    Apply(Target),
    /// A way back that an earlier run has begun (`onFailure: rollback`) and not finished comes to
    /// its end: pods of the template that failed are replaced by the good one's, and the DaemonSet
    /// stays parked. The object is never written.
    GoBack,
    /// Pods are of the live template; the object is never written: `roll` and `step`.
    Roll(Extent),
    /// The declared strategy is live again, whatever the controller then does: `release`.
    Release {
        /// What `ds-apply` owns of the live object, as it is applied again.
        written: Arc<Value>,
    },
}

/// The object as it is to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The live object that was planned on; `None` when it is to be created.
    pub uid: Option<Uid>,
    /// Its pod template as the server will serve it: the answer of the dry run.
    pub template: PodTemplate,
    /// Its strategy in the end.
    pub declared: Declared,
    /// What is sent, without defaults. Strategy, hold and provenance are put into it here.
    pub written: Arc<Value>,
    /// Whether the plan changes anything in the object. The hold and provenance are no changes.
    pub changes: bool,
}

/// `spec.updateStrategy` as git declares it, with its defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Declared {
    value: Value,
    strategy: UpdateStrategy,
}

impl Declared {
    /// Reads a whole `spec.updateStrategy`.
    ///
    /// # Errors
    /// A field has another type than the API has.
    pub fn from_json(value: Value) -> Result<Self, serde_json::Error> {
        let strategy = serde::Deserialize::deserialize(&value)?;
        Ok(Self { value, strategy })
    }

    /// The whole of it.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// What it means.
    pub fn strategy(&self) -> &UpdateStrategy {
        &self.strategy
    }
}

/// How many pods are replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Every outdated one.
    All,
    /// So many, then stop (`step --count`).
    Count(u32),
    /// Those on these nodes (`step --nodes`, `step --wave`).
    Nodes(BTreeSet<NodeName>),
}

/// Which change this is: written to the DaemonSet, and so to the revision that comes of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The commit, with `-dirty` if files differ from it; a digest of the files without one.
    pub commit: Option<String>,
    /// Digest of the plan.
    pub plan_digest: String,
    /// What `kubectl rollout history` prints.
    pub change_cause: Option<String>,
    /// Who does it.
    pub by: Option<String>,
}
