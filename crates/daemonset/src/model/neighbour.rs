//! Neighbours: pods of other owners, as the `pods` checks of a policy see them.
//!
//! They are many, so they have only what the checks need. Pods that have ended are not among them:
//! they use nothing any more, and are Ready never again. Not here: what they mean (the planner).

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;

use arcstr::ArcStr;

use super::{
    CheckKind, LabelSelector, NamespaceName, NodeName, PodName, PodReadiness, PodsCheck,
    PolicySpec, Time, Uid,
};

/// A pod that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// `metadata.namespace`.
    pub namespace: NamespaceName,
    /// `metadata.name`.
    pub name: PodName,
    /// The uid of its controller; `None` is a pod of its own.
    pub controller: Option<Uid>,
    /// `spec.nodeName`; `None` while it is not scheduled.
    pub node: Option<NodeName>,
    /// `metadata.creationTimestamp`.
    pub created: Option<Time>,
    /// Condition `Ready`.
    pub readiness: PodReadiness,
    /// Whether `metadata.deletionTimestamp` is set.
    pub terminating: bool,
    /// The resources of the query that it requests.
    pub resources: Box<[ArcStr]>,
}

impl Neighbour {
    /// Its node, then its name: those of one node are next to each other.
    fn place(&self) -> (Option<&NodeName>, &NamespaceName, &PodName) {
        (self.node.as_ref(), &self.namespace, &self.name)
    }
}

/// `NAMESPACE/NAME`.
impl fmt::Display for Neighbour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Which pods the checks of a policy look at: one list and one watch of the whole cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeighbourQuery {
    /// Their labels; empty selects all.
    pub selector: LabelSelector,
    /// Of interest are only pods that request one of these; `None` is all pods.
    pub resources: Option<BTreeSet<String>>,
}

impl NeighbourQuery {
    /// The queries of a policy: one for each selector.
    pub fn all(policy: &PolicySpec) -> Vec<Self> {
        Self::of_all([policy])
    }

    /// The queries of several policies together: one for each selector.
    pub fn of_all<'p>(policies: impl IntoIterator<Item = &'p PolicySpec>) -> Vec<Self> {
        let mut queries: Vec<Self> = Vec::new();
        let policies = policies.into_iter();
        for check in policies.flat_map(PolicySpec::checks) {
            let CheckKind::Pods(PodsCheck { selector, resource, expect: _, on: _ }) = &check.kind
            else {
                continue;
            };
            let resources = resource.clone().map(|resource| BTreeSet::from([resource]));
            match queries.iter_mut().find(|query| query.selector == *selector) {
                None => queries.push(Self { selector: selector.clone(), resources }),
                Some(query) => {
                    query.resources =
                        query.resources.take().zip(resources).map(|(mut all, more)| {
                            all.extend(more);
                            all
                        });
                }
            }
        }
        queries
    }
}

/// The pods of one query, by node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbours {
    /// The query.
    pub query: NeighbourQuery,
    /// In the order of [`Neighbour::place`].
    pods: Vec<Neighbour>,
}

impl Neighbours {
    /// These pods, in any order.
    pub fn of(query: NeighbourQuery, mut pods: Vec<Neighbour>) -> Self {
        pods.sort_by(|a, b| a.place().cmp(&b.place()));
        Self { query, pods }
    }

    /// All pods.
    pub fn all(&self) -> &[Neighbour] {
        &self.pods
    }

    /// The pods on one node.
    pub fn on(&self, node: &NodeName) -> &[Neighbour] {
        let from = self.pods.partition_point(|pod| pod.node.as_ref() < Some(node));
        let here = self.pods[from..].partition_point(|pod| pod.node.as_ref() == Some(node));
        &self.pods[from..from + here]
    }

    /// Adds or replaces a pod. Returns whether that changed anything.
    pub fn put(&mut self, pod: Neighbour) -> bool {
        // A pod that has been scheduled has another place than before.
        let was_waiting = pod.node.is_some() && self.remove_at(None, &pod);
        match self.pods.binary_search_by(|known| known.place().cmp(&pod.place())) {
            Ok(at) if self.pods[at] == pod => was_waiting,
            Ok(at) => {
                self.pods[at] = pod;
                true
            }
            Err(at) => {
                self.pods.insert(at, pod);
                true
            }
        }
    }

