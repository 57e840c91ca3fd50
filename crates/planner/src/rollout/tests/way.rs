//! Rollouts from one template to the next, without faults.

use jiff::Timestamp;
use serde_json::json;

use super::run::{Post, Run, declared, target, task};
use super::sim::{Sim, on_delete, rolling, surging};
use crate::annotations::COMMIT_ANNOTATION;
use crate::plan::{PauseState, Reason, Wave};
use crate::rollout::{
    Arrival, Extent, Goal, Outcome, Precondition, Progress, Purpose, Report, first_write,
};
use daemonset::model::{IntOrPercent, REVISION_HASH_LABEL};

fn purposes(run: &Run) -> Vec<Purpose> {
    run.sim.writes.iter().map(|write| write.purpose).collect()
}

#[test]
fn a_rollout_is_paused_replaced_in_waves_and_restored() {
    for (budget, most) in [(json!(1), 1), (json!(3), 3), (json!("10%"), 1), (json!("100%"), 8)] {
        let run = Run::apply(Sim::of(8, &budget), "v2").finish();
        assert_eq!(*run.outcome(), Outcome::Done, "{budget}");
        assert_eq!(run.images(), [("v2".to_owned(), 8)].into());
        assert_eq!((run.most_deleted_from, run.most_unavailable), (most, most), "{budget}");
        assert_eq!(purposes(&run), [Purpose::Apply, Purpose::RestoreStrategy]);
        assert_eq!((run.sim.strategy(), run.pause()), (rolling(&budget), None));
        assert_eq!(run.deletes.len(), 8);
        assert_eq!(run.deleted_uids().len(), 8);
        let ending = run.ended.unwrap();
        assert_eq!((ending.replaced.len(), ending.left.len()), (8, 0));
    }
}

#[test]
fn the_first_write_pauses_and_records_the_previous_revision() {
    let run = Run::apply(Sim::of(2, &json!(1)), "v2").finish();
    let write = &run.sim.writes[0];
    let pause = write.pause.as_ref().unwrap();
    assert_eq!(write.strategy, on_delete());
    assert_eq!((pause.state, &pause.declared), (PauseState::Paused, &rolling(&json!(1))));
    assert_eq!(pause.from.as_ref().unwrap().number.0, 1);
    assert_eq!(pause.commit.as_deref(), Some("c0ffee"));
    assert!(run.sim.writes[1].pause.is_none());
}

#[test]
fn an_object_that_adopts_outdated_pods_is_created_paused() {
    let wave = Wave::plain(1, 1, vec!["node-0".into(), "node-1".into()]);
    for (waves, held) in [(vec![wave], true), (vec![], false)] {
        let mut sim = Sim::of(2, &json!(1));
        sim.deleted = true;
        let mut run = Run::apply(sim, "v2").with(|task| task.waves = waves);
        run.look();
        run.settle();
        let first = &run.sim.writes[0];
        assert_eq!(first.pause.is_some(), held);
        assert_eq!(first.strategy == on_delete(), held);
    }
}

#[test]
fn the_dry_run_equals_the_first_write() {
    let surging = surging(&json!(1));
    for (strategy, image, written) in [
        (rolling(&json!(2)), "v2", Some(true)),
        (rolling(&json!(2)), "v1", None),
        (surging, "v2", Some(false)),
        (on_delete(), "v2", Some(false)),
    ] {
        // The timeout of the run does not affect the preflight.
        let sim = Sim::with_strategy(3, &strategy);
        let mut run = Run::apply(sim, image).with(|task| task.deadline = Some(Timestamp::MIN));
        let (seen, now) = (run.sim.seen(), run.sim.now());
        let first = first_write(&run.task, &seen.observed(), now);
        assert_eq!(first.as_ref().map(|it| it.pause.is_some()), written, "{strategy} {image}");
        run = run.with(|task| task.deadline = None);
        run.look();
        run.settle();
        assert_eq!(run.sim.writes.first(), first.as_ref(), "{strategy} {image}");
    }
    let mut sim = Sim::of(2, &json!(1));
    sim.deleted = true;
    let run = Run::apply(sim, "v2");
    let first = first_write(&run.task, &run.sim.seen().observed(), run.sim.now()).unwrap();
    assert_eq!((first.precondition, first.purpose), (Precondition::Absent, Purpose::Apply));
}

#[test]
fn nothing_is_deleted_before_the_controller_has_observed_the_pause() {
    let mut run = Run::apply(Sim::of(3, &json!(3)), "v2");
    run.sim.idle = true;
    run.look();
    for _ in 0..30 {
        run.settle();
    }
    assert_eq!((run.deletes.len(), run.sim.writes.len()), (0, 1));
    run.sim.idle = false;
    let run = run.finish();
    assert_eq!(*run.outcome(), Outcome::Done);
}

