//! The end of a run whose time is over during a surge.

use jiff::SignedDuration;

use super::run::{Post, Run};
use super::steps::purposes;
use super::surge::sim;
use crate::plan::PauseState;
use crate::rollout::{Attempt, Outcome, PauseReason, Purpose};

/// Nobody would watch it after the end of the run.
#[test]
fn the_timeout_of_a_run_pauses_its_surge() {
    let start = Run::apply(sim(40), "v2");
    let at = start.sim.now() + SignedDuration::from_secs(20);
    let mut timed_out = start.with(|task| task.deadline = Some(at)).finish();
    assert_eq!(*timed_out.outcome(), Outcome::Paused { why: PauseReason::Timeout });
    let pause = timed_out.pause().unwrap();
    assert_eq!((pause.state, pause.from.unwrap().number.0), (PauseState::Paused, 1));
    assert_eq!(purposes(&timed_out), [Purpose::Apply, Purpose::Pause]);
    timed_out.pass(10);
    let updated = timed_out.sim.nodes_with("v2").len();
    assert!((1..40).contains(&updated), "{updated}");
    timed_out.pass(300);
    assert_eq!(timed_out.sim.nodes_with("v2").len(), updated);
    // The next run continues the surge.
    let done = timed_out.again("v2").finish();
    assert_eq!((done.outcome(), done.images()), (&Outcome::Done, [("v2".to_owned(), 40)].into()));
}

/// The write of the target may be on its way, or not observed yet, or it is that of a killed run.
#[test]
fn a_surge_that_begins_as_the_run_times_out_is_paused_too() {
    for resumed in [false, true] {
        let mut begun = Run::apply(sim(40), "v2");
        let at = begun.sim.now() + SignedDuration::from_secs(5);
        if resumed {
            begun.look();
            begun.until(|run| run.sim.live_image() == "v2");
            begun = begun.again("v2");
        }
        let mut late = begun.with(|task| task.deadline = Some(at));
        if !resumed {
            late.look();
            for _ in 0..1_000 {
                if late.state.writing.sent.contains(&Purpose::Apply) {
                    break;
                }
                late.post(Post::Delivered);
            }
        }
        late.pass(10);
        let late = late.finish();
        assert_eq!(*late.outcome(), Outcome::Paused { why: PauseReason::Timeout }, "{resumed}");
        assert_eq!(late.pause().map(|it| it.state), Some(PauseState::Paused), "{resumed}");
    }
}

/// It ends nevertheless, and does not say that the rollout is paused.
#[test]
fn a_surge_that_cannot_be_paused_is_left_and_the_run_says_so() {
    for hidden in [true, false] {
        let mut run = Run::apply(sim(40), "v2");
        let at = run.sim.now() + SignedDuration::from_secs(20);
        run = run.with(|task| task.deadline = Some(at));
        run.look();
        run.until(|run| run.sim.now() >= at - SignedDuration::from_secs(1));
        run.sim.hidden = hidden;
        for _ in 0..200 {
            run.pass(1);
            run.look();
            while run.post(Post::RequestLost) {}
        }
        let Outcome::Failed { request: Attempt::Write, failure } = run.outcome() else {
            panic!("{}", run.outcome())
        };
        assert!(failure.to_string().contains("surge"), "{failure}");
    }
}

/// What is left is a node that no surge reaches, or nothing.
#[test]
fn a_timeout_after_the_surge_writes_nothing() {
    let mut run = Run::apply(sim(4), "v2");
    run.look();
    run.until(|run| run.sim.nodes_with("v2").len() == 4 && run.sim.cluster.pods.len() == 4);
    let at = run.sim.now();
    let mut run = run.again("v2").with(|task| task.deadline = Some(at));
    let before = run.sim.writes.len();
    run = run.finish();
    assert_eq!(*run.outcome(), Outcome::Paused { why: PauseReason::Timeout });
    assert_eq!(run.sim.writes.len(), before);
}
