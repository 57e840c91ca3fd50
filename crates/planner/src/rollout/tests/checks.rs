//! Checks in a rollout: preconditions and gates.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::run::{Post, Run};
use super::sim::{Measured, Sim};
use super::steps::{policy, run, waits};
use crate::plan::PauseState;
use crate::rollout::{
    Answer, Event, Failure, FailureCause, NotAborted, Outcome, PauseReason, Purpose, Report,
};
use crate::steps::WaitKind;
use daemonset::model::{OnFailure, PodReadiness, PolicySpec};

/// A canary that soaks, and a gate.
pub(super) fn gated(change: &Value) -> PolicySpec {
    let mut gate = json!({
        "name": "errors", "interval": "10s",
        "prometheus": {"address": "https://prom.example", "query": "errors", "max": 1},
    });
    gate.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    policy(json!({
        "steps": [{"name": "canary", "nodes": 2, "soak": "60s"}], "gates": [gate],
    }))
}

fn until_waiting(policy: &PolicySpec) -> Run {
    let first = run(Sim::of(6, &json!(3)), "v2", policy);
    assert_eq!((waits(&first), first.deletes.len()), (vec![WaitKind::Soak], 2));
    first
}

/// The next run, after this time.
pub(super) fn later(mut run_before: Run, seconds: i64, policy: &PolicySpec) -> Run {
    run_before.sim.pass(seconds);
    run(run_before.sim, "v2", policy)
}

#[test]
fn gates_that_pass_let_a_rollout_end() {
    let policy = gated(&json!({}));
    let last = later(until_waiting(&policy), 60, &policy);
    assert_eq!(*last.outcome(), Outcome::Done);
    assert_eq!((last.deletes.len(), last.pause()), (4, None));
    let note = last.sim.note.as_ref().unwrap();
    assert!(note.sampled_since.is_empty() && note.unknown_since.is_empty(), "{note:?}");
}

#[test]
fn a_threshold_crossed_between_two_runs_aborts_with_values_and_nodes() {
    let policy = gated(&json!({}));
    let mut first = until_waiting(&policy);
    // It is good again when the next run comes.
    first.sim.pass(20);
    first.sim.measure("errors", Measured::Value(7.5));
    first.sim.pass(10);
    first.sim.measure("errors", Measured::Value(1.0));
    let writes = first.sim.writes.len();
    let last = later(first, 60, &policy);
    let Outcome::Aborted { failed, cause: Some(FailureCause::Gate(gate)), .. } = last.outcome()
    else {
        panic!("{}", last.outcome());
    };
    assert!(failed.is_empty());
    assert_eq!((gate.finding.check.as_str(), gate.nodes.len()), ("errors", 2));
    let said = last.outcome().to_string();
    assert!(said.starts_with("aborted: gate errors failed: 7.5 at "), "{said}");
    assert_eq!((last.deletes.len(), last.sim.live_image()), (0, "v1".to_owned()));
    assert_eq!(last.pause().unwrap().state, PauseState::Aborted);
    // The target was not written again only to be aborted.
    assert_eq!(last.sim.writes.len(), writes + 1);
    assert_eq!(last.sim.remembered.len(), 1);
}

#[test]
fn after_a_pause_by_a_gate_a_revert_is_not_judged_by_the_time_of_the_bad_version() {
    let policy = PolicySpec { on_failure: OnFailure::Pause, ..gated(&json!({})) };
    let mut first = until_waiting(&policy);
    first.sim.pass(20);
    first.sim.measure("errors", Measured::Value(7.5));
    let mut paused = later(first, 30, &policy);
    assert!(matches!(paused.outcome(), Outcome::Paused { .. }), "{}", paused.outcome());
    paused.sim.measure("errors", Measured::Value(1.0));
    paused.sim.pass(10);
    let began = paused.sim.now();
    let mut reverted = run(paused.sim, "v1", &policy);
    assert_eq!(waits(&reverted), [WaitKind::Soak]);
    let sampled: Vec<_> = reverted.sim.note.as_ref().unwrap().sampled_since.values().collect();
    assert!(!sampled.is_empty() && sampled.iter().all(|since| **since >= began), "{sampled:?}");
    reverted.sim.pass(70);
    let last = run(reverted.sim, "v1", &policy);
    assert_eq!((last.outcome(), last.sim.nodes_with("v2").len()), (&Outcome::Done, 0));
}

