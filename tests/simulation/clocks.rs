//! Several API servers with different clocks: no pod is deleted that is too young by the correct
//! clock. And a local clock that is wrong, which decides nothing.

use ds_plan::Exit;
use serde_json::{Value, json};

use crate::crash::scenario;
use crate::scenario::{AgentSpec, Fate, Scenario};
use crate::trial::{self, Outcome};

const YEAR: i64 = 365 * 24 * 3600;

/// A rollout whose new pods have to be Ready for 40 s, with API servers that have these clocks.
fn rolled(clocks: Vec<i64>) -> Outcome {
    let calm = scenario("two at once");
    let agents = calm.agents.iter().cloned();
    let agents = agents.map(|agent| AgentSpec { min_ready_seconds: 40, ..agent }).collect();
    trial::run(&Scenario { agents, clocks, ..calm })
}

#[test]
fn one_wrong_clock_changes_nothing() {
    for off in [YEAR, 3_600, 60, -60, -3_600, -YEAR] {
        let clocks: Vec<i64> = std::iter::repeat_n(0, 15).chain([off]).collect();
        let outcome = rolled(clocks);
        assert!(outcome.broken.is_empty(), "{off}: {:#?}", outcome.broken);
        let [(_, ended)] = &outcome.ended[..] else { panic!("{off}: {:?}", outcome.ended) };
        assert_eq!(ended.exit, Exit::Done, "{off}");
    }
}

#[test]
fn the_earlier_of_two_clocks_is_used() {
    for clocks in [[0, YEAR], [0, 90], [0, 3_600], [0, -90], [0, -3_600]] {
        let outcome = rolled(clocks.to_vec());
        assert!(outcome.broken.is_empty(), "{clocks:?}: {:#?}", outcome.broken);
        let [(_, ended)] = &outcome.ended[..] else { panic!("{clocks:?}: {:?}", outcome.ended) };
        // The run waits for pods that seem too young, but not for ever.
        let is_ahead = clocks[1] > 0;
        assert!(!is_ahead || ended.exit == Exit::Done, "{clocks:?}: {ended:?}");
    }
    let two_of_three = rolled(vec![3_600, 0, 3_600]);
    assert!(two_of_three.broken.is_empty(), "{:#?}", two_of_three.broken);
}

/// Also under a policy whose soaks and windows depend on the time.
#[test]
fn the_local_clock_decides_nothing() {
    const DAY: i64 = 24 * 3_600;
    let rolled = |off: i64, policy: &Value| {
        let calm = scenario("two at once");
        let fates = vec![Fate::LocalClock(off)];
        trial::run(&Scenario { fates, policy: Some(policy.clone()), ..calm })
    };
    for policy in [
        json!({}),
        json!({"minReadySeconds": 40, "maxUnavailable": 1}),
        json!({"steps": [{"name": "canary", "nodes": 1, "soak": "1h"}]}),
        // Closed now, and open a day ago and in a day.
        json!({"windows": [{"schedule": "0 0 */2 * *", "duration": "2h"}]}),
    ] {
        let right = rolled(0, &policy);
        for off in [DAY, -DAY] {
            let wrong = rolled(off, &policy);
            // A run that waits does not end complete, which is all that may be wrong.
            assert_eq!((&wrong.ended, &wrong.broken), (&right.ended, &right.broken), "{policy}");
            assert_eq!((wrong.requests, &wrong.state), (right.requests, &right.state), "{policy}");
        }
    }
}
