//! Properties for thousands of event sequences: requests that are lost, late, or executed although
//! the answer is an error; observations that are old, out of order or missing; nodes that join and
//! leave; pods that other clients delete; runs that are killed at any step.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;

use super::run::{Post, Run, cases, plain_pace};
use super::sim::{Fate, REFUSED, Sim, rolling};
use crate::plan::PauseState;
use crate::rollout::{Event, Outcome, PauseReason};
use daemonset::model::{Deadline, IntOrPercent, OnFailure, PolicySpec, SkipUnreadyNodes};

/// An event.
#[derive(Clone, Copy, Debug)]
enum Op {
    /// This number of seconds passes; the observation may be delivered later.
    Pass(i64),
    /// A step on an observation of this age, in observations.
    Look(usize),
    /// A new observation, without a step.
    Observe,
    /// The first request is executed or lost.
    Post(Post),
    /// The last delayed answer arrives, with an old observation.
    Deliver(usize),
    /// The run is killed; a new one starts.
    Restart,
    /// A node stops reporting, or reports again.
    Node(usize, bool),
    /// Another client deletes the pod of a node.
    Steal(usize),
    /// A node joins.
    Join,
    /// A node is removed.
    Remove(usize),
    /// The controller reports that it cannot create a pod.
    CreateFailed,
}

fn post() -> impl Strategy<Value = Post> {
    prop_oneof![
        6 => Just(Post::Delivered),
        1 => Just(Post::AnswerLost),
        1 => Just(Post::RequestLost),
        1 => Just(Post::AnswerDelayed),
    ]
}

/// Faults of the caller and its network.
fn shell() -> BoxedStrategy<Op> {
    prop_oneof![
        4 => (1..6_i64).prop_map(Op::Pass),
        4 => (0..4_usize).prop_map(Op::Look),
        3 => Just(Op::Observe),
        6 => post().prop_map(Op::Post),
        2 => (0..4_usize).prop_map(Op::Deliver),
    ]
    .boxed()
}

/// The same faults, and killed runs.
fn killed() -> BoxedStrategy<Op> {
    prop_oneof![12 => shell(), 1 => Just(Op::Restart)].boxed()
}

/// The same faults, and faults of the cluster.
fn cluster() -> BoxedStrategy<Op> {
    prop_oneof![
        30 => killed(),
        2 => (0..8_usize, any::<bool>()).prop_map(|(at, ready)| Op::Node(at, ready)),
        1 => (0..8_usize).prop_map(Op::Steal),
        1 => Just(Op::Join),
        1 => (0..8_usize).prop_map(Op::Remove),
        1 => Just(Op::CreateFailed),
    ]
    .boxed()
}

/// A run with all these events, then without faults to its end.
fn through(mut run: Run, image: &str, ops: &[Op]) -> Run {
    run.look();
    for (at, op) in ops.iter().enumerate() {
        if run.ended.is_some() {
            break;
        }
        perform(&mut run, image, at, *op);
    }
    for at in 0..run.sim.cluster.nodes.len() {
        run.sim.set_ready(at, true);
    }
    for _ in 0..3_000 {
        if run.ended.is_some() {
            return run;
        }
        run.settle();
    }
    panic!("no end: {:#?}", run.reports.last());
}

fn perform(run: &mut Run, image: &str, at: usize, op: Op) {
    let nodes = run.sim.cluster.nodes.len();
    match op {
        Op::Pass(seconds) => {
            run.pass(seconds);
            run.observe();
        }
        Op::Look(age) => run.feed(Event::Observed, age),
        Op::Observe => run.observe(),
        Op::Post(post) => {
            run.post(post);
        }
        Op::Deliver(age) => {
            run.deliver(age);
        }
        Op::Restart => run.restart(image),
        Op::Node(node, ready) => {
            run.sim.set_ready(node % nodes, ready);
            // A node that fails by itself is not caused by the run any more, even if it recovers.
            run.count();
        }
        Op::Steal(node) => {
            let name = run.sim.cluster.nodes[node % nodes].name.clone();
            let pods = run.sim.cluster.pods.iter_mut();
            pods.filter(|pod| pod.node() == Some(&name)).for_each(|pod| pod.terminating = true);
        }
        Op::Join => run.sim.join(&format!("node-new-{at}")),
        Op::Remove(node) => {
            if nodes > 3 {
                run.sim.cluster.nodes.remove(node % nodes);
            }
        }
        Op::CreateFailed => {
            run.feed(Event::CreateFailed { message: REFUSED.to_owned() }, 0);
        }
    }
}

