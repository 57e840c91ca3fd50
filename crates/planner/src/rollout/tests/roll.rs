//! `ds-apply roll` and `step`: a failure is the end of the rollout, and the template is remembered.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::checks::gated;
use super::run::{Post, Run, plain_pace, task};
use super::sim::{Fate, Measured, Sim, on_delete};
use super::steps::{approval, policy, waits};
use crate::digest::template_digest;
use crate::rollout::request::RequestState;
use crate::rollout::{Event, Extent, FailureCause, Goal, Outcome, PauseReason, Task};
use crate::steps::WaitKind;
use daemonset::model::{Approval, IntOrPercent, PolicySpec, StepNodes};

/// Another client has applied `v2`, and no pod is updated.
fn synced() -> Sim {
    let mut sim = Sim::with_strategy(4, &on_delete());
    sim.edit(|spec| spec["template"]["spec"]["containers"][0]["image"] = "v2".into());
    sim.pass(3);
    sim
}

fn start(sim: Sim, policy: &PolicySpec, approvals: &BTreeMap<String, Approval>) -> Run {
    let (policy, note, approvals) = (policy.clone(), sim.note.clone(), approvals.clone());
    let failed_templates = sim.remembered.iter().map(|digest| digest.as_str().into()).collect();
    let all = task(Goal::Roll(Extent::All));
    Run::new(sim, Task { policy, failed_templates, note, approvals, ..all })
}

fn roll(sim: Sim, policy: &PolicySpec) -> Run {
    start(sim, policy, &BTreeMap::new()).finish()
}

fn cause(run: &Run) -> Option<&FailureCause> {
    match run.outcome() {
        Outcome::Paused { why: PauseReason::Failed { cause, .. } } => cause.as_ref(),
        other => panic!("it has not failed: {other}"),
    }
}

/// One request or one second after the other, until a condition is true.
fn step_until(run: &mut Run, holds: impl Fn(&Run) -> bool) {
    run.look();
    for _ in 0..10_000 {
        if holds(run) {
            return;
        }
        if !run.post(Post::Delivered) {
            run.pass(1);
            run.look();
        }
    }
    panic!("the condition was not reached");
}

fn sync(sim: &mut Sim, image: &str) {
    sim.edit(|spec| spec["template"]["spec"]["containers"][0]["image"] = image.into());
}

/// As after an `apply`: the next run needs `--retry`, until the template runs on all nodes.
#[test]
fn a_template_whose_roll_failed_is_remembered_until_it_runs_on_all_nodes() {
    let mut sim = synced();
    sim.fate("v2", Fate::NoImage);
    let mut failed = roll(sim, &plain_pace());
    assert_eq!((cause(&failed), failed.deletes.len()), (None, 1));
    let digest = template_digest(failed.sim.cluster.daemon_set.spec.template.raw());
    assert_eq!(failed.sim.remembered, [digest].into());
    failed.sim.fate("v2", Fate::ReadyAfter(3));
    failed.sim.pass(10);
    let part = start(failed.sim, &plain_pace(), &BTreeMap::new());
    let part = part.with(|task| task.goal = Goal::Roll(Extent::Count(1))).finish();
    assert_eq!((part.outcome(), part.sim.remembered.len()), (&Outcome::Done, 1));
    let all = roll(part.sim, &plain_pace());
    assert_eq!((all.outcome(), all.sim.remembered.len()), (&Outcome::Done, 0));
    assert_eq!(all.images(), [("v2".to_owned(), 4)].into());
}

