//! Steps of a DaemonSet with `maxSurge`: this run deletes in all but the last, in which the controller
//! surges.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::run::{Post, Run, plain_pace};
use super::sim::{Fate, Measured, Sim, surging};
use super::steps::{purposes, waits};
use crate::digest::template_digest;
use crate::plan::PauseState;
use crate::rollout::{Event, Goal, Outcome, Purpose, waiting_note};
use crate::steps::WaitKind;
use daemonset::model::{PodReadiness, PolicySpec};

fn policy(fields: Value) -> PolicySpec {
    let mut fields = fields;
    fields["selects"] = json!({"names": ["default/foo"]});
    let read: PolicySpec = serde_json::from_value(fields).unwrap();
    let PolicySpec { ramp, min_ready_seconds, .. } = plain_pace();
    PolicySpec { ramp, min_ready_seconds, ..read }
}

pub(super) fn sim(nodes: usize) -> Sim {
    Sim::with_strategy(nodes, &surging(&json!(2)))
}

fn start(sim: Sim, image: &str, policy: &PolicySpec) -> Run {
    let note = sim.note.clone();
    Run::apply(sim, image).with(|task| {
        task.policy = policy.clone();
        task.note = note;
        task.node_seconds = Some(10);
    })
}

fn run(sim: Sim, image: &str, policy: &PolicySpec) -> Run {
    start(sim, image, policy).finish()
}

#[test]
fn the_canary_is_deleted_and_the_rest_surges() {
    let canary = policy(json!({"steps": [{"name": "canary", "nodes": 2}]}));
    let done = run(sim(6), "v2", &canary);
    assert_eq!(*done.outcome(), Outcome::Done);
    assert_eq!(done.deletes.len(), 2);
    assert_eq!(done.most_deleted_from, 1, "one node at a time has a gap");
    assert_eq!(done.images(), [("v2".to_owned(), 6)].into());
    assert_eq!(purposes(&done), [Purpose::Apply, Purpose::RestoreStrategy]);
    let surging = done.reports.iter().filter_map(|report| match report {
        crate::rollout::Report::Progress(progress) => Some(progress.surging),
        _ => None,
    });
    assert_eq!(surging.max(), Some(2));
    assert_eq!(done.pause(), None);
}

#[test]
fn the_policy_says_how_many_nodes_have_a_gap() {
    for (fields, want) in
        [(json!({"maxUnavailable": 3}), 3), (json!({"maxUnavailable": "50%"}), 3), (json!({}), 1)]
    {
        let mut fields = fields;
        fields["steps"] = json!([{"name": "half", "nodes": 3}]);
        assert_eq!(run(sim(6), "v2", &policy(fields.clone())).most_deleted_from, want, "{fields}");
        fields["steps"][0]["maxUnavailable"] = json!(2);
        let of_step = run(sim(6), "v2", &policy(fields.clone())).most_deleted_from;
        assert_eq!(of_step, want.min(2), "a step is stricter, never looser: {fields}");
    }
}

#[test]
fn a_canary_soaks_before_the_surge() {
    let canary = policy(json!({"steps": [{"name": "canary", "nodes": 1, "soak": "60s"}]}));
    let first = run(sim(4), "v2", &canary);
    assert_eq!((waits(&first), first.sim.live_image()), (vec![WaitKind::Soak], "v1".to_owned()));
    assert_eq!(first.images(), [("v1".to_owned(), 3), ("v2".to_owned(), 1)].into());
    let mut sim = first.sim;
    sim.pass(70);
    let last = run(sim, "v2", &canary);
    assert_eq!((last.outcome(), last.deletes.len()), (&Outcome::Done, 0));
    let last_write = last.sim.writes.last().unwrap();
    assert_eq!((last_write.purpose, &last_write.pause), (Purpose::Apply, &None));
    assert_eq!(last.sim.note.as_ref().unwrap().started_at, None, "its end is noted");
}

