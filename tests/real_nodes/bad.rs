//! Versions that fail, each in its own way: they get one node and no more, the run is aborted, and
//! a retry or an undo affects no other node.

use std::collections::BTreeSet;
use std::thread;

use crate::agent::Agent;
use crate::asking::Answers;
use crate::fleet::{Ended, Fleet};
use crate::nodes::{NAMES, RealNodes};

/// The run's words for containers that end again and again: either may come first.
const CRASHES: [&str; 2] = ["CrashLoopBackOff", "restarted"];

/// The failing versions, each with the words of the run. The budget would allow all nodes at once.
fn kinds() -> Vec<(&'static str, Agent, [&'static str; 2])> {
    let bad = || Agent::new("bad").at_once(3);
    vec![
        ("missing-image", bad().image("agent:none"), ["ErrImagePull", "ImagePullBackOff"]),
        ("no-such-program", bad().command("/nothing"), CRASHES),
        ("ends-at-once", bad().exits_after("0s"), CRASHES),
        ("ends-after-3s", bad().exits_after("3s"), CRASHES),
        ("ends-after-8s", bad().exits_after("8s"), CRASHES),
        ("ends-at-once-probed", bad().exits_after("0s").probed(), CRASHES),
        ("ends-after-3s-probed", bad().exits_after("3s").probed(), CRASHES),
        ("ends-after-8s-probed", bad().exits_after("8s").probed(), CRASHES),
        ("never-ready", bad().ready_after("1h").probed(), ["not Ready", "not available"]),
    ]
}

#[test]
fn bad_versions_get_one_node_and_no_more() {
    let Some(nodes) = RealNodes::start() else { return };
    let nodes = &nodes;
    thread::scope(|scope| {
        for (name, bad, why) in kinds() {
            scope.spawn(move || stopped_at_the_first_node(nodes, name, &bad, why));
        }
    });
}

fn stopped_at_the_first_node(nodes: &RealNodes, name: &str, bad: &Agent, why: [&str; 2]) {
    let good = bad.good();
    let fleet = Fleet::new(nodes, name, &good);
    // Short only where the deadline is the only failure.
    let deadline: &[&str] = if name == "never-ready" { &["--progress-deadline=30s"] } else { &[] };

    let asking = fleet.asking();
    let first = fleet.apply(bad, deadline);
    report(&fleet, name, "aborted", &first);
    assert_eq!(first.code, Some(4), "{name}: {}", first.reported);
    assert!(why.iter().any(|why| first.reported.contains(why)), "{name}: {}", first.reported);
    let struck = fleet.witness.nodes_with("bad");
    assert_eq!(struck.len(), 1, "{name}: {struck:?}\n{}", first.reported);
    assert_eq!(fleet.field(".spec.updateStrategy.type"), "OnDelete", "{name}: aborted");
    let live = fleet.field(".spec.template.metadata.labels.version");
    assert_eq!(live, "good", "{name}: a new node gets the good version");

    let refused = fleet.apply(bad, deadline);
    assert_eq!(refused.code, Some(6), "{name}: {}", refused.reported);
    let retried = fleet.apply(bad, &[&["--retry"], deadline].concat());
    report(&fleet, name, "tried again", &retried);
    assert_eq!(retried.code, Some(4), "{name}: {}", retried.reported);
    assert_eq!(fleet.witness.nodes_with("bad"), struck, "{name}: {}", retried.reported);

    let undone = fleet.undo();
    report(&fleet, name, "undone", &undone);
    assert_eq!(undone.code, Some(0), "{name}: {}", undone.reported);
    fleet.wait_until_all_answer(&good);
    only_these_were_silent(name, &asking.end(), &struck);
    assert_eq!(fleet.field(".spec.updateStrategy.type"), "RollingUpdate", "{name}");
}

/// Prints a row of the table in the documentation.
fn report(fleet: &Fleet<'_>, name: &str, what: &str, run: &Ended) {
    let struck = fleet.witness.nodes_with("bad").len();
    let before = run.reported.split("restoring the last good template").next();
    let message = before.and_then(|text| text.lines().rev().nth(1)).unwrap_or_default();
    println!(
        "{name}: {what} after {} s, nodes: {struck}, before that: {message}",
        run.took.as_secs()
    );
}

fn only_these_were_silent(name: &str, answers: &Answers, struck: &BTreeSet<String>) {
    for (node, came) in NAMES.iter().zip(&answers.0) {
        let silent = !came.silences.is_empty();
        assert_eq!(silent, struck.contains(*node), "{name}: node {node}: {came:?}");
    }
}