/// None of these ends says that the template is bad.
#[test]
fn a_roll_that_stops_for_another_reason_remembers_nothing() {
    let begun = || {
        let mut run = start(synced(), &plain_pace(), &BTreeMap::new());
        run.look();
        run.until(|run| run.deletes.len() == 1);
        run
    };
    let mut changed = begun();
    sync(&mut changed.sim, "v3");
    let mut interrupted = begun();
    interrupted.feed(Event::Interrupt, 0);
    let late = start(synced(), &plain_pace(), &BTreeMap::new());
    let at = late.sim.now() + SignedDuration::from_secs(2);
    let late = late.with(|task| task.deadline = Some(at));
    let soaking = start(synced(), &gated(&json!({})), &BTreeMap::new());
    for run in [Box::new(changed), Box::new(interrupted), Box::new(late), Box::new(soaking)] {
        let run = run.finish();
        let outcome = run.outcome();
        let stops = match outcome {
            Outcome::Paused { why } => *why == PauseReason::Timeout,
            Outcome::Stale { .. } | Outcome::Interrupted { .. } | Outcome::Waiting { .. } => true,
            Outcome::Done
            | Outcome::Aborted { .. }
            | Outcome::Gone { .. }
            | Outcome::LockLost
            | Outcome::Failed { .. } => false,
        };
        assert!(stops, "{outcome}");
        assert_eq!(run.sim.remembered.len(), 0, "{outcome}");
    }
}

/// The failure is recorded while another client applies the next template.
#[test]
fn the_template_that_failed_is_remembered_and_not_the_one_that_came_since() {
    let mut sim = synced();
    sim.fate("v2", Fate::NoImage);
    let digest = template_digest(sim.cluster.daemon_set.spec.template.raw());
    let mut run = start(sim, &plain_pace(), &BTreeMap::new());
    step_until(&mut run, |run| run.state.remembering.request == RequestState::Out);
    assert!(run.post(Post::RequestLost));
    sync(&mut run.sim, "v3");
    let run = run.finish();
    assert_eq!(cause(&run), None);
    assert_eq!(run.sim.remembered, [digest].into());
}

/// The gate is bad for ten seconds of the soak of the canary.
fn with_bad_gate(policy: &PolicySpec, approvals: &BTreeMap<String, Approval>) -> Run {
    let mut first = start(synced(), policy, approvals).finish();
    assert_eq!((waits(&first), first.deletes.len()), (vec![WaitKind::Soak], 2));
    first.sim.pass(20);
    first.sim.measure("errors", Measured::Value(7.5));
    first.sim.pass(10);
    first.sim.measure("errors", Measured::Value(1.0));
    first.sim.pass(60);
    start(first.sim, policy, approvals)
}

/// The samples from before stay bad for ever: a rollout that still goes would fail in each run.
#[test]
fn a_roll_whose_gate_fails_is_over_and_the_next_one_begins_again() {
    let policy = gated(&json!({}));
    let failed = with_bad_gate(&policy, &BTreeMap::new()).finish();
    assert!(matches!(cause(&failed), Some(FailureCause::Gate(_))));
    let note = failed.sim.note.as_ref().unwrap();
    assert_eq!((note.started_at, note.steps.len()), (None, 0));
    assert!(note.approvals_void_before.is_some());
    assert_eq!(failed.sim.remembered.len(), 1);
    let mut sim = failed.sim;
    sim.pass(60);
    let mut again = roll(sim, &policy);
    assert_eq!((waits(&again), again.deletes.len()), (vec![WaitKind::Soak], 0));
    assert_eq!(again.sim.remembered.len(), 1, "it waits with `--retry`");
    again.sim.pass(70);
    let last = roll(again.sim, &policy);
    assert_eq!((last.outcome(), last.deletes.len()), (&Outcome::Done, 2));
    assert_eq!(last.sim.remembered.len(), 0);
}

/// The answer to the note may be lost, or the run killed before it is sent.
#[test]
fn the_end_of_a_roll_that_fails_is_noted_in_spite_of_lost_answers() {
    let policy = gated(&json!({}));
    for post in [Post::AnswerLost, Post::RequestLost, Post::AnswerDelayed] {
        let mut failed = with_bad_gate(&policy, &BTreeMap::new());
        step_until(&mut failed, |run| run.state.noting.has_ended);
        assert!(failed.post(post));
        let failed = failed.finish();
        assert!(cause(&failed).is_some());
        assert_eq!(failed.sim.note.as_ref().unwrap().started_at, None, "{post:?}");
    }
}