#[test]
fn a_last_step_of_all_nodes_is_the_surge_and_soaks() {
    let all = policy(json!({"steps": [
        {"name": "canary", "nodes": 1},
        {"name": "others", "nodes": "100%", "soak": "60s"},
    ]}));
    let first = run(sim(4), "v2", &all);
    assert_eq!((waits(&first), first.deletes.len()), (vec![WaitKind::Soak], 1));
    assert_eq!(first.images(), [("v2".to_owned(), 4)].into());
    let mut sim = first.sim;
    sim.pass(70);
    assert_eq!(*run(sim, "v2", &all).outcome(), Outcome::Done);
}

#[test]
fn a_run_that_was_killed_in_the_surge_continues_it() {
    let canary = policy(json!({"steps": [{"name": "canary", "nodes": 1}]}));
    let mut first = start(sim(6), "v2", &canary);
    first.look();
    first.until(|run| run.sim.cluster.pods.len() > 6);
    let second = run(first.sim, "v2", &canary);
    assert_eq!((second.outcome(), second.deletes.len()), (&Outcome::Done, 0));
    assert_eq!(purposes(&second), [Purpose::Apply, Purpose::RestoreStrategy]);
}

/// Windows are open for the first three minutes of every ten.
#[test]
fn a_window_that_closes_stops_the_surge() {
    let windows = policy(json!({"windows": [{"schedule": "*/10 * * * *", "duration": "3m"}]}));
    let mut sim = sim(40);
    let closes_in = |sim: &Sim| 180 - sim.now().as_second() % 600;
    sim.pass(closes_in(&sim) + 420 + 130);
    assert_eq!(closes_in(&sim), 50);
    let first = run(sim, "v2", &windows);
    assert_eq!(waits(&first), [WaitKind::Window]);
    let updated = first.sim.nodes_with("v2").len();
    assert!((5..40).contains(&updated), "{updated} were updated in the window");
    assert_eq!(first.pause().unwrap().state, PauseState::Waiting);
    assert!(closes_in(&first.sim) > 0, "before it closes: a node takes 10 s");
    let mut sim = first.sim;
    sim.pass(30);
    assert_eq!((sim.nodes_with("v2").len(), sim.cluster.pods.len()), (updated, 40));
    sim.pass(closes_in(&sim) + 421);
    let last = run(sim, "v2", &windows);
    assert_eq!((last.outcome(), last.images()), (&Outcome::Done, [("v2".to_owned(), 40)].into()));
}

/// A surge that the window has stopped, on the next morning.
fn stopped_by_a_window(fields: Value) -> (Sim, PolicySpec) {
    let mut fields = fields;
    fields["windows"] = json!([{"schedule": "*/10 * * * *", "duration": "3m"}]);
    let windows = policy(fields);
    let mut sim = sim(40);
    sim.pass(600 - sim.now().as_second() % 600 + 130);
    let first = run(sim, "v2", &windows);
    assert_eq!(waits(&first), [WaitKind::Window]);
    let mut sim = first.sim;
    sim.pass(600 - sim.now().as_second() % 600 + 5);
    (sim, windows)
}

/// What has failed is known before the window opens again: a surge that begins then would have to be
/// stopped at once.
#[test]
fn a_surge_that_has_failed_does_not_begin_again() {
    let gates = json!([{"name": "errors", "interval": "10s", "prometheus":
        {"address": "https://prom.example", "query": "errors", "max": 1}}]);
    for (fields, restarts) in [
        (json!({"onFailure": "pause", "gates": gates}), 0),
        (json!({"whileWaiting": "target", "gates": gates}), 0),
        (json!({"onFailure": "pause"}), 9),
        (json!({"onFailure": "pause", "maxDuration": "300s"}), 0),
    ] {
        let (mut sim, windows) = stopped_by_a_window(fields.clone());
        sim.measure("errors", Measured::Value(7.5));
        sim.pass(30);
        let node = sim.nodes_with("v2").remove(0);
        sim.pod_on(&node).restarts = restarts;
        let (before, updated) = (sim.writes.len(), sim.nodes_with("v2").len());
        let failed = run(sim, "v2", &windows);
        match failed.outcome() {
            Outcome::Aborted { .. } => assert_eq!(fields["whileWaiting"], "target"),
            Outcome::Paused { .. } => assert_eq!(fields["onFailure"], "pause"),
            other => panic!("{fields}: {other}"),
        }
        let writes = &failed.sim.writes[before..];
        assert!(writes.iter().all(|write| write.pause.is_some()), "{fields}: {writes:#?}");
        assert_eq!(failed.sim.nodes_with("v2").len(), updated, "{fields}");
    }
}

