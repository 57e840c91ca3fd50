//! Rollouts after new pods have failed.

use jiff::SignedDuration;
use serde_json::json;

use super::run::{Post, Run, declared, target, task};
use super::sim::{Fate, Sim, on_delete, rolling, surging};
use super::steps;
use crate::annotations::COMMIT_ANNOTATION;
use crate::digest::template_digest;
use crate::plan::PauseState;
use crate::rollout::{
    Event, Extent, Goal, NotAborted, Outcome, PauseReason, PodFailure, Purpose, Report, RolledBack,
    Target,
};
use daemonset::model::{Deadline, OnFailure, PodTemplate};

fn bad(nodes: usize, budget: u32) -> Sim {
    let mut sim = Sim::of(nodes, &json!(budget));
    sim.fate("v2", Fate::NoImage);
    sim
}

fn policy(run: Run, on_failure: OnFailure) -> Run {
    run.with(|task| {
        task.policy.on_failure = on_failure;
        task.policy.progress_deadline = Deadline(120);
    })
}

#[test]
fn abort_restores_the_good_template_and_deletes_nothing() {
    let mut run = Run::apply(bad(6, 2), "v2").finish();
    let Outcome::Aborted { failed, to, rolled_back: None, cause: None } = run.outcome() else {
        panic!("{}", run.outcome())
    };
    assert_eq!((failed.len(), run.deletes.len()), (2, 2));
    assert!(failed.values().all(|it| matches!(it, PodFailure::Permanent { .. })));
    assert_eq!((run.sim.live_image(), run.sim.strategy()), ("v1".to_owned(), on_delete()));
    let pause = run.pause().unwrap();
    assert_eq!(
        (pause.state, pause.from.as_ref().unwrap().name.clone()),
        (PauseState::Aborted, to.clone())
    );
    assert_eq!(pause.declared, rolling(&json!(2)));
    let digest = template_digest(target(&run.sim, "v2", &rolling(&json!(2))).template.raw());
    assert_eq!(pause.failed.as_ref(), Some(&digest));
    assert_eq!(run.sim.remembered.iter().collect::<Vec<_>>(), [&digest]);
    assert_eq!(run.sim.writes.last().unwrap().purpose, Purpose::Abort);
    // The failed pods stay for inspection; a node that joins gets the good version.
    assert_eq!(run.images(), [("v1".to_owned(), 4), ("v2".to_owned(), 2)].into());
    run.sim.join("node-new");
    run.pass(10);
    assert_eq!(run.images(), [("v1".to_owned(), 5), ("v2".to_owned(), 2)].into());
}

#[test]
fn an_aborted_rollout_can_be_rolled_back_or_resumed() {
    for (image, revision) in [("v1", 3), ("v3", 4)] {
        let aborted = Run::apply(bad(6, 2), "v2").finish();
        let name = aborted.sim.cluster.revisions.len();
        assert_eq!(name, 2);
        let run = aborted.again(image).finish();
        assert_eq!((run.outcome(), run.pause()), (&Outcome::Done, None), "{image}");
        assert_eq!(run.images(), [(image.to_owned(), 6)].into());
        assert_eq!(declared(&run.sim), rolling(&json!(2)));
        let numbers = run.sim.cluster.revisions.iter().map(|it| it.number.0);
        assert_eq!(numbers.max(), Some(revision), "{image}");
        assert!(run.most_unavailable <= 2);
    }
}

#[test]
fn a_fixed_cause_and_a_retry_complete_an_aborted_rollout() {
    let mut aborted = Run::apply(bad(6, 2), "v2").finish();
    aborted.sim.fate("v2", Fate::ReadyAfter(2));
    for pod in &mut aborted.sim.cluster.pods {
        pod.container_failure = None;
    }
    assert_eq!(aborted.sim.remembered.len(), 1);
    let run = aborted.again("v2").finish();
    assert_eq!((run.outcome(), run.images()), (&Outcome::Done, [("v2".to_owned(), 6)].into()));
    assert!(run.sim.remembered.is_empty(), "rolled out completely, it has not failed any more");
}

#[test]
fn a_failed_template_is_recorded_until_it_is_rolled_out() {
    let bad = |strategy| {
        let mut sim = Sim::with_strategy(6, &strategy);
        let target = target(&sim, "v2", &declared(&sim));
        sim.remembered.insert(template_digest(target.template.raw()));
        sim
    };
    for (rule, sim, interrupted) in [
        ("stopped midway", bad(rolling(&json!(2))), true),
        ("no pod is updated yet", bad(on_delete()), false),
    ] {
        let mut run = Run::apply(sim, "v2");
        run.look();
        if interrupted {
            run.until(|run| !run.deletes.is_empty());
            run.feed(Event::Interrupt, 0);
        }
        let run = run.finish();
        assert_eq!(run.sim.remembered.len(), 1, "{rule}");
    }
}

