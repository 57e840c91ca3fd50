//! Outages of nodes during a rollout in steps.

use jiff::SignedDuration;
use serde_json::json;

use super::run::{Post, Run};
use super::sim::{Fate, Sim};
use super::steps::{policy, run, waits, with_zones};
use crate::plan::Reason;
use crate::rollout::Outcome;
use crate::steps::WaitKind;
use daemonset::controller::test_cluster::taint;
use daemonset::model::{NodeCondition, NodeReadiness};

/// Sets whether nodes are Ready, and has them tainted if not.
pub(super) fn set_ready(sim: &mut Sim, nodes: &[usize], ready: bool) {
    for at in nodes {
        sim.set_ready(*at, ready);
        let lost = [taint("node.kubernetes.io/unreachable:NoSchedule")];
        sim.cluster.nodes[*at].taints = if ready { [].into() } else { lost.into() };
    }
}

/// Found by the simulation: no node was desired any more, and the step counted as complete.
#[test]
fn an_outage_of_all_nodes_does_not_complete_a_step() {
    let canary = policy(json!({"steps": [{"name": "canary", "nodes": 1, "soak": "60s"}]}));
    let mut sim = run(Sim::of(3, &json!(1)), "v2", &canary).sim;
    set_ready(&mut sim, &[0, 1, 2], false);
    sim.pass(61);
    let lost = run(sim, "v2", &canary);
    assert_eq!((waits(&lost), lost.deletes.len()), (vec![WaitKind::ReadyNode], 0));
    let mut sim = lost.sim;
    set_ready(&mut sim, &[0, 1, 2], true);
    let back = run(sim, "v2", &canary);
    assert_eq!((waits(&back), back.deletes.len()), (vec![WaitKind::Soak], 0));
}

#[test]
fn an_outage_of_a_domain_does_not_end_its_soak() {
    let zones = policy(json!({
        "domains": {"key": "zone", "soak": "60s"}, "skipUnreadyNodes": {"max": 2},
    }));
    let first = run(with_zones(Sim::of(6, &json!(2))), "v2", &zones);
    assert_eq!(
        (waits(&first), first.deleted_nodes()),
        (vec![WaitKind::Soak], vec!["node-0", "node-3"])
    );
    let mut sim = first.sim;
    set_ready(&mut sim, &[0, 3], false);
    sim.pass(20);
    let lost = run(sim, "v2", &zones);
    assert_eq!(lost.outcome().to_string(), "waiting: step rest, a, has no Ready node");
    assert_eq!(lost.deletes.len(), 0);
    let mut sim = lost.sim;
    set_ready(&mut sim, &[0, 3], true);
    let back = run(sim, "v2", &zones);
    assert_eq!((waits(&back), back.deletes.len()), (vec![WaitKind::Soak], 0));
    let mut sim = back.sim;
    sim.pass(61);
    assert_eq!(run(sim, "v2", &zones).deletes.len(), 2);
}

/// More nodes of the domain are lost than may be skipped: no other domain begins, and the reason names it.
#[test]
fn an_outage_of_a_domain_beyond_what_is_skipped_pauses_before_the_next_one() {
    let zones = policy(json!({
        "domains": {"key": "zone"}, "skipUnreadyNodes": {"max": 1}, "progressDeadline": "60s",
    }));
    let sim = with_zones(Sim::of(6, &json!(3)));
    let mut run = Run::apply(sim, "v2").with(|task| task.policy = zones.clone());
    run.look();
    run.until(|run| run.sim.nodes_with("v2") == ["node-0", "node-3"]);
    run.pass(15);
    set_ready(&mut run.sim, &[0, 3], false);
    let lost = run.finish();
    assert_eq!(
        lost.outcome().to_string(),
        "paused: the limits of `domains` reached for 60s: 1 node unavailable in a"
    );
    assert_eq!(lost.deleted_nodes(), ["node-0", "node-3"]);
}

