//! What actors share: the kinds of work, and the cluster at one moment.

use jiff::Timestamp;

use super::agenda::Agenda;
use super::cache::Cache;
use super::chance::Chance;
use crate::{ObjectKey, Store, Timings};
use daemonset::model::{DaemonSetKey, NodeName};

/// Field manager of the writes of all controllers (upstream: the user agent of the controller
/// manager).
pub(super) const CONTROLLER_MANAGER: &str = "kube-controller-manager";

/// A work item.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Work {
    /// The node event with that index happens.
    Happening(usize),
    /// The controller manager restarts.
    Restart,
    /// A DaemonSet is synced.
    Sync(DaemonSetKey),
    /// A DaemonSet is synced once more, in addition to an earlier sync (upstream: `AddAfter`).
    SyncLater(DaemonSetKey),
    /// A sync continues.
    GoOn(DaemonSetKey),
    /// A pod is bound.
    Bind(ObjectKey),
    /// A kubelet continues with a pod.
    Kubelet(ObjectKey),
    /// A pod is evicted from a tainted node.
    Evict(ObjectKey),
    /// The readiness of nodes is checked.
    CheckNodes,
    /// A node is tainted by its conditions.
    TaintNode(NodeName),
    /// Pods of missing nodes are deleted (`pod_gc`).
    CollectPods,
    /// Dependents of deleted objects are collected (`garbage`).
    CollectGarbage,
}

impl Work {
    /// `true` for work of the controller manager.
    pub(super) fn is_of_controller_manager(&self) -> bool {
        match self {
            Self::Sync(_)
            | Self::SyncLater(_)
            | Self::GoOn(_)
            | Self::Evict(_)
            | Self::CheckNodes
            | Self::TaintNode(_)
            | Self::CollectPods
            | Self::CollectGarbage => true,
            Self::Happening(_) | Self::Restart | Self::Bind(_) | Self::Kubelet(_) => false,
        }
    }
}

/// The context of the actors at one moment.
pub(super) struct Moment<'a> {
    pub(super) store: &'a mut Store,
    pub(super) cache: &'a Cache,
    pub(super) agenda: &'a mut Agenda<Work>,
    pub(super) timings: &'a Timings,
    pub(super) chance: Chance,
    pub(super) now: Timestamp,
}