#[test]
fn a_roll_that_took_too_long_is_not_late_for_ever() {
    let limited = policy(json!({
        "steps": [{"name": "canary", "nodes": 1, "soak": "1h"}], "maxDuration": "90m",
    }));
    let mut first = roll(synced(), &limited);
    assert_eq!(waits(&first), [WaitKind::Soak]);
    first.sim.pass(5_500);
    let late = roll(first.sim, &limited);
    assert!(matches!(cause(&late), Some(FailureCause::Overdue(_))));
    assert_eq!(late.sim.remembered.len(), 1);
    let again = roll(late.sim, &limited);
    assert!(!matches!(again.outcome(), Outcome::Paused { .. }), "{}", again.outcome());
}

#[test]
fn an_approval_from_before_a_roll_that_failed_is_void() {
    let mut policy = gated(&json!({}));
    policy.steps[0].approve = true;
    // The template is live already: only an approval after the first look counts.
    let mut sim = roll(synced(), &policy).sim;
    sim.pass(1);
    let template = template_digest(sim.cluster.daemon_set.spec.template.raw());
    let given = Approval { at: sim.now(), ..approval(&sim, template, &policy.steps[0]) };
    let approvals: BTreeMap<_, _> = [("canary".to_owned(), given)].into();
    sim.pass(1);
    let mut first = start(sim, &policy, &approvals);
    first.look();
    first.until(|run| run.deletes.len() == 1);
    let mut sim = first.sim;
    sim.measure("errors", Measured::Value(7.5));
    sim.pass(60);
    let failed = start(sim, &policy, &approvals).finish();
    assert!(matches!(cause(&failed), Some(FailureCause::Gate(_))));
    let mut sim = failed.sim;
    sim.measure("errors", Measured::Value(1.0));
    sim.pass(60);
    let again = start(sim, &policy, &approvals).finish();
    assert_eq!((waits(&again), again.deletes.len()), (vec![WaitKind::Approval], 0));
}

/// The last soak and gates are left to `roll`.
#[test]
fn a_step_that_replaces_the_last_pod_does_not_end_the_rollout() {
    let mut policy = gated(&json!({}));
    policy.steps[0].nodes = StepNodes::Count(IntOrPercent::Percent(100));
    let step = start(synced(), &policy, &BTreeMap::new());
    let mut step = step.with(|task| task.goal = Goal::Roll(Extent::Count(4))).finish();
    assert_eq!((step.outcome(), step.deletes.len()), (&Outcome::Done, 4));
    assert!(step.sim.note.as_ref().unwrap().started_at.is_some());
    step.sim.pass(20);
    step.sim.measure("errors", Measured::Value(7.5));
    step.sim.pass(10);
    step.sim.measure("errors", Measured::Value(1.0));
    step.sim.pass(60);
    let soaked = roll(step.sim, &policy);
    assert!(matches!(cause(&soaked), Some(FailureCause::Gate(_))));
    // Without a soak and gates, it does.
    let plain = super::steps::policy(json!({"steps": [{"name": "all", "nodes": "100%"}]}));
    let step = start(synced(), &plain, &BTreeMap::new());
    let step = step.with(|task| task.goal = Goal::Roll(Extent::Count(4))).finish();
    assert_eq!((step.outcome(), step.deletes.len()), (&Outcome::Done, 4));
    assert_eq!(step.sim.note.as_ref().unwrap().started_at, None);
}

