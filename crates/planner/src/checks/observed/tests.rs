//! What is found in the cluster, as tables.

use serde_json::{Value, json};

use super::*;
use daemonset::controller::test_cluster;
use daemonset::model::{LabelSelector, NeighbourQuery, NodeCondition, NodeReadiness};

fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

/// A check with an interval of 60 s.
fn check(kind: &str, value: &Value) -> Check {
    serde_json::from_value(json!({"name": "c", "interval": "60s", kind: value})).unwrap()
}

fn pods(value: &Value) -> Check {
    check("pods", value)
}

/// A pod that was created at 0.
fn pod(name: &str, node: Option<&str>, readiness: PodReadiness) -> Neighbour {
    Neighbour {
        namespace: "ns".into(),
        name: name.into(),
        controller: None,
        node: node.map(NodeName::from),
        created: Some(at(0).into()),
        readiness,
        terminating: false,
        resources: Box::default(),
    }
}

fn ready(name: &str, node: &str) -> Neighbour {
    pod(name, Some(node), PodReadiness::Ready { since: Some(at(5).into()) })
}

/// Not Ready since then; `None` never was.
fn unready(name: &str, node: &str, since: Option<i64>) -> Neighbour {
    pod(name, Some(node), PodReadiness::NotReady { since: since.map(|second| at(second).into()) })
}

/// A sentence about the answer, with the time at which it changes by itself.
fn said(found: &Found) -> String {
    let pending = found.pending.map(|at| format!(" ({})", at.as_second())).unwrap_or_default();
    match found.answer() {
        CheckAnswer::Pass => format!("pass{pending}"),
        CheckAnswer::Fail(reason) => format!("fail: {reason}{pending}"),
        CheckAnswer::Unknown(reason) => format!("unknown: {reason}{pending}"),
    }
}

/// Nodes `a` and `b`, with new pods of time 100; it is 200.
struct World {
    nodes: Vec<Node>,
    pods: Vec<Neighbour>,
}

impl World {
    fn of(pods: Vec<Neighbour>) -> Self {
        let nodes = ["a", "b"].map(|name| test_cluster::node(name, &[], &[])).to_vec();
        Self { nodes, pods }
    }