    /// Removes a pod. Returns whether it was there.
    pub fn remove(&mut self, pod: &Neighbour) -> bool {
        let was_waiting = self.remove_at(None, pod);
        self.remove_at(pod.node.as_ref(), pod) || was_waiting
    }

    fn remove_at(&mut self, node: Option<&NodeName>, pod: &Neighbour) -> bool {
        let place = (node, &pod.namespace, &pod.name);
        let order = |known: &Neighbour| -> Ordering { known.place().cmp(&place) };
        let found = self.pods.binary_search_by(order);
        if let Ok(at) = found {
            self.pods.remove(at);
        }
        found.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, node: Option<&str>) -> Neighbour {
        Neighbour {
            namespace: "ns".into(),
            name: name.into(),
            controller: None,
            node: node.map(NodeName::from),
            created: None,
            readiness: PodReadiness::Ready { since: None },
            terminating: false,
            resources: Box::default(),
        }
    }

    fn query() -> NeighbourQuery {
        NeighbourQuery { selector: LabelSelector::default(), resources: None }
    }

    fn names(pods: &[Neighbour]) -> Vec<&str> {
        pods.iter().map(|pod| pod.name.as_str()).collect()
    }

    #[test]
    fn pods_are_found_by_node_while_they_come_and_go() {
        let listed = vec![pod("b", Some("n2")), pod("c", None), pod("a", Some("n2"))];
        let mut all = Neighbours::of(query(), listed);
        assert_eq!(names(all.on(&"n2".into())), ["a", "b"]);
        assert!(all.on(&"n1".into()).is_empty());
        assert!(all.put(pod("c", Some("n1"))), "it was scheduled");
        assert_eq!((names(all.on(&"n1".into())), all.all().len()), (vec!["c"], 3));
        assert!(!all.put(pod("c", Some("n1"))), "nothing has changed");
        let readiness = PodReadiness::NotReady { since: None };
        assert!(all.put(Neighbour { readiness, ..pod("c", Some("n1")) }));
        assert!(all.remove(&pod("c", Some("n1"))) && !all.remove(&pod("c", Some("n1"))));
        assert!(all.put(pod("d", None)) && all.remove(&pod("d", Some("n3"))));
        assert_eq!(names(all.all()), ["a", "b"]);
    }

    #[test]
    fn a_policy_has_one_query_for_each_selector() {
        let pods = |name: &str, pods: serde_json::Value| json!({"name": name, "pods": pods});
        let spec = |gates: serde_json::Value| -> PolicySpec {
            serde_json::from_value(json!({
                "selects": {"names": ["a/b"]},
                "preconditions": [
                    pods("gpu", json!({"resource": "nvidia.com/gpu", "expect": "absent"})),
                    pods("tpu", json!({"resource": "google.com/tpu", "expect": "absent"})),
                    {"name": "ready", "nodeConditions": {"Ready": "True"}},
                ],
                "gates": gates,
            }))
            .unwrap()
        };
        let both = Some(BTreeSet::from(["google.com/tpu".to_owned(), "nvidia.com/gpu".to_owned()]));
        let want = NeighbourQuery { resources: both, ..query() };
        let selector: LabelSelector =
            serde_json::from_value(json!({"matchLabels": {"app": "dns"}})).unwrap();
        let dns = NeighbourQuery { selector, resources: None };
        let gates = json!([pods("dns", json!({"selector": {"matchLabels": {"app": "dns"}}}))]);
        assert_eq!(NeighbourQuery::all(&spec(gates)), [want, dns]);
        let gates = json!([pods("all", json!({}))]);
        assert_eq!(NeighbourQuery::all(&spec(gates)), [query()], "all pods contain the others");
        assert!(NeighbourQuery::all(&PolicySpec::default()).is_empty());
    }
}
