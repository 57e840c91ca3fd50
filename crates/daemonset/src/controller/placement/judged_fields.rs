//! What a template looks at on a node.

use crate::model::{Node, Taint};

/// The fields of nodes, in addition to taints, that templates use.
#[derive(Clone, Debug, Default)]
pub(super) struct JudgedFields<'a> {
    /// Label keys, sorted.
    pub(super) labels: Vec<&'a str>,
    /// Node names, sorted.
    pub(super) names: Vec<&'a str>,
}

impl<'a> JudgedFields<'a> {
    pub(super) fn new(mut labels: Vec<&'a str>, mut names: Vec<&'a str>) -> Self {
        for words in [&mut labels, &mut names] {
            words.sort_unstable();
            words.dedup();
        }
        Self { labels, names }
    }

    /// Whether only taints are used.
    pub(super) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.names.is_empty()
    }

    /// Whether it contains all fields of `other`.
    pub(super) fn covers(&self, other: &JudgedFields<'_>) -> bool {
        let holds =
            |all: &[&str], some: &[&str]| some.iter().all(|it| all.binary_search(it).is_ok());
        holds(&self.labels, &other.labels) && holds(&self.names, &other.names)
    }

    /// The values of the fields on a node. Nodes with equal fingerprints are in one class.
    pub(super) fn look<'n>(&self, node: &'n Node) -> NodeFingerprint<'n> {
        NodeFingerprint {
            name: self.named(node),
            labels: self.labels.iter().map(|key| node.labels.get(key)).collect(),
            taints: &node.taints,
        }
    }

    /// The node's name, if a template refers to it.
    fn named<'n>(&self, node: &'n Node) -> Option<&'n str> {
        let name = node.name.as_str();
        self.names.binary_search(&name).is_ok().then_some(name)
    }
}

/// The values of the fields on a node.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct NodeFingerprint<'n> {
    name: Option<&'n str>,
    labels: Vec<Option<&'n str>>,
    taints: &'n [Taint],
}