/// So that the next run, too, goes back within the budgets only, if this one is killed.
#[test]
fn on_the_way_back_the_pause_keeps_what_failed() {
    let policy = gated(&json!({}));
    let mut first = until_waiting(&policy);
    first.sim.pass(20);
    first.sim.measure("errors", Measured::Value(7.5));
    let aborted = later(first, 30, &policy);
    assert!(matches!(aborted.outcome(), Outcome::Aborted { .. }), "{}", aborted.outcome());
    let failed = aborted.pause().unwrap().failed;
    let mut back = Run::apply(aborted.sim, "v1").with(|task| task.policy = policy.budgets());
    back.look();
    back.until(|run| !run.deletes.is_empty());
    let pause = back.pause().unwrap();
    assert_eq!((pause.state, &pause.failed), (PauseState::Paused, &failed));
    let last = back.finish();
    assert_eq!((last.outcome(), last.sim.nodes_with("v2").len()), (&Outcome::Done, 0));
}

#[test]
fn a_gate_that_fails_during_a_wave_stops_it() {
    let policy = gated(&json!({"allow": 1}));
    let policy = PolicySpec { steps: Vec::new(), ..policy };
    let mut run = Run::apply(Sim::of(9, &json!(1)), "v2").with(|task| task.policy = policy);
    run.look();
    run.until(|run| run.deletes.len() == 3);
    run.sim.measure("errors", Measured::Value(2.0));
    run.until(|_| false);
    assert!(run.deletes.len() < 7, "{}", run.deletes.len());
    assert!(run.outcome().to_string().contains("(2 of "), "{}", run.outcome());
}

#[test]
fn what_is_unknown_neither_goes_on_nor_back_and_pauses_in_the_end() {
    let policy = gated(&json!({"unknownFor": "300s"}));
    let mut first = until_waiting(&policy);
    first.sim.measure("errors", Measured::Down);
    let down = later(first, 60, &policy);
    assert_eq!((waits(&down), down.deletes.len()), (vec![WaitKind::Unknown], 0));
    let since = down.sim.note.as_ref().unwrap().unknown_since["errors"];
    let down = later(down, 200, &policy);
    assert_eq!((waits(&down), down.deletes.len()), (vec![WaitKind::Unknown], 0));
    assert_eq!(down.sim.note.as_ref().unwrap().unknown_since["errors"], since);
    let mut paused = later(down, 200, &policy);
    let Outcome::Paused { why: PauseReason::CheckUnknown { finding, .. } } = paused.outcome()
    else {
        panic!("{}", paused.outcome());
    };
    assert_eq!((finding.since, paused.deletes.len()), (since, 0));
    assert_eq!(paused.sim.live_image(), "v1");
    // It answers again, but the gap remains: what was not measured is not known.
    paused.sim.measure("errors", Measured::Value(1.0));
    let gap = later(paused, 10, &policy);
    assert_eq!(waits_or_paused(&gap), "unknown");
}

fn waits_or_paused(run: &Run) -> &'static str {
    match run.outcome() {
        Outcome::Waiting { waits_for } if waits_for[0].kind == WaitKind::Unknown => "unknown",
        Outcome::Paused { why: PauseReason::CheckUnknown { .. } } => "unknown",
        _ => "other",
    }
}

#[test]
fn a_step_is_done_only_when_its_gates_passed_after_its_soak() {
    // The first sample is due long after the soak.
    let policy = gated(&json!({"delay": "200s"}));
    let early = later(until_waiting(&policy), 61, &policy);
    assert_eq!((waits(&early), early.deletes.len()), (vec![WaitKind::Gate], 0));
    // The next step, which has a first new pod of its own.
    let rest = later(early, 150, &policy);
    assert_eq!((waits(&rest), rest.deletes.len()), (vec![WaitKind::Gate], 4));
    assert_eq!(*later(rest, 210, &policy).outcome(), Outcome::Done);
}

#[test]
fn the_last_step_waits_for_its_gates_too() {
    let policy = PolicySpec { steps: Vec::new(), ..gated(&json!({"delay": "100s"})) };
    let first = run(Sim::of(2, &json!(2)), "v2", &policy);
    assert_eq!((waits(&first), first.deletes.len()), (vec![WaitKind::Gate], 2));
    let last = later(first, 120, &policy);
    assert_eq!((last.outcome(), last.pause()), (&Outcome::Done, None));
}

