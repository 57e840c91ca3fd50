//! Steps, domains and waits: several runs, each of which does what may be done.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::run::{Post, Run, task};
use super::sim::{Fate, Sim, on_delete, rolling, surging};
use crate::digest::template_digest;
use crate::plan::PauseState;
use crate::rollout::{Creates, Extent, FailureCause, Goal, Outcome, Purpose, RolledBack, Task};
use crate::steps::WaitKind;
use daemonset::controller::test_cluster::node;
use daemonset::model::{Approval, PolicySpec, PolicyStep, Ramp};

pub(super) fn policy(fields: Value) -> PolicySpec {
    let mut fields = fields;
    fields["selects"] = json!({"names": ["default/foo"]});
    let read: PolicySpec = serde_json::from_value(fields).unwrap();
    PolicySpec { ramp: Ramp::None, min_ready_seconds: Some(0), ..read }
}

/// `ds-apply` of an image under this policy, to its end.
pub(super) fn run(sim: Sim, image: &str, policy: &PolicySpec) -> Run {
    let note = sim.note.clone();
    Run::apply(sim, image)
        .with(|task| {
            task.policy = policy.clone();
            task.note = note;
        })
        .finish()
}

/// The same, where a node takes 20 s.
fn start(sim: Sim, image: &str, policy: &PolicySpec) -> Run {
    let note = sim.note.clone();
    Run::apply(sim, image).with(|task| {
        task.policy = policy.clone();
        task.note = note;
        task.node_seconds = Some(20);
    })
}

/// Approves a step of a rollout of the template with this digest.
pub(super) fn approval(sim: &Sim, template: String, step: &PolicyStep) -> Approval {
    Approval {
        uid: sim.cluster.daemon_set.uid.clone(),
        template,
        step: crate::approval::step_digest(step),
        by: "alice".to_owned(),
        at: sim.now(),
    }
}

/// Approves the first step of the rollout that a run was asked for.
pub(super) fn first_approval(run: &Run, policy: &PolicySpec) -> Approval {
    let Goal::Apply(target) = &run.task.goal else { panic!() };
    approval(&run.sim, template_digest(target.template.raw()), &policy.steps[0])
}

/// Kinds of what is waited for.
pub(super) fn waits(run: &Run) -> Vec<WaitKind> {
    match run.outcome() {
        Outcome::Waiting { waits_for } => waits_for.iter().map(|wait| wait.kind).collect(),
        other => panic!("it does not wait: {other}"),
    }
}

pub(super) fn purposes(run: &Run) -> Vec<Purpose> {
    run.sim.writes.iter().map(|write| write.purpose).collect()
}

/// Zones `a`, `b`, `c` by the number of the node.
pub(super) fn with_zones(mut sim: Sim) -> Sim {
    for (at, node) in sim.cluster.nodes.iter_mut().enumerate() {
        node.labels = [("zone", ["a", "b", "c"][at % 3])].into_iter().collect();
    }
    sim
}

#[test]
fn a_canary_soaks_while_the_last_good_template_is_live() {
    let canary = policy(json!({"steps": [{"name": "canary", "nodes": 2, "soak": "60s"}]}));
    let first = run(Sim::of(6, &json!(3)), "v2", &canary);
    assert_eq!(waits(&first), [WaitKind::Soak]);
    assert_eq!(first.images(), [("v1".to_owned(), 4), ("v2".to_owned(), 2)].into());
    assert_eq!(first.sim.live_image(), "v1", "the last good template is live");
    let pause = first.pause().unwrap();
    assert_eq!((pause.state, pause.waits_for.len()), (PauseState::Waiting, 1));
    assert_eq!(purposes(&first), [Purpose::Apply, Purpose::Wait]);
    // Too early: nothing is written.
    let mut sim = first.sim;
    sim.pass(20);
    let early = run(sim, "v2", &canary);
    assert_eq!((waits(&early), early.deletes.len()), (vec![WaitKind::Soak], 0));
    assert_eq!(purposes(&early), [Purpose::Apply, Purpose::Wait]);
    // After the soak, the rest.
    let mut sim = early.sim;
    sim.pass(60);
    let last = run(sim, "v2", &canary);
    assert_eq!(*last.outcome(), Outcome::Done);
    assert_eq!((last.deletes.len(), last.images()), (4, [("v2".to_owned(), 6)].into()));
    assert_eq!(last.pause(), None);
    assert_eq!(last.sim.note.as_ref().unwrap().started_at, None);
}

