//! Changes by others during a run: users, controllers, the server, the clock. Each ends in a
//! defined outcome, and never in a delete without a reason.

use std::sync::Arc;

use serde_json::json;

use super::run::{Post, Run};
use super::sim::{Fate, Sim, on_delete, rolling, surging};
use crate::annotations::ROLLOUT_ANNOTATION;
use crate::plan::PauseState;
use crate::rollout::{
    AllowedActions, ControllerWork, Event, Interference, Outcome, PauseReason, Purpose, Report,
};
use daemonset::model::{Deadline, ManagedBy, UpdateStrategy};

/// A run that has deleted two of six pods, one after the other.
fn halfway() -> Run {
    let mut run = Run::apply(Sim::of(6, &json!(1)), "v2");
    run = run.with(|task| task.policy.progress_deadline = Deadline(120));
    run.look();
    run.until(|run| run.deletes.len() == 2);
    run
}

#[test]
fn interference_is_named_and_nothing_more_is_deleted() {
    type Meddle = fn(&mut Sim);
    type Fits = fn(&Outcome) -> bool;
    let rows: [(&str, Meddle, Fits); 8] = [
        (
            "rollout restart",
            |sim| {
                sim.edit(|spec| {
                    let restarted = json!({"kubectl.kubernetes.io/restartedAt": "now"});
                    spec["template"]["metadata"]["annotations"] = restarted;
                });
            },
            |it| match it {
                Outcome::Stale {
                    change: Interference::Template { restarted, .. },
                    paused: true,
                } => *restarted,
                _ => false,
            },
        ),
        (
            "rollout undo",
            |sim| sim.edit(|spec| spec["template"]["spec"]["containers"][0]["image"] = "v1".into()),
            |it| match it {
                Outcome::Stale {
                    change: Interference::Template { revision, .. },
                    paused: true,
                } => revision.is_some(),
                _ => false,
            },
        ),
        (
            "the strategy is edited",
            |sim| {
                // The controller is stopped, so that the rest is visible.
                sim.idle = true;
                sim.edit(|spec| spec["updateStrategy"] = rolling(&json!(1)));
            },
            |it| matches!(it, Outcome::Stale { change: Interference::Strategy, paused: false }),
        ),
        (
            "the annotation is removed",
            |sim| sim.cluster.daemon_set.annotations = std::iter::empty::<(&str, &str)>().collect(),
            |it| matches!(it, Outcome::Stale { change: Interference::Strategy, paused: true }),
        ),
        (
            "the annotation is invalid",
            |sim| {
                sim.cluster.daemon_set.annotations =
                    [(ROLLOUT_ANNOTATION, "{")].into_iter().collect();
            },
            |it| matches!(it, Outcome::Stale { change: Interference::Pause, paused: true }),
        ),
        (
            "deleted",
            |sim| sim.deleted = true,
            |it| matches!(it, Outcome::Gone { replaced_by: None }),
        ),
        (
            "terminating",
            |sim| sim.cluster.daemon_set.terminating = true,
            |it| matches!(it, Outcome::Gone { replaced_by: None }),
        ),
        (
            "deleted and created again",
            |sim| sim.cluster.daemon_set.uid = "uid-another".into(),
            |it| matches!(it, Outcome::Gone { replaced_by: Some(_) }),
        ),
    ];
    for (rule, meddle, fits) in rows {
        let mut run = halfway();
        meddle(&mut run.sim);
        run.sim.touch();
        let run = run.finish();
        assert!(fits(run.outcome()), "{rule}: {}", run.outcome());
        assert_eq!(run.deletes.len(), 2, "{rule}");
        assert_eq!(run.sim.writes.len(), 1, "{rule}: nothing is restored or overwritten");
    }
}

#[test]
fn a_pause_that_another_run_aborted_ends_this_run() {
    let mut run = halfway();
    let mut pause = run.pause().unwrap();
    pause.state = PauseState::Aborted;
    let text = serde_json::to_string(&pause).unwrap();
    run.sim.cluster.daemon_set.annotations = [(ROLLOUT_ANNOTATION, text)].into_iter().collect();
    run.sim.touch();
    let run = run.finish();
    assert_eq!(*run.outcome(), Outcome::Stale { change: Interference::Pause, paused: true });
}

#[test]
fn a_rollout_that_others_complete_is_done() {
    // Another client restores the strategy in the middle, and when that is observed no old pod is
    // left.
    let mut run = halfway();
    run.sim.edit(|spec| spec["updateStrategy"] = rolling(&json!(1)));
    run.sim.cluster.daemon_set.annotations = std::iter::empty::<(&str, &str)>().collect();
    run.pass(120);
    let run = run.finish();
    assert_eq!((run.outcome(), run.deletes.len()), (&Outcome::Done, 2));
}

