//! What becomes of a rollout whose gate has failed.

use jiff::SignedDuration;
use serde_json::json;

use super::run::{Post, Run, declared, target, task};
use super::sim::{Fate, Sim, on_delete, rolling, surging};
use crate::model::{Deadline, OnFailure, PodTemplate};
use crate::plan::{COMMIT_ANNOTATION, HoldState, template_digest};
use crate::rollout::{
    Event, Extent, Goal, Held, NotParked, Outcome, Purpose, RolledBack, Target, Trouble,
};

fn bad(nodes: usize, budget: u32) -> Sim {
    let mut sim = Sim::of(nodes, &json!(budget));
    sim.fate("v2", Fate::NoImage);
    sim
}

fn policy(run: Run, on_failure: OnFailure) -> Run {
    run.with(|task| {
        task.pace.on_failure = on_failure;
        task.pace.progress_deadline = Deadline(120);
    })
}

#[test]
fn park_puts_the_good_template_back_and_deletes_nothing() {
    let mut run = Run::apply(bad(6, 2), "v2").finish();
    let Outcome::Parked { failed, to, rolled_back: None } = run.outcome() else {
        panic!("{}", run.outcome())
    };
    assert_eq!((failed.len(), run.deletes.len()), (2, 2));
    assert!(failed.values().all(|it| matches!(it, Trouble::DoesNotHeal { .. })));
    assert_eq!((run.sim.image(), run.sim.strategy()), ("v1".to_owned(), on_delete()));
    let hold = run.hold().unwrap();
    assert_eq!(
        (hold.state, hold.from.as_ref().unwrap().name.clone()),
        (HoldState::Parked, to.clone())
    );
    assert_eq!(hold.declared, rolling(&json!(2)));
    let digest = template_digest(target(&run.sim, "v2", &rolling(&json!(2))).template.raw());
    assert_eq!(hold.failed.as_ref(), Some(&digest));
    assert_eq!(run.sim.remembered.iter().collect::<Vec<_>>(), [&digest]);
    assert_eq!(run.sim.writes.last().unwrap().purpose, Purpose::Park);
    // The bad pods stay to be looked at; a node that joins gets the good version.
    assert_eq!(run.images(), [("v1".to_owned(), 4), ("v2".to_owned(), 2)].into());
    run.sim.join("node-new");
    run.pass(10);
    assert_eq!(run.images(), [("v1".to_owned(), 5), ("v2".to_owned(), 2)].into());
}

#[test]
fn from_parked_it_goes_back_or_on() {
    for (image, revision) in [("v1", 3), ("v3", 4)] {
        let parked = Run::apply(bad(6, 2), "v2").finish();
        let name = parked.sim.cluster.revisions.len();
        assert_eq!(name, 2);
        let run = parked.again(image).finish();
        assert_eq!((run.outcome(), run.hold()), (&Outcome::Done, None), "{image}");
        assert_eq!(run.images(), [(image.to_owned(), 6)].into());
        assert_eq!(declared(&run.sim), rolling(&json!(2)));
        let numbers = run.sim.cluster.revisions.iter().map(|it| it.number.0);
        assert_eq!(numbers.max(), Some(revision), "{image}");
        assert!(run.most_unavailable <= 2);
    }
}

#[test]
fn a_fixed_cause_and_a_retry_finish_a_parked_rollout() {
    let mut parked = Run::apply(bad(6, 2), "v2").finish();
    parked.sim.fate("v2", Fate::ReadyAfter(2));
    for pod in &mut parked.sim.cluster.pods {
        pod.trouble = None;
    }
    assert_eq!(parked.sim.remembered.len(), 1);
    let run = parked.again("v2").with(|task| task.failed_before = true).finish();
    assert_eq!((run.outcome(), run.images()), (&Outcome::Done, [("v2".to_owned(), 6)].into()));
    assert!(run.sim.remembered.is_empty(), "rolled out whole, it has not failed any more");
}

