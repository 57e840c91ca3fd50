//! The pods that a step deletes within the budget, and those that it leaves.

use serde_json::json;

use super::run::{Post, Run};
use super::sim::{Fate, Sim};
use crate::plan::Reason;
use crate::rollout::next_deletes::max_deletes;
use crate::rollout::{Cost, Event, Outcome, PauseReason, Report};
use daemonset::controller::test_cluster::taint;
use daemonset::model::{Deadline, IntOrPercent, OnFailure, PodReadiness, SkipUnreadyNodes};

/// The first deletes in order, with their cost.
fn first_deletes(sim: Sim) -> Vec<(String, Cost)> {
    let mut run = Run::apply(sim, "v2");
    run.look();
    let deleting = |run: &Run| {
        let reports = run.reports.iter();
        reports
            .filter_map(|report| match report {
                Report::Deleting(delete) => Some((delete.node.to_string(), delete.cost)),
                _ => None,
            })
            .collect::<Vec<_>>()
    };
    for _ in 0..20 {
        if !deleting(&run).is_empty() {
            break;
        }
        run.settle();
    }
    deleting(&run)
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn the_first_step_takes_what_costs_nothing_and_fills_the_budget() {
    type Prepare = fn(&mut Sim);
    let rows: [(&str, Prepare, &[&str], &[&str]); 11] = [
        ("a healthy fleet", |_| {}, &[], &["node-0", "node-1", "node-2"]),
        (
            "not Ready for a minute on a Ready node: deleted first, and counts",
            |sim| {
                sim.picky.insert("node-4".into(), "v2".into());
                sim.pass(60);
            },
            &["node-4"],
            &["node-0", "node-1"],
        ),
        (
            "deletes without cost exceed the budget, up to the number that may be in flight",
            |sim| {
                for node in ["node-1", "node-3", "node-5", "node-7"] {
                    sim.picky.insert(node.into(), "v2".into());
                }
                sim.pass(60);
            },
            &["node-1", "node-3", "node-5"],
            &[],
        ),
        (
            "one that was Ready a moment ago is deleted within the budget",
            |sim| {
                sim.picky.insert("node-4".into(), "v2".into());
            },
            &["node-4"],
            &["node-0", "node-1"],
        ),
        (
            "a node that is not Ready is skipped and does not count",
            |sim| sim.set_ready(1, false),
            &[],
            &["node-0", "node-2", "node-3"],
        ),
        (
            "a second one counts, and is left alone",
            |sim| {
                sim.set_ready(0, false);
                sim.set_ready(1, false);
            },
            &[],
            &["node-2", "node-3"],
        ),
        (
            "a terminating pod counts",
            |sim| {
                sim.stop = 500;
                sim.cluster.pods[0].terminating = true;
            },
            &[],
            &["node-1", "node-2"],
        ),
        (
            "an outdated pod that is not Ready is replaced at no cost, and counts",
            |sim| {
                sim.fate("v1", Fate::ReadyAfter(50));
                sim.fate("v2", Fate::ReadyAfter(50));
                sim.cluster.pods.retain(|pod| pod.node().unwrap() != "node-2");
            },
            &["node-2"],
            &["node-0", "node-1"],
        ),
        (
            "a cordoned node with an available pod is treated like any other",
            |sim| {
                sim.cluster.nodes[0].taints =
                    [taint("node.kubernetes.io/unschedulable:NoSchedule")].into();
            },
            &[],
            &["node-0", "node-1", "node-2"],
        ),
        (
            "where no pod may start, the last one is deleted within the budget",
            |sim| {
                sim.cluster.nodes[0].taints = [taint("gpu:NoSchedule")].into();
            },
            &[],
            &["node-0", "node-1", "node-2"],
        ),
        (
            "a pod that never ends on a lost node, where none may start, does not count",
            |sim| {
                sim.stop = 500;
                sim.cluster.pods[0].terminating = true;
                sim.cluster.nodes[0].taints =
                    [taint("node.kubernetes.io/not-ready:NoSchedule")].into();
                sim.set_ready(0, false);
            },
            &[],
            &["node-1", "node-2", "node-3"],
        ),
    ];
    for (rule, prepare, free, paid) in rows {
        let mut sim = Sim::of(8, &json!(3));
        prepare(&mut sim);
        sim.pass(1);
        let deletes = first_deletes(sim);
        let of = |wanted: fn(&Cost) -> bool| {
            let these = deletes.iter().filter(|(_, cost)| wanted(cost));
            these.map(|(node, _)| node.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(of(|cost| *cost == Cost::Nothing), free, "{rule}");
        assert_eq!(of(|cost| *cost != Cost::Nothing), paid, "{rule}");
        if let (Some((_, Cost::One { unavailable, allowed })), true) =
            (deletes.last(), !paid.is_empty())
        {
            assert_eq!((unavailable + 1, *allowed), (3, 3), "{rule}");
        }
    }
}

#[test]
fn recently_ready_pods_wait() {
    let mut sim = Sim::of(4, &json!(4));
    sim.edit(|spec| spec["minReadySeconds"] = 600.into());
    let now = sim.now();
    for pod in &mut sim.cluster.pods {
        pod.readiness = PodReadiness::Ready { since: Some(now.into()) };
    }
    let mut run = Run::apply(sim, "v2");
    run.look();
    for _ in 0..590 {
        run.settle();
    }
    assert_eq!(run.deletes.len(), 0);
    let run = run.finish();
    assert_eq!((run.outcome(), run.deletes.len()), (&Outcome::Done, 4));
}

#[test]
fn the_number_of_pending_deletes_is_limited() {
    assert_eq!(first_deletes(Sim::of(40, &json!("100%"))).len(), 16);
    for (desired, most) in [(0, 16), (8_499, 16), (8_500, 17), (100_000, 200)] {
        assert_eq!(max_deletes(desired), most, "{desired} nodes");
    }
}

#[test]
fn broken_new_pods_never_block_their_own_replacement() {
    let mut sim = Sim::of(6, &json!(2));
    sim.fate("v2", Fate::NeverReady);
    let mut broken = Run::apply(sim, "v2");
    broken.look();
    broken.until(|run| run.deletes.len() == 2);
    broken.pass(10);
    assert_eq!(broken.sim.unavailable().len(), 2, "the budget is used up");
    let run = broken.again("v1").finish();
    assert_eq!((run.outcome(), run.images()), (&Outcome::Done, [("v1".to_owned(), 6)].into()));
    assert_eq!(run.most_unavailable, 0, "nothing that worked was touched");
}

fn with_dead_nodes(dead: usize) -> Run {
    let mut sim = Sim::of(60, &json!(1));
    sim.fate("v2", Fate::ReadyAfter(1));
    for at in 0..dead {
        sim.set_ready(at * 3, false);
    }
    Run::apply(sim, "v2").with(|task| {
        task.policy.skip_unready_nodes = SkipUnreadyNodes { max: IntOrPercent::Percent(10) };
        task.policy.progress_deadline = Deadline(120);
    })
}

#[test]
fn dead_nodes_block_neither_the_rest_nor_restoring_the_strategy() {
    let mut run = with_dead_nodes(5).finish();
    assert_eq!((run.outcome(), run.deletes.len(), run.pause()), (&Outcome::Done, 55, None));
    let left = run.ended.as_ref().unwrap().left.clone();
    assert_eq!(left.len(), 5);
    // Once the strategy is restored, the controller replaces their pods, which cannot start.
    let not_ready = |reasons: &Vec<Reason>| {
        matches!(reasons[..], [Reason::NodeNotReady(_), Reason::PodNotReady(_)])
    };
    assert!(left.values().all(not_ready), "{left:?}");
    for at in 0..5 {
        run.sim.set_ready(at * 3, true);
    }
    run.sim.cluster.make_all_ready();
    run.pass(60);
    assert_eq!(run.images(), [("v2".to_owned(), 60)].into());
}

/// It gets no other pod when it is Ready again.
#[test]
fn a_dead_node_that_has_its_new_pod_is_only_not_ready() {
    let one = SkipUnreadyNodes { max: IntOrPercent::Int(1) };
    let mut done = Run::apply(Sim::of(6, &json!(2)), "v2")
        .with(|task| task.policy.skip_unready_nodes = one)
        .finish();
    done.sim.set_ready(2, false);
    let run = done.again("v2").finish();
    assert_eq!((run.outcome(), run.deletes.len()), (&Outcome::Done, 0));
    let left = &run.ended.as_ref().unwrap().left["node-2"];
    assert!(matches!(left[..], [Reason::NodeNotReady(_), Reason::PodNotReady(_)]), "{left:?}");
}

/// A run that ends deletes nothing.
#[test]
fn a_pod_where_no_new_one_may_start_is_left_running() {
    let mut sim = Sim::of(6, &json!(2));
    sim.fate("v2", Fate::NoImage);
    let mut run = Run::apply(sim, "v2").with(|task| task.policy.on_failure = OnFailure::Pause);
    run.look();
    run.until(|run| run.deletes.len() >= 2);
    run.sim.cluster.nodes[5].taints = [taint("gpu:NoSchedule")].into();
    let run = run.finish();
    assert_eq!(run.deletes.len(), 2, "{}", run.outcome());
    let left = &run.ended.as_ref().unwrap().left["node-5"];
    let why = "its pod keeps running; a new pod may not start here: taint gpu:NoSchedule is not \
               tolerated";
    assert_eq!(left.iter().map(ToString::to_string).collect::<Vec<_>>(), ["runs revision 1", why]);
}

#[test]
fn too_many_dead_nodes_pause_with_that_reason() {
    let run = with_dead_nodes(7).finish();
    let Outcome::Paused {
        why: PauseReason::MaxUnavailableReached { unavailable, allowed, seconds },
    } = run.outcome()
    else {
        panic!("{}", run.outcome())
    };
    assert_eq!((*unavailable, *allowed, *seconds), (1, 1, 120));
    assert_eq!(run.deletes.len(), 0);
    let left = &run.ended.as_ref().unwrap().left;
    let counts = |reasons: &&Vec<Reason>| {
        matches!(reasons[0], Reason::UnreadyNodeCounts { unready: 7, skippable: 6 })
    };
    assert_eq!(left.values().filter(counts).count(), 1);
}

/// Found by the laws of steps: the time began anew whenever another pod became Ready for a moment.
#[test]
fn pods_that_crash_again_and_again_are_not_waited_for_indefinitely() {
    let canary = json!([{"name": "canary", "nodes": {"names": ["node-0"]}}]);
    let policy = super::steps::policy(json!({"steps": canary, "progressDeadline": "120s"}));
    let mut sim = Sim::of(6, &json!(1));
    let wants = |sim: &mut Sim, at: usize| sim.picky.insert(format!("node-{at}"), "v2".into());
    wants(&mut sim, 4);
    wants(&mut sim, 5);
    sim.pass(5);
    let mut run = Run::apply(sim, "v2").with(|task| task.policy = policy);
    run.look();
    for second in 0..150 {
        match second % 10 {
            0 => drop(run.sim.picky.remove("node-4")),
            5 => drop(wants(&mut run.sim, 4)),
            _ => {}
        }
        run.settle();
    }
    let Outcome::Paused { why: PauseReason::MaxUnavailableReached { seconds, .. } } = run.outcome()
    else {
        panic!("{}", run.outcome())
    };
    assert!((120..130).contains(seconds), "{seconds}");
    assert_eq!(run.deletes.len(), 0);
}

/// Found by the simulation: at each question the time began anew, and the run never ended.
#[test]
fn they_do_also_while_a_precondition_is_asked_again_and_again() {
    let asked = json!({"name": "quiet", "interval": "10s", "http": {"url": "https://x"}});
    let asked = super::steps::policy(json!({"preconditions": [asked]})).preconditions;
    let run = with_dead_nodes(7).with(|task| task.policy.preconditions = asked).finish();
    let Outcome::Paused { why: PauseReason::MaxUnavailableReached { seconds, .. } } = run.outcome()
    else {
        panic!("{}", run.outcome())
    };
    assert!((120..140).contains(seconds), "{seconds}");
    assert_eq!(run.deletes.len(), 0);
}

#[test]
fn ready_pods_on_nodes_that_are_not_keep_it_paused() {
    let mut sim = Sim::of(3, &json!(1));
    sim.set_ready(1, false);
    let mut run = Run::apply(sim, "v2").with(|task| {
        task.policy.progress_deadline = Deadline(60);
    });
    run.look();
    for _ in 0..400 {
        // The node controller has not updated its pod yet.
        let since = Some(run.sim.now().into());
        let node = run.sim.cluster.nodes[1].name.clone();
        for pod in run.sim.cluster.pods.iter_mut().filter(|pod| pod.node() == Some(&node)) {
            pod.readiness = PodReadiness::Ready { since };
        }
        if run.ended.is_some() {
            break;
        }
        run.look();
        while run.post(Post::Delivered) {}
        run.pass(1);
    }
    assert!(
        matches!(run.outcome(), Outcome::Paused { why: PauseReason::OldPodsRemain { nodes, .. } } if nodes.len() == 1),
        "{}",
        run.outcome()
    );
    assert!(run.pause().is_some());
}

/// Found by the simulation: pods that were not Ready were deleted at no cost, all at once; the
/// deletes failed, and were retried when the pods were Ready.
#[test]
fn a_failed_delete_is_within_the_budget_once_its_pod_is_ready() {
    let mut sim = Sim::of(5, &json!(3));
    sim.fate("v1", Fate::NeverReady);
    sim.fate("v2", Fate::ReadyAfter(30));
    sim.pass(61);
    let mut run = Run::apply(sim, "v2");
    let sent = |run: &Run| {
        run.reports.iter().filter(|report| matches!(report, Report::Deleting(_))).count()
    };
    run.look();
    run.until(|run| sent(run) > 0);
    assert!(sent(&run) > 1, "several at once");
    while run.post(Post::RequestLost) {}
    run.sim.fate("v1", Fate::ReadyAfter(0));
    run.sim.pass(1);
    let mut most = 0;
    while run.ended.is_none() {
        run.settle();
        most = most.max(run.sim.unavailable().len());
    }
    assert_eq!((run.outcome(), most), (&Outcome::Done, 3));
}

/// Caches of API servers are not equally fresh: a list may show a node as it was before the delete
/// of its pod, when it was not Ready and so did not count.
#[test]
fn a_node_counts_although_an_old_observation_shows_it_not_ready() {
    let mut sim = Sim::of(3, &json!(1));
    sim.set_ready(0, false);
    let mut run = Run::apply(sim, "v2");
    run.look();
    run.post(Post::Delivered);
    run.pass(1);
    run.observe();
    run.sim.set_ready(0, true);
    run.pass(1);
    run.look();
    run.post(Post::Delivered);
    run.look();
    run.post(Post::Delivered);
    assert_eq!(run.deleted_nodes(), ["node-0"]);
    run.pass(1);
    run.feed(Event::Observed, 2);
    assert!(!run.post(Post::Delivered), "{:?}", run.deleted_nodes());
    // A node that is not Ready since then does not count.
    run.sim.set_ready(0, false);
    run.look();
    run.post(Post::Delivered);
    assert_eq!(run.deleted_nodes(), ["node-0", "node-1"]);
}

/// A pod that was evicted from a node whose kubelet is dead never goes.
#[test]
fn a_terminating_pod_on_a_dead_node_where_none_may_start_uses_no_budget() {
    let mut sim = Sim::of(3, &json!(1));
    let dead = &mut sim.cluster.nodes[1];
    dead.taints = [taint("node.kubernetes.io/unreachable:NoSchedule")].into();
    sim.set_ready(1, false);
    sim.pod_on("node-1").terminating = true;
    let mut run = Run::apply(sim, "v2");
    run.look();
    run.until(|run| run.deletes.len() == 2);
    assert_eq!(run.deleted_nodes(), ["node-0", "node-2"]);
}
