//! Checks that are unknown for longer than `unknownFor`: since when, over several runs.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::checks::later;
use super::observed_checks::condition;
use super::run::{Post, Run};
use super::sim::{Measured, Sim};
use super::steps::{policy, run, waits};
use crate::checks::CheckFinding;
use crate::rollout::{Outcome, PauseReason};
use crate::steps::WaitKind;
use daemonset::model::{Deadline, PolicySpec};

/// Nothing is noted before the first node, so the run itself knows since when.
#[test]
fn a_run_that_waits_itself_pauses_when_a_precondition_is_unknown_for_too_long() {
    let policy = policy(json!({
        "preconditions": [{
            "name": "quiet", "interval": "60s", "unknownFor": "300s",
            "prometheus": {"address": "https://prom.example", "query": "alerts", "max": 1},
        }],
    }));
    let mut sim = Sim::of(3, &json!(1));
    sim.measure("quiet", Measured::Down);
    let until = sim.now() + SignedDuration::from_hours(1);
    let run = Run::apply(sim, "v2").with(|task| task.policy = policy);
    let run = run.with(|task| task.wait_until = Some(until)).finish();
    let Outcome::Paused { why: PauseReason::CheckUnknown { seconds, allowed, .. } } = run.outcome()
    else {
        panic!("{}", run.outcome());
    };
    assert_eq!((*allowed, run.sim.writes.len()), (300, 0));
    assert!((301..=420).contains(seconds), "{seconds}");
}

/// The time limit of an answer may be longer than the interval.
#[test]
fn an_answer_that_takes_longer_than_the_interval_counts() {
    let policy = policy(json!({
        "preconditions": [{"name": "quiet", "interval": "5s", "http": {"url": "https://x"}}],
    }));
    let mut sim = Sim::of(3, &json!(1));
    sim.measure("quiet", Measured::Down);
    let mut run = Run::apply(sim, "v2").with(|task| task.policy = policy);
    run.look();
    for _ in 0..20 {
        if run.ended.is_none() {
            run.pass(10);
            run.post(Post::Delivered);
        }
    }
    assert_eq!(waits(&run), [WaitKind::Unknown]);
}

/// A precondition that pauses the rollout after five minutes of silence.
fn quiet() -> PolicySpec {
    policy(json!({
        "preconditions": [{
            "name": "quiet", "interval": "10s", "unknownFor": "300s", "http": {"url": "https://x"},
        }],
    }))
}

/// The rollout of v2 that waits for an answer after two of six nodes.
fn until_unknown(policy: &PolicySpec) -> Run {
    let mut first =
        Run::apply(Sim::of(6, &json!(1)), "v2").with(|task| task.policy = policy.clone());
    first.look();
    first.until(|run| run.deletes.len() == 2);
    first.sim.measure("quiet", Measured::Down);
    let first = first.finish();
    assert_eq!(waits(&first), [WaitKind::Unknown]);
    first
}

/// The pause says that the rollout has begun, also if no step is complete.
#[test]
fn it_is_noted_since_when_a_check_is_unknown_if_the_note_was_lost() {
    let policy = quiet();
    let mut first = until_unknown(&policy);
    first.sim.note = None;
    let down = later(first, 60, &policy);
    assert_eq!(waits(&down), [WaitKind::Unknown]);
    let since = down.sim.note.as_ref().unwrap().unknown_since["quiet"];
    let paused = later(down, 301, &policy);
    let Outcome::Paused { why: PauseReason::CheckUnknown { finding, .. } } = paused.outcome()
    else {
        panic!("{}", paused.outcome());
    };
    assert_eq!(finding.since, since);
}

/// The note is about the rollout of the other commit, and the pause says since when.
#[test]
fn a_check_that_is_unknown_under_the_pause_of_another_commit_pauses_in_the_end() {
    let policy = quiet();
    let mut sim = until_unknown(&policy).sim;
    let mut since = Vec::new();
    for _ in 0..2 {
        sim.pass(160);
        let newer = run(sim, "v3", &policy);
        let Outcome::Waiting { waits_for } = newer.outcome() else { panic!("{}", newer.outcome()) };
        since.push(waits_for[0].check.as_ref().unwrap().since);
        sim = newer.sim;
    }
    sim.pass(160);
    let paused = run(sim, "v3", &policy);
    let Outcome::Paused { why: PauseReason::CheckUnknown { finding, .. } } = paused.outcome()
    else {
        panic!("{}", paused.outcome());
    };
    assert_eq!(since, [finding.since; 2]);
}

