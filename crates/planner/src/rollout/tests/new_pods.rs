//! The conditions under which a new pod has failed.

use serde_json::json;

use super::run::Run;
use super::sim::{Fate, REFUSED, Sim};
use crate::rollout::{Outcome, PauseReason, PodFailure, Report};
use daemonset::model::Deadline;

/// The failure, and the seconds after the first delete.
fn failed(mut sim: Sim, fate: Fate) -> (PodFailure, i64) {
    sim.fate("v2", fate);
    let mut run = Run::apply(sim, "v2");
    run.look();
    run.until(|run| !run.deletes.is_empty());
    let began = run.sim.now();
    run.until(|run| run.reports.iter().any(|it| matches!(it, Report::Failed { .. })));
    let seconds = run.sim.now().duration_since(began).as_secs();
    let pod_failure = run.reports.iter().find_map(|report| match report {
        Report::Failed { node: _, pod_failure } => Some(pod_failure.clone()),
        _ => None,
    });
    (pod_failure.unwrap(), seconds)
}

#[test]
fn each_failure_is_found_in_time() {
    let sim = || Sim::of(4, &json!(1));
    let (pod_failure, seconds) = failed(sim(), Fate::NoImage);
    assert!(matches!(pod_failure, PodFailure::Permanent { seconds: 30, .. }), "{pod_failure}");
    assert!((30..=33).contains(&seconds), "{seconds}");

    let (pod_failure, seconds) = failed(sim(), Fate::NeverReady);
    assert!(matches!(pod_failure, PodFailure::TooLate { .. }), "{pod_failure}");
    assert!((600..=603).contains(&seconds), "{seconds}");

    let (pod_failure, seconds) = failed(sim(), Fate::NotCreated);
    let PodFailure::NoPod { seconds: waited, message } = pod_failure else {
        panic!("{pod_failure}")
    };
    assert_eq!((waited, message.as_deref()), (30, Some(REFUSED)));
    assert!((30..=33).contains(&seconds), "{seconds}");

    let mut slow = sim();
    slow.stop = 10_000;
    let (pod_failure, seconds) = failed(slow, Fate::ReadyAfter(3));
    assert!(
        matches!(pod_failure, PodFailure::StillTerminating { seconds: 630, .. }),
        "{pod_failure}"
    );
    assert!((628..=633).contains(&seconds), "{seconds}");
}

/// A controller that cannot reach the server reports nothing about the pod.
#[test]
fn a_controller_that_does_not_reach_the_server_shortens_no_deadline() {
    let lost = "Error creating: Post \"https://x/pods\": dial tcp: connect: connection refused";
    for (first, then, seconds) in
        [(lost, lost, 600..=603), (REFUSED, lost, 30..=33), (lost, REFUSED, 30..=33)]
    {
        let mut sim = Sim::of(2, &json!(1));
        sim.fate("v2", Fate::NotCreated);
        sim.refusal = first.to_owned();
        let mut run = Run::apply(sim, "v2");
        run.look();
        run.until(|run| !run.deletes.is_empty());
        let began = run.sim.now();
        run.until(|run| run.sim.create_failed.is_some());
        for _ in 0..3 {
            run.settle();
        }
        run.sim.refusal = then.to_owned();
        run.until(|run| run.reports.iter().any(|it| matches!(it, Report::Failed { .. })));
        let took = run.sim.now().duration_since(began).as_secs();
        assert!(seconds.contains(&took), "{first} {then}: {took}");
    }
}

/// The end of a run whose API server is unavailable after its first delete: before each outage some
/// seconds, and then the seconds of the outage. `after` the last one, new pods become Ready.
fn with_outages(fate: Fate, deadline: u32, outages: &[(usize, usize)], after: usize) -> Outcome {
    let mut sim = Sim::of(2, &json!(1));
    sim.fate("v2", fate);
    let mut run = Run::apply(sim, "v2");
    run = run.with(|task| task.policy.progress_deadline = Deadline(deadline));
    run.look();
    run.until(|run| !run.deletes.is_empty());
    let settle = |run: &mut Run, seconds: usize| (0..seconds).for_each(|_| run.settle());
    for (before, outage) in outages {
        settle(&mut run, *before);
        run.sim.hidden = true;
        settle(&mut run, *outage);
        run.sim.hidden = false;
    }
    settle(&mut run, after);
    run.sim.fate("v2", Fate::ReadyAfter(0));
    run.finish().outcome().clone()
}

/// The API server is unavailable for longer than the deadline of a pod.
#[test]
fn time_without_current_watches_counts_against_no_deadline() {
    for (fate, after, done) in [
        // The controllers and kubelets may need a minute to watch it again.
        (Fate::NeverReady, 20, true),
        (Fate::NeverReady, 90, true),
        (Fate::NeverReady, 100, false),
        (Fate::NotCreated, 20, true),
        (Fate::NoImage, 20, true),
    ] {
        let outcome = with_outages(fate, 40, &[(5, 50)], after);
        assert_eq!(outcome == Outcome::Done, done, "{fate:?} {after}: {outcome}");
    }
}