#[test]
fn pods_that_others_delete_count_and_are_recreated_updated() {
    let mut run = halfway();
    for pod in run.sim.cluster.pods.iter_mut().filter(|pod| pod.node() == Some(&"node-5".into())) {
        pod.terminating = true;
    }
    let run = run.finish();
    assert_eq!((run.outcome(), run.deletes.len()), (&Outcome::Done, 5));
    assert!(!run.deleted_nodes().contains(&"node-5"));
}

#[test]
fn nodes_that_join_or_leave_do_not_matter() {
    let mut run = halfway();
    run.sim.join("node-new");
    run.sim.cluster.nodes.retain(|node| node.name != "node-4");
    let run = run.finish();
    assert_eq!((run.outcome(), run.images()), (&Outcome::Done, [("v2".to_owned(), 6)].into()));
    assert_eq!(run.deletes.len(), 5);
}

#[test]
fn a_stalled_controller_is_not_waited_for_indefinitely() {
    let mut run = Run::apply(Sim::of(3, &json!(1)), "v2");
    run = run.with(|task| task.policy.progress_deadline = Deadline(120));
    run.sim.idle = true;
    let run = run.finish();
    let Outcome::Paused { why: PauseReason::ControllerStalled { work, seconds } } = run.outcome()
    else {
        panic!("{}", run.outcome())
    };
    assert!(matches!(work, ControllerWork::Observe { .. }));
    assert_eq!((*seconds, run.deletes.len()), (120, 0));
}

#[test]
fn several_revisions_of_one_template_are_waited_out() {
    let mut run = Run::apply(Sim::of(3, &json!(1)), "v2");
    run = run.with(|task| task.policy.progress_deadline = Deadline(60));
    run.look();
    run.until(|run| run.sim.live_image() == "v2" && run.sim.cluster.revisions.len() == 2);
    run.sim.idle = true;
    let mut twin = run.sim.cluster.revisions.iter().max_by_key(|it| it.number).unwrap().clone();
    twin.name = "foo-twin".into();
    twin.data = Arc::new(twin.data.as_ref().clone());
    run.sim.cluster.revisions.push(twin);
    let run = run.finish();
    assert!(matches!(
        run.outcome(),
        Outcome::Paused {
            why: PauseReason::ControllerStalled {
                work: ControllerWork::DropDuplicates { revisions: 2 },
                ..
            }
        }
    ));
    assert!(run.deletes.len() <= 1, "at most the pending one");
}

#[test]
fn the_timeout_of_the_run_ends_it_safely() {
    let run = halfway();
    let at = run.sim.now() + jiff::SignedDuration::from_secs(5);
    let mut run = run.again("v2").with(|task| task.deadline = Some(at));
    run.look();
    run.until(|run| run.sim.now() >= at);
    let run = run.finish();
    assert_eq!(*run.outcome(), Outcome::Paused { why: PauseReason::Timeout });
    assert!(run.pause().is_some());
}

/// A run whose first three deletes are pending.
fn with_three_deletes_out() -> Run {
    let mut run = Run::apply(Sim::of(6, &json!(3)), "v2");
    run.look();
    for _ in 0..20 {
        run.look();
        if run.reports.iter().any(|it| matches!(it, Report::Deleting(_))) {
            break;
        }
        while run.post(Post::Delivered) {
            run.pass(1);
            run.observe();
        }
    }
    run
}

#[test]
fn an_interrupt_ends_a_run_without_lock_at_once() {
    for events in [[Event::LockLost, Event::Interrupt], [Event::Interrupt, Event::LockLost]] {
        let mut run = with_three_deletes_out();
        for event in events {
            assert!(run.ended.is_none());
            run.feed(event, 0);
        }
        assert_eq!(*run.outcome(), Outcome::LockLost);
    }
}

#[test]
fn a_lost_lock_ends_it_once_all_answers_are_in() {
    let mut run = with_three_deletes_out();
    run.feed(Event::LockLost, 0);
    assert!(run.ended.is_none(), "three deletes are pending");
    while run.post(Post::Delivered) {}
    assert_eq!(*run.outcome(), Outcome::LockLost);
    assert!(run.deletes.len() <= 3);
}

