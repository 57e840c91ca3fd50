//! Outages of nodes during a rollout in steps.

use serde_json::json;

use super::sim::Sim;
use super::steps::{policy, run, waits};
use crate::steps::WaitKind;
use daemonset::controller::test_cluster::taint;

/// Found by the simulation: no node was desired any more, and the step counted as complete.
#[test]
fn an_outage_of_all_nodes_does_not_complete_a_step() {
    let canary = policy(json!({"steps": [{"name": "canary", "nodes": 1, "soak": "60s"}]}));
    let mut sim = run(Sim::of(3, &json!(1)), "v2", &canary).sim;
    let set = |sim: &mut Sim, ready: bool| {
        for at in 0..3 {
            sim.set_ready(at, ready);
            let lost = [taint("node.kubernetes.io/unreachable:NoSchedule")];
            sim.cluster.nodes[at].taints = if ready { [].into() } else { lost.into() };
        }
    };
    set(&mut sim, false);
    sim.pass(61);
    let lost = run(sim, "v2", &canary);
    assert_eq!((waits(&lost), lost.deletes.len()), (vec![WaitKind::ReadyNode], 0));
    let mut sim = lost.sim;
    set(&mut sim, true);
    let back = run(sim, "v2", &canary);
    assert_eq!((waits(&back), back.deletes.len()), (vec![WaitKind::Soak], 0));
}
