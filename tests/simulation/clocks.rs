//! Several API servers whose clocks do not agree: nothing goes that is too young by the right one.

use ds_plan::cli::Exit;

use crate::crash::scenario;
use crate::scenario::{AgentSpec, Scenario};
use crate::trial::{self, Outcome};

const YEAR: i64 = 365 * 24 * 3600;

/// A rollout whose new pods have to be Ready for 40 s, before servers with these clocks.
fn rolled(clocks: Vec<i64>) -> Outcome {
    let calm = scenario("two at once");
    let agents = calm.agents.iter().cloned();
    let agents = agents.map(|agent| AgentSpec { min_ready_seconds: 40, ..agent }).collect();
    trial::run(&Scenario { agents, clocks, ..calm })
}

#[test]
fn one_server_that_is_wrong_changes_nothing() {
    for off in [YEAR, 3_600, 60, -60, -3_600, -YEAR] {
        let clocks: Vec<i64> = std::iter::repeat_n(0, 15).chain([off]).collect();
        let outcome = rolled(clocks);
        assert!(outcome.broken.is_empty(), "{off}: {:#?}", outcome.broken);
        let [(_, ended)] = &outcome.ended[..] else { panic!("{off}: {:?}", outcome.ended) };
        assert_eq!(ended.exit, Exit::Done, "{off}");
    }
}

#[test]
fn where_servers_disagree_the_earlier_one_is_gone_by() {
    for clocks in [[0, YEAR], [0, 90], [0, 3_600], [0, -90], [0, -3_600]] {
        let outcome = rolled(clocks.to_vec());
        assert!(outcome.broken.is_empty(), "{clocks:?}: {:#?}", outcome.broken);
        let [(_, ended)] = &outcome.ended[..] else { panic!("{clocks:?}: {:?}", outcome.ended) };
        // Pods that seem too young are waited for, and not for ever.
        let is_ahead = clocks[1] > 0;
        assert!(!is_ahead || ended.exit == Exit::Done, "{clocks:?}: {ended:?}");
    }
    let two_of_three = rolled(vec![3_600, 0, 3_600]);
    assert!(two_of_three.broken.is_empty(), "{:#?}", two_of_three.broken);
}
