//! The pods that a run replaces.

use std::collections::BTreeSet;

use daemonset::model::NodeName;

/// The pods that a run replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All outdated pods.
    All,
    /// This number of pods (`step --count`).
    Count(u32),
    /// The outdated pods on these nodes (`step --nodes`).
    Nodes(BTreeSet<NodeName>),
}

impl Extent {
    /// Whether the pod of a node may be one of them.
    pub(crate) fn may_include(&self, node: &NodeName) -> bool {
        match self {
            Self::All | Self::Count(_) => true,
            Self::Nodes(nodes) => nodes.contains(node),
        }
    }
}
