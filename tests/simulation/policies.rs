//! Whole rollouts under a policy with steps, domains and windows: named cases. The laws of steps
//! judge each request of them, too.

mod domains;
mod shared;
mod steps;
mod windows;

use std::collections::BTreeMap;

use ds_plan::Exit;
use jiff::Timestamp;
use serde_json::json;

use crate::careful;
use crate::crash;
use crate::rules::{Rules, Selects, StepRule};
use crate::scenario::{AgentSpec, NodeSpec, Scenario};
use crate::story::{MOST_RUNS, Story};
use crate::trial::{self, Outcome};

/// Nodes in three zones with an agent of which `max_unavailable` may be down, and a story.
fn fleet(nodes: usize, max_unavailable: u32, story: Story) -> Scenario {
    let one = crash::scenario("image");
    let node = |at: usize| NodeSpec {
        name: format!("node-{at:02}"),
        zone: ['a', 'b', 'c'][at % 3],
        ..one.nodes[0].clone()
    };
    let strategy =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": max_unavailable}});
    let agent = AgentSpec { strategy, ..one.agents[0].clone() };
    let (nodes, agents) = ((0..nodes).map(node).collect(), vec![agent]);
    Scenario { nodes, agents, policy: None, story: Some(story), ..one }
}

/// The first node, then two, each with a soak of this many seconds.
fn canaries(soak: i64) -> Vec<StepRule> {
    let of = |name, count| StepRule { soak, ..step(name, Selects::Count(count)) };
    vec![of("canary", 1), of("some", 2)]
}

/// Runs it; no law may break.
fn ran(scenario: &Scenario) -> Outcome {
    let outcome = trial::run(scenario);
    assert!(outcome.broken.is_empty(), "{:?}: {:#?}", outcome.ended, outcome.broken);
    outcome
}

fn exits(outcome: &Outcome) -> Vec<Exit> {
    outcome.ended.iter().map(|(_, ended)| ended.exit).collect()
}

/// The nodes in the order in which their old pods were deleted, each with the time.
fn begins(outcome: &Outcome) -> Vec<(Timestamp, String)> {
    let mut first: BTreeMap<String, Timestamp> = BTreeMap::new();
    for (at, pod) in careful::deletes(&outcome.history) {
        if let Some(node) = pod.strip_prefix("agent-node-") {
            first.entry(node.to_owned()).or_insert(at);
        }
    }
    let mut begins: Vec<_> = first.into_iter().map(|(node, at)| (at, node)).collect();
    begins.sort();
    begins
}

/// Seconds since the beginning.
fn second(at: Timestamp, scenario: &Scenario) -> i64 {
    at.duration_since(crate::cluster::start(scenario)).as_secs()
}

/// A step without a soak, an approval or a limit.
fn step(name: &str, nodes: Selects) -> StepRule {
    let name = name.to_owned();
    StepRule { name, nodes, spreads: false, soak: 0, approve: false, max_unavailable: None }
}

/// A story of one commit under a policy with these steps and nothing else.
fn story(steps: Vec<StepRule>) -> Story {
    let rules = Rules {
        steps,
        domains: None,
        window: None,
        exclusion: None,
        keeps_target: false,
        on_failure: "abort",
        shared_budget: None,
        checks: None,
        pulls_for: None,
        others: json!({}),
    };
    Story {
        rules,
        events: Vec::new(),
        kills: Vec::new(),
        interrupts: Vec::new(),
        wait: None,
        interval: 60,
        approves_after: None,
        local_clock: 0,
        start: None,
        most_runs: MOST_RUNS,
    }
}