/// A pod that has restarted too often, but not in this rollout, does not keep the surge paused.
#[test]
fn a_surge_without_a_failure_continues_at_once() {
    let (mut sim, windows) = stopped_by_a_window(json!({"onFailure": "pause"}));
    let before = sim.writes.len();
    let node = sim.nodes_with("v1").remove(0);
    sim.pod_on(&node).restarts = 9;
    let done = start(sim, "v2", &windows);
    let done = done.with(|task| task.node_seconds = Some(1)).finish();
    assert_eq!(done.sim.writes[before].pause, None);
}

/// The target is written to judge a new pod that is not available, but with a pause.
#[test]
fn in_a_closed_window_a_pod_is_judged_without_a_surge() {
    let windows = policy(json!({"windows": [{"schedule": "*/10 * * * *", "duration": "3m"}]}));
    let mut sim = sim(40);
    sim.pass(600 - sim.now().as_second() % 600 + 130);
    let first = run(sim, "v2", &windows);
    assert_eq!(waits(&first), [WaitKind::Window]);
    let mut sim = first.sim;
    sim.pass(60);
    let node = sim.nodes_with("v2").remove(0);
    let since = Some(sim.now().into());
    sim.pod_on(&node).readiness = PodReadiness::NotReady { since };
    let before = sim.writes.len();
    let second = run(sim, "v2", &windows);
    assert_eq!(waits(&second), [WaitKind::Window]);
    let writes = &second.sim.writes[before..];
    assert!(!writes.is_empty() && writes.iter().all(|write| write.pause.is_some()), "{writes:#?}");
}

#[test]
fn a_run_that_waits_itself_pauses_the_surge_meanwhile() {
    let windows = policy(json!({
        "windows": [{"schedule": "*/10 * * * *", "duration": "3m"}],
        "steps": [{"name": "canary", "nodes": 1}],
    }));
    let mut sim = sim(40);
    sim.pass(600 - sim.now().as_second() % 600 + 130);
    let until = sim.now() + SignedDuration::from_hours(1);
    let done = start(sim, "v2", &windows).with(|task| task.wait_until = Some(until)).finish();
    assert_eq!(*done.outcome(), Outcome::Done);
    let (pause, restore) = (Purpose::Pause, Purpose::RestoreStrategy);
    assert_eq!(purposes(&done), [Purpose::Apply, restore, pause, restore]);
}

#[test]
fn a_failure_in_the_surge_aborts_and_one_rolls_back_within_the_budget() {
    for (on_failure, images) in [
        ("abort", [("v1".to_owned(), 3), ("v2".to_owned(), 3)].to_vec()),
        ("rollback", [("v1".to_owned(), 6)].to_vec()),
    ] {
        let canary = policy(json!({
            "steps": [{"name": "canary", "nodes": 3}], "onFailure": on_failure,
            "progressDeadline": "60s",
        }));
        let mut sim = sim(6);
        let mut first = start(sim, "v2", &canary);
        first.look();
        first.until(|run| run.sim.strategy()["type"] == "RollingUpdate" && run.deletes.len() == 3);
        let canaries: Vec<String> = first.deleted_nodes().into_iter().map(str::to_owned).collect();
        sim = first.sim;
        let nodes: Vec<String> = sim.running().into_keys().collect();
        for node in nodes.into_iter().filter(|node| !canaries.contains(node)) {
            sim.picky.insert(node, "v1".to_owned());
        }
        let failed = run(sim, "v2", &canary);
        assert!(matches!(failed.outcome(), Outcome::Aborted { .. }), "{}", failed.outcome());
        let mut sim = failed.sim;
        sim.pass(30);
        assert!(failed.most_unavailable <= 1, "{}", failed.most_unavailable);
        let mut have = BTreeMap::new();
        for image in sim.running().into_values() {
            *have.entry(image).or_insert(0) += 1;
        }
        assert_eq!(have, images.into_iter().collect(), "{on_failure}");
        assert_eq!(sim.live_image(), "v1");
    }
}

