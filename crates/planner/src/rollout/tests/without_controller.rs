//! Runs that find a rollout waiting, where no DaemonSet controller acts: nothing but the controller
//! in the process creates pods, and only what the run allows.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::run::{Post, Run};
use super::sim::Sim;
use super::steps::{first_approval, policy, waits};
use crate::rollout::{AllowedActions, Outcome, RolledBack};
use crate::steps::WaitKind;
use daemonset::model::PolicySpec;

fn sim(nodes: usize) -> Sim {
    let mut sim = Sim::of(nodes, &json!(1));
    sim.cluster.manage();
    sim.idle = true;
    sim
}

fn start(sim: Sim, image: &str, policy: &PolicySpec) -> Run {
    let note = sim.note.clone();
    Run::apply(sim, image).with(|task| {
        task.policy = policy.clone();
        task.note = note;
    })
}

/// To its end, and the drain after it; then no controller acts.
fn finish(mut run: Run) -> Run {
    run.look();
    for _ in 0..2_000 {
        run.sim.idle = run.allowed_actions() == AllowedActions::None;
        if run.ended.is_some() {
            break;
        }
        run.settle();
    }
    run.pass(10);
    run.sim.idle = true;
    run
}

fn run(sim: Sim, image: &str, policy: &PolicySpec) -> Run {
    finish(start(sim, image, policy))
}

/// Takes the pod of a node away, and adds a node.
fn evict_and_join(sim: &mut Sim, node: &str) {
    let name = sim.pod_on(node).name.clone();
    sim.cluster.pods.retain(|pod| pod.name != name);
    sim.join("node-9");
    sim.pass(5);
    assert_eq!(sim.running().get(node), None);
}

fn canary(fields: &Value) -> PolicySpec {
    let mut all = json!({"steps": [{"name": "canary", "nodes": 1, "soak": "1h"}]});
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    policy(all)
}

#[test]
fn while_a_rollout_waits_nodes_get_pods_of_the_live_template() {
    for (while_waiting, image) in [("lastGood", "v1"), ("target", "v2")] {
        let canary = canary(&json!({"whileWaiting": while_waiting}));
        let mut sim = run(sim(3), "v2", &canary).sim;
        let node = sim.nodes_with("v1").remove(0);
        evict_and_join(&mut sim, &node);
        let again = run(sim, "v2", &canary);
        assert_eq!(waits(&again), [WaitKind::Soak]);
        let running = again.sim.running();
        assert_eq!((&*running[&node], &*running["node-9"]), (image, image), "{while_waiting}");
    }
}

#[test]
fn before_a_rollout_begins_nodes_get_pods_of_the_live_template() {
    let canary = policy(json!({"steps": [{"name": "canary", "nodes": 1, "approve": true}]}));
    let mut sim = run(sim(3), "v2", &canary).sim;
    evict_and_join(&mut sim, "node-1");
    let again = run(sim, "v2", &canary);
    assert_eq!(
        (waits(&again), again.images()),
        (vec![WaitKind::Approval], [("v1".into(), 4)].into())
    );
}

#[test]
fn a_run_that_waits_itself_creates_pods_of_the_live_template_meanwhile() {
    let canary = policy(json!({"steps": [{"name": "canary", "nodes": 1, "approve": true}]}));
    let mut sim = sim(3);
    evict_and_join(&mut sim, "node-1");
    let until = sim.now() + SignedDuration::from_hours(1);
    let mut waiting = start(sim, "v2", &canary).with(|task| task.wait_until = Some(until));
    waiting.look();
    assert_eq!(waiting.allowed_actions(), AllowedActions::Reconcile);
    let approval = first_approval(&waiting, &canary);
    waiting.sim.approvals.insert("canary".to_owned(), approval);
    for _ in 0..1_000 {
        if !waiting.state.writing.sent.is_empty() {
            break;
        }
        if !waiting.post(Post::Delivered) {
            waiting.pass(1);
            waiting.look();
        }
    }
    assert_eq!(waiting.allowed_actions(), AllowedActions::None, "the template is about to change");
}

/// Found by seed 732252: with `whileWaiting: target`, the template of an earlier commit that waits is live.
#[test]
fn a_run_that_waits_itself_creates_no_pod_of_an_earlier_commit_that_waits() {
    let mut canary = canary(&json!({"whileWaiting": "target"}));
    let sim = run(sim(3), "v2", &canary).sim;
    assert_eq!(sim.live_image(), "v2");
    canary.steps[0].approve = true;
    let until = sim.now() + SignedDuration::from_hours(1);
    let mut waiting = start(sim, "v3", &canary).with(|task| task.wait_until = Some(until));
    waiting.look();
    assert_eq!(waiting.allowed_actions(), AllowedActions::None);
    assert_eq!((waiting.ended.is_none(), waiting.sim.live_image().as_str()), (true, "v2"));
}

#[test]
fn a_rollback_from_a_wait_leaves_no_node_without_a_pod() {
    for (fields, restarts, pass) in [(json!({}), 9, 0), (json!({"maxDuration": "30m"}), 0, 1_801)] {
        let mut fields = fields;
        fields["onFailure"] = json!("rollback");
        fields["progressDeadline"] = json!("60s");
        let canary = canary(&fields);
        let mut sim = run(sim(3), "v2", &canary).sim;
        let node = sim.nodes_with("v2").remove(0);
        sim.pod_on(&node).restarts = restarts;
        sim.pass(pass);
        let back = run(sim, "v2", &canary);
        let Outcome::Aborted { rolled_back, .. } = back.outcome() else {
            panic!("{}", back.outcome())
        };
        assert_eq!(*rolled_back, Some(RolledBack::Fully), "{fields}: {}", back.outcome());
        assert_eq!((back.deletes.len(), back.images()), (1, [("v1".into(), 3)].into()));
    }
}

/// With `onFailure: abort` the good template stays, and is what nodes get.
#[test]
fn after_an_abort_from_a_wait_nodes_get_pods_of_the_last_good_template() {
    let canary = canary(&json!({}));
    let mut sim = run(sim(4), "v2", &canary).sim;
    let (new, old) = (sim.nodes_with("v2").remove(0), sim.nodes_with("v1").remove(0));
    sim.pod_on(&new).restarts = 9;
    evict_and_join(&mut sim, &old);
    let aborted = run(sim, "v2", &canary);
    assert!(matches!(aborted.outcome(), Outcome::Aborted { .. }), "{}", aborted.outcome());
    assert_eq!(aborted.images(), [("v1".into(), 4), ("v2".into(), 1)].into());
}