#[test]
fn the_first_interrupt_waits_for_pods_that_were_deleted_and_the_second_does_not() {
    let mut run = halfway();
    run.sim.fate("v2", Fate::ReadyAfter(30));
    run.until(|run| run.deletes.len() == 3);
    run.feed(Event::Interrupt, 0);
    for _ in 0..10 {
        run.settle();
    }
    assert!(run.ended.is_none(), "its pod is not back");
    let stopping = Report::Stopping { in_flight: 1 };
    assert_eq!(run.reports.iter().filter(|it| **it == stopping).count(), 1, "it says so once");
    let words = "stopping after 1 pod in flight; press again to stop at once";
    assert_eq!(stopping.to_string(), words);
    let mut twice = Run::apply(Sim::of(2, &json!(1)), "v2");
    twice.look();
    twice.until(|run| run.deletes.len() == 1);
    twice.feed(Event::Interrupt, 0);
    twice.feed(Event::Interrupt, 0);
    assert_eq!(*twice.outcome(), Outcome::Interrupted { paused: true });
    let run = run.finish();
    assert_eq!((run.outcome(), run.deletes.len()), (&Outcome::Interrupted { paused: true }, 3));
    let ending = run.ended.as_ref().unwrap();
    assert_eq!(ending.replaced.len(), 3);
    assert!(run.pause().is_some());
    assert_eq!(*run.again("v2").finish().outcome(), Outcome::Done);
}

#[test]
fn an_interrupted_run_says_paused_only_if_the_daemon_set_is() {
    let mut before = Run::apply(Sim::of(2, &json!(1)), "v2");
    before.feed(Event::Interrupt, 0);
    let mut surge = Run::apply(Sim::with_strategy(6, &surging(&json!(2))), "v2");
    surge.sim.fate("v2", Fate::ReadyAfter(30));
    surge.look();
    surge.until(|run| !run.sim.writes.is_empty());
    surge.feed(Event::Interrupt, 0);
    for run in [before, surge] {
        let run = run.finish();
        assert_eq!(*run.outcome(), Outcome::Interrupted { paused: false });
        assert_eq!((run.outcome().to_string().as_str(), run.pause()), ("interrupted", None));
    }
    let mut paused = halfway();
    paused.feed(Event::Interrupt, 0);
    let paused = paused.finish();
    assert_eq!(paused.outcome().to_string(), "paused: the run was interrupted");
    assert!(paused.pause().is_some());
}

#[test]
fn a_conflict_is_retried_on_the_new_version() {
    let mut run = Run::apply(Sim::of(3, &json!(1)), "v2");
    run.look();
    // The status is written in between.
    run.sim.touch();
    let run = run.finish();
    assert_eq!((run.outcome(), run.images()), (&Outcome::Done, [("v2".to_owned(), 3)].into()));
    let purposes: Vec<_> = run.sim.writes.iter().map(|write| write.purpose).collect();
    assert_eq!(purposes, [Purpose::Apply, Purpose::RestoreStrategy]);
}

#[test]
fn roll_needs_on_delete_and_its_template() {
    use super::run::task;
    use crate::rollout::{Extent, Goal};
    let run = Run::new(Sim::of(3, &json!(1)), task(Goal::Roll(Extent::All))).finish();
    assert_eq!(*run.outcome(), Outcome::Stale { change: Interference::Strategy, paused: false });
    let mut sim = Sim::with_strategy(3, &on_delete());
    sim.edit(|spec| spec["template"]["spec"]["containers"][0]["image"] = "v2".into());
    sim.pass(1);
    let mut run = Run::new(sim, task(Goal::Roll(Extent::All)));
    run.look();
    run.until(|run| run.deletes.len() == 1);
    run.sim.edit(|spec| spec["template"]["spec"]["containers"][0]["image"] = "v3".into());
    let run = run.finish();
    assert!(matches!(run.outcome(), Outcome::Stale { change: Interference::Template { .. }, .. }));
    assert_eq!(run.sim.cluster.daemon_set.spec.update_strategy, UpdateStrategy::OnDelete);
    assert_eq!(run.deletes.len(), 1);
}

#[test]
fn with_the_in_process_controller_a_run_is_not_done_while_a_node_has_no_pod() {
    for (managed_by, done) in [(ManagedBy::DaemonSetController, true), (ManagedBy::DsApply, false)]
    {
        let mut sim = Sim::with_strategy(2, &on_delete());
        sim.cluster.daemon_set.managed_by = managed_by;
        sim.fate("v2", Fate::NotCreated);
        sim.join("node-new");
        let run = Run::apply(sim, "v2").finish();
        match run.outcome() {
            Outcome::Done => assert!(done, "{managed_by}"),
            Outcome::Paused {
                why: PauseReason::NotCreated { nodes, seconds: 30, message: Some(_) },
            } => {
                assert!(!done && nodes.contains(&"node-new".into()), "{nodes:?}");
            }
            other => panic!("{managed_by}: {other}"),
        }
    }
}

