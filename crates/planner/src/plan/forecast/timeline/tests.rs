//! Tables of timelines: each round takes ten seconds, and at most four nodes are unavailable.

use serde_json::{Value, json};

use super::*;
use crate::plan::document::StepPlan;
use crate::plan::tests::{after, settled};
use crate::steps::WaitsFor;
use daemonset::controller::test_cluster::at;
use daemonset::model::{MinReady, Ramp};

/// The plan of a rollout without waves.
fn plan() -> DaemonSetPlan {
    let plan = after(&mut settled(1), |cluster| cluster.set_image("foo/bar:2"));
    let plan = plan.daemon_sets.into_iter().next().unwrap();
    DaemonSetPlan { waves: Vec::new(), ..plan }
}

/// A step: its name, state and soak.
fn step(name: &str, state: StepState, soak_seconds: u32) -> StepPlan {
    let name = name.to_owned();
    StepPlan { name, nodes: 0, updated: 0, state, approve: false, approved: None, soak_seconds }
}

/// A wave of so many nodes in a step, without domains.
fn wave(step: &str, nodes: usize) -> Wave {
    let names = (0..nodes).map(|at| format!("n-{at}").into()).collect();
    Wave { step: Some(step.to_owned()), ..Wave::plain(1, 4, names) }
}

/// One of the waves of domains, with at most `limit` nodes unavailable in each.
fn domain(nodes: usize, limit: u32, at_once: u32, soak_seconds: u32) -> Wave {
    Wave {
        step: None,
        domain: Some("zone-a".to_owned()),
        domain_max_unavailable: Some(limit),
        domains_at_once: Some(at_once),
        soak_seconds,
        ..wave("", nodes)
    }
}

fn soak(step: &str, domain: Option<&str>, until: i64) -> WaitsFor {
    let (step, domain) = (step.to_owned(), domain.map(str::to_owned));
    WaitsFor {
        kind: WaitKind::Soak,
        daemon_set: None,
        step,
        domain,
        until: Some(at(until)),
        check: None,
    }
}

/// From second 0 on, with these windows.
fn course(plan: &DaemonSetPlan, windows: &Value) -> Timeline {
    let windows = serde_json::from_value::<Vec<_>>(windows.clone()).unwrap();
    let calendar = Calendar::of(&windows, &[]);
    timeline(plan, Pace { calendar: &calendar, fits: 10, start: 9, stop: 1 }, at(0))
}

#[test]
fn steps_soak_once_and_domains_after_each_wave() {
    use StepState::{Done, InProgress, Pending, Soaking};
    let canary = |state| vec![step("canary", state, 300), step("rest", Pending, 0)];
    let steps = |state| (canary(state), vec![wave("canary", 4), wave("rest", 8)]);
    for (rule, (steps, waves), waits_for, (work, soak, end)) in [
        ("two rounds of four", (vec![], vec![wave("", 8)]), vec![], (20, 0, 20)),
        ("a soak between two steps", steps(InProgress), vec![], (30, 300, 330)),
        (
            "what is left of a soak",
            (canary(Soaking), vec![wave("rest", 8)]),
            vec![soak("canary", None, 70)],
            (20, 70, 90),
        ),
        (
            "a soak whose end is unknown",
            (canary(Soaking), vec![wave("rest", 8)]),
            vec![],
            (20, 300, 320),
        ),
        ("a step that is done", (canary(Done), vec![wave("rest", 8)]), vec![], (20, 0, 20)),
        (
            "nodes in progress only",
            (vec![step("canary", InProgress, 300), step("rest", Pending, 0)], vec![]),
            vec![],
            (0, 300, 300),
        ),
        (
            "one domain after another",
            (vec![], vec![domain(4, 2, 1, 0), domain(4, 2, 1, 0)]),
            vec![],
            (40, 0, 40),
        ),
        (
            "two domains at once",
            (vec![], vec![domain(4, 2, 2, 0), domain(4, 2, 2, 0)]),
            vec![],
            (20, 0, 20),
        ),
        (
            "at once, but within the limit of all",
            (vec![], vec![domain(4, 4, 2, 0), domain(4, 4, 2, 0)]),
            vec![],
            (20, 0, 20),
        ),
        (
            "each domain soaks, the last one too",
            (vec![], vec![domain(4, 2, 1, 60), domain(4, 2, 1, 60)]),
            vec![],
            (40, 120, 160),
        ),
        (
            "the third domain begins after the shorter soak",
            (vec![], vec![domain(2, 2, 2, 60), domain(4, 2, 2, 60), domain(2, 2, 2, 60)]),
            vec![],
            // At 10 s the first one soaks until 70 s, the second one until 80 s.
            (30, 110, 140),
        ),
        (
            "a domain that soaks holds the next one",
            (vec![], vec![domain(2, 2, 1, 0)]),
            vec![soak("rest", Some("zone-a"), 50)],
            (10, 50, 60),
        ),
    ] {
        let plan = DaemonSetPlan { steps, waits_for, waves, ..plan() };
        let found = course(&plan, &json!([]));
        let end = Some(at(end));
        assert_eq!((found.work, found.soak, found.end), (work, soak, end), "{rule}");
    }
}

