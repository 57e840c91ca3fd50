//! Steps, soaks and approvals.

use ds_plan::Exit;
use serde_json::json;

use super::{begins, canaries, exits, fleet, ran, second, step, story};
use crate::careful::deletes;
use crate::rules::{Selects, StepRule};
use crate::story::{Kill, Story, Turn};
use crate::trial;

#[test]
fn a_rollout_of_three_steps_may_be_killed_at_every_request() {
    let steps = canaries(40);
    let calm = fleet(3, 1, Story { interval: 50, ..story(steps) });
    let whole = ran(&calm);
    assert_eq!(exits(&whole), [Exit::Waiting, Exit::Waiting, Exit::Done]);
    let order = |outcome: &trial::Outcome| -> Vec<String> {
        begins(outcome).into_iter().map(|(_, node)| node).collect()
    };
    // The number of the good revision grows each time that it is put back.
    let pods = |outcome: &trial::Outcome| -> Vec<String> {
        let lines = outcome.state.lines().filter(|line| line.contains("\"node-"));
        lines.map(str::to_owned).collect()
    };
    for (run, requests) in whole.requests_of_runs.iter().enumerate() {
        for request in 1..=*requests {
            for after in [false, true] {
                let kill = Kill { run, request, after };
                let mut killed = calm.clone();
                killed.story.as_mut().unwrap().kills = vec![kill];
                let outcome = trial::run(&killed);
                let context = format!("{kill:?} {:?}", outcome.ended);
                assert!(outcome.broken.is_empty(), "{context}: {:#?}", outcome.broken);
                assert_eq!(pods(&outcome), pods(&whole), "{context}");
                assert_eq!(order(&outcome), order(&whole), "{context}");
            }
        }
    }
}

#[test]
fn a_note_lost_during_a_soak_begins_it_again() {
    let steps = || vec![canaries(600).remove(0)];
    let second_begin = |events| {
        let scenario = fleet(3, 1, Story { events, interval: 20, most_runs: 90, ..story(steps()) });
        let outcome = ran(&scenario);
        assert_eq!(exits(&outcome).last(), Some(&Exit::Done));
        second(begins(&outcome)[1].0, &scenario)
    };
    let kept = second_begin(Vec::new());
    assert!((600..660).contains(&kept), "{kept}");
    let lost = second_begin((300..320).map(|at| (at, Turn::LoseNote)).collect());
    assert!((900..960).contains(&lost), "{lost}");
}

/// The pod of the canary fails, and the commit before comes again.
#[test]
fn the_way_back_after_an_abort_waits_for_no_step() {
    let mut story = Story { events: vec![(300, Turn::Commit(1))], ..story(canaries(600)) };
    story.rules.others = json!({"progressDeadline": "1m"});
    let mut scenario = fleet(3, 1, story);
    let image = "registry.example/agent:2";
    let bad = json!({"fault": "readyLate", "by": "2h", "image": image, "nodes": {}});
    scenario.faults = vec![("images", bad)];
    let outcome = ran(&scenario);
    let [Exit::Paused, refused @ .., Exit::Done] = &exits(&outcome)[..] else {
        panic!("{:?}", outcome.ended);
    };
    assert!(refused.iter().all(|exit| *exit == Exit::Blocked), "{refused:?}");
    assert_eq!(deletes(&outcome.history).len(), 2, "there and back");
}

#[test]
fn a_step_that_selects_no_node_is_refused_before_any_write() {
    let nobody = step("nobody", Selects::Pool("red"));
    let scenario = fleet(3, 1, Story { most_runs: 1, ..story(vec![nobody]) });
    let outcome = ran(&scenario);
    assert_eq!(exits(&outcome), [Exit::Blocked]);
    let writes = |line: &&str| {
        [" create ", " update ", " patch ", " delete "].iter().any(|verb| line.contains(verb))
            && line.contains(" visit-")
            && !line.contains("AccessReview")
    };
    assert_eq!(outcome.history.lines().find(writes), None);
}

#[test]
fn a_step_edited_after_its_approval_needs_another_one_and_keeps_its_nodes() {
    let canary = step("canary", Selects::Count(1));
    let half = StepRule { approve: true, ..step("half", Selects::Count(2)) };
    let approved = |events| {
        let story = Story {
            events,
            approves_after: Some(5),
            interval: 100,
            ..story(vec![canary.clone(), half.clone()])
        };
        ran(&fleet(3, 1, story))
    };
    assert_eq!(exits(&approved(Vec::new())), [Exit::ApprovalNeeded, Exit::Done]);
    let edited = approved(vec![(70, Turn::EditStep(1))]);
    // The edit makes the soak one second long.
    let [Exit::ApprovalNeeded, Exit::ApprovalNeeded, rest @ ..] = &exits(&edited)[..] else {
        panic!("{:?}", edited.ended);
    };
    assert_eq!(rest.last(), Some(&Exit::Done), "{:?}", edited.ended);
    let nodes = begins(&edited);
    let [(first, _), (second, _), _] = &nodes[..] else { panic!("{nodes:?}") };
    assert!(second.duration_since(*first).as_secs() > 200, "{nodes:?}");
}

/// What was decided, by a machine whose clock is this far off.
fn decided(local_clock: i64) -> (Vec<Exit>, Vec<(jiff::Timestamp, String)>) {
    let mut steps = canaries(300);
    steps[1].approve = true;
    let mut story = Story { local_clock, approves_after: Some(5), interval: 400, ..story(steps) };
    story.rules.window = Some(crate::rules::WindowRule { minute: 0, minutes: 20 });
    let outcome = ran(&fleet(6, 2, story));
    (exits(&outcome), begins(&outcome))
}

#[test]
fn a_local_clock_that_is_a_day_off_changes_no_decision() {
    let right = decided(0);
    assert_eq!(right.0.last(), Some(&Exit::Done));
    for off in [86_400, -86_400] {
        assert_eq!(decided(off), right, "{off}");
    }
}