/// `maxDuration` is the time from the first delete.
#[test]
fn a_roll_that_waits_before_its_first_node_has_not_begun() {
    let limited = policy(json!({
        "steps": [{"name": "canary", "nodes": 1, "approve": true}], "maxDuration": "90m",
    }));
    let first = roll(synced(), &limited);
    assert_eq!((waits(&first), first.deletes.len()), (vec![WaitKind::Approval], 0));
    let note = first.sim.note.clone().unwrap();
    assert_eq!((note.started_at, note.waits_since.is_some()), (None, true));
    let mut sim = first.sim;
    sim.pass(7_200);
    let template = template_digest(sim.cluster.daemon_set.spec.template.raw());
    let given = Approval { at: sim.now(), ..approval(&sim, template, &limited.steps[0]) };
    sim.pass(1);
    let begin = sim.now();
    let mut last = start(sim, &limited, &[("canary".to_owned(), given)].into());
    last.look();
    last.until(|run| run.deletes.len() == 1);
    let started_at = last.sim.note.as_ref().unwrap().started_at;
    assert!(started_at.is_some_and(|at| at >= begin), "{started_at:?}");
    let last = last.finish();
    assert_eq!((last.outcome(), last.deletes.len()), (&Outcome::Done, 4));
}

/// `status` shows it: no pause does. It is no longer noted once a node has begun.
#[test]
fn a_roll_notes_the_checks_that_hold_its_next_node_back() {
    let policy = policy(json!({
        "steps": [{"name": "canary", "nodes": 1}],
        "preconditions": [{"name": "quiet", "http": {"url": "https://x"}}],
    }));
    let held_by = |run: &Run| -> Vec<Value> {
        let note = run.sim.note.as_ref().unwrap();
        note.held_by.iter().map(|wait| wait["check"]["check"].clone()).collect()
    };
    let mut sim = synced();
    sim.measure("quiet", Measured::Value(0.0));
    let mut busy = roll(sim, &policy);
    assert_eq!(waits(&busy), [WaitKind::Precondition]);
    assert_eq!((held_by(&busy), busy.deletes.len()), (vec![json!("quiet")], 0));
    busy.sim.measure("quiet", Measured::Value(1.0));
    let mut begun = start(busy.sim, &policy, &BTreeMap::new());
    begun.look();
    begun.until(|run| run.deletes.len() == 1);
    assert_eq!(held_by(&begun), [""; 0]);
    begun.sim.measure("quiet", Measured::Value(0.0));
    let mut middle = begun.finish();
    assert_eq!(waits(&middle), [WaitKind::Precondition]);
    let note = middle.sim.note.clone().unwrap();
    assert_eq!((held_by(&middle), note.started_at.is_some()), (vec![json!("quiet")], true));
    middle.sim.pass(60);
    let again = roll(middle.sim, &policy);
    assert_eq!(
        (waits(&again), held_by(&again)),
        (vec![WaitKind::Precondition], vec![json!("quiet")])
    );
    assert_eq!(again.sim.note.as_ref().unwrap().started_at, note.started_at);
}

/// Its pod is in a later step of the next template, and uses up the budget.
#[test]
fn what_a_failed_template_has_broken_is_replaced_in_any_step() {
    let begins_with =
        |node: &str| policy(json!({"steps": [{"name": "canary", "nodes": {"names": [node]}}]}));
    for (is_remembered, replaced) in [(true, 4), (false, 0)] {
        let mut sim = synced();
        sim.fate("v2", Fate::NoImage);
        let mut failed = roll(sim, &begins_with("node-0"));
        assert_eq!((cause(&failed), failed.deletes.len()), (None, 1));
        sync(&mut failed.sim, "v3");
        failed.sim.pass(3);
        if !is_remembered {
            failed.sim.remembered.clear();
        }
        let next = roll(failed.sim, &begins_with("node-1"));
        let images = next.images();
        assert_eq!(images.get("v3").copied().unwrap_or_default(), replaced, "{images:?}");
        assert_eq!(*next.outcome() == Outcome::Done, is_remembered, "{}", next.outcome());
    }
}
