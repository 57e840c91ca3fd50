//! `ds-apply roll` and `step` under a policy: a failure is the end of the rollout.

use std::collections::BTreeMap;

use serde_json::json;

use super::checks::gated;
use super::run::{Post, Run, task};
use super::sim::{Measured, Sim, on_delete};
use super::steps::{approval, policy, waits};
use crate::digest::template_digest;
use crate::rollout::{Extent, FailureCause, Goal, Outcome, PauseReason, Task};
use crate::steps::WaitKind;
use daemonset::model::{Approval, PolicySpec};

/// Another client has applied `v2`, and no pod is updated.
fn synced() -> Sim {
    let mut sim = Sim::with_strategy(4, &on_delete());
    sim.edit(|spec| spec["template"]["spec"]["containers"][0]["image"] = "v2".into());
    sim.pass(3);
    sim
}

fn start(sim: Sim, policy: &PolicySpec, approvals: &BTreeMap<String, Approval>) -> Run {
    let (policy, note, approvals) = (policy.clone(), sim.note.clone(), approvals.clone());
    Run::new(sim, Task { policy, note, approvals, ..task(Goal::Roll(Extent::All)) })
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
    let mut sim = failed.sim;
    sim.pass(60);
    let mut again = roll(sim, &policy);
    assert_eq!((waits(&again), again.deletes.len()), (vec![WaitKind::Soak], 0));
    again.sim.pass(70);
    let last = roll(again.sim, &policy);
    assert_eq!((last.outcome(), last.deletes.len()), (&Outcome::Done, 2));
}

/// The answer to the note may be lost, or the run killed before it is sent.
#[test]
fn the_end_of_a_roll_that_fails_is_noted_in_spite_of_lost_answers() {
    let policy = gated(&json!({}));
    for post in [Post::AnswerLost, Post::RequestLost, Post::AnswerDelayed] {
        let mut failed = with_bad_gate(&policy, &BTreeMap::new());
        failed.look();
        failed.until(|run| run.state.noting.has_ended);
        failed.post(post);
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
