//! Nodes that fail for a while during a rollout.

use std::thread;
use std::time::{Duration, Instant};

use crate::agent::Agent;
use crate::fleet::{Fleet, ended};
use crate::harness::{wait_for, wait_until};
use crate::nodes::{NAMES, Part, RealNodes};

const SOON: Duration = Duration::from_mins(1);

#[test]
fn a_rollout_survives_the_outage_of_a_nodes_runtime_and_of_its_kubelet() {
    let Some(nodes) = RealNodes::start() else { return };
    let fleet = Fleet::new(&nodes, "outages", &Agent::new("v1").probed());
    during(&fleet, &Agent::new("v2").probed(), |node| {
        nodes.kill(node, Part::Containerd);
        thread::sleep(Duration::from_secs(20));
        nodes.start_again(node, Part::Containerd);
    });
    during(&fleet, &Agent::new("v3").probed(), |node| {
        nodes.freeze(node, Part::Kubelet);
        let frozen = Instant::now();
        let ready = "--output=jsonpath={.status.conditions[?(@.type=='Ready')].status}";
        wait_for("the frozen node", SOON, "Unknown".to_owned(), || {
            nodes.plane.kubectl(&["get", "node", node, ready])
        });
        thread::sleep(Duration::from_mins(1).saturating_sub(frozen.elapsed()));
        nodes.thaw(node, Part::Kubelet);
    });
}

/// Rolls a version out, with an outage on the last node as soon as the first one has it.
fn during(fleet: &Fleet<'_>, agent: &Agent, outage: impl FnOnce(&str)) {
    let asking = fleet.asking();
    let begin = Instant::now();
    let mut run = fleet.program(agent, &[]).start();
    let with_it = || fleet.witness.nodes_with(agent.version);
    wait_until("the first node has the new version", SOON, || {
        !with_it().is_empty() || run.has_ended()
    });
    let first = with_it();
    let last = NAMES.iter().rfind(|name| !first.contains(**name)).unwrap();
    outage(last);
    let run = ended(&run.wait(), begin);
    let answers = asking.end();
    println!(
        "{} on {last}: {} s, {} silent at a time, each at most {:?}",
        agent.version,
        run.took.as_secs(),
        answers.most_silent(),
        answers.longest()
    );
    assert_eq!(run.code, Some(0), "{}", run.reported);
    assert!(answers.most_silent() <= 1, "{answers:?}\n{}", run.reported);
    fleet.wait_until_all_answer(agent);
    fleet.nodes.wait_until_ready();
}
