//! A run that is killed before or after any single request: the next run ends in the same state.

use serde_json::{Value, json};

use crate::scenario::{AgentSpec, Change, Fate, NodeSpec, PodSpec, Scenario};
use crate::trial;

/// A scenario with three nodes and one DaemonSet: the smallest that covers all interruptions.
pub(crate) fn scenario(name: &str) -> Scenario {
    let rolling = |limits: Value| json!({"type": "RollingUpdate", "rollingUpdate": limits});
    let one = rolling(json!({"maxUnavailable": 1}));
    let pods = [PodSpec::Available; 3];
    let bad = |nodes: Value| {
        let image = "registry.example/agent:2";
        json!({"fault": "neverPulls", "image": image, "nodes": {"names": nodes}})
    };
    let (strategy, change, live, pods, fault, on_failure) = match name {
        "image" => (one, Change::Image, true, pods, None, "abort"),
        "env" => (one, Change::Env, true, pods, None, "abort"),
        "nodes" => (one, Change::Pool, true, pods, None, "abort"),
        "emptied" | "no controller, emptied" => (one, Change::Emptied, true, pods, None, "abort"),
        "nothing" => (one, Change::Nothing, true, pods, None, "abort"),
        "new" => (one, Change::Image, false, pods, None, "abort"),
        "two at once" => {
            let two = rolling(json!({"maxUnavailable": 2}));
            (two, Change::Image, true, pods, None, "abort")
        }
        "surge" => {
            let surge = rolling(json!({"maxUnavailable": 0, "maxSurge": 1}));
            (surge, Change::Image, true, pods, None, "abort")
        }
        "no controller, surge" => {
            let surge = rolling(json!({"maxUnavailable": 0, "maxSurge": 2}));
            (surge, Change::Image, true, pods, None, "abort")
        }
        "by hand" => (json!({"type": "OnDelete"}), Change::Image, true, pods, None, "abort"),
        "orphan" => {
            let pods = [PodSpec::Orphan, PodSpec::Available, PodSpec::Missing];
            (one, Change::Image, true, pods, None, "abort")
        }
        "no controller" => {
            let pods = [PodSpec::Available, PodSpec::Orphan, PodSpec::Missing];
            (one, Change::Image, true, pods, None, "abort")
        }
        "bad" => (one, Change::Image, true, pods, Some(bad(json!([]))), "abort"),
        "bad, and filled" => (one, Change::Filled, true, pods, Some(bad(json!([]))), "abort"),
        "bad on one" => (one, Change::Image, true, pods, Some(bad(json!(["node-1"]))), "pause"),
        "rollback" => (one, Change::Image, true, pods, Some(bad(json!(["node-1"]))), "rollback"),
        other => panic!("{other}"),
    };
    let node = |(at, pod): (usize, PodSpec)| NodeSpec {
        name: format!("node-{at}"),
        zone: 'a',
        pool: if at == 0 { "green" } else { "blue" },
        ready: true,
        cordoned: false,
        tainted: false,
        pod,
    };
    Scenario {
        seed: 7,
        nodes: pods.into_iter().enumerate().map(node).collect(),
        agents: vec![AgentSpec {
            name: "agent",
            strategy,
            min_ready_seconds: 0,
            pool: None,
            change,
            tolerates: false,
            probed: false,
            live,
        }],
        policy: Some(json!({"progressDeadline": "1m", "onFailure": on_failure})),
        faults: fault.into_iter().map(|fault| ("images", fault)).collect(),
        external_actors: Vec::new(),
        fates: Vec::new(),
        managed: name.starts_with("no controller"),
        clocks: Vec::new(),
        story: None,
    }
}

/// Kills the run at each of its requests.
fn at_every_request(name: &str) {
    let scenario = scenario(name);
    let whole = trial::run(&scenario);
    assert!(whole.broken.is_empty(), "{name}: {:#?}", whole.broken);
    for at in 1..=whole.requests {
        for kill in [Fate::KilledBefore(at), Fate::KilledAfter(at)] {
            let outcome = trial::run(&Scenario { fates: vec![kill], ..scenario.clone() });
            let ended = &outcome.ended;
            assert!(outcome.broken.is_empty(), "{name} {kill:?} {ended:?}: {:#?}", outcome.broken);
            let last = outcome.history.lines().rfind(|line| line.contains(" first "));
            assert_eq!(outcome.state, whole.state, "{name} {kill:?} {ended:?} {last:?}");
        }
    }
}

macro_rules! killed_at_every_request {
    ($($test:ident: $name:literal,)*) => {
        $(#[test] fn $test() { at_every_request($name); })*
    };
}

killed_at_every_request! {
    an_image: "image",
    an_environment: "env",
    other_nodes: "nodes",
    an_emptied_field: "emptied",
    an_emptied_field_without_a_controller: "no controller, emptied",
    nothing: "nothing",
    a_new_daemon_set: "new",
    two_at_once: "two at once",
    a_surge: "surge",
    by_hand: "by hand",
    an_orphan: "orphan",
    a_bad_image: "bad",
    a_bad_image_and_a_filled_field: "bad, and filled",
    a_bad_image_on_one_node: "bad on one",
    rolling_back: "rollback",
    without_a_controller: "no controller",
    a_surge_without_a_controller: "no controller, surge",
}
