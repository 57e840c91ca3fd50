//! Outages of nodes during a rollout in steps.

use serde_json::json;

use super::run::Run;
use super::sim::Sim;
use super::steps::{policy, run, waits, with_zones};
use crate::steps::WaitKind;
use daemonset::controller::test_cluster::taint;

/// Sets whether nodes are Ready, and has them tainted if not.
fn set_ready(sim: &mut Sim, nodes: &[usize], ready: bool) {
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