/// The pause says that a rollout is in progress, whether the run has ended or was killed.
#[test]
fn a_lost_note_does_not_end_a_rollout_without_its_last_gates() {
    let policy = PolicySpec { steps: Vec::new(), ..gated(&json!({"delay": "100s"})) };
    for is_killed in [false, true] {
        let mut first =
            Run::apply(Sim::of(3, &json!(3)), "v2").with(|it| it.policy = policy.clone());
        first.look();
        first.until(|run| run.sim.nodes_with("v2").len() == 3);
        if !is_killed {
            first = first.finish();
            assert_eq!(waits(&first), [WaitKind::Gate]);
        }
        first.sim.note = None;
        first.sim.pass(60);
        first.sim.measure("errors", Measured::Value(7.5));
        let last = later(first, 60, &policy);
        let Outcome::Aborted { cause: Some(FailureCause::Gate(_)), .. } = last.outcome() else {
            panic!("{is_killed}: {}", last.outcome());
        };
    }
}

/// Found by the simulation: the next run saw a pod to judge, wrote the target without a pause, as no
/// pod was outdated, and was done.
#[test]
fn the_last_step_waits_for_its_gates_although_a_pod_is_not_ready() {
    let policy = PolicySpec { steps: Vec::new(), ..gated(&json!({"delay": "100s"})) };
    for node_is_ready in [false, true] {
        let mut first = run(Sim::of(3, &json!(3)), "v2", &policy);
        assert_eq!((waits(&first), first.deletes.len()), (vec![WaitKind::Gate], 3));
        first.sim.set_ready(0, node_is_ready);
        first.sim.pass(120);
        first.sim.measure("errors", Measured::Value(7.5));
        first.sim.pass(10);
        let since = Some(first.sim.now().into());
        first.sim.pod_on("node-0").readiness = PodReadiness::NotReady { since };
        let before = first.sim.writes.len();
        let last = run(first.sim, "v2", &policy);
        let Outcome::Aborted { cause: Some(FailureCause::Gate(_)), .. } = last.outcome() else {
            panic!("{node_is_ready}: {}", last.outcome());
        };
        // Nothing can be found out about a pod on a node that is not Ready.
        let mut writes = last.sim.writes[before..].iter();
        assert_eq!(writes.any(|write| write.purpose == Purpose::Apply), node_is_ready);
    }
}

/// The rollout of v3 that waits for its gates. The last good template, v1, was committed again before,
/// and its gate failed.
fn after_the_last_good_has_failed(policy: &PolicySpec) -> Run {
    let first = run(Sim::of(2, &json!(2)), "v2", policy);
    assert_eq!((waits(&first), first.sim.live_image()), (vec![WaitKind::Gate], "v1".to_owned()));
    let back = run(first.sim, "v1", policy);
    assert_eq!(waits(&back), [WaitKind::Gate]);
    let mut sim = back.sim;
    sim.pass(110);
    sim.measure("errors", Measured::Value(7.5));
    sim.pass(10);
    let mut failed = run(sim, "v1", policy);
    assert!(matches!(
        failed.outcome(),
        Outcome::Paused {
            why: PauseReason::Failed { not_aborted: Some(NotAborted::IsLastGood), .. }
        }
    ));
    failed.sim.measure("errors", Measured::Value(0.0));
    run(failed.sim, "v3", policy)
}

/// Found by the simulation: the newer commit that waited put it back.
#[test]
fn a_template_that_has_failed_is_not_put_back() {
    let policy = PolicySpec { steps: Vec::new(), ..gated(&json!({"delay": "100s"})) };
    let mut newer = after_the_last_good_has_failed(&policy);
    assert_eq!((waits(&newer), newer.deletes.len()), (vec![WaitKind::Gate], 2));
    assert_eq!(newer.sim.live_image(), "v3");
    assert_eq!(newer.pause().unwrap().state, PauseState::Waiting);
    newer.sim.pass(120);
    let last = run(newer.sim, "v3", &policy);
    assert_eq!((last.outcome(), last.pause()), (&Outcome::Done, None));
}

/// Found by story 24084: a third commit waited to begin. What is live stays.
#[test]
fn a_template_that_has_failed_does_not_replace_an_unfinished_one() {
    let policy = PolicySpec { steps: Vec::new(), ..gated(&json!({"delay": "100s"})) };
    let newer = after_the_last_good_has_failed(&policy);
    let (writes, mut approved) = (newer.sim.writes.len(), policy);
    approved.steps =
        serde_json::from_value(json!([{"name": "s", "nodes": 1, "approve": true}])).unwrap();
    let last = run(newer.sim, "v4", &approved);
    assert_eq!((waits(&last), last.sim.live_image()), (vec![WaitKind::Approval], "v3".to_owned()));
    assert_eq!(last.sim.writes.len(), writes);
}