#[test]
fn a_new_revision_has_the_provenance_and_a_reused_one_gets_it() {
    let run = Run::apply(Sim::of(2, &json!(1)), "v2").finish();
    let commits = |run: &Run, image: &str| {
        let revisions = run.sim.cluster.revisions.iter();
        let mut of_image = revisions.filter(|it| it.data.to_string().contains(image));
        of_image.next().unwrap().annotations.get(COMMIT_ANNOTATION).map(str::to_owned)
    };
    assert_eq!(commits(&run, "v2").as_deref(), Some("c0ffee"));
    let back = run.again("v1").with(|task| task.provenance.commit = Some("beef".into())).finish();
    assert_eq!(*back.outcome(), Outcome::Done);
    assert_eq!(back.sim.cluster.revisions.len(), 2);
    assert_eq!(commits(&back, "v1").as_deref(), Some("beef"));
    let forth = back.again("v2").with(|task| task.provenance.commit = Some("beef".into())).finish();
    assert_eq!(commits(&forth, "v2").as_deref(), Some("c0ffee,beef"));
}

#[test]
fn a_write_that_conflicts_is_retried_on_the_new_version() {
    let mut run = Run::apply(Sim::of(2, &json!(2)), "v2");
    run.look();
    run.sim.touch();
    assert!(run.post(Post::Delivered));
    assert_eq!(purposes(&run), [], "refused");
    assert!(!run.post(Post::Delivered), "not on an old version");
    run.look();
    assert!(run.post(Post::Delivered), "no time has passed");
    assert_eq!(purposes(&run), [Purpose::Apply]);
}

#[test]
fn nothing_to_replace_needs_no_pause() {
    let run = Run::apply(Sim::of(3, &json!(1)), "v1").finish();
    assert_eq!((run.outcome(), purposes(&run)), (&Outcome::Done, vec![]));
    let sim = Sim::of(3, &json!(1));
    let wider = target(&sim, "v1", &rolling(&json!(2)));
    let run = Run::new(sim, task(Goal::Apply(wider))).finish();
    assert_eq!((run.outcome(), purposes(&run)), (&Outcome::Done, vec![Purpose::Apply]));
    assert_eq!((run.sim.strategy(), run.deletes.len()), (rolling(&json!(2)), 0));
}

#[test]
fn a_new_daemon_set_is_created_and_watched() {
    let mut sim = Sim::of(3, &json!(1));
    sim.deleted = true;
    sim.cluster.pods.clear();
    sim.cluster.revisions.clear();
    let run = Run::apply(sim, "v2").finish();
    assert_eq!((run.outcome(), purposes(&run)), (&Outcome::Done, vec![Purpose::Apply]));
    assert_eq!(run.images(), [("v2".to_owned(), 3)].into());
    assert_eq!(arrivals(&run), [Arrival::Created; 3]);
    // No budget holds for these nodes, so they are counted apart.
    let waiting: Vec<(u32, u32)> =
        numbers(&run).map(|it| (it.unavailable, it.awaiting_first_pod)).collect();
    assert!(waiting.iter().all(|(unavailable, first)| unavailable == first), "{waiting:?}");
    assert_eq!(waiting.iter().max(), Some(&(3, 3)));
}

fn arrivals(run: &Run) -> Vec<Arrival> {
    let how = |report: &Report| match report {
        Report::Arrived { how, .. } => Some(*how),
        _ => None,
    };
    run.reports.iter().filter_map(how).collect()
}

fn numbers(run: &Run) -> impl Iterator<Item = Progress> {
    run.reports.iter().filter_map(|report| match report {
        Report::Progress(progress) => Some(*progress),
        _ => None,
    })
}

#[test]
fn a_policy_makes_the_budget_stricter_never_looser() {
    for (policy, most) in [(IntOrPercent::Int(2), 2), (IntOrPercent::Int(7), 4)] {
        let run = Run::apply(Sim::of(8, &json!(4)), "v2")
            .with(|task| task.policy.max_unavailable = Some(policy))
            .finish();
        assert_eq!(*run.outcome(), Outcome::Done);
        assert_eq!(run.most_unavailable, most, "{policy}");
    }
}

#[test]
fn a_rollout_in_progress_by_the_controller_is_paused_and_continued() {
    let mut sim = Sim::of(6, &json!(1));
    sim.cluster.set_image("v2");
    sim.touch();
    sim.pass(2);
    let run = Run::apply(sim, "v2").finish();
    assert_eq!((run.outcome(), run.images()), (&Outcome::Done, [("v2".to_owned(), 6)].into()));
    assert_eq!(purposes(&run), [Purpose::Apply, Purpose::RestoreStrategy]);
    assert_eq!(run.sim.writes[0].pause.as_ref().unwrap().from.as_ref().unwrap().number.0, 1);
}