#[test]
fn a_canary_that_fails_costs_one_node() {
    let canary = policy(json!({"steps": [{"name": "canary", "nodes": 3}]}));
    let mut sim = sim(6);
    sim.fate("v2", Fate::NoImage);
    let failed = run(sim, "v2", &canary);
    assert!(matches!(failed.outcome(), Outcome::Aborted { .. }), "{}", failed.outcome());
    assert_eq!(failed.deletes.len(), 1);
}

/// A new DaemonSet has nothing to prove step by step, and waits for no soak.
#[test]
fn without_outdated_pods_there_are_no_steps() {
    let all = policy(json!({"steps": [{"name": "all", "nodes": "100%", "soak": "1h"}]}));
    let mut sim = sim(3);
    sim.cluster.pods.clear();
    let done = run(sim, "v2", &all);
    assert_eq!((done.outcome(), done.sim.note.as_ref()), (&Outcome::Done, None));
    assert_eq!(done.images(), [("v2".to_owned(), 3)].into());
}

/// If the run is killed after its first write, nothing else says what the last good template is.
#[test]
fn a_surge_is_noted_before_it_begins() {
    let all = policy(json!({"steps": [{"name": "all", "nodes": "100%", "soak": "60s"}]}));
    let mut sim = sim(3);
    let second = sim.now();
    sim.cluster.now += SignedDuration::from_millis(300);
    let mut killed = start(sim, "v2", &all);
    killed.look();
    killed.until(|run| !run.sim.writes.is_empty());
    assert_eq!((killed.sim.live_image(), killed.pause()), ("v2".into(), None));
    let note = killed.sim.note.as_ref().unwrap();
    let from = note.from.as_ref().map(|from| from.number.0);
    assert_eq!((note.started_at, from), (Some(second), Some(1)));
    // A commit after it goes back to the first template while it waits.
    let mut cluster = killed.sim;
    cluster.pass(90);
    let approved = policy(json!({"steps": [{"name": "canary", "nodes": 1, "approve": true}]}));
    let next = run(cluster, "v3", &approved);
    assert_eq!((waits(&next), next.sim.live_image().as_str()), (vec![WaitKind::Approval], "v1"));
}

/// Found by the laws of steps: the note of the commit after it is all that says so.
#[test]
fn a_surge_stays_noted_until_another_template_is_live() {
    let windows = policy(json!({"windows": [{"schedule": "*/10 * * * *", "duration": "3m"}]}));
    let mut cluster = sim(3);
    cluster.pass(600 - cluster.now().as_second() % 600);
    let mut killed = start(cluster, "v2", &windows);
    killed.look();
    killed.until(|run| !run.sim.writes.is_empty());
    let surge = killed.sim.note.as_ref().unwrap().template.clone();
    let mut killed = start(killed.sim, "v3", &windows);
    killed.look();
    killed.post(Post::AnswerDelayed);
    assert_ne!(killed.sim.note.as_ref().unwrap().template, surge);
    let mut cluster = killed.sim;
    assert_eq!(cluster.live_image(), "v2");
    cluster.pass(200);
    let next = run(cluster, "v3", &windows);
    assert_eq!((waits(&next), next.sim.live_image().as_str()), (vec![WaitKind::Window], "v1"));
}