#[test]
fn pause_leaves_everything_as_it_is() {
    let run = policy(Run::apply(bad(6, 2), "v2"), OnFailure::Pause).finish();
    assert!(matches!(
        run.outcome(),
        Outcome::Paused { why: PauseReason::Failed { not_aborted: None, failed, .. } } if failed.len() == 2
    ));
    assert_eq!(
        (run.sim.live_image(), run.pause().unwrap().state),
        ("v2".to_owned(), PauseState::Paused)
    );
    assert_eq!((run.sim.writes.len(), run.sim.remembered.len()), (1, 1));
}

#[test]
fn rollback_replaces_the_failed_pods_too_and_stays_aborted() {
    let run = policy(Run::apply(bad(6, 2), "v2"), OnFailure::Rollback).finish();
    assert!(matches!(run.outcome(), Outcome::Aborted { rolled_back: Some(RolledBack::Fully), .. }));
    assert_eq!(run.images(), [("v1".to_owned(), 6)].into());
    assert_eq!(run.pause().unwrap().state, PauseState::Aborted);
    assert_eq!((run.deletes.len(), run.most_unavailable), (4, 2));
}

/// Found by the laws of steps: a pod of the good template counts as unavailable while an unanswered
/// delete from before may still be executed.
#[test]
fn a_rollback_counts_a_pod_whose_delete_may_still_be_executed() {
    let mut sim = Sim::of(5, &json!(2));
    sim.fate("v2", Fate::ReadyAfter(28));
    sim.picky.insert("node-0".into(), "v1".into());
    let mut run = policy(Run::apply(sim, "v2"), OnFailure::Rollback)
        .with(|task| task.policy.progress_deadline = Deadline(30));
    run.look();
    let is_sent = |report: &Report| matches!(report, Report::Deleting(it) if it.node == "node-2");
    for _ in 0..60 {
        if run.reports.iter().any(is_sent) {
            break;
        }
        run.post(Post::Delivered);
        run.pass(1);
        run.look();
    }
    assert!(run.post(Post::RequestLost), "{:?}", run.reports);
    run.until(|run| run.sim.live_image() == "v1");
    assert_eq!(run.deleted_nodes(), ["node-0", "node-1"], "the delete was not sent again");
    let mut most = 0;
    for _ in 0..120 {
        run.settle();
        most = most.max(run.sim.unavailable().len());
    }
    assert!(matches!(run.outcome(), Outcome::Aborted { rolled_back: Some(RolledBack::Fully), .. }));
    assert_eq!((run.images(), most), ([("v1".to_owned(), 5)].into(), 1));
}

/// A run that was killed when the good template was restored and the failed pods were still there.
fn interrupted_rollback() -> Run {
    let mut run = policy(Run::apply(bad(6, 2), "v2"), OnFailure::Rollback);
    run.until(|run| run.pause().is_some_and(|pause| pause.state == PauseState::Aborted));
    assert_eq!(run.images().get("v2"), Some(&2));
    run
}

#[test]
fn an_incomplete_rollback_is_completed() {
    let mut run = interrupted_rollback();
    let writes = run.sim.writes.len();
    run.restart("v2");
    assert_eq!(run.task.goal, Goal::RollBack);
    let run = run.finish();
    let Outcome::Aborted { failed, rolled_back: Some(RolledBack::Fully), .. } = run.outcome()
    else {
        panic!("{}", run.outcome())
    };
    assert!(failed.is_empty(), "that was the previous run");
    assert_eq!((run.images(), run.sim.writes.len()), ([("v1".to_owned(), 6)].into(), writes));
    assert_eq!(run.pause().unwrap().state, PauseState::Aborted);
    assert_eq!((run.most_unavailable, run.sim.remembered.len()), (2, 1));
}

#[test]
fn a_rollback_ends_when_another_client_resumes() {
    let mut run = interrupted_rollback();
    run.restart("v2");
    run.sim.edit(|spec| spec["template"]["spec"]["containers"][0]["image"] = json!("v3"));
    let run = run.finish();
    let Outcome::Stale { paused: true, .. } = run.outcome() else { panic!("{}", run.outcome()) };
    assert_eq!((run.images().get("v2"), run.sim.live_image()), (Some(&2), "v3".to_owned()));
}

