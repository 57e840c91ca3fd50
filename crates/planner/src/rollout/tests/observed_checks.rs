//! Checks that the observed cluster answers: nodes that are kept back, and gates of nodes and of
//! other pods.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::run::Run;
use super::sim::{Sim, surging};
use super::steps::{policy, run, waits};
use crate::plan::PauseState;
use crate::rollout::{ClusterChecks, Extent, FailureCause, Goal, Outcome};
use crate::steps::WaitKind;
use daemonset::controller::test_cluster::taint;
use daemonset::model::{
    Neighbour, NodeCondition, NodeName, PodReadiness, PolicySpec, PolicyStep, Soak,
};

/// A pod next to that of the DaemonSet, older than all of this.
fn neighbour(sim: &Sim, node: &str) -> Neighbour {
    let created = sim.now() - SignedDuration::from_hours(1);
    Neighbour {
        namespace: "ml".into(),
        name: format!("train-{node}").into(),
        controller: None,
        node: Some(NodeName::from(node)),
        created: Some(created.into()),
        readiness: PodReadiness::Ready { since: Some(created.into()) },
        terminating: false,
        resources: ["nvidia.com/gpu".into()].into(),
    }
}

fn busy(sim: &mut Sim, nodes: &[&str]) {
    sim.neighbours = nodes.iter().map(|node| neighbour(sim, node)).collect();
}

fn no_gpu_in_use() -> PolicySpec {
    policy(json!({
        "preconditions": [
            {"name": "gpu", "pods": {"resource": "nvidia.com/gpu", "expect": "absent"}},
        ],
    }))
}

fn apply(sim: Sim, policy: &PolicySpec) -> Run {
    Run::apply(sim, "v2").with(|task| task.policy = policy.clone())
}

#[test]
fn a_node_in_use_is_skipped_until_its_pod_ends() {
    let policy = no_gpu_in_use();
    let mut sim = Sim::of(4, &json!(1));
    busy(&mut sim, &["node-0", "node-2"]);
    let first = run(sim, "v2", &policy);
    assert_eq!((waits(&first), first.deletes.len()), (vec![WaitKind::Precondition], 2));
    assert_eq!(first.sim.nodes_with("v1"), ["node-0", "node-2"]);
    let said = first.outcome().to_string();
    let want = "check gpu: pod ml/train-node-0 on node node-0 is there; \
                pod ml/train-node-2 on node node-2 is there";
    assert!(said.contains(want), "{said}");
    assert_eq!(first.pause().unwrap().state, PauseState::Waiting);
    // Nothing may begin, so nothing is written.
    let mut second = run(first.sim, "v2", &policy);
    assert_eq!((waits(&second), second.deletes.len()), (vec![WaitKind::Precondition], 0));
    second.sim.neighbours.clear();
    let last = run(second.sim, "v2", &policy);
    assert_eq!((last.outcome(), last.deletes.len(), last.pause()), (&Outcome::Done, 2, None));
}

#[test]
fn a_run_that_waits_itself_continues_when_the_pod_ends() {
    let policy = no_gpu_in_use();
    let mut sim = Sim::of(3, &json!(1));
    busy(&mut sim, &["node-0"]);
    let until = sim.now() + SignedDuration::from_hours(2);
    let mut run = apply(sim, &policy).with(|task| task.wait_until = Some(until));
    run.look();
    run.until(|run| run.deletes.len() == 2);
    // The budget is free, but this node takes no slot of it.
    for _ in 0..60 {
        run.pass(1);
        run.look();
    }
    assert_eq!((run.deletes.len(), run.ended.is_none()), (2, true));
    run.sim.neighbours.clear();
    run.pass(1);
    run.look();
    run.until(|run| run.ended.is_some());
    assert_eq!((run.outcome(), run.deletes.len()), (&Outcome::Done, 3));
}

#[test]
fn before_the_first_node_nothing_is_written_if_all_are_in_use() {
    let mut sim = Sim::of(2, &json!(1));
    busy(&mut sim, &["node-0", "node-1"]);
    let run = run(sim, "v2", &no_gpu_in_use());
    assert_eq!((waits(&run), run.sim.writes.len()), (vec![WaitKind::Precondition], 0));
}

#[test]
fn one_node_in_use_keeps_a_surge_from_beginning() {
    let mut sim = Sim::with_strategy(3, &surging(&json!(1)));
    busy(&mut sim, &["node-2"]);
    let run = run(sim, "v2", &no_gpu_in_use());
    assert_eq!((waits(&run), run.sim.writes.len()), (vec![WaitKind::Precondition], 0));
    let mut sim = run.sim;
    sim.neighbours.clear();
    let run = super::steps::run(sim, "v2", &no_gpu_in_use());
    assert_eq!(*run.outcome(), Outcome::Done);
}

