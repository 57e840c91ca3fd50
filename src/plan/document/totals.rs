//! Counts in a plan: what upstream counts, and how many nodes and revisions get what.

use std::ops::AddAssign;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Action;
use crate::model::DaemonSetStatus;

/// The seven counters of `kubectl get daemonset` and the status behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Counters {
    /// Nodes that should run a pod.
    pub desired: u32,
    /// Nodes that should and do.
    pub current: u32,
    /// Desired nodes whose pod is Ready.
    pub ready: u32,
    /// Desired nodes whose pod is updated, by upstream's rule.
    pub updated: u32,
    /// Desired nodes whose pod is available, by upstream's rule.
    pub available: u32,
    /// Desired nodes whose pod is not.
    pub unavailable: u32,
    /// Nodes that run a pod and should not.
    pub misscheduled: u32,
}

impl From<DaemonSetStatus> for Counters {
    fn from(status: DaemonSetStatus) -> Self {
        Self {
            desired: status.desired_number_scheduled,
            current: status.current_number_scheduled,
            ready: status.number_ready,
            updated: status.updated_number_scheduled,
            available: status.number_available,
            unavailable: status.number_unavailable,
            misscheduled: status.number_misscheduled,
        }
    }
}

/// How many nodes get each action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActionTotals {
    /// Nodes that get a pod.
    pub create: u32,
    /// Nodes that lose one.
    pub delete: u32,
    /// Nodes whose pod is deleted, then created anew.
    pub replace: u32,
    /// Nodes whose new pod comes before the old one goes.
    pub surge: u32,
    /// Nodes that wait.
    pub wait: u32,
    /// Nodes with nothing to do.
    pub keep: u32,
}

impl ActionTotals {
    /// Counts one more node with `action`.
    pub fn add(&mut self, action: Action) {
        *self.slot(action) += 1;
    }

    /// How many nodes get `action`.
    pub fn of(mut self, action: Action) -> u32 {
        *self.slot(action)
    }

    fn slot(&mut self, action: Action) -> &mut u32 {
        match action {
            Action::Create => &mut self.create,
            Action::Delete => &mut self.delete,
            Action::Replace => &mut self.replace,
            Action::Surge => &mut self.surge,
            Action::Wait => &mut self.wait,
            Action::Keep => &mut self.keep,
        }
    }
}

impl AddAssign for ActionTotals {
    fn add_assign(&mut self, other: Self) {
        for action in Action::ALL {
            *self.slot(action) += other.of(action);
        }
    }
}

/// Sums over all DaemonSets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// Nodes by action; a node counts once for each DaemonSet.
    #[serde(flatten)]
    pub actions: ActionTotals,
    /// Revisions by kind.
    pub revisions: RevisionTotals,
}

/// Revisions by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevisionTotals {
    /// Templates that no revision has yet.
    pub new: u32,
    /// Templates that an earlier revision has.
    pub reused: u32,
    /// Templates that the current revision has.
    pub unchanged: u32,
}
