//! A budget that several DaemonSets share: what the others let this one begin, and what it tells them.

use serde_json::json;

use super::outages::{lose, set_ready};
use super::run::Run;
use super::sim::Sim;
use super::steps::{self, policy, waits};
use crate::rollout::{Outcome, counted, observing};
use crate::shared::{NodeShare, Share, ShareCourse, Siblings};
use crate::steps::WaitKind;
use daemonset::controller::test_cluster::taint;
use daemonset::model::{DaemonSetKey, Deadline, IntOrPercent};

/// The others of a budget of one node, of which this DaemonSet has this position.
fn siblings(position: usize, others: Vec<Share>) -> Siblings {
    let daemon_set = DaemonSetKey::new("default", "foo");
    Siblings { daemon_set, budget: IntOrPercent::Int(1), position, others }
}

/// Another DaemonSet.
fn share<const N: usize>(name: &str, course: ShareCourse, nodes: [(&str, NodeShare); N]) -> Share {
    let nodes = nodes.map(|(node, here)| (node.into(), here)).into();
    Share { daemon_set: DaemonSetKey::new("default", name), course, nodes }
}

/// A run of `v2` that has looked for the first time, with a shared budget and no other DaemonSet.
fn alone(mut sim: Sim) -> Run {
    sim.siblings = Some(siblings(0, Vec::new()));
    let mut run = Run::apply(sim, "v2");
    run.look();
    run
}

/// Found by the simulation: the time began anew whenever a check of a sibling was asked.
#[test]
fn a_shared_budget_that_a_dead_pod_uses_up_is_not_waited_for_indefinitely() {
    let dead = NodeShare { is_desired: true, is_disturbed: true, ..NodeShare::default() };
    let siblings = |course| siblings(1, vec![share("other", course, [("node-2", dead)])]);
    let mut sim = Sim::of(3, &json!(1));
    sim.siblings = Some(siblings(ShareCourse::Starting));
    let mut run = Run::apply(sim, "v2").with(|task| task.policy.progress_deadline = Deadline(60));
    run.look();
    for second in 0..120 {
        let asks = second % 20 == 0;
        let course = if asks { ShareCourse::Starting } else { ShareCourse::Rolling };
        run.sim.siblings = Some(siblings(course));
        if run.ended.is_none() {
            run.settle();
        }
    }
    let Outcome::Waiting { waits_for } = run.outcome() else { panic!("{}", run.outcome()) };
    assert_eq!(waits_for[0].kind, WaitKind::SharedBudget);
    assert_eq!(run.deleted_nodes(), ["node-2"], "it is disturbed anyway");
}

/// Found by the simulation: a node had a slot that it never took, and another DaemonSet began there beside
/// a second node.
#[test]
fn a_pod_that_goes_from_where_none_may_start_takes_no_slot() {
    let mut sim = Sim::of(2, &json!(2));
    sim.stop = 500;
    sim.cluster.nodes[0].taints = [taint("gpu:NoSchedule")].into();
    let mut run = alone(sim);
    run.until(|run| run.deleted_nodes().contains(&"node-0"));
    run.settle();
    let here = run.state.share().unwrap().nodes["node-0"];
    assert_eq!((here.is_desired, here.is_disturbed), (false, false));
}

/// Its pods do not tolerate the taint of such nodes, so it should have none there.
#[test]
fn a_node_that_is_lost_after_its_update_is_disturbed_for_the_others() {
    let mut run = alone(Sim::of(4, &json!(1)));
    run.until(|run| run.sim.nodes_with("v2").len() == 3);
    let lost = run.sim.nodes_with("v2");
    let nodes = &run.sim.cluster.nodes;
    let is_lost = |at: &usize| lost.iter().any(|it| *it == *nodes[*at].name.as_str());
    let at: Vec<usize> = (0..nodes.len()).filter(is_lost).collect();
    set_ready(&mut run.sim, &at, false);
    run.settle();
    // The first one is skipped (`skipUnreadyNodes`).
    assert_eq!(disturbed(run.state.share().unwrap()), lost[1..]);
}

/// Found by seed 748398: the last good template is live meanwhile, and its pods, which nobody has touched,
/// were taken for updated ones, those of the rollout for outdated ones.
#[test]
fn while_a_rollout_waits_its_own_nodes_are_lost_and_no_others() {
    let canary = policy(json!({"steps": [{"name": "canary", "nodes": 3, "soak": "60s"}]}));
    let mut waiting = steps::run(Sim::of(8, &json!(3)), "v2", &canary);
    assert_eq!(waits(&waiting), [WaitKind::Soak]);
    let updated = waiting.sim.nodes_with("v2");
    set_ready(&mut waiting.sim, &[0, 1, 2, 3, 4, 5, 6, 7], false);
    let (seen, now) = (waiting.sim.seen(), waiting.sim.now());
    let key = DaemonSetKey::new("default", "foo");
    let share = counted(&key, &seen.observed(), &observing(&canary), now);
    assert_eq!((updated.len(), disturbed(&share)), (3, updated[1..].to_vec()));
}