/// Asserts that the target is reached.
fn assert_done(run: &mut Run, budget: u32) {
    // The controller replaces skipped pods, and pods of removed nodes are collected.
    run.pass(90);
    assert_eq!(*run.outcome(), Outcome::Done);
    let strategy = rolling(&json!(budget));
    assert_eq!((run.pause(), run.sim.strategy()), (None, strategy));
    assert!(run.images().into_keys().all(|image| image == "v2"), "{:?}", run.images());
    assert_eq!(run.images().into_values().sum::<usize>(), run.sim.cluster.nodes.len());
    assert_eq!(run.sim.cluster.revisions.len(), 2, "one revision a template");
}

/// Asserts that only pods of the first template were deleted.
fn assert_only_outdated(run: &Run) {
    let uids: BTreeSet<_> = run.deletes.iter().map(|delete| delete.pod.as_str()).collect();
    let updated = run.sim.cluster.pods.iter().filter(|pod| uids.contains(pod.name.as_str()));
    assert_eq!(updated.filter(|pod| !pod.terminating).count(), 0);
}

/// The default pace, or that of the controller.
fn pace(careful: bool) -> PolicySpec {
    if careful { PolicySpec::default() } else { plain_pace() }
}

fn fleet(nodes: usize, budget: u32) -> Sim {
    let mut sim = Sim::of(nodes, &json!(budget));
    sim.stop = 2;
    sim
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(48), max_shrink_iters: 300, ..ProptestConfig::default()
    })]

    #[test]
    fn with_any_fault_of_the_caller_the_budget_is_kept_and_it_ends_done(
        budget in 1..4_u32,
        min_ready in prop_oneof![Just(0_u32), Just(4)],
        careful in any::<bool>(),
        ops in prop::collection::vec(killed(), 0..160),
    ) {
        let mut sim = fleet(6, budget);
        sim.edit(|spec| spec["minReadySeconds"] = min_ready.into());
        sim.pass(5);
        let mut run = through(Run::apply(sim, "v2").with(|it| it.policy = pace(careful)), "v2", &ops);
        assert_done(&mut run, budget);
        assert_only_outdated(&run);
        // Nothing else deletes pods: the budget applies to the whole fleet.
        prop_assert!(run.most_unavailable <= budget as usize, "{}", run.most_unavailable);
        prop_assert_eq!(run.deleted_uids().len(), 6, "each old pod once");
    }

    #[test]
    fn with_any_fault_of_the_cluster_the_run_exceeds_no_budget(
        budget in 1..4_u32,
        ops in prop::collection::vec(cluster(), 0..160),
    ) {
        let run = Run::apply(fleet(8, budget), "v2");
        // Long enough that no node that returns has failed in the meantime.
        let mut run = through(run.with(|task| {
            task.policy.progress_deadline = Deadline(900);
            task.policy.skip_unready_nodes = SkipUnreadyNodes { max: IntOrPercent::Int(8) };
        }), "v2", &ops);
        assert_done(&mut run, budget);
        assert_only_outdated(&run);
        prop_assert!(run.most_deleted_from <= budget as usize, "{}", run.most_deleted_from);
    }

    #[test]
    fn a_bad_template_is_aborted_whatever_happens(
        budget in 1..4_u32,
        fate in prop_oneof![
            Just(Fate::NoImage), Just(Fate::NeverReady), Just(Fate::NotCreated)
        ],
        rollback in any::<bool>(),
        careful in any::<bool>(),
        ops in prop::collection::vec(killed(), 0..160),
    ) {
        let mut sim = fleet(6, budget);
        sim.fate("v2", fate);
        let run = Run::apply(sim, "v2").with(|task| {
            task.policy = pace(careful);
            task.policy.progress_deadline = Deadline(300);
            if rollback {
                task.policy.on_failure = OnFailure::Rollback;
            }
        });
        let run = through(run, "v2", &ops);
        prop_assert!(matches!(run.outcome(), Outcome::Aborted { .. }), "{}", run.outcome());
        prop_assert_eq!(run.sim.live_image(), "v1");
        let pause = run.pause().unwrap();
        prop_assert_eq!(pause.state, PauseState::Aborted);
        prop_assert_eq!(run.sim.remembered.iter().next(), pause.failed.as_ref());
        prop_assert!(run.most_unavailable <= budget as usize, "{}", run.most_unavailable);
        if careful {
            let nodes: BTreeSet<_> = run.deletes.iter().map(|delete| &delete.node).collect();
            prop_assert_eq!(nodes.len(), 1, "a failure on all nodes costs one node: {:?}", nodes);
        }
        if rollback {
            let mut run = run;
            run.pass(10);
            prop_assert_eq!(run.images(), [("v1".to_owned(), 6)].into());
        }
    }

    #[test]
    fn a_change_by_another_client_ends_it_in_a_defined_outcome(
        when in 0..60_usize,
        what in 0..5_usize,
        ops in prop::collection::vec(shell(), 60..120),
    ) {
        let mut run = Run::apply(fleet(6, 2), "v2");
        run.look();
        for (at, op) in ops.iter().enumerate() {
            if at == when {
                match what {
                    0 => run.sim.edit(|spec| {
                        spec["template"]["metadata"]["annotations"] = json!({"restartedAt": "now"});
                    }),
                    1 => run.sim.edit(|spec| spec["updateStrategy"] = rolling(&json!(1))),
                    2 => run.sim.deleted = true,
                    3 => run.sim.cluster.daemon_set.terminating = true,
                    _ => {
                        run.sim.cluster.daemon_set.uid = "uid-another".into();
                        run.sim.touch();
                    }
                }
            }
            if run.ended.is_none() {
                perform(&mut run, "v2", at, *op);
            }
        }
        for _ in 0..3_000 {
            if run.ended.is_some() {
                break;
            }
            run.settle();
        }
        let outcome = run.outcome().clone();
        let fits = match what {
            0 | 1 => matches!(
                outcome,
                Outcome::Stale { .. } | Outcome::Done | Outcome::Paused { why: PauseReason::NoAnswer { .. } }
            ),
            _ => matches!(outcome, Outcome::Gone { .. } | Outcome::Done),
        };
        prop_assert!(fits, "{what}: {outcome}");
        prop_assert!(run.most_deleted_from <= 2);
    }

    #[test]
    fn after_an_interrupt_nothing_more_is_deleted_and_the_next_run_completes_it(
        ops in prop::collection::vec(shell(), 0..80),
        more in prop::collection::vec(shell(), 0..40),
    ) {
        let mut run = Run::apply(fleet(6, 2), "v2");
        run.look();
        for (at, op) in ops.iter().enumerate() {
            if run.ended.is_none() {
                perform(&mut run, "v2", at, *op);
            }
        }
        if run.ended.is_none() {
            let sent = |run: &Run| run.reports.iter().filter(|it| {
                matches!(it, crate::rollout::Report::Deleting(_))
            }).count();
            let before = sent(&run);
            run.feed(Event::Interrupt, 0);
            for (at, op) in more.iter().enumerate() {
                if run.ended.is_none() {
                    perform(&mut run, "v2", at, *op);
                }
            }
            run.until(|_| false);
            prop_assert_eq!(sent(&run), before);
            let Outcome::Interrupted { paused } = run.outcome() else {
                return Err(TestCaseError::fail(format!("{:?}", run.outcome())));
            };
            // A write whose answer was lost may not be observed yet.
            prop_assert!(!paused || run.pause().is_some());
            run = run.again("v2").finish();
        }
        assert_done(&mut run, 2);
    }
}