/// Found by stories 17515 and 18958.
#[test]
fn a_rollout_that_fails_does_not_go_back_to_a_template_that_has_failed_too() {
    let policy = PolicySpec { steps: Vec::new(), ..gated(&json!({"delay": "100s"})) };
    let mut newer = after_the_last_good_has_failed(&policy);
    newer.sim.measure("errors", Measured::Value(7.5));
    newer.sim.pass(120);
    let last = run(newer.sim, "v3", &policy);
    let text = last.outcome().to_string();
    assert!(text.ends_with("which was live before, has failed too"), "{text}");
    assert_eq!(last.sim.live_image(), "v3");
    assert_eq!(last.pause().unwrap().state, PauseState::Paused);
}

/// Nodes that are not Ready are not waited for, also if there are more than may be skipped: the gates
/// are.
#[test]
fn the_last_gates_are_asked_though_nodes_that_are_not_ready_stay_outdated() {
    for max in [0, 1, 2] {
        let skip = serde_json::from_value(json!({"max": max})).unwrap();
        let gates = gated(&json!({"delay": "100s"}));
        let policy = PolicySpec { steps: Vec::new(), skip_unready_nodes: skip, ..gates };
        let mut sim = Sim::of(4, &json!(4));
        (0..2).for_each(|at| sim.set_ready(at, false));
        let first = run(sim, "v2", &policy);
        assert_eq!((waits(&first), first.deletes.len()), (vec![WaitKind::Gate], 2), "{max}");
        assert_eq!(*later(first, 120, &policy).outcome(), Outcome::Done, "{max}");
    }
}

#[test]
fn a_precondition_lets_the_rollout_wait_before_its_first_node() {
    let policy = policy(json!({
        "preconditions": [{"name": "quiet", "unknownFor": "300s", "http": {"url": "https://x"}}],
    }));
    let mut sim = Sim::of(3, &json!(1));
    sim.measure("quiet", Measured::Value(0.0));
    let mut busy = run(sim, "v2", &policy);
    assert_eq!((waits(&busy), busy.deletes.len()), (vec![WaitKind::Precondition], 0));
    assert_eq!(busy.sim.writes.len(), 0);
    let said = busy.outcome().to_string();
    assert!(said.contains("check quiet: status 503 at "), "{said}");
    let held_by = |run: &Run| {
        let note = run.sim.note.as_ref().unwrap();
        note.held_by.iter().map(|wait| wait["kind"].to_string()).collect::<Vec<_>>()
    };
    assert_eq!(held_by(&busy), ["\"precondition\""]);
    busy.sim.measure("quiet", Measured::Down);
    let down = later(busy, 10, &policy);
    assert_eq!((waits(&down), down.sim.writes.len()), (vec![WaitKind::Unknown], 0));
    assert_eq!(held_by(&down), ["\"unknown\""]);
    let mut paused = later(down, 301, &policy);
    assert_eq!(waits_or_paused(&paused), "unknown");
    assert!(matches!(paused.outcome(), Outcome::Paused { .. }));
    paused.sim.measure("quiet", Measured::Value(1.0));
    let last = later(paused, 10, &policy);
    assert_eq!((last.outcome(), last.deletes.len()), (&Outcome::Done, 3));
    assert!(held_by(&last).is_empty());
}

/// Found by the simulation: two notes took turns for ever.
#[test]
fn a_rollout_that_has_begun_and_is_not_live_is_noted_once() {
    let policy = policy(json!({
        "preconditions": [{"name": "quiet", "http": {"url": "https://x"}}],
    }));
    let mut sim = Sim::of(3, &json!(1));
    sim.measure("quiet", Measured::Value(0.0));
    let mut busy = run(sim, "v2", &policy);
    let note = busy.sim.note.as_mut().unwrap();
    // As if all nodes of an earlier run had been away.
    note.started_at = note.waits_since.take();
    let busy = later(busy, 10, &policy);
    assert_eq!((waits(&busy), busy.sim.writes.len()), (vec![WaitKind::Precondition], 0));
    assert!(busy.sim.note.as_ref().unwrap().held_by.is_empty());
}

#[test]
fn nothing_is_deleted_before_an_answer() {
    let policy = policy(json!({
        "preconditions": [{"name": "quiet", "http": {"url": "https://x"}}],
    }));
    let mut run = Run::apply(Sim::of(3, &json!(1)), "v2").with(|task| task.policy = policy);
    run.look();
    for _ in 0..50 {
        run.pass(1);
        run.look();
    }
    assert_eq!((run.deletes.len(), run.sim.writes.len(), run.answers.len()), (0, 0, 0));
    run.until(|run| run.ended.is_some());
    assert_eq!((run.outcome(), run.deletes.len()), (&Outcome::Done, 3));
    assert!(!run.answers.is_empty());
}

