//! The cost of a bad version, and the duration of a good one: with the real program on virtual
//! time.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::crash::scenario;
use crate::scenario::{AgentSpec, NodeSpec, PodSpec, Scenario};
use crate::trial;

/// Nodes with an available pod each, and an agent of which up to half may be unavailable.
fn fleet(nodes: usize, min_ready_seconds: u64, max_unavailable: &Value, pod: PodSpec) -> Scenario {
    let one = scenario("image");
    let node = |at: usize| NodeSpec { name: format!("node-{at:02}"), pod, ..one.nodes[0].clone() };
    let strategy = json!({
        "type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": max_unavailable},
    });
    let agent = AgentSpec {
        min_ready_seconds,
        strategy,
        live: pod != PodSpec::Missing,
        ..one.agents[0].clone()
    };
    Scenario { nodes: (0..nodes).map(node).collect(), agents: vec![agent], policy: None, ..one }
}

/// The times and names of the pods that the program deleted, in order.
pub(crate) fn deletes(history: &str) -> Vec<(Timestamp, String)> {
    let sent = history.lines().filter(|line| line.contains(" delete ") && line.contains("Pod"));
    let of = |line: &str| {
        let at = line.split(' ').next()?.parse().ok()?;
        let (_, name) = line.split_once("name: \"")?;
        Some((at, name.split('"').next()?.to_owned()))
    };
    sent.filter_map(of).collect()
}

#[test]
fn a_bad_version_of_each_kind_costs_one_node() {
    let new = "registry.example/agent:2";
    let crash = |after: &str| json!({"fault": "crashLoops", "image": new, "after": after});
    for (kind, fault) in [
        ("a missing image", json!({"fault": "neverPulls", "image": new})),
        ("a crash at the start", crash("0s")),
        ("a crash after 3 s", crash("3s")),
        ("a crash after 8 s", crash("8s")),
        ("never ready", json!({"fault": "readyLate", "image": new, "by": "2h"})),
    ] {
        for probed in [false, true] {
            if kind == "never ready" && !probed {
                continue;
            }
            let mut scenario = fleet(12, 0, &json!("50%"), PodSpec::Available);
            scenario.agents[0].probed = probed;
            scenario.faults = vec![("images", fault.clone())];
            let outcome = trial::run(&scenario);
            assert!(outcome.broken.is_empty(), "{kind}: {:#?}", outcome.broken);
            let gone: BTreeSet<_> = deletes(&outcome.history).into_iter().map(|it| it.1).collect();
            assert_eq!(gone.len(), 1, "{kind}, probed {probed}: {:?} {gone:?}", outcome.ended);
        }
    }
}

#[test]
fn a_bad_new_daemon_set_costs_one_node_with_the_in_process_controller() {
    let mut scenario = fleet(12, 0, &json!("50%"), PodSpec::Missing);
    scenario.managed = true;
    let bad = json!({"fault": "neverPulls", "image": "registry.example/agent:2"});
    scenario.faults = vec![("images", bad)];
    let outcome = trial::run(&scenario);
    assert!(outcome.broken.is_empty(), "{:#?}", outcome.broken);
    let count = |state: &str| state.matches("\"node-").count();
    assert_eq!(count(&outcome.state), 1, "{:?} {}", outcome.ended, outcome.state);
    let good = trial::run(&Scenario { faults: Vec::new(), ..scenario });
    assert_eq!(count(&good.state), 12, "{:?}", good.ended);
}

/// With `minReadySeconds: 2` and one node at a time, a fifth of all nodes once took 32 s: the run
/// did not re-check when the pod became available.
#[test]
fn each_node_takes_its_start_time_plus_min_ready_seconds() {
    let mut scenario = fleet(24, 2, &json!(1), PodSpec::Available);
    scenario.policy = Some(json!({"minReadySeconds": 2}));
    let outcome = trial::run(&scenario);
    assert!(outcome.broken.is_empty(), "{:#?}", outcome.broken);
    let at: Vec<Timestamp> = deletes(&outcome.history).into_iter().map(|it| it.0).collect();
    assert_eq!(at.len(), 24);
    // Stops take up to 1.1 s, starts 8.8 s, and timestamps have a resolution of one second.
    let longest = at.windows(2).map(|pair| pair[1].duration_since(pair[0])).max().unwrap();
    assert!(longest.as_secs_f64() <= 1.1 + 8.8 + 2.0 + 1.0 + 1.0, "{longest:?}");
}
