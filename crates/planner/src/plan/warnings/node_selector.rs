//! Namespaces whose node selector excludes eligible nodes of a DaemonSet.
//!
//! Two annotations of a namespace are node selectors. The DaemonSet controller of Kubernetes reads
//! neither. `scheduler.alpha.kubernetes.io/node-selector` is added to each pod by the admission
//! plugin `PodNodeSelector` where it is enabled; `openshift.io/node-selector` is read by the
//! admission and the patched controller of OpenShift.

use daemonset::controller::placement::Placement;
use daemonset::model::{Labels, Namespace, Node, NodeName};

/// A namespace's node selector that excludes eligible nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::plan) struct Conflict<'a> {
    /// The component that reads the annotation.
    pub reader: Reader,
    /// The value of the annotation.
    pub selector: &'a str,
    /// Whether it has another value for a key of the template's own node selector. Then every pod
    /// is rejected, regardless of the node (upstream: `labels.Conflicts`).
    pub contradicts: bool,
    /// The eligible nodes that it does not match.
    pub nodes: Vec<NodeName>,
}

/// The component that reads the annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::plan) enum Reader {
    /// The admission plugin `PodNodeSelector`, where it is enabled.
    PodNodeSelector,
    /// The admission and the DaemonSet controller of OpenShift.
    OpenShift,
}

impl Reader {
    const ALL: [Self; 2] = [Self::PodNodeSelector, Self::OpenShift];

    /// The key of the annotation.
    pub(in crate::plan) fn annotation(self) -> &'static str {
        match self {
            Self::PodNodeSelector => "scheduler.alpha.kubernetes.io/node-selector",
            Self::OpenShift => "openshift.io/node-selector",
        }
    }
}

/// The conflicts of `namespace` with nodes that may start a pod.
pub(super) fn conflicts<'a>(
    namespace: &'a Namespace,
    own: &Labels,
    nodes: &[Node],
    placements: &[Placement],
) -> Vec<Conflict<'a>> {
    let one = |reader: Reader| {
        let selector = namespace.annotations.get(reader.annotation())?;
        let pairs = pairs(selector)?;
        let off = nodes.iter().zip(placements).filter(|(node, placement)| {
            let matches = pairs.iter().all(|(key, value)| node.labels.get(key) == Some(value));
            placement.may_start && !matches
        });
        let nodes: Vec<NodeName> = off.map(|(node, _)| node.name.clone()).collect();
        let contradicts =
            pairs.iter().any(|(key, value)| own.get(key).is_some_and(|own| own != *value));
        (!nodes.is_empty()).then_some(Conflict { reader, selector, contradicts, nodes })
    };
    Reader::ALL.into_iter().filter_map(one).collect()
}

/// The pairs of `a=b,c=d`; none when the value has another form and is ignored
/// (upstream: `labels.ConvertSelectorToLabelsMap`).
fn pairs(selector: &str) -> Option<Vec<(&str, &str)>> {
    if selector.is_empty() {
        return Some(Vec::new());
    }
    let pairs = selector.split(',').map(|pair| pair.split_once('='));
    pairs.map(|pair| pair.map(|(key, value)| (key.trim(), value.trim()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use daemonset::controller::placement::Judge;
    use daemonset::controller::test_cluster::{labels, node};
    use daemonset::model::PodPlacement;

    const PLUGIN: &str = "scheduler.alpha.kubernetes.io/node-selector";

    fn namespace(annotation: &str, selector: &str) -> Namespace {
        Namespace {
            name: "ns".into(),
            annotations: labels([(annotation, selector)]),
            terminating: false,
        }
    }

    #[test]
    fn the_nodes_that_a_namespace_excludes() {
        let nodes = [
            node("both", &[("a", "1"), ("b", "2")], &[]),
            node("one", &[("a", "1")], &[]),
            node("tainted", &[], &["gpu=a100:NoSchedule"]),
            node("none", &[], &[]),
        ];
        let placements = Judge::judge_all(&PodPlacement::default(), &nodes);
        for (annotation, selector, want) in [
            (PLUGIN, "", vec![]),
            (PLUGIN, "a=1", vec!["none"]),
            (PLUGIN, " a = 1 , b = 2 ", vec!["one", "none"]),
            (PLUGIN, "a=2", vec!["both", "one", "none"]),
            (PLUGIN, "a in (1)", vec![]),
            ("openshift.io/node-selector", "b=2", vec!["one", "none"]),
            ("example.com/node-selector", "b=2", vec![]),
        ] {
            let namespace = namespace(annotation, selector);
            let found = conflicts(&namespace, &Labels::default(), &nodes, &placements);
            let nodes: Vec<&str> =
                found.iter().flat_map(|it| &it.nodes).map(NodeName::as_str).collect();
            assert_eq!(nodes, want, "{annotation}: {selector}");
            assert!(found.iter().all(|it| it.reader.annotation() == annotation));
        }
    }

    #[test]
    fn a_selector_may_contradict_the_templates_own() {
        let nodes = [node("one", &[("a", "1")], &[])];
        let own = labels([("a", "1")]);
        let template = PodPlacement { node_selector: own.clone(), ..PodPlacement::default() };
        let placements = Judge::judge_all(&template, &nodes);
        for (selector, want) in [("a=2", true), ("b=2", false)] {
            let namespace = namespace(PLUGIN, selector);
            let found = conflicts(&namespace, &own, &nodes, &placements);
            assert_eq!(found[0].contradicts, want, "{selector}");
        }
    }
}