#[test]
fn what_failed_is_remembered_until_it_is_whole() {
    let bad = |strategy| {
        let mut sim = Sim::with_strategy(6, &strategy);
        sim.remembered.insert("sha256:v2".to_owned());
        sim
    };
    for (rule, sim, interrupted) in [
        ("stopped on the way", bad(rolling(&json!(2))), true),
        ("no pod is of it yet", bad(on_delete()), false),
    ] {
        let mut run = Run::apply(sim, "v2").with(|task| task.failed_before = true);
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
fn hold_leaves_everything_as_it_is() {
    let run = policy(Run::apply(bad(6, 2), "v2"), OnFailure::Hold).finish();
    assert!(matches!(
        run.outcome(),
        Outcome::Held { why: Held::Failed { not_parked: None, failed } } if failed.len() == 2
    ));
    assert_eq!((run.sim.image(), run.hold().unwrap().state), ("v2".to_owned(), HoldState::Holding));
    assert_eq!((run.sim.writes.len(), run.sim.remembered.len()), (1, 1));
}

#[test]
fn rollback_replaces_the_bad_pods_too_and_stays_parked() {
    let run = policy(Run::apply(bad(6, 2), "v2"), OnFailure::Rollback).finish();
    assert!(matches!(run.outcome(), Outcome::Parked { rolled_back: Some(RolledBack::Fully), .. }));
    assert_eq!(run.images(), [("v1".to_owned(), 6)].into());
    assert_eq!(run.hold().unwrap().state, HoldState::Parked);
    assert_eq!((run.deletes.len(), run.most_unavailable), (4, 2));
}

/// A run that was killed when the good template was back, and the bad pods were still there.
fn left_on_the_way_back() -> Run {
    let mut run = policy(Run::apply(bad(6, 2), "v2"), OnFailure::Rollback);
    run.until(|run| run.hold().is_some_and(|hold| hold.state == HoldState::Parked));
    assert_eq!(run.images().get("v2"), Some(&2));
    run
}

#[test]
fn a_way_back_that_was_left_is_gone_to_its_end() {
    let mut run = left_on_the_way_back();
    let writes = run.sim.writes.len();
    run.restart("v2");
    assert_eq!(run.task.goal, Goal::GoBack);
    let run = run.finish();
    let Outcome::Parked { failed, rolled_back: Some(RolledBack::Fully), .. } = run.outcome() else {
        panic!("{}", run.outcome())
    };
    assert!(failed.is_empty(), "that was the run before");
    assert_eq!((run.images(), run.sim.writes.len()), ([("v1".to_owned(), 6)].into(), writes));
    assert_eq!(run.hold().unwrap().state, HoldState::Parked);
    assert_eq!((run.most_unavailable, run.sim.remembered.len()), (2, 1));
}

#[test]
fn a_way_back_ends_where_somebody_else_goes_on() {
    let mut run = left_on_the_way_back();
    run.restart("v2");
    run.sim.edit(|spec| spec["template"]["spec"]["containers"][0]["image"] = json!("v3"));
    let run = run.finish();
    let Outcome::Stale { held: true, .. } = run.outcome() else { panic!("{}", run.outcome()) };
    assert_eq!((run.images().get("v2"), run.sim.image()), (Some(&2), "v3".to_owned()));
}

#[test]
fn a_rollback_that_fails_as_well_stops_parked() {
    let mut run = policy(Run::apply(bad(6, 2), "v2"), OnFailure::Rollback);
    run.look();
    run.until(|run| !run.deletes.is_empty());
    run.until(|run| run.sim.image() == "v1");
    // Pods of neither template start on these any more.
    for node in ["node-0", "node-1"] {
        run.sim.picky.insert(node.into(), "none".into());
    }
    let run = run.finish();
    assert!(
        matches!(run.outcome(), Outcome::Parked { rolled_back: Some(RolledBack::Failed(_)), .. }),
        "{}",
        run.outcome()
    );
}

#[test]
fn without_a_good_template_it_is_held_instead() {
    let not_parked = |run: &Run| match run.outcome() {
        Outcome::Held { why: Held::Failed { not_parked, .. } } => not_parked.clone(),
        other => panic!("{other}"),
    };
    // A new DaemonSet.
    let mut sim = bad(3, 1);
    sim.deleted = true;
    sim.cluster.pods.clear();
    sim.cluster.revisions.clear();
    let run = Run::apply(sim, "v2").finish();
    assert_eq!(not_parked(&run), Some(NotParked::NothingBefore));
    assert_eq!(run.hold().map(|hold| hold.state), Some(HoldState::Holding));
    // The revision is gone.
    let mut run = Run::apply(bad(6, 2), "v2");
    run.look();
    run.until(|run| run.deletes.len() == 2);
    let first = run.sim.cluster.revisions.iter().position(|it| it.number.0 == 1).unwrap();
    run.sim.cluster.revisions.remove(first);
    let run = run.finish();
    assert!(matches!(not_parked(&run), Some(NotParked::RevisionGone { .. })));
    assert_eq!(run.sim.image(), "v2");
}

#[test]
fn going_back_may_not_evict_more_than_the_budget() {
    let (starting, stuck) = (Fate::ReadyAfter(60), Fate::NoImage);
    // Nodes 3 to 5 are none of the good template's. They are there from the beginning, or join 20 s
    // before node 2 has failed: their pods serve, have failed like it, or are to serve soon.
    for (case, fate, joins, allow, refused) in [
        ("they serve", Fate::ReadyAfter(1), false, false, Some((3, 0))),
        ("that is allowed", Fate::ReadyAfter(1), false, true, None),
        ("they are still to come", starting, true, false, Some((3, 3))),
        ("they will not come", stuck, false, false, None),
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
        let mut run = policy(run, OnFailure::Park).with(|task| task.allow_mass_eviction = allow);
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
        let parked = matches!(run.outcome(), Outcome::Parked { .. });
        let why = match run.outcome() {
            Outcome::Held { why: Held::Failed { not_parked, .. } } => not_parked.clone(),
            _ => None,
        };
        let would_evict = |(pods, to_come)| NotParked::WouldEvict { pods, to_come, allowed: 1 };
        assert_eq!((parked, why), (refused.is_none(), refused.map(would_evict)), "{case}");
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
fn a_surge_that_fails_is_halted_and_the_old_pods_stay() {
    for (on_failure, image, purpose) in
        [(OnFailure::Park, "v1", Purpose::Park), (OnFailure::Hold, "v2", Purpose::Hold)]
    {
        let mut sim = Sim::with_strategy(6, &surging(&json!(2)));
        sim.fate("v2", Fate::NoImage);
        let mut run = policy(Run::apply(sim, "v2"), on_failure).finish();
        assert_eq!(run.sim.writes.last().unwrap().purpose, purpose);
        assert_eq!((run.sim.image(), run.sim.strategy()), (image.to_owned(), on_delete()));
        assert_eq!(run.hold().unwrap().declared, surging(&json!(2)));
        run.pass(20);
        assert_eq!(run.images(), [("v1".to_owned(), 6)].into(), "surge pods are gone");
        assert_eq!(run.deletes.len(), 0);
    }
}

#[test]
fn a_failed_watch_without_a_hold_is_parked_too() {
    // The outdated pods came after the look: the controller is rolling, within its budget.
    let mut sim = bad(4, 1);
    sim.cluster.pods.clear();
    let run = Run::apply(sim, "v2");
    assert!(run.sim.writes.is_empty());
    let run = policy(run, OnFailure::Park).finish();
    assert!(matches!(run.outcome(), Outcome::Parked { .. }), "{}", run.outcome());
    assert_eq!(run.sim.image(), "v1");
}

#[test]
fn roll_only_stops() {
    let mut sim = Sim::with_strategy(5, &on_delete());
    sim.fate("v2", Fate::NoImage);
    sim.cluster.set_image("v2");
    sim.touch();
    sim.pass(1);
    let run = Run::new(sim, task(Goal::Roll(Extent::All))).finish();
    assert!(matches!(run.outcome(), Outcome::Held { why: Held::Failed { not_parked: None, .. } }));
    assert_eq!((run.deletes.len(), run.sim.writes.len(), run.sim.remembered.len()), (1, 0, 0));
}

#[test]
fn a_lost_park_is_written_again_and_what_failed_is_remembered_after_it() {
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
    assert_eq!(run.sim.image(), "v1");
    let run = run.finish();
    assert!(matches!(run.outcome(), Outcome::Parked { .. }));
    assert_eq!(run.sim.remembered.len(), 1);
    let parks = run.sim.writes.iter().filter(|write| write.purpose == Purpose::Park);
    assert_eq!(parks.count(), 1);
}

#[test]
fn what_cannot_be_remembered_does_not_keep_it_from_ending() {
    let mut run = Run::apply(bad(3, 1), "v2");
    run.look();
    run.until(|run| !run.deletes.is_empty());
    run.until(|run| run.sim.image() == "v1");
    for _ in 0..60 {
        run.pass(1);
        if run.ended.is_some() {
            break;
        }
        run.look();
        run.post(Post::RequestLost);
    }
    assert!(matches!(run.outcome(), Outcome::Parked { .. }));
    assert_eq!(run.sim.remembered.len(), 0);
    assert!(run.hold().unwrap().failed.is_some(), "the hold knows");
}

#[test]
fn an_interrupt_in_the_middle_of_a_failure_leaves_it() {
    let mut run = Run::apply(bad(3, 1), "v2");
    run.look();
    run.until(|run| !run.deletes.is_empty());
    run.feed(Event::Interrupt, 0);
    let run = run.finish();
    assert_eq!(*run.outcome(), Outcome::Interrupted);
    assert_eq!((run.sim.image(), run.deletes.len()), ("v2".to_owned(), 1));
}

#[test]
fn a_parked_daemon_set_says_where_its_template_came_from() {
    let good = Run::apply(bad(3, 1), "v3").finish();
    let run = good.again("v2").with(|task| task.provenance.commit = Some("bad".into())).finish();
    let live = &run.sim.cluster.daemon_set.annotations;
    assert_eq!(live.get(COMMIT_ANNOTATION), Some("c0ffee"));
    assert_eq!(run.hold().unwrap().commit.as_deref(), Some("bad"));
}
