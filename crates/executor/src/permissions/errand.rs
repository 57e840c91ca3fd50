//! What a run is about to do to a DaemonSet: its permissions follow from that.

use daemonset::model::{DaemonSetKey, DaemonSetName, ManagedBy, NamespaceName, PolicySpec};

/// The work of a run on a DaemonSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Checks under the lock whether anything is to be done.
    Look,
    /// Applies the DaemonSet and replaces its pods.
    Change {
        /// Whether the DaemonSet may have to be created.
        creates: bool,
    },
    /// Replaces its pods without writing the DaemonSet.
    Roll,
    /// Locks and watches it, because it shares a budget with one that is rolled out.
    Share,
    /// Restores its strategy.
    Release,
    /// Deletes the DaemonSet.
    Remove,
}

/// The work on one DaemonSet, or on any in a namespace.
#[derive(Clone, Debug)]
pub struct Errand {
    /// The namespace.
    pub namespace: NamespaceName,
    /// The DaemonSet; `None` is any.
    pub name: Option<DaemonSetName>,
    /// The controller of the DaemonSet.
    pub managed_by: ManagedBy,
    /// The work.
    pub work: Work,
    /// Whether steps of its policy begin only after an approval.
    pub(super) approvals: bool,
    /// Whether images are pulled before pods are replaced (`prePull` of its policy).
    pub(super) pre_pulls: bool,
    /// Whether its checks look at other pods (`pods` in its policy).
    pub(super) neighbours: bool,
}

impl Errand {
    /// Whether it is for exactly this DaemonSet.
    pub fn is_of(&self, key: &DaemonSetKey) -> bool {
        self.namespace == key.namespace && self.name.as_ref() == Some(&key.name)
    }

    /// The work on any DaemonSet of a namespace.
    pub fn any_in(namespace: NamespaceName, managed_by: ManagedBy, work: Work) -> Self {
        let (approvals, pre_pulls, neighbours) = (false, false, false);
        Self { namespace, name: None, managed_by, work, approvals, pre_pulls, neighbours }
    }

    /// The work on one DaemonSet.
    pub fn with(key: &DaemonSetKey, managed_by: ManagedBy, work: Work) -> Self {
        let any = Self::any_in(key.namespace.clone(), managed_by, work);
        Self { name: Some(key.name.clone()), ..any }
    }

    /// The same under a policy: with what its steps and checks need besides.
    #[must_use]
    pub fn under(self, policy: &PolicySpec) -> Self {
        Self {
            approvals: policy.asks_for_approvals(),
            pre_pulls: policy.pre_pull.is_some(),
            neighbours: policy.checks_pods(),
            ..self
        }
    }
}