#[test]
fn a_node_that_joins_during_a_wait_gets_the_last_good_template() {
    let canary = policy(json!({"steps": [{"name": "canary", "nodes": 1, "soak": "60s"}]}));
    let mut waiting = start(Sim::of(3, &json!(1)), "v2", &canary);
    waiting.look();
    for _ in 0..1_000 {
        if !waiting.state.writing.sent.contains(&Purpose::Wait) && !waiting.post(Post::Delivered) {
            waiting.pass(1);
            waiting.look();
        }
    }
    // As the ramp of the target may have left it.
    waiting.state.creates = Creates::Only(BTreeSet::new());
    let waiting = waiting.finish();
    assert_eq!((waits(&waiting), waiting.state.creates()), (vec![WaitKind::Soak], &Creates::All));
    let mut sim = run(Sim::of(3, &json!(1)), "v2", &canary).sim;
    sim.cluster.nodes.push(node("node-9", &[], &[]));
    sim.pass(90);
    assert_eq!(sim.running()["node-9"], "v1");
    let last = run(sim, "v2", &canary);
    assert_eq!((last.outcome(), last.images()), (&Outcome::Done, [("v2".to_owned(), 4)].into()));
}

#[test]
fn a_template_that_a_killed_run_left_is_not_live_while_a_newer_one_waits() {
    let canary = policy(json!({"steps": [{"name": "canary", "nodes": 1}]}));
    let mut killed = Run::apply(Sim::of(3, &json!(1)), "v2").with(|task| task.policy = canary);
    killed.look();
    killed.until(|run| !run.deletes.is_empty());
    assert_eq!(killed.sim.live_image(), "v2");
    let approve = json!({"steps": [{"name": "canary", "nodes": 1, "approve": true}]});
    let waiting = run(killed.sim, "v3", &policy(approve));
    assert_eq!(waits(&waiting), [WaitKind::Approval]);
    assert_eq!(waiting.sim.live_image(), "v1");
    assert_eq!(waiting.pause().unwrap().state, PauseState::Waiting);
}

#[test]
fn a_canary_on_a_node_that_is_not_ready_proves_nothing() {
    let canary = policy(json!({
        "steps": [{"name": "canary", "nodes": 2, "soak": "60s"}],
        "skipUnreadyNodes": {"max": 3},
    }));
    let mut sim = run(Sim::of(6, &json!(2)), "v2", &canary).sim;
    let gone = sim.nodes_with("v2").remove(0);
    let at = sim.cluster.nodes.iter().position(|node| node.name.as_str() == gone).unwrap();
    sim.set_ready(at, false);
    sim.pass(61);
    let again = run(sim, "v2", &canary);
    assert_eq!((waits(&again), again.deletes.len()), (vec![WaitKind::Soak], 1));
}

#[test]
fn a_zone_without_a_ready_node_has_no_canary() {
    let canary = policy(json!({
        "steps": [{"name": "canary", "nodes": 3, "spread": "zone", "soak": "60s"}],
        "skipUnreadyNodes": {"max": 3},
    }));
    let mut sim = with_zones(Sim::of(5, &json!(3)));
    sim.set_ready(2, false);
    let run = run(sim, "v2", &canary);
    assert_eq!((waits(&run), run.deletes.len()), (vec![WaitKind::Soak], 3));
}

