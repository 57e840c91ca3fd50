//! Counts in a plan: upstream's status counters, and the numbers of nodes and revisions.

use std::ops::AddAssign;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Action;
use daemonset::model::DaemonSetStatus;

/// The counters of `kubectl get daemonset` and of the DaemonSet status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Counters {
    /// Number of nodes that should run a pod.
    pub desired: u32,
    /// Number of nodes that should run a pod and do.
    pub current: u32,
    /// Desired nodes whose pod is Ready.
    pub ready: u32,
    /// Desired nodes whose pod is updated, by upstream's rule.
    pub updated: u32,
    /// Desired nodes whose pod is available, by upstream's rule.
    pub available: u32,
    /// Desired nodes without an available pod.
    pub unavailable: u32,
    /// Number of nodes that run a pod and should not.
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

/// Number of nodes with each action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActionTotals {
    /// Nodes on which a pod is created.
    pub create: u32,
    /// Nodes whose pod is deleted and not recreated.
    pub delete: u32,
    /// Nodes whose pod is deleted, then recreated.
    pub replace: u32,
    /// Nodes whose new pod is created before the old one is deleted.
    pub surge: u32,
    /// Nodes whose change has to wait.
    pub wait: u32,
    /// Nodes with nothing to do.
    pub keep: u32,
}

impl ActionTotals {
    /// Counts a node with `action`.
    pub fn add(&mut self, action: Action) {
        *self.slot(action) += 1;
    }

    /// Number of nodes with `action`.
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
    /// Pods that are deleted: at least one on each node of `delete`, `replace` and `surge`, and
    /// more where surplus or ended pods are deleted, too.
    #[serde(default)]
    pub deleted_pods: u32,
    /// Target revisions by kind.
    pub revisions: RevisionTotals,
}

/// Number of target revisions of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevisionTotals {
    /// New revisions: no revision has the template yet.
    pub new: u32,
    /// Reused revisions: an earlier one has the template.
    pub reused: u32,
    /// Unchanged revisions: the current one has the template.
    pub unchanged: u32,
}
