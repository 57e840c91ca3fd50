//! Zones one after the other, and the way back through them.

use ds_plan::Exit;
use serde_json::json;

use super::{begins, canaries, exits, fleet, ran, second, story};
use crate::careful::deletes;
use crate::rules::{DomainRule, WindowRule};
use crate::story::Story;

/// One zone at once, and one node in it.
fn one_by_one() -> DomainRule {
    DomainRule { at_once: 1, max_unavailable: Some(json!(1)), soak: 0, first: Some("zone-c") }
}

#[test]
fn a_node_that_is_not_ready_in_one_zone_blocks_no_other_zone() {
    let mut story = story(Vec::new());
    story.rules.domains = Some(DomainRule { max_unavailable: None, ..one_by_one() });
    let mut scenario = fleet(9, 2, story);
    let dead = scenario.nodes.iter_mut().find(|node| node.zone == 'c').unwrap();
    dead.ready = false;
    let outcome = ran(&scenario);
    let zone = |(_, node): &(jiff::Timestamp, String)| node.parse::<usize>().unwrap() % 3;
    let zones: Vec<usize> = begins(&outcome).iter().map(zone).collect();
    assert_eq!(zones, [2, 2, 0, 0, 0, 1, 1, 1], "{:?}", outcome.ended);
}

/// The last node of the last step does not become available. The way back takes longer than the
/// window is open.
#[test]
fn a_failure_in_the_last_step_rolls_back_zone_by_zone_outside_of_the_window() {
    let mut story = Story { most_runs: 1, ..story(canaries(0)) };
    story.rules.domains = Some(one_by_one());
    story.rules.window = Some(WindowRule { minute: 0, minutes: 4 });
    story.rules.on_failure = "rollback";
    story.rules.others = json!({"progressDeadline": "2m", "minReadySeconds": 0});
    let mut scenario = fleet(9, 3, story);
    let whole = ran(&scenario);
    assert_eq!(exits(&whole), [Exit::Done]);
    let last = &begins(&whole)[8].1;
    let bad = json!({
        "fault": "readyLate", "by": "2h", "image": "registry.example/agent:2",
        "nodes": {"names": [format!("node-{last}")]},
    });
    scenario.faults = vec![("images", bad)];
    let outcome = ran(&scenario);
    assert_eq!(exits(&outcome), [Exit::Paused]);
    let times: Vec<i64> =
        deletes(&outcome.history).iter().map(|(at, _)| second(*at, &scenario)).collect();
    // All nodes forth, and all of them back; it ends after the window has closed.
    assert_eq!(times.len(), 18, "{times:?}");
    assert!(times[8] < 120 && times[9] > 190 && times[14] > 240, "{times:?}");
    let hashes = |state: &str| {
        let pods = state.lines().filter(|line| line.contains("\"node-"));
        pods.filter_map(|line| Some(line.split(['(', ')']).nth(1)?.to_owned()))
            .collect::<std::collections::BTreeSet<_>>()
    };
    let (old, new) = (hashes(&outcome.state), hashes(&whole.state));
    assert_eq!((old.len(), new.len(), old == new), (1, 1, false), "{}", outcome.state);
}
