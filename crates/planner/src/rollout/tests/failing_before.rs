//! Updated pods that failed before the run.

use jiff::SignedDuration;
use serde_json::json;

use super::run::{Post, Run, declared};
use super::sim::{Fate, Sim, pod_failure, rolling, surging};
use super::steps;
use crate::rollout::{Goal, Outcome, PauseReason, Task};
use daemonset::model::{NodeName, Pod, PolicySpec, Ramp};

/// Lets the pod of a node, which has the image `v1`, fail from now on.
fn break_pod(sim: &mut Sim, node: &str) {
    sim.picky.insert(node.to_owned(), "v2".to_owned());
    let mut pods = sim.cluster.pods.iter_mut();
    let pod = pods.find(|pod| pod.node().is_some_and(|it| *it == *node)).unwrap();
    pod.container_failure = Some(pod_failure("CrashLoopBackOff", "back-off restarting").into());
    sim.pass(1);
}

/// A rollout of `v2` that was killed after its first deletes; then the pod of the last node, which
/// still has the image `v1`, fails.
fn half_rolled(nodes: usize, budget: usize) -> Sim {
    let mut run = Run::apply(Sim::of(nodes, &json!(budget)), "v2");
    run.look();
    run.until(|run| run.deletes.len() >= budget);
    let mut sim = run.sim;
    break_pod(&mut sim, &format!("node-{}", nodes - 1));
    sim.pass(40);
    sim
}

fn change_a_label(task: &mut Task) {
    match &mut task.goal {
        Goal::Apply(target) => target.changes = true,
        Goal::RollBack | Goal::Roll(_) | Goal::Release { .. } | Goal::RemovePullers => {
            unreachable!()
        }
    }
}

fn left(run: &Run) -> Vec<String> {
    run.ended.as_ref().unwrap().left.keys().map(ToString::to_string).collect()
}

#[test]
fn a_pod_that_failed_before_an_undo_uses_budget_and_aborts_nothing() {
    let run = Run::apply(half_rolled(6, 2), "v1").finish();
    assert_eq!((run.outcome(), run.images()), (&Outcome::Done, [("v1".to_owned(), 6)].into()));
    assert_eq!((run.pause(), declared(&run.sim)), (None, rolling(&json!(2))));
    assert_eq!(run.most_unavailable, 2, "the failing pod and one more");
    assert_eq!(left(&run), ["node-5"]);
}

/// The rollout that waits is not the one that the pod would fail.
#[test]
fn a_pod_that_failed_before_the_undo_of_a_rollout_that_waits_aborts_nothing() {
    for (ramp, while_waiting) in [
        (Ramp::None, "lastGood"),
        (PolicySpec::default().ramp, "lastGood"),
        (PolicySpec::default().ramp, "target"),
    ] {
        let canary = steps::policy(json!({
            "steps": [{"name": "canary", "nodes": 1, "soak": "1h"}], "whileWaiting": while_waiting,
        }));
        let mut sim = steps::run(Sim::of(6, &json!(2)), "v2", &canary).sim;
        let old = sim.nodes_with("v1").pop().unwrap();
        break_pod(&mut sim, &old);
        sim.pass(40);
        let back = PolicySpec { ramp, ..canary.budgets() };
        let undone = steps::run(sim, "v1", &back);
        let which = format!("{ramp:?} {while_waiting}");
        assert_eq!((undone.outcome(), undone.pause()), (&Outcome::Done, None), "{which}");
        assert_eq!(undone.images(), [("v1".to_owned(), 6)].into(), "{which}");
        assert_eq!(left(&undone), [old], "{which}");
        assert!(undone.sim.remembered.is_empty(), "{which}");
    }
}

