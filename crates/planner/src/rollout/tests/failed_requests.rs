//! Requests that are rejected, or get no answer.

use serde_json::json;

use super::run::{Post, Run};
use super::sim::{Sim, on_delete};
use crate::rollout::{Answer, Attempt, Event, Failure, Outcome, PauseReason, Report};
use daemonset::model::Deadline;

#[test]
fn a_rejected_request_ends_it() {
    let forbidden = || Failure::Forbidden { message: "no".into() };
    let refused = || Failure::Refused { message: "no".into() };
    for failure in [forbidden(), refused()] {
        let mut run = Run::apply(Sim::of(2, &json!(1)), "v2");
        run.look();
        run.drop_request();
        run.feed(Event::Answer(Answer::Written(Err(failure.clone()))), 0);
        assert_eq!(*run.outcome(), Outcome::Failed { request: Attempt::Write, failure });
    }
    for failure in [forbidden(), refused()] {
        let run = refused_a_delete(&failure);
        assert_eq!(run.sim.strategy(), on_delete());
        let why = PauseReason::Refused { request: Attempt::Delete, failure };
        assert_eq!(*run.outcome(), Outcome::Paused { why }, "its pods wait for a run");
    }
}

/// A run that has paused the DaemonSet, and whose first delete gets this answer.
fn refused_a_delete(failure: &Failure) -> Run {
    let mut run = Run::apply(Sim::of(2, &json!(1)), "v2");
    run.look();
    let deleting = |run: &Run| {
        run.reports.iter().find_map(|report| match report {
            Report::Deleting(delete) => Some(delete.uid.clone()),
            _ => None,
        })
    };
    for _ in 0..20 {
        if deleting(&run).is_some() {
            break;
        }
        while run.post(Post::Delivered) {}
        run.pass(1);
        run.look();
    }
    run.drop_request();
    let uid = deleting(&run).unwrap();
    run.feed(Event::Answer(Answer::Deleted { uid, result: Err(failure.clone()) }), 0);
    run
}

/// Found by the simulation: the pod was taken for deleted, and the run waited until it gave up.
#[test]
fn a_delete_with_a_conflict_is_sent_again_while_its_pod_is_there() {
    let run = refused_a_delete(&Failure::Conflict).finish();
    assert_eq!((run.outcome(), run.images()), (&Outcome::Done, [("v2".to_owned(), 2)].into()));
    assert_eq!(run.deletes.len(), 2);
}

/// Found by the simulation: another node had begun instead, and then both were in flight.
#[test]
fn a_delete_with_a_conflict_is_not_sent_again_on_a_node_that_is_lost() {
    let mut run = refused_a_delete(&Failure::Conflict);
    run.sim.set_ready(0, false);
    let run = run.finish();
    assert_eq!((run.outcome(), run.deleted_nodes()), (&Outcome::Done, vec!["node-1"]));
}

#[test]
fn requests_without_answer_are_not_retried_indefinitely() {
    let mut run = Run::apply(Sim::of(2, &json!(1)), "v2");
    run = run.with(|task| task.policy.progress_deadline = Deadline(60));
    run.look();
    for _ in 0..100 {
        if run.ended.is_some() {
            break;
        }
        run.post(Post::RequestLost);
        run.pass(1);
        run.look();
    }
    let Outcome::Paused { why: PauseReason::NoAnswer { request, seconds, .. } } = run.outcome()
    else {
        panic!("{}", run.outcome())
    };
    assert!((*request, 60 <= *seconds && *seconds < 65) == (Attempt::Write, true), "{seconds}");
}