/// Found by seed 934692: when a rollout had ended, the lost node on which it had deleted a pod, and which was
/// skipped, was forgotten. So another lost node was skipped instead, and the next DaemonSet had its slot.
#[test]
fn where_a_rollout_has_deleted_pods_counts_after_its_end() {
    let mut sim = Sim::of(4, &json!(1));
    sim.stop = 500;
    let mut run = alone(sim);
    for delete in 0..2 {
        run.until(|run| run.deletes.len() > delete);
        lose(&mut run, delete);
    }
    let run = run.finish();
    assert_eq!(run.deleted_nodes(), ["node-0", "node-1"], "{}", run.outcome());
    let (seen, now) = (run.sim.seen(), run.sim.now());
    let key = DaemonSetKey::new("default", "foo");
    let share = counted(&key, &seen.observed(), &run.state, now);
    assert_eq!(disturbed(&share), ["node-1"], "the first one is skipped");
}

/// The nodes that count against the budget.
fn disturbed(share: &Share) -> Vec<String> {
    let nodes = share.nodes.iter().filter(|(_, here)| here.is_disturbed);
    nodes.map(|(node, _)| node.to_string()).collect()
}

/// Found by seeds 621781 and 638249: another DaemonSet, which saw again, acted on what this one had shared
/// before its watches were closed.
#[test]
fn a_rollout_that_does_not_see_the_cluster_is_not_rolling() {
    let mut run = alone(Sim::of(3, &json!(1)));
    run.until(|run| !run.deletes.is_empty());
    let course = |run: &Run| run.state.share().unwrap().course.clone();
    assert_eq!(course(&run), ShareCourse::Rolling);
    run.sim.hidden = true;
    run.settle();
    assert_eq!(course(&run), ShareCourse::Starting);
    run.sim.hidden = false;
    run.settle();
    assert_eq!(course(&run), ShareCourse::Rolling);
}

/// Found by the simulation: in a closed window, the last DaemonSet of a shared budget finished a node
/// before the second one, which was taken for one that waits.
#[test]
fn what_may_be_finished_in_a_closed_window_is_shared() {
    let closed = json!({"windows": [{"schedule": "0 3 * * *", "duration": "1h"}]});
    let mut killed = Run::apply(Sim::of(3, &json!(1)), "v2");
    killed.look();
    killed.until(|run| run.sim.live_image() == "v2");
    let mut sim = killed.sim;
    let updated = NodeShare { is_desired: true, is_updated: true, ..NodeShare::default() };
    let first = share("first", ShareCourse::Waiting(Vec::new()), [("node-1", updated)]);
    sim.siblings = Some(siblings(1, vec![first, share("last", ShareCourse::Starting, [])]));
    let closed = policy(closed);
    let mut run = Run::apply(sim, "v2").with(|task| task.policy = closed);
    run.look();
    run.until(|run| run.state.share().unwrap().course != ShareCourse::Starting);
    let share = run.state.share().unwrap();
    let may_begin = share.nodes.iter().filter(|(_, here)| here.may_begin);
    assert_eq!(may_begin.map(|(node, _)| node.as_str()).collect::<Vec<_>>(), ["node-1"]);
    assert_eq!(share.course, ShareCourse::Rolling);
}

/// Found by the simulation: three DaemonSets waited for each other without end, though it was the turn of
/// one on an open node, because it came later on another one.
#[test]
fn a_slot_for_the_node_whose_turn_it_is_is_not_waited_for_indefinitely() {
    let desired = NodeShare { is_desired: true, ..NodeShare::default() };
    let nodes = [
        ("node-0", NodeShare { is_updated: true, ..desired }),
        ("node-1", NodeShare { is_outdated: true, ..desired }),
        ("dead", NodeShare { is_disturbed: true, ..desired }),
    ];
    let mut sim = Sim::of(2, &json!(1));
    sim.siblings = Some(siblings(1, vec![share("other", ShareCourse::Rolling, nodes)]));
    let run = Run::apply(sim, "v2").with(|task| task.policy.progress_deadline = Deadline(60));
    let run = run.finish();
    let Outcome::Waiting { waits_for } = run.outcome() else { panic!("{}", run.outcome()) };
    assert_eq!((waits_for[0].kind, run.deletes.len()), (WaitKind::SharedBudget, 0));
}

/// Found by the simulation: the checks of three DaemonSets were asked at different times, and never had
/// answers that counted at the same time.
#[test]
fn a_pass_counts_for_the_others_while_it_is_asked_for_again() {
    let mut sim = Sim::of(3, &json!(1));
    sim.siblings = Some(siblings(0, Vec::new()));
    let checked = policy(json!({"preconditions": [{
        "name": "alerts", "interval": "10s",
        "prometheus": {"address": "https://prom.example", "query": "alerts", "max": 1},
    }]}));
    let mut run = Run::apply(sim, "v2").with(|task| task.policy = checked);
    run.look();
    run.until(|run| run.deletes.len() == 2);
    let shown = |run: &Run| {
        let share = run.state.share.clone().unwrap();
        (share.course, share.nodes["node-2"].may_begin)
    };
    // From now on, no question is answered.
    run.settle();
    let mut seen = Vec::new();
    for _ in 0..25 {
        run.pass(1);
        run.look();
        let is_asked = !run.state.checks.asked.is_empty();
        seen.push((is_asked, shown(&run)));
    }
    seen.dedup();
    let (rolling, starting) = (ShareCourse::Rolling, ShareCourse::Starting);
    assert_eq!(
        seen,
        [(false, (rolling.clone(), true)), (true, (rolling, true)), (true, (starting, false))]
    );
    assert_eq!(run.deletes.len(), 2, "the run itself waits for the answer");
    run.until(|run| run.deletes.len() == 3);
}