#[test]
fn a_rollback_that_fails_as_well_ends_aborted() {
    let mut run = policy(Run::apply(bad(6, 2), "v2"), OnFailure::Rollback);
    run.look();
    run.until(|run| !run.deletes.is_empty());
    run.until(|run| run.sim.live_image() == "v1");
    // Pods of neither template start on these nodes any more.
    for node in ["node-0", "node-1"] {
        run.sim.picky.insert(node.into(), "none".into());
    }
    let run = run.finish();
    assert!(
        matches!(run.outcome(), Outcome::Aborted { rolled_back: Some(RolledBack::Failed(_)), .. }),
        "{}",
        run.outcome()
    );
}

#[test]
fn without_a_good_template_it_is_paused_instead() {
    let not_aborted = |run: &Run| match run.outcome() {
        Outcome::Paused { why: PauseReason::Failed { not_aborted, .. } } => not_aborted.clone(),
        other => panic!("{other}"),
    };
    // A new DaemonSet.
    let mut sim = bad(3, 1);
    sim.deleted = true;
    sim.cluster.pods.clear();
    sim.cluster.revisions.clear();
    let run = Run::apply(sim, "v2").finish();
    assert_eq!(not_aborted(&run), Some(NotAborted::NothingBefore));
    assert_eq!(run.pause().map(|pause| pause.state), Some(PauseState::Paused));
    // The revision is gone.
    let mut run = Run::apply(bad(6, 2), "v2");
    run.look();
    run.until(|run| run.deletes.len() == 2);
    let first = run.sim.cluster.revisions.iter().position(|it| it.number.0 == 1).unwrap();
    run.sim.cluster.revisions.remove(first);
    let run = run.finish();
    assert!(matches!(not_aborted(&run), Some(NotAborted::RevisionGone { .. })));
    assert_eq!(run.sim.live_image(), "v2");
}

#[test]
fn a_rollback_may_not_evict_more_than_the_budget() {
    let (starting, stuck) = (Fate::ReadyAfter(60), Fate::NoImage);
    // Nodes 3 to 5 do not match the good template. They exist from the start, or join 20 s before
    // node 2 has failed: their pods serve, have failed too, or will serve soon.
    for (case, fate, joins, allow, refused) in [
        ("they serve", Fate::ReadyAfter(1), false, false, Some((3, 0))),
        ("that is allowed", Fate::ReadyAfter(1), false, true, None),
        ("they are still to come", starting, true, false, Some((3, 3))),
        ("they will not come", stuck, false, false, None),
        ("they serve, too young by the clock", Fate::ReadyInFuture, false, false, Some((3, 3))),
    ] {
        let mut sim = Sim::of(if joins { 3 } else { 6 }, &json!(1));
        for at in 0..3 {
            sim.cluster.nodes[at].labels = [("disk", "ssd")].into_iter().collect();
        }
        sim.edit(|spec| spec["template"]["spec"]["nodeSelector"] = json!({"disk": "ssd"}));
        sim.pass(10);
        assert_eq!(sim.cluster.pods.len(), 3);
        sim.fate("v2", fate);
        sim.picky.insert("node-2".into(), "v1".into());
        let wider = wider(&sim);
        let run = Run::new(sim, task(Goal::Apply(wider)));
        let mut run = policy(run, OnFailure::Abort).with(|task| {
            task.allow_mass_eviction = allow;
            task.policy.min_ready_seconds = Some(1);
        });
        run.look();
        if joins {
            run.until(|run| run.deleted_nodes().contains(&"node-2"));
            let soon = run.sim.now() + SignedDuration::from_secs(100);
            run.until(|run| run.sim.now() > soon);
            for node in ["node-3", "node-4", "node-5"] {
                run.sim.join(node);
            }
        }
        let run = run.finish();
        let aborted = matches!(run.outcome(), Outcome::Aborted { .. });
        let why = match run.outcome() {
            Outcome::Paused { why: PauseReason::Failed { not_aborted, .. } } => not_aborted.clone(),
            _ => None,
        };
        let would_evict = |(pods, to_come)| NotAborted::WouldEvict { pods, to_come, allowed: 1 };
        assert_eq!((aborted, why), (refused.is_none(), refused.map(would_evict)), "{case}");
    }
}

