//! The note about a rollout under a policy: what it means if it is missing, or of another commit.

use serde_json::json;

use super::run::{Run, plain_pace};
use super::sim::{Measured, Sim, on_delete, rolling};
use super::steps::{first_approval, policy, purposes, run, waits};
use crate::rollout::{Outcome, PauseReason, first_write};
use crate::steps::WaitKind;
use daemonset::model::{Approval, Deadline, PolicySpec};

#[test]
fn without_a_policy_nothing_is_noted() {
    let run = run(Sim::of(3, &json!(1)), "v2", &plain_pace());
    assert_eq!((run.outcome(), run.sim.note.as_ref()), (&Outcome::Done, None));
}

#[test]
fn a_lost_note_makes_the_soak_begin_again() {
    let canary = policy(json!({"steps": [{"name": "canary", "nodes": 1, "soak": "60s"}]}));
    let mut sim = run(Sim::of(3, &json!(1)), "v2", &canary).sim;
    sim.note = None;
    sim.pass(61);
    let again = run(sim, "v2", &canary);
    assert_eq!((waits(&again), again.deletes.len()), (vec![WaitKind::Soak], 0));
    // And it ends: its new begin is noted, although nothing is written.
    let mut sim = again.sim;
    sim.pass(61);
    assert_eq!(*run(sim, "v2", &canary).outcome(), Outcome::Done);
}

/// The other commit was written, but its run ended before anything was known about its steps.
#[test]
fn steps_begin_again_after_another_commit_was_written() {
    let canary = policy(json!({"steps": [{"name": "canary", "nodes": 1, "soak": "60s"}]}));
    let approved = policy(json!({
        "steps": [{"name": "canary", "nodes": 1, "soak": "60s", "approve": true}],
    }));
    let at = Sim::of(1, &json!(1)).now();
    let with = |sim: Sim, policy: &PolicySpec| {
        let note = sim.note.clone();
        let run = Run::apply(sim, "v2");
        let approval = Approval { at, ..first_approval(&run, policy) };
        let approvals = [("canary".to_owned(), approval)].into();
        run.with(|task| {
            task.policy = policy.clone();
            (task.note, task.approvals) = (note, approvals);
        })
        .finish()
    };
    for (policy, kind) in [(canary, WaitKind::Soak), (approved, WaitKind::Approval)] {
        let first = with(Sim::with_strategy(3, &rolling(&json!(1))), &policy);
        assert_eq!(waits(&first), [WaitKind::Soak]);
        let mut sim = first.sim;
        let note = sim.note.clone();
        sim.idle = true;
        let other = Run::apply(sim, "v3").with(|task| {
            task.policy = PolicySpec { progress_deadline: Deadline(120), ..policy.budgets() };
            task.note = note;
        });
        // It comes after a note, and is tried before nevertheless.
        let first = first_write(&other.task, &other.sim.seen().observed(), other.sim.now());
        let other = other.finish();
        assert_eq!((first.as_ref(), purposes(&other).len()), (other.sim.writes.last(), 3));
        let Outcome::Paused { why: PauseReason::ControllerStalled { .. } } = other.outcome() else {
            panic!("{}", other.outcome())
        };
        let mut sim = other.sim;
        sim.idle = false;
        sim.pass(61);
        let again = with(sim, &policy);
        assert_eq!((waits(&again), again.deletes.len()), (vec![kind], 0));
    }
}

/// What was begun ends when another template is written, also under a policy that notes nothing.
#[test]
fn a_template_that_comes_back_is_not_late_from_the_first_time() {
    let limited = policy(json!({"maxDuration": "30m"}));
    let mut first = Run::apply(Sim::of(3, &json!(1)), "v2").with(|task| {
        task.policy = limited.clone();
    });
    first.look();
    first.until(|run| run.deletes.len() == 1);
    let mut sim = first.sim;
    assert!(sim.note.as_ref().unwrap().started_at.is_some());
    sim.pass(60);
    let note = sim.note.clone();
    let mut other = Run::apply(sim, "v3").with(|task| task.note = note);
    other.look();
    other.until(|run| run.deletes.len() == 1);
    let mut sim = other.sim;
    sim.pass(3_600);
    let back = run(sim, "v2", &limited);
    assert_eq!((back.outcome(), back.deletes.len()), (&Outcome::Done, 3));
}

/// Found by story 393408: the run of the other commit had read the approvals before.
#[test]
fn an_approval_from_before_another_commit_began_is_void() {
    let canary = |approve| {
        policy(json!({
            "steps": [{"name": "canary", "nodes": 1, "soak": "60s", "approve": approve}],
        }))
    };
    let (plain, approved) = (canary(false), canary(true));
    for (is_before, kind, deletes) in [(true, WaitKind::Approval, 0), (false, WaitKind::Soak, 1)] {
        let mut sim = Sim::of(3, &json!(1));
        let before = sim.now();
        sim.pass(5);
        let other = run(sim, "v3", &plain);
        assert_eq!((waits(&other), other.deletes.len()), (vec![WaitKind::Soak], 1));
        let at = if is_before { before } else { other.sim.now() };
        let note = other.sim.note.clone();
        let again = Run::apply(other.sim, "v2");
        let approval = Approval { at, ..first_approval(&again, &approved) };
        let again = again.with(|task| {
            task.policy = approved.clone();
            (task.note, task.approvals) = (note, [("canary".to_owned(), approval)].into());
        });
        let again = again.finish();
        assert_eq!((waits(&again), again.deletes.len()), (vec![kind], deletes), "{is_before}");
    }
}