/// As of a commit whose predecessor (`after`) is not done: nothing but its wait is noted.
#[test]
fn a_commit_that_waits_does_not_forget_what_a_surge_came_from() {
    let all = policy(json!({"steps": [{"name": "all", "nodes": "100%", "soak": "60s"}]}));
    let approved = policy(json!({"steps": [{"name": "canary", "nodes": 1, "approve": true}]}));
    for commits in [&["v3"][..], &["v3", "v4"], &["v3", "v3"]] {
        let mut killed = start(sim(3), "v2", &all);
        killed.look();
        killed.until(|run| !run.sim.writes.is_empty());
        let mut cluster = killed.sim;
        for commit in commits {
            let waiting = start(cluster, commit, &approved);
            let Goal::Apply(target) = &waiting.task.goal else { panic!() };
            let template = template_digest(target.template.raw());
            cluster = waiting.sim;
            let (before, live) = (cluster.note.take(), Some(&cluster.cluster.daemon_set));
            let approvals = BTreeMap::new();
            let note = waiting_note(before.as_ref(), live, &template, &approvals, cluster.now());
            assert_eq!((&note.template, note.waits_since.is_some()), (&template, true));
            cluster.note = Some(note);
            cluster.pass(5);
        }
        assert_eq!(cluster.live_image(), "v2", "it continues meanwhile");
        let next = run(cluster, commits[commits.len() - 1], &approved);
        assert_eq!(
            (waits(&next), next.sim.live_image().as_str()),
            (vec![WaitKind::Approval], "v1"),
            "{commits:?}"
        );
    }
}

/// A surge that has ended is the last good template.
#[test]
fn a_commit_that_waits_takes_a_surge_that_has_ended_for_good() {
    let approved = policy(json!({"steps": [{"name": "canary", "nodes": 1, "approve": true}]}));
    let done = run(sim(3), "v2", &policy(json!({"steps": [{"name": "all", "nodes": "100%"}]})));
    assert_eq!(*done.outcome(), Outcome::Done);
    let (mut cluster, approvals) = (done.sim, BTreeMap::new());
    let (before, live) = (cluster.note.take(), Some(&cluster.cluster.daemon_set));
    let note = waiting_note(before.as_ref(), live, "sha256:3", &approvals, cluster.now());
    assert_eq!((&note.from, &note.replaces), (&None, &None));
    cluster.note = Some(note);
    let next = run(cluster, "v3", &approved);
    assert_eq!((waits(&next), next.sim.live_image().as_str()), (vec![WaitKind::Approval], "v2"));
}

/// Under the pause of a failure, the controller takes the surge back: nothing of it is in progress.
#[test]
fn a_surge_that_is_paused_in_a_closed_window_does_not_continue() {
    let windows = policy(json!({
        "windows": [{"schedule": "*/10 * * * *", "duration": "3m"}],
        "progressDeadline": "60s",
        "onFailure": "pause",
    }));
    let mut sim = sim(4);
    sim.stop = 2;
    sim.picky.insert("node-1".into(), "v1".into());
    sim.pass(600 - sim.now().as_second() % 600 + 7);
    let mut killed = start(sim, "v2", &windows);
    killed.look();
    (0..39).for_each(|_| killed.settle());
    killed.pass(140);
    killed.feed(Event::Observed, 0);
    killed.post(Post::Delivered);
    assert_eq!(killed.pause().unwrap().state, PauseState::Paused);
    assert_eq!(killed.sim.cluster.pods.len(), 5, "the controller has not seen the pause yet");
    let before = killed.sim.writes.len();
    let mut next = start(killed.sim, "v2", &windows);
    next.look();
    next.settle();
    let writes = &next.sim.writes[before..];
    assert!(writes.iter().all(|write| write.pause.is_some()), "{writes:#?}");
}

/// A surge has no pause. Without its note, the pods before it say where it came from.
#[test]
fn an_interrupted_surge_without_a_note_did_not_come_from_a_template_that_has_failed() {
    let paused = policy(json!({"progressDeadline": "60s", "onFailure": "pause"}));
    let mut sim = sim(4);
    sim.picky.insert("node-1".into(), "v1".into());
    let failed = run(sim, "v2", &paused);
    assert!(matches!(failed.outcome(), Outcome::Paused { .. }), "{}", failed.outcome());
    let mut killed = start(failed.sim, "v3", &paused);
    killed.look();
    killed.until(|run| run.sim.live_image() == "v3");
    let mut sim = killed.sim;
    assert!(sim.remembered.len() == 1 && !sim.nodes_with("v2").is_empty());
    sim.note = None;
    sim.fate("v3", Fate::NeverReady);
    let next = run(sim, "v3", &policy(json!({"progressDeadline": "60s"})));
    let Outcome::Aborted { .. } = next.outcome() else { panic!("{}", next.outcome()) };
    assert_eq!(next.sim.live_image(), "v1");
}