/// Found by the simulation: the target was written without a pause, as all pods were updated already, and
/// then no gate was asked.
#[test]
fn a_gate_that_fails_after_the_last_node_pauses_too() {
    let policy = PolicySpec {
        steps: Vec::new(),
        on_failure: OnFailure::Pause,
        ..gated(&json!({"delay": "200s"}))
    };
    let mut first = run(Sim::of(2, &json!(2)), "v2", &policy);
    assert_eq!((waits(&first), first.deletes.len()), (vec![WaitKind::Gate], 2));
    first.sim.measure("errors", Measured::Value(7.5));
    let last = later(first, 300, &policy);
    let said = last.outcome().to_string();
    assert!(said.contains("gate errors failed: 7.5 at "), "{said}");
    assert_eq!(last.pause().map(|pause| pause.state), Some(PauseState::Paused));
    assert_eq!((last.deletes.len(), last.sim.live_image()), (0, "v2".to_owned()));
}

fn pausing() -> PolicySpec {
    policy(json!({
        "onFailure": "pause",
        "gates": [{"name": "healthy", "interval": "10s", "http": {"url": "https://x"}}],
    }))
}

/// A run of `v2` whose gate fails after the first node.
fn failing() -> Run {
    let mut run = Run::apply(Sim::of(3, &json!(1)), "v2").with(|task| task.policy = pausing());
    run.look();
    run.until(|run| run.deletes.len() == 1);
    run.sim.measure("healthy", Measured::Value(0.0));
    run
}

/// The same, whose request to record the gate is taken away.
fn until_recording() -> Run {
    let recording = Report::Writing(Purpose::AddFailedGate);
    let mut run = failing();
    for _ in 0..1_000 {
        if run.reports.contains(&recording) {
            run.drop_request();
            return run;
        }
        if !run.post(Post::Delivered) {
            run.pass(1);
            run.look();
        }
    }
    panic!("the gate has not failed: {:?}", run.reports.last());
}

fn gate_of(run: &Run) -> Option<String> {
    run.pause()?.failed_gate.map(|gate| gate.check.clone())
}

#[test]
fn a_pause_says_which_gate_has_failed_until_it_is_tried_again() {
    let mut failing = failing();
    failing.until(|run| run.ended.is_some());
    let paused = failing.outcome().to_string();
    assert!(paused.contains("gate healthy failed: status 503 at "), "{paused}");
    assert_eq!(gate_of(&failing).as_deref(), Some("healthy"));
    failing.sim.measure("healthy", Measured::Value(1.0));
    let mut again = Run::apply(failing.sim, "v2").with(|task| task.policy = pausing());
    again.look();
    again.until(|run| run.deletes.len() == 1);
    assert_eq!(gate_of(&again), None);
    assert_eq!(*again.finish().outcome(), Outcome::Done);
}

#[test]
fn a_gate_that_cannot_be_recorded_is_in_the_outcome() {
    for failure in [
        Failure::Refused { message: "no".into() },
        Failure::Forbidden { message: "no".into() },
        Failure::Unknown { message: "no answer".into() },
    ] {
        let mut run = until_recording();
        run.feed(Event::Answer(Answer::Written(Err(failure))), 0);
        run.until(|run| run.ended.is_some());
        let said = run.outcome().to_string();
        assert!(said.contains("gate healthy failed: status 503 at "), "{said}");
        assert_eq!(
            (run.pause().map(|it| it.state), gate_of(&run)),
            (Some(PauseState::Paused), None)
        );
    }
    // Another client was faster: it is tried again.
    let mut run = until_recording();
    run.feed(Event::Answer(Answer::Written(Err(Failure::Conflict))), 0);
    run.until(|run| run.ended.is_some());
    assert_eq!(gate_of(&run).as_deref(), Some("healthy"));
}

/// The clock of a server has fractions of a second, questions have none.
#[test]
fn the_end_of_the_last_step_is_noted_once() {
    let policy = PolicySpec { steps: Vec::new(), ..gated(&json!({})) };
    let mut sim = Sim::of(2, &json!(2));
    sim.cluster.now += SignedDuration::from_millis(300);
    let run = run(sim, "v2", &policy);
    assert_eq!((run.outcome(), run.deletes.len()), (&Outcome::Done, 2));
}