    fn look(&self, look: impl Fn(&[CheckedNode<'_>], CheckedCluster<'_>) -> Found) -> Found {
        let query = NeighbourQuery { selector: LabelSelector::default(), resources: None };
        let neighbours = [Neighbours::of(query, self.pods.clone())];
        let checked = |node| CheckedNode { node, pod_created: Some(at(100).into()) };
        let checked: Vec<CheckedNode<'_>> = self.nodes.iter().map(checked).collect();
        let owner = "ours".into();
        let cluster = CheckedCluster {
            nodes: &self.nodes,
            neighbours: &neighbours,
            owner: &owner,
            now: at(200),
        };
        look(&checked, cluster)
    }

    fn gate(&self, check: &Check) -> String {
        said(&self.look(|nodes, cluster| gate(check, nodes, cluster)))
    }

    fn precondition(&self, check: &Check) -> String {
        said(&self.look(|nodes, cluster| precondition(check, nodes, cluster)))
    }
}

#[test]
fn a_gate_fails_by_what_became_unready_after_the_new_pod_and_stays_so() {
    let gone = |since| format!("fail: pod ns/x on node a is not Ready since {}", at(since));
    let changed = |change: fn(&mut Neighbour)| {
        let mut pod = unready("x", "a", Some(110));
        change(&mut pod);
        pod
    };
    for (what, pod, want) in [
        ("it is Ready", ready("x", "a"), "pass".to_owned()),
        ("long enough", unready("x", "a", Some(110)), gone(110)),
        ("exactly", unready("x", "a", Some(140)), gone(140)),
        ("not yet", unready("x", "a", Some(141)), "pass (201)".to_owned()),
        ("since the new pod", unready("x", "a", Some(100)), gone(100)),
        ("before the new pod", unready("x", "a", Some(99)), "pass".to_owned()),
        ("it never was Ready", unready("x", "a", None), "pass".to_owned()),
        ("younger", changed(|pod| pod.created = Some(at(101).into())), "pass".to_owned()),
        ("as old", changed(|pod| pod.created = Some(at(100).into())), "pass".to_owned()),
        ("of unknown age", changed(|pod| pod.created = None), "pass".to_owned()),
        ("it is leaving", changed(|pod| pod.terminating = true), "pass".to_owned()),
        ("it is ours", changed(|pod| pod.controller = Some("ours".into())), "pass".to_owned()),
        ("another controller", changed(|pod| pod.controller = Some("x".into())), gone(110)),
        ("on no node", changed(|pod| pod.node = None), "pass".to_owned()),
        ("on another node", changed(|pod| pod.node = Some("c".into())), "pass".to_owned()),
    ] {
        assert_eq!(World::of(vec![pod]).gate(&pods(&json!({}))), want, "{what}");
    }
}

#[test]
fn a_node_that_is_not_ready_tells_nothing_about_its_pods() {
    let mut world = World::of(vec![unready("x", "a", Some(110))]);
    world.nodes[0].readiness = NodeReadiness::Unknown { since: None };
    assert_eq!(world.gate(&pods(&json!({}))), "pass");
    assert_eq!(world.gate(&pods(&json!({"on": "cluster"}))), "pass");
}

#[test]
fn a_gate_of_the_cluster_looks_at_pods_on_all_nodes() {
    let mut world = World::of(vec![unready("x", "c", Some(110))]);
    assert_eq!(world.gate(&pods(&json!({"on": "cluster"}))), "pass", "no such node");
    world.nodes.push(test_cluster::node("c", &[], &[]));
    let want = format!("fail: pod ns/x on node c is not Ready since {}", at(110));
    assert_eq!(world.gate(&pods(&json!({"on": "cluster"}))), want);
}

#[test]
fn a_precondition_looks_at_how_pods_are_now() {
    let gpu = |pod: Neighbour| Neighbour { resources: ["gpu".into()].into(), ..pod };
    let absent = pods(&json!({"resource": "gpu", "expect": "absent"}));
    let nowhere = pods(&json!({"resource": "gpu", "expect": "absent", "on": "cluster"}));
    let is_ready = pods(&json!({}));
    for (what, pod, check, want) in [
        ("no such resource", ready("x", "a"), &absent, "pass"),
        ("it is there", gpu(ready("x", "a")), &absent, "fail: pod ns/x on node a is there"),
        (
            "it is leaving",
            Neighbour { terminating: true, ..gpu(ready("x", "a")) },
            &absent,
            "fail: pod ns/x on node a is there",
        ),
        ("elsewhere", gpu(ready("x", "c")), &absent, "pass"),
        ("anywhere", gpu(ready("x", "c")), &nowhere, "fail: pod ns/x on node c is there"),
        (
            "not scheduled",
            Neighbour { node: None, ..gpu(ready("x", "a")) },
            &nowhere,
            "fail: pod ns/x is there",
        ),
        (
            "ours",
            Neighbour { controller: Some("ours".into()), ..gpu(ready("x", "a")) },
            &absent,
            "pass",
        ),
        ("Ready", ready("x", "a"), &is_ready, "pass"),
        (
            "never Ready",
            unready("x", "a", None),
            &is_ready,
            "fail: pod ns/x on node a is not Ready",
        ),
        ("leaving", Neighbour { terminating: true, ..unready("x", "a", None) }, &is_ready, "pass"),
    ] {
        assert_eq!(World::of(vec![pod]).precondition(check), want, "{what}");
    }
}

#[test]
fn only_the_nodes_that_do_not_pass_are_kept_back() {
    let world = World::of(vec![ready("x", "b"), ready("y", "b")]);
    let check = pods(&json!({"expect": "absent"}));
    let found = world.look(|nodes, cluster| precondition(&check, nodes, cluster));
    assert_eq!(found.nodes().collect::<Vec<_>>(), [1, 1]);
    let all = (0..9).map(|number| ready(&format!("x{number}"), "a")).collect();
    let want = "x0 on node a is there; pod ns/x1 on node a is there; ";
    let said = World::of(all).precondition(&check);
    assert!(
        said.contains(want) && said.ends_with("ns/x4 on node a is there; and 4 more pods"),
        "{said}"
    );
}

#[test]
fn conditions_are_compared_by_node() {
    let check = check("nodeConditions", &json!({"NetworkUnavailable": "False"}));
    let since = |seconds| format!("since {}", at(seconds));
    let bad = |since: &str| format!("fail: node b has NetworkUnavailable=True {since}, not False");
    for (what, status, changed, precondition, gate) in [
        ("as expected", "False", Some(150), "pass".to_owned(), "pass".to_owned()),
        ("for a while", "True", Some(110), bad(&since(110)), bad(&since(110))),
        ("just now", "True", Some(190), bad(&since(190)), "pass (250)".to_owned()),
        (
            "since an unknown time",
            "Unknown",
            None,
            "fail: node b has NetworkUnavailable=Unknown, not False".to_owned(),
            "fail: node b has NetworkUnavailable=Unknown, not False".to_owned(),
        ),
    ] {
        let mut world = World::of(Vec::new());
        let condition = |status: &str, since: Option<i64>| NodeCondition {
            kind: "NetworkUnavailable".into(),
            status: status.into(),
            since: since.map(|second| at(second).into()),
        };
        world.nodes[0].conditions = [condition("False", None)].into();
        world.nodes[1].conditions = [condition(status, changed)].into();
        assert_eq!(world.precondition(&check), precondition, "{what}");
        assert_eq!(world.gate(&check), gate, "{what}");
        world.nodes[0].conditions = Box::default();
        let said = world.precondition(&check);
        let absent = "unknown: node a has no NetworkUnavailable";
        assert!(said == absent || precondition == said, "{what}: {said}");
    }
}

#[test]
fn pods_that_are_not_observed_are_unknown() {
    let check = pods(&json!({"selector": {"matchLabels": {"a": "b"}}}));
    let world = World::of(Vec::new());
    assert_eq!(world.gate(&check), "unknown: the pods are not observed");
    assert_eq!(world.precondition(&check), "unknown: the pods are not observed");
}