#[test]
fn a_step_whose_last_node_has_vanished_waits_for_one() {
    let named = policy(json!({"steps": [{"name": "canary", "nodes": {"names": ["node-9"]}}]}));
    let waiting = run(Sim::of(3, &json!(1)), "v2", &named);
    assert_eq!((waits(&waiting), waiting.deletes.len()), (vec![WaitKind::ReadyNode], 0));
}

#[test]
fn a_run_waits_itself_if_it_may() {
    let canary = policy(json!({"steps": [{"name": "canary", "nodes": 1, "soak": "60s"}]}));
    for (seconds, want) in [(600, true), (30, false)] {
        let run = Run::apply(Sim::of(3, &json!(1)), "v2");
        let until = run.sim.now() + jiff::SignedDuration::from_secs(seconds);
        let run = run
            .with(|task| {
                task.policy = canary.clone();
                task.wait_until = Some(until);
            })
            .finish();
        assert_eq!(*run.outcome() == Outcome::Done, want, "{seconds}: {}", run.outcome());
        assert_eq!(purposes(&run).contains(&Purpose::Wait), !want);
    }
}

#[test]
fn only_the_wait_is_noted_before_the_first_step_is_approved() {
    let steps = json!({"steps": [{"name": "canary", "nodes": 1, "approve": true}]});
    let policy = policy(steps);
    let first = run(Sim::of(3, &json!(1)), "v2", &policy);
    assert_eq!(waits(&first), [WaitKind::Approval]);
    let noted = first.sim.note.clone().unwrap();
    assert_eq!((first.sim.writes.len(), noted.started_at, noted.steps.len()), (0, None, 0));
    assert!(noted.waits_since.is_some_and(|since| since <= first.sim.now()));
    let later = run(first.sim, "v2", &policy);
    assert_eq!((waits(&later), later.sim.note.as_ref()), (vec![WaitKind::Approval], Some(&noted)));
    // What another commit would have to wait for is another wait.
    let other = run(later.sim, "v3", &policy);
    assert_ne!(other.sim.note.as_ref().map(|note| &note.template), Some(&noted.template));
    let first = run(other.sim, "v2", &policy);
    let approval = first_approval(&Run::apply(first.sim, "v2"), &policy);
    let with = |sim: Sim, image: &str, approval: &Approval| {
        let note = sim.note.clone();
        Run::apply(sim, image)
            .with(|task| {
                task.policy = policy.clone();
                task.note = note;
                task.approvals = [("canary".to_owned(), approval.clone())].into();
            })
            .finish()
    };
    let done = with(Sim::of(3, &json!(1)), "v2", &approval);
    assert_eq!(*done.outcome(), Outcome::Done);
    assert_eq!(done.sim.note.as_ref().unwrap().waits_since, None);
    // It is used up: the same template again needs another one.
    let back = run(done.sim, "v1", &PolicySpec { steps: Vec::new(), ..policy.clone() });
    assert_eq!(*back.outcome(), Outcome::Done);
    let again = with(back.sim, "v2", &approval);
    assert_eq!(waits(&again), [WaitKind::Approval]);
    // Also if the note that says so is lost: then a run asks again, and the next approval counts.
    let mut sim = again.sim;
    sim.note = None;
    let lost = with(sim, "v2", &approval);
    assert_eq!(waits(&lost), [WaitKind::Approval]);
    let again = with(lost.sim, "v2", &approval);
    assert_eq!(waits(&again), [WaitKind::Approval]);
    let mut sim = again.sim;
    sim.pass(1);
    let anew = Approval { at: sim.now(), ..approval };
    assert_eq!(*with(sim, "v2", &anew).outcome(), Outcome::Done);
}

#[test]
fn a_newer_commit_begins_with_the_nodes_of_the_one_it_replaces() {
    let canary = policy(json!({"steps": [{"name": "canary", "nodes": 2, "soak": "60s"}]}));
    let first = run(Sim::of(6, &json!(2)), "v2", &canary);
    let of_v2: Vec<String> = first.sim.nodes_with("v2");
    let mut sim = first.sim;
    sim.fate("v3", Fate::NoImage);
    let second = run(sim, "v3", &canary);
    assert!(matches!(second.outcome(), Outcome::Aborted { .. }), "{}", second.outcome());
    assert!(second.deleted_nodes().iter().all(|node| of_v2.contains(&(*node).to_owned())));
    assert_eq!(second.sim.live_image(), "v1", "aborted to the last good template");
}

