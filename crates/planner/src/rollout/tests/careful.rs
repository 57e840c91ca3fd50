//! Limits that keep a bad version on its first node: new pods must stay Ready, the first one is
//! replaced alone, a restart stops the run, and no pods are deleted while a fleet flaps.

use serde_json::json;

use super::run::{Run, plain_pace};
use super::sim::{FAILURE, Fate, Sim};
use crate::rollout::{Cost, Outcome, PauseReason, PodFailure, Report};
use daemonset::model::{Pod, PodReadiness, PolicySpec, Ramp};

/// A run with the default policy.
fn by_default(sim: Sim) -> Run {
    Run::apply(sim, "v2").with(|task| task.policy = PolicySpec::default())
}

fn fleet(nodes: usize, budget: u32, fate: Fate) -> Sim {
    let mut sim = Sim::of(nodes, &json!(budget));
    sim.fate("v2", fate);
    sim
}

/// Adds a readiness probe to all containers of the template.
fn probed(sim: &mut Sim) {
    sim.edit(|spec| {
        spec["template"]["spec"]["containers"][0]["readinessProbe"] = json!({"tcpSocket": {}});
    });
    sim.pass(60);
}

#[test]
fn a_crashing_version_stays_on_the_first_node() {
    for seconds in [0, 3, 8, 9] {
        for budget in [1, 4] {
            let run = by_default(fleet(8, budget, Fate::EndsAfter(seconds))).finish();
            assert!(matches!(run.outcome(), Outcome::Aborted { .. }), "{}", run.outcome());
            assert_eq!(run.deletes.len(), 1, "ends after {seconds} s, budget {budget}");
        }
    }
    // With the controller's pace: Ready for three seconds was available, and all pods were
    // replaced.
    let run = Run::apply(fleet(8, 4, Fate::EndsAfter(3)), "v2");
    let run = run.with(|task| task.policy = plain_pace()).finish();
    assert!(run.deletes.len() > 4, "{}", run.deletes.len());
}

#[test]
fn without_probes_each_pod_has_to_stay_up_and_with_them_the_first_one() {
    let took = |probes: bool, policy: PolicySpec| {
        let mut sim = fleet(4, 1, Fate::ReadyAfter(2));
        if probes {
            probed(&mut sim);
        }
        sim.stop = 0;
        let run = Run::apply(sim, "v2").with(|task| task.policy = policy).finish();
        assert_eq!(*run.outcome(), Outcome::Done);
        let took = run.reports.iter().filter_map(|report| match report {
            Report::Recovered { node: _, seconds } => Some(*seconds),
            _other => None,
        });
        took.collect::<Vec<_>>()
    };
    let asked = |seconds| PolicySpec { min_ready_seconds: Some(seconds), ..PolicySpec::default() };
    assert_eq!(took(false, PolicySpec::default()), [13; 4]);
    assert_eq!(took(true, PolicySpec::default()), [13, 3, 3, 3]);
    assert_eq!(took(true, asked(5)), [8; 4]);
    assert_eq!(took(false, asked(0)), [3; 4]);
}

/// The maximum number of pods in flight, delete by delete.
fn in_flight(sim: Sim, policy: PolicySpec) -> Vec<usize> {
    let mut run = Run::apply(sim, "v2").with(|task| task.policy = policy);
    run.look();
    let mut seen = Vec::new();
    while run.ended.is_none() {
        let before = run.deletes.len();
        run.settle();
        if run.deletes.len() > before {
            seen.push(run.sim.unavailable().len());
        }
    }
    assert_eq!(*run.outcome(), Outcome::Done);
    seen
}

#[test]
fn the_first_node_is_replaced_alone_then_two_four_and_so_on() {
    let policy = |ramp| PolicySpec { ramp, ..PolicySpec::default() };
    let fleet = || fleet(20, 6, Fate::ReadyAfter(3));
    assert_eq!(in_flight(fleet(), policy(Ramp::Double)), [1, 2, 4, 6, 6, 1]);
    assert_eq!(in_flight(fleet(), policy(Ramp::None)), [6, 6, 6, 2]);
}

#[test]
fn a_retry_begins_with_one_node_again() {
    let mut sim = fleet(12, 6, Fate::ReadyAfter(3));
    // Pods become available on the first three nodes, and on no other.
    for at in (2..10).chain([11]) {
        sim.picky.insert(format!("node-{at}"), "v1".into());
    }
    let run = by_default(sim).finish();
    assert!(matches!(run.outcome(), Outcome::Aborted { .. }), "{}", run.outcome());
    assert_eq!(run.deletes.len(), 1 + 2 + 4);
    let mut run = run;
    run.sim.picky.clear();
    run.sim.pass(120);
    let mut run = run.again("v2");
    run.look();
    run.until(|run| !run.deletes.is_empty());
    run.look();
    assert_eq!(run.deletes.len(), 1);
    assert_eq!(*run.finish().outcome(), Outcome::Done);
}

