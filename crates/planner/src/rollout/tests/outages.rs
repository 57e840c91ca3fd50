//! Outages of nodes during a rollout in steps.

use serde_json::json;

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
    let zones = policy(json!({"domains": {"key": "zone", "soak": "60s"}}));
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