/// Its own wait says nothing about when it began, if its note is lost.
#[test]
fn a_pod_that_fails_while_its_rollout_waits_aborts_it() {
    for is_noted in [true, false] {
        let canary =
            steps::policy(json!({"steps": [{"name": "canary", "nodes": 1, "soak": "1h"}]}));
        let mut sim = steps::run(Sim::of(6, &json!(2)), "v2", &canary).sim;
        let new = sim.nodes_with("v2").pop().unwrap();
        sim.picky.insert(new.clone(), "v1".to_owned());
        sim.pod_on(&new).container_failure =
            Some(pod_failure("CrashLoopBackOff", "back-off restarting").into());
        sim.note = sim.note.filter(|_| is_noted);
        sim.pass(40);
        let again = steps::run(sim, "v2", &canary);
        assert!(matches!(again.outcome(), Outcome::Aborted { .. }), "{}", again.outcome());
    }
}

/// A pod that crashes again and again, between two crashes: its containers are up, but not Ready.
#[test]
fn restarts_before_an_undo_abort_nothing() {
    let mut sim = half_rolled(6, 2);
    let created = sim.now() - SignedDuration::from_secs(300);
    let mut pods = sim.cluster.pods.iter_mut();
    let pod = pods.find(|pod| pod.node().is_some_and(|it| *it == *"node-5")).unwrap();
    pod.container_failure = None;
    pod.restarts = PolicySpec::default().max_restarts + 1;
    pod.created = Some(created.into());
    let run = Run::apply(sim, "v1").finish();
    assert_eq!((run.outcome(), left(&run)), (&Outcome::Done, vec!["node-5".to_owned()]));
}

#[test]
fn the_ramp_does_not_wait_for_a_pod_that_failed_before() {
    let sim = half_rolled(6, 2);
    let run = Run::apply(sim, "v1").with(|task| task.policy = PolicySpec::default()).finish();
    assert_eq!((run.outcome(), run.images()), (&Outcome::Done, [("v1".to_owned(), 6)].into()));
}

#[test]
fn where_it_uses_all_of_the_budget_the_run_pauses() {
    let run = Run::apply(half_rolled(6, 1), "v1").finish();
    let Outcome::Paused { why: PauseReason::MaxUnavailableReached { unavailable, allowed, .. } } =
        run.outcome()
    else {
        panic!("{}", run.outcome())
    };
    assert_eq!((*unavailable, *allowed, left(&run).len()), (1, 1, 2));
}

/// What a killed run has seen is known from the time of its pause.
#[test]
fn after_a_kill_only_pods_that_failed_before_the_rollout_abort_nothing() {
    for (rule, fails) in [("before", None), ("in the rollout", Some("node-4"))] {
        let mut run = Run::apply(half_rolled(6, 2), "v1");
        run.look();
        run.until(|run| !run.deletes.is_empty());
        if let Some(node) = fails {
            break_pod(&mut run.sim, node);
        }
        run.pass(5);
        // The second run changes a label, which writes the pause again; it is killed too.
        let mut run = run.again("v1").with(change_a_label);
        let writes = run.sim.writes.len();
        run.look();
        run.until(|run| run.sim.writes.len() > writes);
        let run = run.again("v1").finish();
        let failed = run.outcome().failed().map(|it| it.keys().map(NodeName::as_str).collect());
        assert_eq!(failed, fails.map(|node| vec![node]), "{rule}: {}", run.outcome());
    }
}

/// The template is live without a pause: only pods that are older than the deadline are known to be
/// no pods of a rollout that continues.
#[test]
fn a_change_of_a_label_is_not_stopped_by_an_old_pod_that_fails() {
    for (age, done) in [(590, false), (620, true)] {
        let mut sim = Sim::of(3, &json!(1));
        let created = sim.now() - SignedDuration::from_secs(age);
        sim.cluster.pods.iter_mut().for_each(|pod| pod.created = Some(created.into()));
        break_pod(&mut sim, "node-2");
        let run = Run::apply(sim, "v1").with(change_a_label).finish();
        assert_eq!(*run.outcome() == Outcome::Done, done, "{age}: {}", run.outcome());
    }
}

