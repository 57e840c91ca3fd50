//! What seeds have found where no controller acts, each as small as it got.

use serde_json::json;

use crate::crash::scenario;
use crate::scenario::{AgentSpec, Fate, Scenario};
use crate::trial;

#[test]
fn a_run_that_had_nothing_to_do_plans_again_when_it_has_the_lock() {
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
fn an_interrupt_ends_a_surge_without_one_more_delete() {
    let surge = scenario("no controller, surge");
    for at in 1..30 {
        let agents = surge.agents.iter().cloned();
        let agents = agents.map(|agent| AgentSpec { min_ready_seconds: 5, ..agent });
        let fates = vec![Fate::Interrupted(at)];
        let outcome = trial::run(&Scenario { agents: agents.collect(), fates, ..surge.clone() });
        assert!(outcome.broken.is_empty(), "at {at}: {:#?}", outcome.broken);
    }
}