/// A rollout of `v2` under the policy, which is done.
fn done(sim: Sim, policy: &PolicySpec) -> Sim {
    let mut sim = run(sim, "v2", policy).sim;
    sim.pass(61);
    let done = run(sim, "v2", policy);
    assert_eq!((done.outcome(), done.sim.nodes_with("v2").len()), (&Outcome::Done, 3));
    done.sim
}

/// Another client writes `v9`, and the controller rolls it out.
fn replaced_by_another_client(mut sim: Sim) -> Sim {
    sim.edit(|spec| spec["template"]["spec"]["containers"][0]["image"] = "v9".into());
    sim.pass(60);
    assert_eq!(sim.nodes_with("v9").len(), 3);
    sim
}

#[test]
fn steps_begin_again_after_another_client_has_replaced_the_template() {
    let canary = policy(json!({"steps": [{"name": "canary", "nodes": 1, "soak": "60s"}]}));
    let sim = replaced_by_another_client(done(Sim::of(3, &json!(1)), &canary));
    let ended = sim.note.clone().unwrap();
    assert!(ended.started_at.is_none() && ended.steps["canary"].done_at.is_some());
    let mut killed = Run::apply(sim, "v2").with(|task| {
        (task.policy, task.note) = (canary.clone(), Some(ended));
    });
    killed.look();
    killed.until(|run| run.sim.live_image() == "v2");
    // After the write, the template is live. Its old steps must not count again if the run is killed now.
    assert_eq!(killed.sim.note.as_ref().map(|note| note.steps.len()), Some(0));
    let again = run(killed.sim, "v2", &canary);
    assert_eq!((waits(&again), again.deletes.len()), (vec![WaitKind::Soak], 1));
}

/// The approval of the first time is void, and the step that it was for is asked about again.
#[test]
fn a_template_that_comes_back_needs_its_own_approval() {
    let approved = policy(json!({"steps": [{"name": "canary", "nodes": 1, "approve": true}]}));
    let with = |sim: Sim| {
        let note = sim.note.clone();
        let at = Sim::of(1, &json!(1)).now();
        let run = Run::apply(sim, "v2");
        let approval = Approval { at, ..first_approval(&run, &approved) };
        let approvals = [("canary".to_owned(), approval)].into();
        run.with(|task| {
            (task.policy, task.note, task.approvals) = (approved.clone(), note, approvals);
        })
        .finish()
    };
    let first = with(Sim::of(3, &json!(1)));
    assert_eq!((first.outcome(), first.deletes.len()), (&Outcome::Done, 3));
    let again = with(replaced_by_another_client(first.sim));
    assert_eq!((waits(&again), again.deletes.len()), (vec![WaitKind::Approval], 0));
    // It has not begun: its time does not pass.
    let note = again.sim.note.as_ref().unwrap();
    assert!(note.started_at.is_none() && note.waits_since.is_some());
    // Nor by waiting.
    let again = with(again.sim);
    assert_eq!((waits(&again), again.deletes.len()), (vec![WaitKind::Approval], 0));
}

/// With `OnDelete`, the write begins no rollout, and nothing is outdated in an empty pool.
#[test]
fn the_steps_of_an_ended_rollout_are_dropped_before_any_write_that_brings_its_template_back() {
    let canary = policy(json!({"steps": [{"name": "canary", "nodes": 1}]}));
    for is_empty in [false, true] {
        let mut sim = replaced_by_another_client(done(Sim::of(3, &json!(1)), &canary));
        if is_empty {
            sim.cluster.pods.clear();
            sim.cluster.nodes.clear();
        } else {
            sim.edit(|spec| spec["updateStrategy"] = on_delete());
        }
        let note = sim.note.clone();
        let back = Run::apply(sim, "v2").with(|task| {
            (task.policy, task.note) = (canary.clone(), note);
        });
        let back = back.finish();
        assert_eq!((back.outcome(), back.sim.live_image().as_str()), (&Outcome::Done, "v2"));
        assert_eq!(back.sim.note.as_ref().map(|note| note.steps.len()), Some(0), "{is_empty}");
    }
}

/// Its pods are replaced by `roll`: until one begins, nothing waits.
#[test]
fn an_apply_with_on_delete_that_had_waited_notes_that_it_waits_no_longer() {
    let policy = policy(json!({
        "preconditions": [{"name": "quiet", "http": {"url": "https://x"}}],
    }));
    let apply = |sim: Sim| {
        let note = sim.note.clone();
        let run = Run::apply(sim, "v2").with(|task| {
            (task.policy, task.note) = (policy.clone(), note);
        });
        run.finish()
    };
    let mut sim = Sim::with_strategy(3, &on_delete());
    sim.measure("quiet", Measured::Value(0.0));
    let mut busy = apply(sim);
    assert_eq!(waits(&busy), [WaitKind::Precondition]);
    assert!(busy.sim.note.as_ref().unwrap().waits_since.is_some());
    busy.sim.measure("quiet", Measured::Value(1.0));
    let applied = apply(busy.sim);
    assert_eq!((applied.outcome(), applied.sim.live_image().as_str()), (&Outcome::Done, "v2"));
    let note = applied.sim.note.as_ref().unwrap();
    assert_eq!((note.waits_since, note.held_by.len()), (None, 0));
}