/// Version `v2` for all nodes, whatever their disks.
fn wider(sim: &Sim) -> Target {
    let narrow = target(sim, "v2", &rolling(&json!(1)));
    let mut template = narrow.template.raw().clone();
    template["spec"].as_object_mut().unwrap().remove("nodeSelector");
    let mut written = narrow.written.as_ref().clone();
    written["spec"]["template"] = template.clone();
    let template = PodTemplate::from_json(template).unwrap();
    Target { template, written: written.into(), ..narrow }
}

#[test]
fn a_failed_surge_is_stopped_and_the_old_pods_stay() {
    for (on_failure, image, purpose) in
        [(OnFailure::Abort, "v1", Purpose::Abort), (OnFailure::Pause, "v2", Purpose::Pause)]
    {
        let mut sim = Sim::with_strategy(6, &surging(&json!(2)));
        sim.fate("v2", Fate::NoImage);
        let mut run = policy(Run::apply(sim, "v2"), on_failure).finish();
        assert_eq!(run.sim.writes.last().unwrap().purpose, purpose);
        assert_eq!((run.sim.live_image(), run.sim.strategy()), (image.to_owned(), on_delete()));
        assert_eq!(run.pause().unwrap().declared, surging(&json!(2)));
        run.pass(20);
        assert_eq!(run.images(), [("v1".to_owned(), 6)].into(), "surge pods are gone");
        assert_eq!(run.deletes.len(), 0);
    }
}

#[test]
fn a_failure_without_a_pause_is_aborted_too() {
    // The outdated pods appeared after the observation: the controller is rolling, within its
    // budget.
    let mut sim = bad(4, 1);
    sim.cluster.pods.clear();
    let run = Run::apply(sim, "v2");
    assert!(run.sim.writes.is_empty());
    let run = policy(run, OnFailure::Abort).finish();
    assert!(matches!(run.outcome(), Outcome::Aborted { .. }), "{}", run.outcome());
    assert_eq!(run.sim.live_image(), "v1");
}

#[test]
fn roll_only_stops() {
    let mut sim = Sim::with_strategy(5, &on_delete());
    sim.fate("v2", Fate::NoImage);
    sim.cluster.set_image("v2");
    sim.touch();
    sim.pass(1);
    let run = Run::new(sim, task(Goal::Roll(Extent::All))).finish();
    assert!(matches!(
        run.outcome(),
        Outcome::Paused { why: PauseReason::Failed { not_aborted: None, .. } }
    ));
    assert_eq!((run.deletes.len(), run.sim.writes.len()), (1, 0));
    let digest = template_digest(run.sim.cluster.daemon_set.spec.template.raw());
    assert_eq!(run.sim.remembered, [digest].into());
}

#[test]
fn a_lost_abort_is_retried_and_the_failure_is_recorded_after_it() {
    let mut run = Run::apply(bad(6, 1), "v2");
    run.look();
    run.until(|run| !run.deletes.is_empty());
    for post in [Post::RequestLost, Post::AnswerLost] {
        for _ in 0..40 {
            run.pass(1);
            run.look();
            if run.post(post) {
                break;
            }
        }
        assert!(run.sim.remembered.is_empty());
        run.pass(2);
        run.look();
    }
    assert_eq!(run.sim.live_image(), "v1");
    let run = run.finish();
    assert!(matches!(run.outcome(), Outcome::Aborted { .. }));
    assert_eq!(run.sim.remembered.len(), 1);
    let aborts = run.sim.writes.iter().filter(|write| write.purpose == Purpose::Abort);
    assert_eq!(aborts.count(), 1);
}

#[test]
fn a_failure_that_cannot_be_recorded_does_not_prevent_the_end() {
    let mut run = Run::apply(bad(3, 1), "v2");
    run.look();
    run.until(|run| !run.deletes.is_empty());
    run.until(|run| run.sim.live_image() == "v1");
    for _ in 0..60 {
        run.pass(1);
        if run.ended.is_some() {
            break;
        }
        run.look();
        run.post(Post::RequestLost);
    }
    assert!(matches!(run.outcome(), Outcome::Aborted { .. }));
    assert_eq!(run.sim.remembered.len(), 0);
    assert!(run.pause().unwrap().failed.is_some(), "the pause records it");
}

#[test]
fn an_interrupt_during_a_failure_leaves_it() {
    let mut run = Run::apply(bad(3, 1), "v2");
    run.look();
    run.until(|run| !run.deletes.is_empty());
    run.feed(Event::Interrupt, 0);
    let run = run.finish();
    assert_eq!(*run.outcome(), Outcome::Interrupted { paused: true });
    assert_eq!((run.sim.live_image(), run.deletes.len()), ("v2".to_owned(), 1));
}