/// Found by the simulation: the note of a run that ended in a closed window said nothing of the check.
#[test]
fn a_check_that_is_unknown_in_two_windows_is_so_since_the_first_one() {
    let windows = json!([{"schedule": "*/10 * * * *", "duration": "5m"}]);
    let windows = serde_json::from_value(windows).unwrap();
    let policy = PolicySpec { windows, progress_deadline: Deadline(60), ..quiet() };
    let mut sim = Sim::of(3, &json!(1));
    sim.pass(600 - sim.now().as_second() % 600);
    sim.measure("quiet", Measured::Down);
    let (begin, until) = (sim.now(), sim.now() + SignedDuration::from_mins(8));
    let waiting = Run::apply(sim, "v2").with(|task| task.policy = policy.clone());
    let waiting = waiting.with(|task| task.wait_until = Some(until)).finish();
    assert_eq!(waits(&waiting), [WaitKind::Window]);
    let since = waiting.sim.note.as_ref().unwrap().unknown_since["quiet"];
    assert!(since < begin + SignedDuration::from_secs(30), "{since}");
    let until_next = begin + SignedDuration::from_mins(10);
    let seconds = waiting.sim.now().duration_until(until_next).as_secs();
    let paused = later(waiting, seconds, &policy);
    let Outcome::Paused { why: PauseReason::CheckUnknown { finding, .. } } = paused.outcome()
    else {
        panic!("{}", paused.outcome());
    };
    assert_eq!((finding.since, paused.sim.writes.len()), (since, 0));
}

/// What has answered since is not unknown any more, whatever an earlier run has noted.
#[test]
fn a_check_that_has_answered_is_not_noted_as_unknown() {
    let policy = quiet();
    let mut sim = Sim::of(3, &json!(1));
    sim.measure("quiet", Measured::Down);
    let mut down = run(sim, "v2", &policy);
    assert_eq!(waits(&down), [WaitKind::Unknown]);
    down.sim.measure("quiet", Measured::Value(0.0));
    let busy = later(down, 10, &policy);
    assert_eq!(waits(&busy), [WaitKind::Precondition]);
    assert!(busy.sim.note.as_ref().unwrap().unknown_since.is_empty());
}

/// The precondition `quiet` is asked after two nodes are updated, and its answer comes when a gate has become
/// unknown, so that it is not needed any more; then it is down. Returns why the run pauses, and the time of
/// the question.
fn paused_after(before: Option<Measured>, answer: Measured) -> (CheckFinding, Timestamp) {
    let policy = policy(json!({
        "preconditions": [{
            "name": "quiet", "interval": "10s", "unknownFor": "60s", "http": {"url": "https://x"},
        }],
        "gates": [{
            "name": "network", "interval": "20s", "unknownFor": "300s",
            "nodeConditions": {"NetworkUnavailable": "False"},
        }],
    }));
    let mut sim = Sim::of(6, &json!(1));
    (0..6).for_each(|at| condition(&mut sim, at, "False"));
    let limit = sim.now() + SignedDuration::from_hours(1);
    let mut run = Run::apply(sim, "v2").with(|task| {
        (task.policy, task.wait_until) = (policy, Some(limit));
    });
    run.look();
    run.until(|run| run.deletes.len() == 2);
    if let Some(before) = before {
        run.sim.measure("quiet", before);
        for _ in 0..20 {
            run.settle();
        }
    }
    run.sim.measure("quiet", answer);
    let asked = run.answers.len();
    for _ in 0..1_000 {
        if run.answers.len() > asked {
            break;
        }
        if !run.deliver(0) && !run.post(Post::AnswerDelayed) {
            run.pass(1);
            run.look();
        }
    }
    let at = run.answers[asked].0.until;
    run.sim.cluster.nodes.iter_mut().for_each(|node| node.conditions = [].into());
    run.look();
    run.deliver(0);
    run.sim.measure("quiet", Measured::Down);
    for _ in 0..30 {
        run.settle();
    }
    (0..6).for_each(|at| condition(&mut run.sim, at, "False"));
    run.until(|run| run.ended.is_some());
    let Outcome::Paused { why: PauseReason::CheckUnknown { finding, .. } } = run.outcome() else {
        panic!("{}", run.outcome());
    };
    assert_eq!(finding.check, "quiet");
    (finding.as_ref().clone(), at)
}

/// Found by story 363298.
#[test]
fn an_answer_that_is_not_needed_any_more_says_whether_its_check_is_known() {
    let (finding, asked) = paused_after(None, Measured::Down);
    assert_eq!(finding.since, asked);
    let (finding, asked) = paused_after(Some(Measured::Down), Measured::Value(1.0));
    assert!(finding.since > asked, "{} {asked}", finding.since);
}