/// Nothing is outdated, so no surge is in progress.
#[test]
fn a_change_of_a_label_of_a_surge_is_not_stopped_by_an_old_pod_that_fails() {
    for (age, has_unready, done) in
        [(86_400, false, true), (86_400, true, true), (500, false, false)]
    {
        let mut sim = Sim::with_strategy(4, &surging(&json!(1)));
        if has_unready {
            // A node that is not Ready has no part in the surge.
            let old = sim.pod_on("node-3").clone();
            sim = Run::apply(sim, "v2").finish().sim;
            sim.idle = true;
            *sim.pod_on("node-3") = old;
            sim.set_ready(3, false);
            assert_eq!(sim.nodes_with("v1"), ["node-3"]);
        }
        let image = sim.live_image();
        let created = sim.now() - SignedDuration::from_secs(age);
        sim.cluster.pods.iter_mut().for_each(|pod| pod.created = Some(created.into()));
        sim.note = None;
        sim.picky.insert("node-2".to_owned(), "v9".to_owned());
        sim.pod_on("node-2").container_failure =
            Some(pod_failure("CrashLoopBackOff", "back-off restarting").into());
        sim.pass(40);
        sim.idle = false;
        let run = Run::apply(sim, &image).with(change_a_label).finish();
        assert_eq!(*run.outcome() == Outcome::Done, done, "{age}: {}", run.outcome());
        if done {
            assert_eq!((run.pause(), run.sim.live_image()), (None, image));
            assert!(run.sim.remembered.is_empty());
        }
    }
}

/// The pods of a surge that a killed run has left are judged, whatever their age.
#[test]
fn a_pod_that_fails_in_a_surge_aborts_it_after_a_kill() {
    let mut killed = Run::apply(Sim::with_strategy(6, &surging(&json!(1))), "v2");
    killed.look();
    killed.until(|run| !run.sim.nodes_with("v2").is_empty() && run.sim.unavailable().is_empty());
    let mut sim = killed.sim;
    let node = sim.nodes_with("v2").remove(0);
    sim.picky.insert(node.clone(), "v9".to_owned());
    let is_new = |pod: &&mut Pod| pod.node().is_some_and(|it| *it == *node) && !pod.terminating;
    let pod = sim.cluster.pods.iter_mut().filter(is_new).max_by_key(|pod| pod.created).unwrap();
    pod.container_failure = Some(pod_failure("CrashLoopBackOff", "back-off restarting").into());
    sim.idle = true;
    sim.pass(700);
    sim.idle = false;
    let run = Run::apply(sim, "v2").with(change_a_label).finish();
    assert!(matches!(run.outcome(), Outcome::Aborted { .. }), "{}", run.outcome());
}

/// Nothing else tells pods of a rollout that is recorded as failed from older ones.
#[test]
fn a_retry_fails_again_while_the_failed_pods_do() {
    let mut sim = Sim::of(6, &json!(2));
    sim.fate("v2", Fate::NoImage);
    let aborted = Run::apply(sim, "v2").finish();
    let run = aborted.again("v2").finish();
    assert!(matches!(run.outcome(), Outcome::Aborted { .. }), "{}", run.outcome());
    assert_eq!(run.deletes, []);
}

/// Found by the laws of steps: pods that are created meanwhile are of this rollout.
#[test]
fn a_rollout_has_begun_since_its_first_write_however_late_that_is_seen() {
    let mut run = Run::apply(Sim::of(4, &json!(1)), "v2").with(|task| {
        task.policy = serde_json::from_value(json!({
            "selects": {"names": ["default/foo"]}, "steps": [{"name": "canary", "nodes": 1}],
        }))
        .unwrap();
    });
    run.look();
    let first_write = run.sim.now();
    run.post(Post::Delivered);
    run.pass(70);
    run.until(|run| run.sim.note.is_some());
    assert_eq!(run.sim.note.as_ref().unwrap().started_at, Some(first_write));
}