#[test]
fn an_aborted_daemon_set_records_the_source_of_its_template() {
    let good = Run::apply(bad(3, 1), "v3").finish();
    let run = good.again("v2").with(|task| task.provenance.commit = Some("bad".into())).finish();
    let live = &run.sim.cluster.daemon_set.annotations;
    assert_eq!(live.get(COMMIT_ANNOTATION), Some("c0ffee"));
    assert_eq!(run.pause().unwrap().commit.as_deref(), Some("bad"));
}

#[test]
fn one_of_something_is_singular() {
    let restarts =
        |restarts| PodFailure::Restarts { pod: "a".into(), restarts, allowed: 0 }.to_string();
    assert_eq!(restarts(1), "pod a restarted 1 time, at most 0 allowed");
    assert_eq!(restarts(2), "pod a restarted 2 times, at most 0 allowed");
    let evicted = NotAborted::WouldEvict { pods: 1, to_come: 0, allowed: 0 };
    assert_eq!(evicted.to_string(), "rolling back would evict 1 pod at once, at most 0 allowed");
    let lost = Report::LostReady { nodes: 1 };
    assert!(lost.to_string().starts_with("1 pod became NotReady within a minute"), "{lost}");
}

/// A commit goes back to the last good template while a canary soaks, and its pod does not start.
#[test]
fn the_last_good_template_is_not_aborted_to_itself() {
    let canary = steps::policy(json!({
        "onFailure": "abort",
        "progressDeadline": "60s",
        "steps": [{"name": "canary", "nodes": 1, "soak": "60s"}],
    }));
    let mut sim = steps::run(Sim::of(3, &json!(1)), "v2", &canary).sim;
    let canary_node = sim.running().into_iter().find(|(_, image)| *image == "v2").unwrap().0;
    sim.picky.insert(canary_node, "v2".into());
    // Two nodes have it: the step is complete, and soaks first.
    let mut sim = steps::run(sim, "v1", &canary).sim;
    sim.pass(61);
    let back = steps::run(sim, "v1", &canary);
    match back.outcome() {
        Outcome::Paused { why: PauseReason::Failed { failed, not_aborted, .. } } => {
            assert_eq!((failed.len(), not_aborted), (1, &Some(NotAborted::IsLastGood)));
        }
        other => panic!("{other}"),
    }
    assert_eq!(back.pause().map(|it| (it.state, it.failed)), Some((PauseState::Paused, None)));
    assert_eq!(back.sim.live_image(), "v1");
}

/// The time is up when the last pod is available, and then one fails: it has failed, not the rollout
/// taken too long.
#[test]
fn a_rollout_whose_steps_are_all_done_does_not_take_too_long() {
    let limited = steps::policy(json!({"maxDuration": "30m", "progressDeadline": "1h"}));
    let mut run = Run::apply(Sim::of(2, &json!(2)), "v2").with(|task| task.policy = limited);
    run.look();
    run.until(|run| run.deletes.len() == 2);
    run.pass(1_900);
    run.look();
    let now = run.sim.now();
    let pod = &mut run.sim.cluster.pods[0];
    (pod.restarts, pod.containers_changed) = (4, Some(now.into()));
    run.until(|_| false);
    let Outcome::Aborted { cause, failed, .. } = run.outcome() else {
        panic!("{}", run.outcome());
    };
    assert_eq!((cause, failed.len()), (&None, 1));
}

/// Found by the simulation: a node that was skipped comes back weeks later with its old pod, and its new
/// pod fails. The template that runs on all other nodes is the last good one.
#[test]
fn a_skipped_node_that_fails_later_does_not_abort_a_complete_rollout() {
    for nodes in [1, 4] {
        let mut sim = Sim::of(nodes, &json!(1));
        let old = sim.pod_on("node-0").clone();
        let mut done = Run::apply(sim, "v2").finish();
        assert_eq!(done.outcome(), &Outcome::Done);
        *done.sim.pod_on("node-0") = old;
        done.sim.picky.insert("node-0".into(), "v1".into());
        let run = policy(done.again("v2"), OnFailure::Rollback).finish();
        let Outcome::Paused { why: PauseReason::Failed { failed, not_aborted, .. } } =
            run.outcome()
        else {
            panic!("{}", run.outcome())
        };
        assert_eq!((failed.len(), not_aborted), (1, &Some(NotAborted::IsLastGood)));
        assert_eq!((run.sim.live_image(), run.deletes.len()), ("v2".to_owned(), 1));
    }
}