/// The pods do not tolerate the taint of such a node, so that it is not a desired one any more. Without a
/// limit, a version that breaks its nodes breaks them all.
#[test]
fn nodes_that_are_lost_after_their_update_stop_the_rollout() {
    let few = policy(json!({"skipUnreadyNodes": {"max": 2}}));
    let mut run = Run::apply(Sim::of(9, &json!(1)), "v2").with(|task| task.policy = few.clone());
    let mut lost = 0;
    run.look();
    while run.ended.is_none() {
        run.until(|run| run.ended.is_some() || run.sim.nodes_with("v2").len() > lost);
        let nodes = run.sim.cluster.nodes.clone();
        let has_new = |name: &str| run.sim.nodes_with("v2").iter().any(|it| it == name);
        let here = (0..nodes.len()).filter(|at| has_new(nodes[*at].name.as_str()));
        let here: Vec<usize> = here.filter(|at| nodes[*at].readiness.is_ready()).collect();
        // It lives for as long as it takes to count as available.
        run.pass(15);
        set_ready(&mut run.sim, &here, false);
        lost += here.len();
        run.look();
    }
    assert_eq!(lost, 3, "{}", run.outcome());
    assert_eq!(run.sim.nodes_with("v2").len(), 3);
}

/// The node hangs while its old pod stops, or the end of that pod takes down its network.
#[test]
fn nodes_that_are_lost_while_their_old_pod_stops_stop_the_rollout() {
    let few = policy(json!({"skipUnreadyNodes": {"max": 2}}));
    let mut sim = Sim::of(9, &json!(1));
    sim.stop = 500;
    let mut run = Run::apply(sim, "v2").with(|task| task.policy = few.clone());
    run.look();
    while run.ended.is_none() {
        let seen = run.deletes.len();
        run.until(|run| run.ended.is_some() || run.deletes.len() > seen);
        if run.ended.is_none() {
            lose(&mut run, seen);
        }
    }
    assert_eq!(run.deleted_nodes(), ["node-0", "node-1", "node-2"], "{}", run.outcome());
    let said = run.outcome().to_string();
    assert!(said.starts_with("paused: `maxUnavailable` reached"), "{said}");
    let left = &run.ended.as_ref().unwrap().left;
    let counts =
        |node: &str| left[node].contains(&Reason::UnreadyNodeCounts { unready: 3, skippable: 2 });
    assert_eq!(["node-0", "node-1", "node-2"].map(counts), [false, false, true]);
}

/// The node of the delete at this position is lost.
pub(super) fn lose(run: &mut Run, delete: usize) {
    let name = run.deletes[delete].node.clone();
    let at = run.sim.cluster.nodes.iter().position(|it| it.name == name).unwrap();
    set_ready(&mut run.sim, &[at], false);
    run.look();
}

/// The new version reboots its node, or shuts it down: its pod fails, and is deleted.
#[test]
fn nodes_that_are_lost_with_their_new_pod_stop_the_rollout() {
    let few = policy(json!({"skipUnreadyNodes": {"max": 2}}));
    let mut run = Run::apply(Sim::of(9, &json!(1)), "v2").with(|task| task.policy = few.clone());
    run.look();
    while run.ended.is_none() {
        run.until(|run| run.ended.is_some() || !run.sim.nodes_with("v2").is_empty());
        if run.ended.is_none() {
            run.pass(15);
            let last = run.deletes.len() - 1;
            lose(&mut run, last);
            let node = run.deletes[last].node.clone();
            run.sim.cluster.pods.retain(|pod| pod.node() != Some(&node));
            run.look();
        }
    }
    assert_eq!(run.deleted_nodes(), ["node-0", "node-1", "node-2"], "{}", run.outcome());
}