#[test]
fn zones_follow_one_another_and_a_rollback_keeps_their_budgets() {
    let zones = policy(json!({
        "onFailure": "rollback",
        "domains": {"key": "zone", "maxUnavailable": 1},
    }));
    let mut sim = with_zones(Sim::of(9, &json!(3)));
    // The last node to be updated never gets Ready.
    sim.picky.insert("node-8".to_owned(), "v1".to_owned());
    let run = run(sim, "v2", &zones);
    assert!(matches!(run.outcome(), Outcome::Aborted { rolled_back: Some(_), .. }));
    let zone = |node: &str| ["a", "b", "c"][node[5..].parse::<usize>().unwrap() % 3];
    let order: Vec<&str> = run.deleted_nodes().into_iter().map(zone).collect();
    assert_eq!(order[..9].join(""), "aaabbbccc");
    assert_eq!(run.most_unavailable, 1, "at most one node of a zone, one zone at once");
    assert_eq!(run.images(), [("v1".to_owned(), 9)].into());
}

/// Windows are open for the first three minutes of every ten.
#[test]
fn the_way_back_ignores_windows_but_not_the_budgets_of_zones() {
    let fields = json!({
        "onFailure": "rollback",
        "progressDeadline": "240s",
        "windows": [{"schedule": "*/10 * * * *", "duration": "3m"}],
        "domains": {"key": "zone", "maxUnavailable": 1, "soak": "2m"},
        "steps": [{"name": "most", "nodes": 8, "soak": "1h"}],
    });
    let policy = policy(fields);
    let is_open = |now: jiff::Timestamp| now.as_second() % 600 < 180;
    let mut sim = with_zones(Sim::of(9, &json!(3)));
    sim.pass(600 - sim.now().as_second() % 600);
    // The first zone is updated while the window is open; then one of its nodes loses its pod for good.
    let started = start(sim, "v2", &policy).finish();
    assert_eq!((waits(&started), started.deletes.len()), (vec![WaitKind::Soak], 3));
    let mut sim = started.sim;
    sim.pass(240);
    assert!(!is_open(sim.now()));
    let canary = sim.nodes_with("v2").remove(0);
    sim.pod_on(&canary).restarts = 9;
    let begun = sim.now();
    let back = start(sim, "v2", &policy).finish();
    let Outcome::Aborted { rolled_back, .. } = back.outcome() else { panic!("{}", back.outcome()) };
    assert_eq!(*rolled_back, Some(RolledBack::Fully));
    assert_eq!(back.images(), [("v1".to_owned(), 9)].into());
    assert_eq!(back.most_unavailable, 1, "the limit of a zone, though three may be unavailable");
    assert!(!is_open(begun) && !is_open(back.sim.now()), "all outside of the window");
}

/// `undo` is an apply of an old template under the budgets of the policy alone.
#[test]
fn undo_waits_for_no_window_soak_or_approval() {
    let policy = policy(json!({
        "windows": [{"schedule": "*/10 * * * *", "duration": "3m"}],
        "domains": {"key": "zone", "maxUnavailable": 1, "soak": "2m"},
        "steps": [{"name": "canary", "nodes": 1, "approve": true, "soak": "1h"}],
    }));
    let mut sim = with_zones(Sim::of(9, &json!(3)));
    sim.pass(600 - sim.now().as_second() % 600 + 240);
    let undone = run(sim, "v0", &policy.budgets());
    assert_eq!((undone.outcome(), undone.deletes.len()), (&Outcome::Done, 9));
    assert_eq!(undone.most_unavailable, 1);
    let zone = |node: &str| ["a", "b", "c"][node[5..].parse::<usize>().unwrap() % 3];
    let order: Vec<&str> = undone.deleted_nodes().into_iter().map(zone).collect();
    assert_eq!(order.join(""), "aaabbbccc", "one zone after the other");
}

