//! Regression tests for failures that random seeds found: without a controller, each minimized; and others by
//! their seeds.

use serde_json::json;

use crate::crash::scenario;
use crate::scenario::{AgentSpec, Change, Fate, NodeSpec, Scenario};
use crate::{shrink, trial};

#[test]
fn a_run_with_an_empty_plan_plans_again_under_the_lock() {
    let bad = json!({"fault": "neverPulls", "image": "registry.example/agent:2", "nodes": {}});
    let outcome = trial::run(&Scenario {
        faults: vec![("images", bad)],
        fates: vec![Fate::Another(32)],
        managed: true,
        ..scenario("new")
    });
    assert!(outcome.broken.is_empty(), "{:?}: {:#?}", outcome.ended, outcome.broken);
}

#[test]
fn an_interrupt_ends_a_surge_without_another_delete() {
    let surge = scenario("no controller, surge");
    for at in 1..30 {
        let agents = surge.agents.iter().cloned();
        let agents = agents.map(|agent| AgentSpec { min_ready_seconds: 5, ..agent });
        let fates = vec![Fate::Interrupted(at)];
        let outcome = trial::run(&Scenario { agents: agents.collect(), fates, ..surge.clone() });
        assert!(outcome.broken.is_empty(), "at {at}: {:#?}", outcome.broken);
    }
}

/// The run waits for events that it sees only from time to time, but not for ever.
#[test]
fn a_repeatedly_cut_watch_does_not_block_a_run() {
    let one = scenario("image");
    let agent = AgentSpec {
        strategy: json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}}),
        min_ready_seconds: 90,
        change: Change::Filled,
        ..one.agents[0].clone()
    };
    let node = |at: usize, ready| NodeSpec { ready, ..one.nodes[at].clone() };
    let cut = json!({"answer": {"cut": "15s"}, "resources": ["pods"], "verbs": ["watch"]});
    let outcome = trial::run(&Scenario {
        nodes: vec![node(0, false), node(1, true)],
        agents: vec![agent],
        policy: None,
        faults: vec![("api", cut)],
        ..one
    });
    assert!(outcome.broken.is_empty(), "{:?}: {:#?}", outcome.ended, outcome.broken);
}

/// Seeds of `soak --checks` that have broken a law, because of a bug or because the law was wrong.
const SEEDS: [u64; 64] = [
    24500, 24968, 26729, 30409, 30771, 32350, 34612, 35054, 36771, 37102, 37141, 37614, 38992,
    39081, 42302, 44487, 44595, 45992, 47313, 58153, 63241, 64785, 66415, 74877, 81745, 84206,
    154_194, 159_986, 165_362, 173_092, 195_817, 200_246, 205_905, 207_741, 210_596, 214_527,
    216_953, 224_088, 277_702, 291_512, 363_298, 372_637, 393_408, 415_545, 434_236, 443_685,
    506_803, 621_781, 638_249, 688_556, 695_159, 698_619, 732_252, 748_398, 774_247, 823_992,
    851_702, 871_767, 912_344, 934_692, 948_159, 949_359, 989_496, 994_478,
];

#[test]
fn seeds_that_have_broken_a_law_break_none() {
    for seed in SEEDS {
        if let Some(broken) = shrink::broken(seed, true, &[]) {
            panic!("{broken}");
        }
    }
}
