//! Several DaemonSets that share a budget of one node: runs that are killed, interrupted, or lose a
//! lock. The laws of a shared budget judge each request; here, the order of all runs together.

use ds_plan::Exit;
use serde_json::json;

use super::{exits, fleet, ran, story};
use crate::careful::deletes;
use crate::checks::{Asks, Checks};
use crate::dice::Dice;
use crate::scenario::{AgentSpec, Interference, Scenario, What};
use crate::story::{Kill, Story};
use crate::trial::{self, Outcome};

/// The order on each node.
const ORDER: [&str; 3] = ["relay", "agent", "probe"];

/// Three DaemonSets on three nodes.
fn scenario() -> Scenario {
    let mut story = story(Vec::new());
    story.rules.shared_budget = Some(json!(1));
    story.rules.others = json!({"minReadySeconds": 0, "ramp": "none"});
    let one = fleet(3, 2, story);
    let agent = |name| AgentSpec { name, ..one.agents[0].clone() };
    Scenario { agents: ORDER.into_iter().map(agent).collect(), ..one }
}

fn with_story(change: impl FnOnce(&mut Story)) -> Scenario {
    let mut scenario = scenario();
    change(scenario.story.as_mut().expect("a story"));
    scenario
}

/// Each node is disturbed once: all its pods are replaced, in their order, before the next one.
fn assert_once(outcome: &Outcome, context: &str) {
    assert!(outcome.broken.is_empty(), "{context} {:?}: {:#?}", outcome.ended, outcome.broken);
    assert_eq!(exits(outcome).last(), Some(&Exit::Done), "{context}");
    let mut replaced: Vec<(String, String)> = Vec::new();
    for (_, pod) in deletes(&outcome.history) {
        let old = pod.split_once("-node-").map(|(name, node)| (node.to_owned(), name.to_owned()));
        // A delete may be sent again.
        replaced.extend(old.filter(|old| !replaced.contains(old)));
    }
    assert_eq!(replaced.len(), 9, "{context}: {replaced:?}");
    for of_node in replaced.chunks(ORDER.len()) {
        let order: Vec<&str> = of_node.iter().map(|(_, name)| name.as_str()).collect();
        let is_one_node = of_node.iter().all(|(node, _)| *node == of_node[0].0);
        assert!(is_one_node && order == ORDER, "{context}: {replaced:?}");
    }
}

#[test]
fn a_run_may_be_killed_at_any_request() {
    let whole = trial::run(&scenario());
    assert_once(&whole, "whole");
    // Each takes a second in a debug build: every third request, before and after it in turn.
    for request in (1..=whole.requests_of_runs[0]).step_by(3) {
        let kill = Kill { run: 0, request, after: request % 2 == 0 };
        let outcome = trial::run(&with_story(|story| story.kills = vec![kill]));
        assert_once(&outcome, &format!("{kill:?}"));
    }
}

#[test]
fn a_run_may_be_interrupted_at_any_time() {
    let mut interrupted = 0;
    for at in (1..120).step_by(3) {
        let outcome = trial::run(&with_story(|story| story.interrupts = vec![(0, at)]));
        assert_once(&outcome, &format!("after {at} s"));
        interrupted += usize::from(exits(&outcome)[0] == Exit::Interrupted);
    }
    assert!(interrupted > 20, "{interrupted}");
}

#[test]
fn all_stop_when_one_of_the_locks_is_lost() {
    let mut lost = 0;
    // It is the lock of each of them in turn.
    for at in (2..90).step_by(4) {
        let unlock = Interference { at, what: What::Unlock };
        let outcome = trial::run(&Scenario { external_actors: vec![unlock], ..scenario() });
        assert_once(&outcome, &format!("at {at} s"));
        lost += usize::from(exits(&outcome)[0] == Exit::Locked);
    }
    assert!(lost > 10, "{lost}");
}

/// The first run was killed, so the second one waits for each lock in turn until it expires. Found by
/// story 13008: it waited for the last lock, and had lost the first one.
#[test]
fn a_run_that_waits_for_a_lock_ends_when_it_loses_another_one() {
    let mut lost = 0;
    for at in (150..260).step_by(7) {
        let unlock = Interference { at, what: What::Unlock };
        let killed = with_story(|story| {
            story.kills = vec![Kill { run: 0, request: 120, after: true }];
        });
        let outcome = trial::run(&Scenario { external_actors: vec![unlock], ..killed });
        assert_once(&outcome, &format!("at {at} s"));
        lost += usize::from(exits(&outcome)[0] == Exit::Locked);
    }
    assert!(lost > 3, "{lost}");
}

/// Each of them asks by itself, and the answers of one arrive before those of another: a node that is
/// open keeps its slot meanwhile, and no other one begins.
#[test]
fn answers_that_are_under_way_open_no_slot() {
    let scenario = with_story(|story| {
        let names = ["node-00".to_owned()];
        let checks = (0..).map(|seed| Checks::random(&names, 1_767_312_000, &mut Dice::new(seed)));
        let mut checks = checks
            .filter(|checks| checks.all().all(|rule| rule.asks == Asks::Http))
            .find(|checks| checks.preconditions.len() == 1 && checks.gates.is_empty())
            .expect("a precondition");
        checks.pass_always();
        (checks.latency, checks.preconditions[0].interval) = (3, 10);
        story.rules.checks = Some(checks);
    });
    assert_once(&trial::run(&scenario), "asking");
}

/// A guard blocks the first one, of which two nodes are down. The second one has no pod there, but
/// both of them share the budget: it must not begin. Only `--managed-by` says that there is no
/// controller, so that the first one is no DaemonSet of the API.
#[test]
fn one_that_is_not_rolled_out_counts_without_a_controller_too() {
    for managed in [false, true] {
        let mut story = story(Vec::new());
        story.rules.shared_budget = Some(json!(1));
        story.rules.others = json!({"minReadySeconds": 0, "ramp": "none"});
        story.most_runs = 1;
        let one = fleet(3, 1, story);
        let agent = |name, tolerates| AgentSpec { name, tolerates, ..one.agents[0].clone() };
        let agents = vec![agent("agent", true), agent("relay", false)];
        let mut scenario = Scenario { agents, managed, ..one };
        for node in &mut scenario.nodes[1..] {
            node.ready = false;
        }
        let outcome = ran(&scenario);
        assert_eq!(deletes(&outcome.history), [], "managed: {managed}, {:?}", exits(&outcome));
    }
}