#[test]
fn a_canary_that_restarts_too_often_during_its_soak_fails() {
    let canary = policy(json!({
        "steps": [{"name": "canary", "nodes": 1, "soak": "2h"}], "progressDeadline": "60s",
    }));
    let mut sim = run(Sim::of(3, &json!(1)), "v2", &canary).sim;
    sim.pass(3_600);
    let canary_node = sim.nodes_with("v2").remove(0);
    let now = sim.now();
    let pod = sim.pod_on(&canary_node);
    pod.restarts = 2;
    pod.containers_changed = Some(now.into());
    let soaks = run(sim, "v2", &canary);
    assert_eq!(waits(&soaks), [WaitKind::Soak]);
    let mut sim = soaks.sim;
    sim.pod_on(&canary_node).restarts = 4;
    let fails = run(sim, "v2", &canary);
    assert!(matches!(fails.outcome(), Outcome::Aborted { .. }), "{}", fails.outcome());
    // The failed template is not live again, not even for a moment.
    let (wait, abort) = (Purpose::Wait, Purpose::Abort);
    assert_eq!(purposes(&fails), [Purpose::Apply, wait, wait, abort]);
}

#[test]
fn a_restart_by_kubectl_during_a_wait_is_a_new_template_and_waits_again() {
    let canary = policy(json!({"steps": [{"name": "canary", "nodes": 2, "soak": "60s"}]}));
    let mut sim = run(Sim::of(6, &json!(3)), "v2", &canary).sim;
    sim.restart();
    let again = run(sim, "v2", &canary);
    assert_eq!((waits(&again), again.deletes.len()), (vec![WaitKind::Soak], 2));
    assert_eq!(again.sim.live_image(), "v1");
    let mut sim = again.sim;
    sim.pass(70);
    let last = run(sim, "v2", &canary);
    assert_eq!((last.outcome(), last.images()), (&Outcome::Done, [("v2".to_owned(), 6)].into()));
}

#[test]
fn the_target_stays_live_if_the_policy_wants_it() {
    let canary = policy(json!({
        "steps": [{"name": "canary", "nodes": 1, "soak": "60s"}], "whileWaiting": "target",
    }));
    let first = run(Sim::of(3, &json!(1)), "v2", &canary);
    assert_eq!((waits(&first), first.sim.live_image()), (vec![WaitKind::Soak], "v2".to_owned()));
    let mut sim = first.sim;
    sim.pass(90);
    assert_eq!(*run(sim, "v2", &canary).outcome(), Outcome::Done);
}

#[test]
fn a_run_that_waits_sees_a_late_approval() {
    let policy = policy(json!({"steps": [{"name": "canary", "nodes": 1, "approve": true}]}));
    let run = Run::apply(Sim::of(3, &json!(1)), "v2");
    let until = run.sim.now() + jiff::SignedDuration::from_mins(10);
    let mut run = run.with(|task| {
        task.policy = policy.clone();
        task.wait_until = Some(until);
    });
    run.look();
    (0..60).for_each(|_| run.settle());
    assert_eq!((run.ended.as_ref(), run.sim.writes.len()), (None, 0));
    let approval = first_approval(&run, &policy);
    run.sim.approvals.insert("canary".to_owned(), approval);
    run.until(|_| false);
    assert_eq!(*run.outcome(), Outcome::Done);
}

#[test]
fn a_rollout_that_takes_too_long_fails() {
    let canary = policy(json!({
        "steps": [{"name": "canary", "nodes": 1, "soak": "1h"}], "maxDuration": "30m",
    }));
    let mut sim = run(Sim::of(3, &json!(1)), "v2", &canary).sim;
    sim.pass(1_900);
    let late = run(sim, "v2", &canary);
    let Outcome::Aborted { cause: Some(FailureCause::Overdue(overdue)), failed, .. } =
        late.outcome()
    else {
        panic!("{}", late.outcome())
    };
    assert_eq!((overdue.allowed, failed.len()), (1_800, 0));
    assert_eq!((late.deletes.len(), late.sim.live_image()), (0, "v1".to_owned()));
}

