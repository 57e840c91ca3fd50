//! Versions that serve: the fleet is replaced, and stays available within the budget.

use std::thread;
use std::time::Duration;

use crate::agent::Agent;
use crate::fleet::Fleet;
use crate::nodes::{NAMES, RealNodes, SLOW_PULL};

/// An update from one version to the next.
struct Update {
    name: &'static str,
    from: Agent,
    to: Agent,
    /// The highest number of nodes that may be silent at a time.
    budget: u32,
    /// The minimum duration per node.
    each: Duration,
    /// The minimum time that each node is silent.
    silent: Duration,
}

fn updates() -> Vec<Update> {
    let (v1, v2) = (|| Agent::new("v1").probed(), || Agent::new("v2").probed());
    let update = |name, from, to, budget, each, silent| {
        let [each, silent] = [each, silent].map(Duration::from_secs);
        Update { name, from, to, budget, each, silent }
    };
    vec![
        update("probed", v1(), v2(), 1, 0, 0),
        update("unprobed", Agent::new("v1"), Agent::new("v2"), 1, 0, 0),
        update("two-at-once", v1().at_once(2), v2().at_once(2), 2, 0, 0),
        update("slow-start", v1(), v2().ready_after("6s"), 1, 6, 6),
        // It serves until it is killed.
        update("slow-end", v1().deaf_for(8), v2(), 1, 8, 0),
        update(
            "slow-pull",
            v1(),
            v2().image("slow:2"),
            1,
            SLOW_PULL.as_secs(),
            SLOW_PULL.as_secs(),
        ),
    ]
}

#[test]
fn good_versions_are_rolled_out_without_an_outage() {
    let Some(nodes) = RealNodes::start() else { return };
    let nodes = &nodes;
    thread::scope(|scope| {
        for update in updates() {
            scope.spawn(move || rolled_out(nodes, &update));
        }
    });
}

fn rolled_out(nodes: &RealNodes, update: &Update) {
    let Update { name, from, to, budget, each, silent } = update;
    let fleet = Fleet::new(nodes, name, from);
    let asking = fleet.asking();
    let run = fleet.apply(to, &[]);
    let answers = asking.end();
    println!(
        "{name}: {} s, {} silent at a time, each at most {:?}",
        run.took.as_secs(),
        answers.most_silent(),
        answers.longest()
    );
    assert_eq!(run.code, Some(0), "{name}: {}", run.reported);
    assert_eq!(fleet.answers(), vec![Some("v2".to_owned()); NAMES.len()], "{name}");
    assert_eq!(answers.ever_silent(), NAMES.len(), "{name}: an old agent still answers");
    let budget = usize::try_from(*budget).unwrap();
    assert!(answers.most_silent() <= budget, "{name}: {answers:?}\n{}", run.reported);
    assert!(answers.longest() >= *silent, "{name}: {answers:?}");
    let waves = u32::try_from(NAMES.len().div_ceil(budget)).unwrap();
    assert!(run.took >= *each * waves, "{name}: {:?}", run.took);
    assert_eq!(fleet.field(".spec.updateStrategy.type"), "RollingUpdate", "{name}");
}