#[test]
fn a_step_of_one_node_that_is_in_use_waits_at_once() {
    let mut sim = Sim::of(3, &json!(1));
    sim.edit(|spec| spec["template"]["spec"]["containers"][0]["image"] = "v2".into());
    sim.edit(|spec| spec["updateStrategy"] = json!({"type": "OnDelete"}));
    busy(&mut sim, &["node-1"]);
    let nodes = [NodeName::from("node-1")].into();
    let roll = Run::new(sim, super::run::task(Goal::Roll(Extent::Nodes(nodes))));
    let roll = roll.with(|task| task.policy = no_gpu_in_use()).finish();
    assert_eq!((waits(&roll), roll.deletes.len()), (vec![WaitKind::Precondition], 0));
}

/// Its neighbours become unready when a node runs the new version.
fn broken_by_v2(change: &Value) -> (Run, PolicySpec) {
    let mut gate = json!({"name": "neighbours", "interval": "30s", "pods": {}});
    gate.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    let policy = policy(json!({"gates": [gate]}));
    let policy = PolicySpec { min_ready_seconds: Some(5), ..policy };
    let mut sim = Sim::of(5, &json!(1));
    busy(&mut sim, &["node-0", "node-1", "node-2", "node-3", "node-4"]);
    let mut run = apply(sim, &policy);
    run.look();
    run.until(|run| run.sim.nodes_with("v2").len() == 1);
    run.pass(2);
    let now = run.sim.now();
    run.sim.neighbours[0].readiness = PodReadiness::NotReady { since: Some(now.into()) };
    run.look();
    (run, policy)
}

#[test]
fn an_agent_that_breaks_its_neighbours_is_stopped_after_the_first_node() {
    let (mut run, _) = broken_by_v2(&json!({}));
    run.until(|run| run.ended.is_some());
    let Outcome::Aborted { cause: Some(FailureCause::Gate(gate)), .. } = run.outcome() else {
        panic!("{}", run.outcome());
    };
    assert_eq!((gate.nodes.as_slice(), run.deletes.len()), (&["node-0".into()][..], 1));
    let said = run.outcome().to_string();
    let want = "gate neighbours failed: pod ml/train-node-0 on node node-0 is not Ready since ";
    assert!(said.contains(want), "{said}");
    assert_eq!(run.sim.live_image(), "v1");
}

#[test]
fn a_neighbour_that_recovers_in_time_only_delays() {
    let (mut run, _) = broken_by_v2(&json!({}));
    for _ in 0..20 {
        run.pass(1);
        run.look();
    }
    assert_eq!((run.deletes.len(), run.ended.is_none()), (1, true));
    let since = Some(run.sim.now().into());
    run.sim.neighbours[0].readiness = PodReadiness::Ready { since };
    run.until(|run| run.ended.is_some());
    assert_eq!((run.outcome(), run.deletes.len()), (&Outcome::Done, 5));
}

#[test]
fn the_last_step_is_done_after_its_gate_has_passed() {
    let policy = policy(json!({
        "steps": [{"name": "canary", "nodes": 1, "soak": "60s"}],
        "gates": [{"name": "neighbours", "interval": "30s", "pods": {}}],
    }));
    let mut sim = Sim::of(3, &json!(1));
    busy(&mut sim, &["node-0", "node-1", "node-2"]);
    let mut first = run(sim, "v2", &policy);
    assert_eq!((waits(&first), first.deletes.len()), (vec![WaitKind::Soak], 1));
    first.sim.pass(61);
    let last = run(first.sim, "v2", &policy);
    assert_eq!((last.outcome(), last.deletes.len()), (&Outcome::Done, 2));
}

pub(super) fn condition(sim: &mut Sim, at: usize, status: &str) {
    let since = Some(sim.now().into());
    let kind = "NetworkUnavailable".into();
    sim.cluster.nodes[at].conditions =
        [NodeCondition { kind, status: status.into(), since }].into();
}

fn network(role: &str) -> PolicySpec {
    policy(json!({
        role: [{
            "name": "network", "interval": "20s", "unknownFor": "300s",
            "nodeConditions": {"NetworkUnavailable": "False"},
        }],
        "steps": [{"name": "canary", "nodes": 1, "soak": "60s"}],
    }))
}

/// The nodes are well, and the canary soaks; with its name and position.
fn soaking(count: usize, policy: &PolicySpec) -> (Run, String, usize) {
    let mut sim = Sim::of(count, &json!(1));
    for at in 0..count {
        condition(&mut sim, at, "False");
    }
    let first = run(sim, "v2", policy);
    assert_eq!((waits(&first), first.deletes.len()), (vec![WaitKind::Soak], 1));
    let canary = first.sim.nodes_with("v2").remove(0);
    let at = first.sim.cluster.nodes.iter().position(|node| *node.name.as_str() == *canary);
    (first, canary, at.unwrap())
}