/// What is approved is the whole step, however many runs of `step` it takes.
#[test]
fn an_approval_counts_until_the_last_node_is_replaced() {
    let policy = policy(json!({"steps": [{"name": "all", "nodes": "100%", "approve": true}]}));
    let mut sim = Sim::with_strategy(3, &json!({"type": "OnDelete"}));
    sim.cluster.set_image("v2");
    sim.touch();
    sim.pass(1);
    let all = || Task { policy: policy.clone(), ..task(Goal::Roll(Extent::All)) };
    // The template is live already, so an earlier approval could have been used.
    let asked = Run::new(sim, all()).finish();
    assert_eq!((waits(&asked), asked.deletes.len()), (vec![WaitKind::Approval], 0));
    let mut sim = asked.sim;
    sim.pass(1);
    let template = template_digest(sim.cluster.daemon_set.spec.template.raw());
    let approval = approval(&sim, template, &policy.steps[0]);
    let step = |mut sim: Sim, extent: Extent| {
        sim.pass(10);
        let note = sim.note.clone();
        let approvals = [("all".to_owned(), approval.clone())].into();
        let task = Task { policy: policy.clone(), note, approvals, ..task(Goal::Roll(extent)) };
        Run::new(sim, task).finish()
    };
    let first = step(sim, Extent::Count(1));
    assert_eq!((first.outcome(), first.deletes.len()), (&Outcome::Done, 1));
    let second = step(first.sim, Extent::All);
    assert_eq!((second.outcome(), second.deletes.len()), (&Outcome::Done, 2));
    // The same template again, as after a rollback of the pods: nobody has approved that.
    assert!(second.sim.note.as_ref().unwrap().approvals_void_before.is_some());
}

/// It ends, too, and its end is noted once.
#[test]
fn roll_obeys_the_steps_and_notes_its_end() {
    let canary = policy(json!({"steps": [{"name": "canary", "nodes": 1, "soak": "60s"}]}));
    let mut sim = Sim::with_strategy(3, &on_delete());
    sim.edit(|spec| spec["template"]["spec"]["containers"][0]["image"] = "v2".into());
    sim.pass(3);
    let roll = |sim: Sim| {
        let note = sim.note.clone();
        let roll = task(Goal::Roll(Extent::All));
        let run = Run::new(sim, Task { policy: canary.clone(), note, ..roll });
        run.finish()
    };
    let first = roll(sim);
    assert_eq!((waits(&first), first.deletes.len()), (vec![WaitKind::Soak], 1));
    let mut sim = first.sim;
    sim.pass(60);
    let last = roll(sim);
    assert_eq!((last.outcome(), last.deletes.len()), (&Outcome::Done, 2));
    assert_eq!(last.sim.note.as_ref().unwrap().started_at, None);
    assert!(last.steps < 200, "{} steps", last.steps);
}

/// Nothing that runs is replaced, but a missing pod would get the target as soon as it is live.
#[test]
fn no_rollout_begins_in_a_closed_window_with_nodes_that_are_not_ready() {
    let closed = policy(json!({"windows": [{"schedule": "0 3 * * *", "duration": "1h"}]}));
    for strategy in [rolling(&json!(1)), surging(&json!(1))] {
        let mut sim = Sim::with_strategy(3, &strategy);
        sim.set_ready(0, false);
        sim.set_ready(1, false);
        sim.cluster.pods.retain(|pod| pod.node().is_some_and(|it| *it.as_str() != *"node-2"));
        let waiting = start(sim, "v2", &closed).finish();
        assert_eq!(waits(&waiting), [WaitKind::Window], "{strategy}");
        assert_eq!((waiting.sim.live_image().as_str(), waiting.sim.writes.len()), ("v1", 0));
    }
}