/// A node that the failed version has cost does not count against its rollback.
#[test]
fn nodes_that_are_lost_between_their_pods_do_not_hold_up_a_rollback() {
    let few = policy(json!({"skipUnreadyNodes": {"max": 1}, "onFailure": "rollback"}));
    let mut run = Run::apply(Sim::of(7, &json!(3)), "v2").with(|task| task.policy = few.clone());
    run.look();
    run.until(|run| run.sim.nodes_with("v2").len() == 3);
    run.pass(15);
    run.sim.stop = 500;
    run.look();
    run.until(|run| run.deletes.len() == 6);
    for delete in 3..6 {
        lose(&mut run, delete);
    }
    run.sim.set_ready(6, false);
    run.sim.stop = 1;
    for at in 0..3 {
        run.sim.pod_on(&format!("node-{at}")).restarts = 9;
    }
    run.look();
    run.until(|_| false);
    let deleted = run.deleted_nodes();
    assert!(deleted.ends_with(&["node-0", "node-1", "node-2"]), "{deleted:?} {}", run.outcome());
}

/// Where no new pod may start, none is missing.
#[test]
fn a_node_where_the_last_pod_was_deleted_does_not_count_when_it_is_lost() {
    let none = policy(json!({"skipUnreadyNodes": {"max": 1}}));
    let mut sim = Sim::of(3, &json!(1));
    sim.cluster.nodes[0].taints = [taint("gpu:NoSchedule")].into();
    sim.set_ready(2, false);
    let mut run = Run::apply(sim, "v2").with(|task| task.policy = none.clone());
    run.look();
    run.until(|run| run.deletes.len() == 1);
    assert_eq!(run.deleted_nodes(), ["node-0"]);
    run.sim.set_ready(0, false);
    let run = run.finish();
    assert_eq!((run.outcome(), run.deleted_nodes()), (&Outcome::Done, vec!["node-0", "node-1"]));
}

/// Caches of API servers are not equally fresh: this one shows the node as it was before.
#[test]
fn a_node_counts_although_an_old_observation_shows_it_lost() {
    let mut sim = Sim::of(3, &json!(1));
    set_ready(&mut sim, &[0], false);
    let mut run = Run::apply(sim, "v2");
    run.sim.pass(1);
    run.observe();
    set_ready(&mut run.sim, &[0], true);
    run.pass(61);
    run.sim.stop = 500;
    run.observe();
    run.look();
    run.until(|run| run.deletes.len() == 1);
    assert_eq!(run.deleted_nodes(), ["node-0"]);
    let nodes = run.sim.cluster.nodes.clone();
    let before = run.sim.now() - SignedDuration::from_secs(30);
    set_ready(&mut run.sim, &[0], false);
    run.sim.cluster.nodes[0].readiness = NodeReadiness::NotReady { since: Some(before.into()) };
    run.look();
    assert!(!run.post(Post::Delivered), "an old observation");
    run.sim.cluster.nodes = nodes;
    set_ready(&mut run.sim, &[0], false);
    run.look();
    run.post(Post::Delivered);
    assert_eq!(run.deleted_nodes(), ["node-0", "node-1"]);
}

#[test]
fn a_node_that_is_lost_between_its_pods_fails_the_gate() {
    let gate = json!({"name": "ready", "interval": "10s", "nodeConditions": {"Ready": "True"}});
    let gates = policy(json!({"gates": [gate], "skipUnreadyNodes": {"max": 2}}));
    let mut sim = Sim::of(3, &json!(1));
    sim.stop = 500;
    let condition = |run: &mut Sim, status: &str| {
        for node in &mut run.cluster.nodes {
            let is_ready = node.readiness.is_ready();
            let status = if is_ready { "True" } else { status };
            node.conditions = [NodeCondition {
                kind: "Ready".into(),
                status: status.into(),
                since: (!is_ready).then(|| run.cluster.now.into()),
            }]
            .into();
        }
    };
    condition(&mut sim, "True");
    let mut run = Run::apply(sim, "v2").with(|task| task.policy = gates.clone());
    run.look();
    run.until(|run| run.deletes.len() == 1);
    run.pass(5);
    let at = run.sim.cluster.nodes.iter().position(|it| it.name == run.deletes[0].node);
    set_ready(&mut run.sim, &[at.unwrap()], false);
    condition(&mut run.sim, "Unknown");
    let run = run.finish();
    let said = run.outcome().to_string();
    assert!(said.contains("gate ready failed: node node-0 has Ready=Unknown"), "{said}");
    assert_eq!(run.deleted_nodes(), ["node-0"]);
}