/// The first window opens half an hour after the beginning; each is open for a minute.
#[test]
fn nodes_begin_only_in_windows_and_soaks_pass_outside_too() {
    let windows = json!([{"schedule": "30 * * * *", "duration": "1m"}]);
    let opens = 1_800;
    let steps =
        vec![step("canary", StepState::InProgress, 600), step("rest", StepState::Pending, 0)];
    for (rule, steps, waves, (work, soak, end)) in [
        ("all in one window", vec![], vec![wave("", 8)], (20, 0, opens + 20)),
        // Six rounds fit into a minute.
        ("the seventh round waits", vec![], vec![wave("", 28)], (70, 0, opens + 3_610)),
        (
            "a soak ends outside",
            steps,
            vec![wave("canary", 4), wave("rest", 4)],
            (20, 600, opens + 3_610),
        ),
    ] {
        let plan = DaemonSetPlan { steps, waves, ..plan() };
        let found = course(&plan, &windows);
        let end = Some(at(end));
        assert_eq!((found.work, found.soak, found.end), (work, soak, end), "{rule}");
    }
    let plan = DaemonSetPlan { waves: vec![wave("", 8)], ..plan() };
    let windows = serde_json::from_value::<Vec<_>>(windows).unwrap();
    let calendar = Calendar::of(&windows, &[]);
    let too_long = Pace { calendar: &calendar, fits: 61, start: 9, stop: 1 };
    assert_eq!(timeline(&plan, too_long, at(0)).end, None, "no node fits");
}

#[test]
fn the_ramp_begins_anew_only_after_a_wait() {
    let fast = |wave: Wave| Wave {
        ramp: Ramp::Double,
        min_ready_seconds: MinReady { first: 5, others: 0 },
        ..wave
    };
    let steps = |soak| {
        vec![step("canary", StepState::InProgress, soak), step("rest", StepState::Pending, 0)]
    };
    for (rule, soak, (work, first_run)) in [
        // 1, 2, then 4 and 4.
        ("without a soak", 0, (45, 45)),
        // 1, 2; after the soak 1, 2, 4, 1.
        ("after a soak", 60, (70, 25)),
    ] {
        let waves = vec![fast(wave("canary", 3)), fast(wave("rest", 8))];
        let plan = DaemonSetPlan { steps: steps(soak), waves, ..plan() };
        let found = course(&plan, &json!([]));
        assert_eq!((found.work, found.first_run), (work, first_run), "{rule}");
        let ends: Vec<_> = found.steps.iter().map(|step| (&*step.name, step.seconds)).collect();
        assert_eq!(ends, [("canary", 25), ("rest", work - 25)], "{rule}");
    }
}

#[test]
fn parts_are_updates_soaks_and_waits_for_approval() {
    let approve = StepPlan { approve: true, nodes: 12, ..step("rest", StepState::Pending, 0) };
    let plan = DaemonSetPlan {
        steps: vec![step("canary", StepState::InProgress, 300), approve],
        waves: vec![wave("canary", 4), Wave { index: 2, ..wave("rest", 8) }],
        ..plan()
    };
    let span = |kind, step: &str, wave, from, until| ForecastSpan {
        kind,
        step: Some(step.to_owned()),
        wave,
        from: at(from),
        until: at(until),
    };
    assert_eq!(
        course(&plan, &json!([])).spans,
        [
            span(SpanKind::Update, "canary", Some(1), 0, 10),
            span(SpanKind::Soak, "canary", None, 10, 310),
            span(SpanKind::Approval, "rest", None, 310, 310),
            span(SpanKind::Update, "rest", Some(2), 310, 330),
        ]
    );
}