#[test]
fn a_run_that_rolls_nothing_writes_nothing_when_a_pod_fails() {
    for managed in [false, true] {
        let mut sim = Sim::of(3, &json!(1));
        if managed {
            sim.cluster.manage();
        }
        sim.join("node-new");
        let image = sim.live_image();
        sim.fate(&image, Fate::NeverReady);
        let run = Run::apply(sim, &image).finish();
        let Outcome::Paused { why: PauseReason::Failed { failed, not_aborted: None, .. } } =
            run.outcome()
        else {
            panic!("managed: {managed}: {}", run.outcome());
        };
        assert!(failed.contains_key("node-0"), "{failed:?}");
        assert!(
            run.sim.writes.is_empty() && run.deletes.is_empty() && run.sim.remembered.is_empty()
        );
        assert!(run.sim.running().contains_key("node-new"));
    }
}

#[test]
fn with_the_in_process_controller_a_run_replaces_outdated_pods_that_appear_later() {
    let mut sim = Sim::of(2, &json!(1));
    sim.cluster.manage();
    let orphan = sim.cluster.pods.pop().unwrap();
    sim.cluster.pods.clear();
    let mut run = Run::apply(sim, "v2");
    run.sim.idle = true;
    run.look();
    run.settle();
    run.sim.idle = false;
    run.until(|run| run.sim.running().len() == 2);
    assert_eq!(run.pause(), None);
    run.sim.idle = true;
    run.sim.cluster.pods.retain(|pod| pod.node() != orphan.node());
    run.sim.cluster.pods.push(orphan);
    run.look();
    run.settle();
    run.sim.idle = false;
    let run = run.finish();
    assert_eq!((run.outcome(), run.images()), (&Outcome::Done, [("v2".to_owned(), 2)].into()));
    let purposes: Vec<_> = run.sim.writes.iter().map(|write| write.purpose).collect();
    assert_eq!(purposes, [Purpose::Apply, Purpose::Apply, Purpose::RestoreStrategy]);
    assert_eq!(run.deletes.len(), 1);
}

#[test]
fn actions_allowed_to_the_in_process_controller() {
    let leaves = |strategy: &serde_json::Value| {
        let mut run = Run::apply(Sim::with_strategy(2, strategy), "v2");
        let mut all = vec![run.allowed_actions()];
        run.look();
        for _ in 0..100 {
            all.push(run.allowed_actions());
            run.settle();
        }
        all.push(run.allowed_actions());
        assert_eq!(*run.outcome(), Outcome::Done);
        all.dedup();
        all
    };
    let surge = json!({
        "type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1},
    });
    assert_eq!(leaves(&rolling(&json!(1))), [AllowedActions::None, AllowedActions::Reconcile]);
    assert_eq!(leaves(&on_delete()), [AllowedActions::None, AllowedActions::Reconcile]);
    let surged = leaves(&surge);
    assert_eq!(surged.first(), Some(&AllowedActions::None));
    assert_eq!(
        surged.last(),
        Some(&AllowedActions::Reconcile),
        "the end of the run ends the surge"
    );
    assert!(surged.contains(&AllowedActions::ReconcileAndSurge));
}

#[test]
fn no_pod_is_created_from_a_template_that_is_about_to_be_replaced() {
    let sent_abort = || {
        let mut run = Run::apply(Sim::of(2, &json!(1)), "v2");
        run.sim.fate("v2", Fate::NoImage);
        run.look();
        run.until(|run| run.state.writing.sent.contains(&Purpose::Abort));
        assert_eq!(run.allowed_actions(), AllowedActions::None);
        run
    };
    let mut run = sent_abort();
    assert!(run.post(Post::RequestLost));
    assert_eq!(run.allowed_actions(), AllowedActions::None, "it is sent again");
    run.until(|run| run.state.writing.done.contains(&Purpose::Abort));
    assert_eq!(run.allowed_actions(), AllowedActions::Reconcile, "the good template is observed");

    let mut run = sent_abort();
    run.feed(Event::Interrupt, 0);
    assert_eq!(run.allowed_actions(), AllowedActions::None, "it may still be executed");
    assert!(run.post(Post::RequestLost));
    assert_eq!(run.allowed_actions(), AllowedActions::CreateOnly, "for the pod that was deleted");
}