#[test]
fn a_condition_that_turns_bad_after_an_update_aborts() {
    let policy = network("gates");
    let (mut first, canary, at) = soaking(3, &policy);
    // A node that is not updated does not count.
    condition(&mut first.sim, (at + 1) % 3, "True");
    first.sim.pass(21);
    let mut second = run(first.sim, "v2", &policy);
    assert_eq!(waits(&second), [WaitKind::Soak]);
    condition(&mut second.sim, at, "True");
    // The node lifecycle controller taints the node, and no pod may start there.
    let taint = taint("node.kubernetes.io/network-unavailable:NoSchedule");
    second.sim.cluster.nodes[at].taints = [taint].into();
    second.sim.pass(5);
    // The run stays until it is known.
    let last = run(second.sim, "v2", &policy);
    let said = last.outcome().to_string();
    let want = format!("gate network failed: node {canary} has NetworkUnavailable=True");
    assert!(matches!(last.outcome(), Outcome::Aborted { .. }) && said.contains(&want), "{said}");
    assert_eq!(last.deletes.len(), 0);
}

/// With the node, its pod is no longer Ready: another canary was updated instead, and then all the others.
#[test]
fn a_node_that_is_lost_after_its_update_fails_the_gate() {
    let policy = network("gates");
    let (mut first, canary, at) = soaking(4, &policy);
    first.sim.set_ready(at, false);
    condition(&mut first.sim, at, "True");
    first.sim.pass(5);
    let last = run(first.sim, "v2", &policy);
    let said = last.outcome().to_string();
    let want = format!("gate network failed: node {canary} has NetworkUnavailable=True");
    assert!(matches!(last.outcome(), Outcome::Aborted { .. }) && said.contains(&want), "{said}");
    assert_eq!(last.deletes.len(), 0);
}

/// A pod of the commit before, which comes again, says nothing about its rollout (seed 506803).
#[test]
fn a_node_that_was_lost_before_the_rollout_fails_no_gate() {
    let gate = network("gates");
    let mut sim = Sim::of(3, &json!(1));
    for at in 0..3 {
        condition(&mut sim, at, "False");
    }
    sim.set_ready(0, false);
    condition(&mut sim, 0, "True");
    let mut first = run(sim, "v2", &gate);
    assert_eq!((waits(&first), first.deletes.len()), (vec![WaitKind::Soak], 1));
    first.sim.pass(60);
    let mut second = run(first.sim, "v1", &gate);
    assert_eq!((waits(&second), second.deletes.len()), (vec![WaitKind::Soak], 0));
    assert!(second.sim.nodes_with("v1").contains(&"node-0".to_owned()));
    second.sim.pass(61);
    let last = run(second.sim, "v1", &gate);
    assert_eq!((last.outcome(), last.deletes.len()), (&Outcome::Done, 1));
}

#[test]
fn a_condition_that_is_absent_is_unknown_and_pauses_in_the_end() {
    let gate = network("gates");
    let mut first = run(Sim::of(3, &json!(1)), "v2", &gate);
    assert_eq!((waits(&first), first.deletes.len()), (vec![WaitKind::Soak, WaitKind::Unknown], 1));
    first.sim.pass(301);
    let last = run(first.sim, "v2", &gate);
    assert!(matches!(last.outcome(), Outcome::Paused { .. }), "{}", last.outcome());
    // As a precondition, it drops the node.
    let mut sim = Sim::of(3, &json!(1));
    condition(&mut sim, 1, "False");
    let policy = PolicySpec { steps: Vec::new(), ..network("preconditions") };
    let mut first = run(sim, "v2", &policy);
    assert_eq!((waits(&first), first.deletes.len()), (vec![WaitKind::Unknown], 1));
    assert_eq!(first.sim.nodes_with("v2"), ["node-1"]);
    let said = first.outcome().to_string();
    assert!(said.contains("node node-0 has no NetworkUnavailable; node node-2 has"), "{said}");
    first.sim.pass(301);
    let last = run(first.sim, "v2", &policy);
    assert!(matches!(last.outcome(), Outcome::Paused { .. }), "{}", last.outcome());
}

#[test]
fn in_a_rehearsal_it_is_asked() {
    let policy = no_gpu_in_use();
    let mut sim = Sim::of(2, &json!(1));
    busy(&mut sim, &["node-0", "node-1"]);
    let run = apply(sim, &policy).with(|task| task.cluster_checks = ClusterChecks::Asked).finish();
    assert_eq!((run.outcome(), run.deletes.len()), (&Outcome::Done, 2));
    assert!(run.answers.iter().any(|(question, _)| question.name == "gpu"));
}

/// Steps are counted from the first node: the second one has no node of its own here, and is complete
/// at the moment at which the first one is done.
#[test]
fn a_step_without_nodes_of_its_own_ends_after_its_gate() {
    let mut policy = network("gates");
    let tenth = PolicyStep { name: "tenth".into(), ..policy.steps[0].clone() };
    policy.steps.push(PolicyStep { soak: Soak(0), ..tenth });
    let mut sim = Sim::of(4, &json!(1));
    for at in 0..4 {
        condition(&mut sim, at, "False");
    }
    let first = run(sim, "v2", &policy);
    assert_eq!((waits(&first), first.deletes.len()), (vec![WaitKind::Soak], 1));
    let mut sim = first.sim;
    sim.pass(120);
    let last = run(sim, "v2", &policy);
    assert_eq!((last.outcome(), last.deletes.len()), (&Outcome::Done, 3));
}
