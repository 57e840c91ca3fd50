//! Tests of nodes with several pods.

use super::*;
use crate::rollout::Extent;
use daemonset::model::{DaemonSetKey, RevisionNumber};

/// A second pod on `node-0`, younger than the first.
fn with_surplus(count: usize) -> Cluster {
    let mut cluster = settled(count);
    cluster.add_pods("node-0", OURS, 1);
    cluster.make_all_ready();
    cluster
}

fn fates(plan: &Plan, node: usize) -> Vec<Fate> {
    plan.daemon_sets[0].nodes[node].pods.iter().map(|pod| pod.fate).collect()
}

/// The pod of `node-1` never becomes Ready and uses up the budget of one.
#[test]
fn a_node_whose_outdated_pod_waits_while_a_surplus_pod_is_deleted_is_not_waiting() {
    let mut cluster = with_surplus(3);
    cluster.nodes[1].readiness = NodeReadiness::Unknown { since: Some(at(400).into()) };
    cluster.nodes[2].readiness = NodeReadiness::Unknown { since: Some(at(400).into()) };
    let plan = after(&mut cluster, |cluster| cluster.set_image("foo/bar:2"));
    assert_eq!(
        lines(&plan),
        [
            "node-0 - surplus,outdated,maxUnavailableReached",
            "node-1 ! skippedUnreadyNode,outdated",
            "node-2 ! unreadyNodeCounts,outdated",
        ]
    );
    assert_eq!(fates(&plan, 0), [Fate::Keep, Fate::Delete]);
    assert_eq!((plan.totals.actions.delete, plan.totals.actions.wait), (1, 2));
    assert_eq!(plan.totals.deleted_pods, 1);
    assert_eq!(plan.daemon_sets[0].waves, []);
}

/// The taint goes when the node is Ready again, so the pod waits for its update only.
#[test]
fn a_pod_that_waits_for_its_node_is_outdated() {
    let mut cluster = settled(2);
    cluster.nodes[0].readiness = NodeReadiness::NotReady { since: Some(at(400).into()) };
    cluster.nodes[0].taints = [taint("node.kubernetes.io/not-ready:NoSchedule")].into();
    let plan = after(&mut cluster, |cluster| cluster.set_image("foo/bar:2"));
    assert_eq!(
        lines(&plan),
        ["node-0 ! skippedUnreadyNode,outdated", "node-1 -/+ outdated wave 1"]
    );
    let node = &plan.daemon_sets[0].nodes[0];
    let outdated = Reason::Outdated { revision: Some(RevisionNumber(1)) };
    assert_eq!((&node.reasons[1].reason, &node.pods[0].reason.reason), (&outdated, &outdated));
}

/// `node-1` has no pod: the controller creates one, whatever the step replaces.
#[test]
fn a_step_replaces_a_part() {
    let mut cluster = settled(5);
    cluster.nodes[4].readiness = NodeReadiness::NotReady { since: Some(at(400).into()) };
    cluster.pods.retain(|pod| pod.node().is_none_or(|node| *node != *"node-1"));
    let before = snapshot(&cluster);
    cluster.set_image("foo/bar:2");
    let desired = [desired(&cluster)];
    let narrowed = |extent: &Extent| plan(Input { extent, ..Input::of(&before, &desired) });
    let nodes = |names: &[&str]| Extent::Nodes(names.iter().map(|it| (*it).into()).collect());
    let (whole, first, wait) = (
        narrowed(&Extent::All),
        "node-0 -/+ outdated wave 1",
        "node-4 ! skippedUnreadyNode,outdated",
    );
    let create = "node-1 + noPod";
    for (extent, want) in [
        (Extent::Count(1), vec![first, create, wait]),
        (nodes(&["node-0"]), vec![first, create]),
        (nodes(&["node-4"]), vec![create, wait]),
    ] {
        let plan = narrowed(&extent);
        let one = &plan.daemon_sets[0];
        assert_eq!(lines(&plan), want, "{extent:?}");
        let replaced = u32::from(want.contains(&first));
        assert_eq!((one.totals.replace, one.waves.len()), (replaced, replaced as usize));
        let all = |totals: ActionTotals| totals.replace + totals.create + totals.wait + totals.keep;
        assert_eq!(all(one.totals), all(whole.daemon_sets[0].totals), "{extent:?}");
        let seconds = |plan: &Plan| plan.forecast.as_ref().map(|it| it.seconds);
        assert!(seconds(&plan) < seconds(&whole), "{extent:?}");
    }
}