/// Nodes that come back are Ready before their taint is removed, and their pods are Ready.
#[test]
fn nodes_that_come_back_are_not_replaced_all_at_once() {
    let mut sim = Sim::of(9, &json!(1));
    sim.fate("v2", Fate::ReadyAfter(200));
    let mut run = Run::apply(sim, "v2").with(|task| task.policy = policy(json!({})));
    run.look();
    run.until(|run| !run.deletes.is_empty());
    set_ready(&mut run.sim, &[3, 4, 5, 6, 7, 8], false);
    run.pass(61);
    run.look();
    for at in 3..9 {
        run.sim.set_ready(at, true);
    }
    run.look();
    while run.post(Post::Delivered) {}
    assert_eq!(run.deleted_nodes(), ["node-0"]);
    set_ready(&mut run.sim, &[3, 4, 5, 6, 7, 8], true);
    let run = run.finish();
    assert_eq!((run.outcome(), run.deletes.len()), (&Outcome::Done, 9));
}

/// The updated ones are lost until then: they count against the budget.
#[test]
fn updated_nodes_that_come_back_count_until_their_taint_is_removed() {
    let few = policy(json!({"skipUnreadyNodes": {"max": 1}}));
    let mut run = Run::apply(Sim::of(9, &json!(2)), "v2").with(|task| task.policy = few.clone());
    run.look();
    run.until(|run| run.sim.nodes_with("v2").len() == 4);
    run.pass(15);
    set_ready(&mut run.sim, &[0, 1, 2, 3], false);
    run.look();
    let before = run.deletes.len();
    assert_eq!(before, 4);
    for at in 0..4 {
        run.sim.set_ready(at, true);
    }
    run.look();
    while run.post(Post::Delivered) {}
    assert_eq!(run.deletes.len(), before, "{:?}", run.deleted_nodes());
}

/// Else the whole of another domain follows, while nothing of this one is proven.
#[test]
fn a_domain_that_is_lost_before_its_new_pods_are_available_lets_no_other_begin() {
    for is_tainted in [false, true] {
        let zones = policy(json!({"domains": {"key": "zone", "soak": "60s"}}));
        let mut sim = with_zones(Sim::of(3, &json!(1)));
        sim.fate("v2", Fate::NeverReady);
        let mut run = Run::apply(sim, "v2").with(|task| task.policy = zones.clone());
        run.look();
        run.until(|run| run.sim.nodes_with("v2") == ["node-0"]);
        if is_tainted {
            set_ready(&mut run.sim, &[0], false);
        } else {
            run.sim.set_ready(0, false);
        }
        let lost = run.finish();
        assert_eq!(lost.deleted_nodes(), ["node-0"]);
        assert_eq!(lost.outcome().to_string(), "waiting: step rest, a, has no Ready node");
    }
}

#[test]
fn a_step_waits_for_its_lost_nodes_beyond_what_may_be_skipped() {
    let canary = policy(json!({
        "steps": [{"name": "canary", "soak": "60s",
            "nodes": {"names": ["node-0", "node-1", "node-2"]}}],
        "skipUnreadyNodes": {"max": 1},
    }));
    let mut sim = run(Sim::of(9, &json!(3)), "v2", &canary).sim;
    set_ready(&mut sim, &[0, 1], false);
    sim.pass(61);
    let lost = run(sim, "v2", &canary);
    assert_eq!((waits(&lost), lost.deletes.len()), (vec![WaitKind::ReadyNode], 0));
}