/// The watches of controllers and kubelets start again after a delay that also counts the outages
/// before.
#[test]
fn each_outage_lets_the_controllers_need_longer() {
    let twice = &[(1, 15), (1, 15)];
    for (outages, after, done) in
        [(&twice[..1], 45, true), (&twice[..1], 60, false), (twice, 75, true), (twice, 90, false)]
    {
        let outcome = with_outages(Fate::NeverReady, 25, outages, after);
        assert_eq!(outcome == Outcome::Done, done, "{outages:?} {after}: {outcome}");
    }
}

#[test]
fn pods_that_restart_again_and_again_have_failed_though_available_between() {
    let (pod_failure, seconds) = failed(Sim::of(30, &json!(1)), Fate::Crashes);
    assert!(
        matches!(pod_failure, PodFailure::Restarts { restarts: 4, allowed: 3, .. }),
        "{pod_failure}"
    );
    assert!((40..=43).contains(&seconds), "{seconds}");
}

#[test]
fn a_pod_that_recovers_in_time_has_not_failed() {
    for (rule, before, after, at) in [
        (
            "an image that is available within the grace period",
            Fate::NoImage,
            Fate::ReadyAfter(0),
            25,
        ),
        ("a pod that is Ready just in time", Fate::NeverReady, Fate::ReadyAfter(0), 590),
        (
            "a quota that is raised within the grace period",
            Fate::NotCreated,
            Fate::ReadyAfter(0),
            25,
        ),
    ] {
        let mut sim = Sim::of(1, &json!(1));
        sim.fate("v2", before);
        let mut run = Run::apply(sim, "v2");
        run.look();
        run.until(|run| !run.deletes.is_empty());
        for _ in 0..at {
            run.settle();
        }
        run.sim.fate("v2", after);
        assert_eq!(*run.finish().outcome(), Outcome::Done, "{rule}");
    }
}

#[test]
fn a_pod_that_is_ready_in_time_may_prove_itself_for_longer() {
    let mut sim = Sim::of(2, &json!(1));
    sim.edit(|spec| spec["minReadySeconds"] = 50.into());
    sim.pass(60);
    let run = Run::apply(sim, "v2").with(|task| task.policy.progress_deadline = Deadline(10));
    assert_eq!(*run.finish().outcome(), Outcome::Done);
}

#[test]
fn an_old_pod_that_becomes_not_ready_gets_the_full_deadline() {
    let mut sim = Sim::of(2, &json!(1));
    sim.pass(1000);
    for pod in &mut sim.cluster.pods {
        pod.restarts = 40;
    }
    sim.fate("v1", Fate::NeverReady);
    sim.pass(1);
    let mut run = Run::apply(sim, "v1");
    run.look();
    for _ in 0..500 {
        run.settle();
    }
    assert!(run.ended.is_none(), "{:?}", run.ended);
    run.sim.fate("v1", Fate::ReadyAfter(0));
    assert_eq!(*run.finish().outcome(), Outcome::Done);
}

#[test]
fn nodes_that_are_not_ready_prove_nothing() {
    let mut sim = Sim::of(3, &json!(1));
    sim.fate("v2", Fate::NeverReady);
    let mut run = Run::apply(sim, "v2");
    run.look();
    run.until(|run| !run.deletes.is_empty());
    run.sim.set_ready(0, false);
    run.sim.fate("v2", Fate::ReadyAfter(1));
    let run = run.finish();
    assert_eq!((run.outcome(), run.deletes.len()), (&Outcome::Done, 3));
}

#[test]
fn a_killed_run_does_not_restart_the_deadline_of_a_pod() {
    let mut sim = Sim::of(3, &json!(1));
    sim.fate("v2", Fate::NeverReady);
    let mut run = Run::apply(sim, "v2");
    run.look();
    run.until(|run| !run.deletes.is_empty());
    let began = run.sim.now();
    for _ in 0..5 {
        for _ in 0..100 {
            run.settle();
        }
        run = run.again("v2");
        run.look();
    }
    let run = run.finish();
    assert!(matches!(run.outcome(), Outcome::Aborted { .. }), "{}", run.outcome());
    let seconds = run.sim.now().duration_since(began).as_secs();
    assert!((600..=620).contains(&seconds), "{seconds}");
}

#[test]
fn one_node_is_enough() {
    let mut sim = Sim::of(5, &json!(1));
    sim.picky.insert("node-2".into(), "v1".into());
    let run = Run::apply(sim, "v2")
        .with(|task| task.policy.on_failure = daemonset::model::OnFailure::Pause)
        .finish();
    let Outcome::Paused { why: PauseReason::Failed { failed, not_aborted: None, .. } } =
        run.outcome()
    else {
        panic!("{}", run.outcome())
    };
    assert_eq!(failed.keys().cloned().collect::<Vec<_>>(), ["node-2"]);
    assert_eq!(run.deleted_nodes(), ["node-0", "node-1", "node-2"], "nothing more was deleted");
}