#[test]
fn every_deleted_pod_is_counted() {
    let plan = after(&mut with_surplus(2), |cluster| cluster.set_image("foo/bar:2"));
    assert_eq!(lines(&plan)[0], "node-0 -/+ outdated,surplus wave 1");
    assert_eq!(plan.totals.actions.replace, 2);
    assert_eq!(plan.totals.deleted_pods, 3);
    let mut cluster = settled(2);
    cluster.pods[0].terminating = true;
    assert_eq!(after(&mut cluster, |_| {}).totals.deleted_pods, 0, "deleted by another client");
}

/// The node was tainted after its new pod had started: the old one goes as on any other node.
#[test]
fn during_a_surge_a_new_pod_may_stay_where_none_may_start() {
    let mut cluster = settled(2);
    cluster.set_limits(&json!(0), &json!(1));
    settle(&mut cluster);
    cluster.set_image("foo/bar:2");
    cluster.sync();
    let both = cluster.pods.iter().filter(|pod| pod.node().is_some_and(|it| *it == *"node-0"));
    assert_eq!(both.count(), 2, "the surge begins on node-0");
    for node in &mut cluster.nodes {
        node.taints = [taint("gpu:NoSchedule")].into();
    }
    let plan = planned(&snapshot(&cluster), &[desired(&cluster)]);
    assert_eq!(lines(&plan), ["node-0 +/- outdated wave 1", "node-1 - deletedNotRecreated wave 1"]);
}

/// Found by the simulation: the plan was said to contradict itself.
#[test]
fn where_no_node_is_desired_the_pods_that_go_have_a_wave() {
    let mut cluster = settled(2);
    cluster.set_limits(&json!("40%"), &json!(0));
    settle(&mut cluster);
    cluster.set_image("foo/bar:2");
    for node in &mut cluster.nodes {
        node.taints = [taint("gpu:NoSchedule")].into();
    }
    let plan = planned(&snapshot(&cluster), &[desired(&cluster)]);
    assert_eq!(
        lines(&plan),
        ["node-0 - deletedNotRecreated wave 1", "node-1 - deletedNotRecreated wave 1"]
    );
}

#[test]
fn explanations_of_a_plan_never_contradict_it() {
    let mut cluster = with_surplus(6);
    cluster.nodes[1].readiness = NodeReadiness::Unknown { since: Some(at(400).into()) };
    cluster.nodes[2].taints = [taint("gpu:NoExecute")].into();
    cluster.nodes[3].taints = [taint("gpu:NoSchedule")].into();
    cluster.pods[4].phase = PodPhase::Failed;
    cluster.pods.retain(|pod| pod.node().is_none_or(|node| *node != *"node-5"));
    let before = snapshot(&cluster);
    cluster.set_image("foo/bar:2");
    let desired = [desired(&cluster)];
    let detail = Detail { all_nodes: true, ..Detail::default() };
    let plan = plan(Input { detail, ..Input::of(&before, &desired) });
    let key = &cluster.daemon_set.key;
    assert_eq!(plan.daemon_sets[0].nodes.len(), 6);
    for node in &plan.daemon_sets[0].nodes {
        let explained = explain_planned(Input::of(&before, &desired), key, &node.name).unwrap();
        assert_eq!((explained.action, explained.wave), (node.action, node.wave), "{}", node.name);
        assert_eq!(explained.pods, *node.pods, "{}", node.name);
        assert_eq!(explained.reasons[..node.reasons.len()], **node.reasons, "{}", node.name);
    }
    let missing = explain_planned(Input::of(&before, &desired), key, &"node-9".into());
    assert_eq!(missing.unwrap_err(), NotFound::Node("node-9".into()));
    let other = DaemonSetKey::new("default", "bar");
    let missing = explain_planned(Input::of(&before, &desired), &other, &"node-0".into());
    assert_eq!(missing.unwrap_err(), NotFound::DaemonSet(other));
}