#[test]
fn the_controller_surges() {
    let sim = Sim::with_strategy(6, &surging(&json!(2)));
    let run = Run::apply(sim, "v2").finish();
    assert_eq!((run.outcome(), run.images()), (&Outcome::Done, [("v2".to_owned(), 6)].into()));
    assert_eq!((run.deletes.len(), purposes(&run)), (0, vec![Purpose::Apply]));
    assert_eq!(arrivals(&run), [Arrival::Surged; 6]);
    let most = |number: fn(&Progress) -> u32| numbers(&run).map(|it| number(&it)).max();
    assert_eq!(most(|it| it.surging), Some(2));
    assert_eq!(most(|it| it.may_surge), Some(2));
    assert_eq!(most(|it| it.unavailable), Some(0), "the old pods stay until the new ones are up");
}

#[test]
fn on_delete_changes_the_object_only() {
    let run = Run::apply(Sim::with_strategy(3, &on_delete()), "v2").finish();
    assert_eq!((run.outcome(), purposes(&run)), (&Outcome::Done, vec![Purpose::Apply]));
    assert_eq!(run.images(), [("v1".to_owned(), 3)].into());
    assert_eq!(run.ended.unwrap().left.len(), 3, "the waiting ones");
}

fn roll(nodes: usize, extent: Extent) -> Run {
    let mut sim = Sim::with_strategy(nodes, &on_delete());
    sim.cluster.set_image("v2");
    sim.touch();
    sim.pass(1);
    Run::new(sim, task(Goal::Roll(extent)))
}

#[test]
fn roll_and_step_replace_pods_and_never_write() {
    let named = || Extent::Nodes(["node-1".into(), "node-3".into()].into());
    for (extent, replaced) in
        [(Extent::All, 5), (Extent::Count(2), 2), (named(), 2), (Extent::Count(9), 5)]
    {
        let run = roll(5, extent.clone()).finish();
        assert_eq!(*run.outcome(), Outcome::Done, "{extent:?}");
        assert_eq!((run.deletes.len(), run.most_deleted_from), (replaced, 1), "{extent:?}");
        assert!(run.sim.writes.is_empty());
        if extent == named() {
            assert_eq!(run.deleted_nodes(), ["node-1", "node-3"]);
        }
    }
    let run = roll(5, Extent::All).with(|task| {
        task.policy.max_unavailable = Some(IntOrPercent::Percent(60));
    });
    assert_eq!(run.finish().most_deleted_from, 3);
}

#[test]
fn a_step_while_paused_uses_the_declared_strategy() {
    let mut held = Run::apply(Sim::of(5, &json!(2)), "v2");
    held.look();
    held.until(|run| run.deletes.len() >= 2);
    let run = Run::new(held.sim, task(Goal::Roll(Extent::All))).finish();
    assert_eq!((run.outcome(), run.most_deleted_from), (&Outcome::Done, 2));
    assert!(run.pause().is_some(), "a step does not restore the strategy");
    let run = run.again("v2").finish();
    assert_eq!((run.outcome(), run.pause()), (&Outcome::Done, None));
}

#[test]
fn release_restores_the_strategy_at_once() {
    let mut held = Run::apply(Sim::of(5, &json!(2)), "v2");
    held.look();
    held.until(|run| run.deletes.len() >= 2);
    let Goal::Apply(target) = held.task.goal.clone() else { unreachable!() };
    let written = target.written;
    let run = Run::new(held.sim, task(Goal::Release { written: written.clone() })).finish();
    assert_eq!((run.outcome(), run.pause()), (&Outcome::Done, None));
    assert_eq!(run.sim.strategy(), rolling(&json!(2)));
    let run = Run::new(run.sim, task(Goal::Release { written })).finish();
    assert_eq!((run.outcome(), purposes(&run).len()), (&Outcome::Done, 2), "nothing to release");
}

#[test]
fn a_paused_rollout_resumes_with_the_same_or_another_template() {
    for (image, writes) in [("v2", 0), ("v3", 1), ("v1", 1)] {
        let mut held = Run::apply(Sim::of(5, &json!(1)), "v2");
        held.look();
        held.until(|run| run.deletes.len() >= 2);
        let written = held.sim.writes.len();
        let run = held.again(image).finish();
        assert_eq!(*run.outcome(), Outcome::Done, "{image}");
        assert_eq!(run.images(), [(image.to_owned(), 5)].into());
        let purposes = purposes(&run);
        assert_eq!(purposes.len() - written, writes + 1, "{image}: {purposes:?}");
        assert_eq!(declared(&run.sim), rolling(&json!(1)));
        let froms: Vec<_> = run.sim.writes.iter().filter_map(|it| it.pause.as_ref()).collect();
        assert!(froms.iter().all(|pause| pause.from.as_ref().unwrap().number.0 == 1));
    }
}

#[test]
fn every_delete_names_the_outdated_revision() {
    let run = Run::apply(Sim::of(2, &json!(1)), "v2").finish();
    for delete in &run.deletes {
        let Reason::Outdated { revision: Some(number) } = delete.reason else { panic!() };
        assert_eq!(number.0, 1);
    }
    assert!(run.sim.cluster.pods.iter().all(|pod| pod.labels.get(REVISION_HASH_LABEL).is_some()));
}
