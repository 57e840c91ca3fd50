//! The checks of a policy in a plan.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use daemonset::model::{Check, PolicySpec};

/// A check of the policy, which a run asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckPlan {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub role: CheckRole,
    /// What it asks, and what passes.
    pub asks: String,
    /// Seconds between two samples.
    pub interval_seconds: u32,
    /// Whether it is sampled only while a run is in progress. Others are judged over the time
    /// between two runs, too.
    pub only_during_runs: bool,
}

/// What a check is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CheckRole {
    /// It must pass before a node begins.
    Precondition,
    /// It must pass while nodes run the new version.
    Gate,
}

impl CheckPlan {
    /// The checks of a policy, preconditions first.
    pub(in crate::plan) fn all(policy: &PolicySpec) -> Vec<Self> {
        let of = |role| move |check: &Check| Self::of(check, role);
        let preconditions = policy.preconditions.iter().map(of(CheckRole::Precondition));
        preconditions.chain(policy.gates.iter().map(of(CheckRole::Gate))).collect()
    }

    fn of(check: &Check, role: CheckRole) -> Self {
        Self {
            name: check.name.clone(),
            role,
            asks: check.kind.to_string(),
            interval_seconds: check.interval.0,
            only_during_runs: check.is_sampled(),
        }
    }
}