#[test]
fn while_a_new_pod_has_restarted_and_is_not_available_nothing_is_deleted() {
    // The first pod is available for long; then it crashes once, in the middle of the rollout.
    let mut sim = fleet(12, 4, Fate::ReadyAfter(3));
    sim.stop = 0;
    let mut run = by_default(sim);
    run.look();
    run.until(|run| run.deletes.len() >= 3);
    let first = run.deletes[0].node.clone();
    let crash = |run: &mut Run, ready: bool| {
        let now = run.sim.now();
        let pods = run.sim.cluster.pods.iter_mut();
        let mut pods = pods.filter(|pod| pod.node() == Some(&first));
        let pod = pods.next().expect("it has a pod");
        pod.restarts = 1;
        pod.containers_changed = Some(now.into());
        let since = Some(now.into());
        pod.readiness =
            if ready { PodReadiness::Ready { since } } else { PodReadiness::NotReady { since } };
    };
    // Its container was restarted at once, so the pod was never observed as not Ready.
    crash(&mut run, true);
    let (before, at) = (run.deletes.len(), run.sim.now());
    while run.sim.now().duration_since(at).as_secs() < 9 {
        run.settle();
        assert_eq!(run.deletes.len(), before, "after {}", run.sim.now().duration_since(at));
    }
    let run = run.finish();
    assert_eq!(*run.outcome(), Outcome::Done);
}

#[test]
fn a_fleet_that_becomes_not_ready_together_is_left_alone_and_reported() {
    let mut sim = fleet(40, 3, Fate::ReadyAfter(3));
    sim.fate("v1", Fate::ReadyAfter(3));
    let mut run = by_default(sim);
    run.look();
    run.until(|run| run.deletes.len() >= 3);
    run.until(|run| run.sim.unavailable().is_empty());
    let before = run.deletes.len();
    // The result of a long outage of the API server: three seconds of NotReady everywhere.
    for _ in 0..3 {
        let since = Some(run.sim.now().into());
        for pod in &mut run.sim.cluster.pods {
            pod.readiness = PodReadiness::NotReady { since };
        }
        run.look();
    }
    let sent = run.reports.iter().filter(|it| matches!(it, Report::Deleting(_))).count();
    assert!(sent <= before + 3, "{sent} after {before}");
    let reported = run.reports.iter().filter(|it| matches!(it, Report::LostReady { .. })).count();
    assert_eq!(reported, 1, "once");
    let run = run.finish();
    assert_eq!(*run.outcome(), Outcome::Done);
    assert!(run.deletes.iter().all(|it| it.cost != Cost::Nothing));
}

#[test]
fn the_last_node_has_to_stay_up_before_the_strategy_is_restored() {
    let sim = fleet(1, 1, Fate::EndsAfter(5));
    let run = by_default(sim).finish();
    let Outcome::Aborted { failed, .. } = run.outcome() else { panic!("{}", run.outcome()) };
    let pod_failure = failed.values().next().expect("one node");
    assert!(
        matches!(pod_failure, PodFailure::Permanent { .. } | PodFailure::Restarts { .. }),
        "{pod_failure}"
    );
}

#[test]
fn a_step_is_due_when_a_pod_becomes_available() {
    let mut sim = fleet(2, 1, Fate::ReadyAfter(0));
    sim.edit(|spec| spec["minReadySeconds"] = 2.into());
    sim.pass(5);
    let mut run = Run::apply(sim, "v2");
    run.look();
    run.until(|run| run.deletes.len() == 1);
    let is_up = |run: &Run| {
        let pods = run.sim.running();
        let new = |pod: &&Pod| pods.get(pod.node().unwrap().as_str()).is_some_and(|it| it == "v2");
        run.sim.cluster.pods.iter().filter(new).any(Pod::is_ready)
    };
    run.until(is_up);
    let since = run.sim.now();
    run.look();
    let wake = run.wake().expect("a step is due");
    assert!(wake.duration_since(since).as_secs() <= 2, "{wake} {since}");
}

#[test]
fn why_the_cluster_cannot_be_observed_is_reported_once_each_time() {
    let mut run = by_default(fleet(8, 1, Fate::ReadyAfter(5)));
    run.look();
    let reported = |run: &Run| {
        let reports = run.reports.iter();
        reports
            .filter(|it| matches!(it, Report::NotObserved { failure } if failure == FAILURE))
            .count()
    };
    let settle = |run: &mut Run, seconds: u32| (0..seconds).for_each(|_| run.settle());
    for (hidden, times) in [(25, 0), (60, 1), (25, 1), (60, 2)] {
        run.sim.hidden = true;
        settle(&mut run, hidden);
        assert_eq!(reported(&run), times, "{hidden} s");
        run.sim.hidden = false;
        settle(&mut run, 2);
    }
    run.sim.hidden = true;
    let run = run.finish();
    let Outcome::Paused { why: PauseReason::Blind { failure, .. } } = run.outcome() else {
        panic!("{:?}", run.outcome())
    };
    assert_eq!(failure.as_deref(), Some(FAILURE));
}
