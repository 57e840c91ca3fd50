//! Images are pulled before pods are replaced.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::run::{Post, Run, declared, target, task};
use super::sim::{Sim, on_delete, surging};
use crate::rollout::pulls::{PullInput, Pulls};
use crate::rollout::{Event, Extent, Failure, Goal, Outcome, PauseReason, Report};
use crate::steps::WaitKind;
use daemonset::model::{PodReadiness, PolicySpec, PrePull, PullState, Puller, Ramp, Uid};

fn policy(fields: &Value) -> PolicySpec {
    let mut all = json!({"selects": {"names": ["default/foo"]}, "prePull": {"timeout": "1m"}});
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let read: PolicySpec = serde_json::from_value(all).unwrap();
    PolicySpec { ramp: Ramp::None, min_ready_seconds: Some(0), ..read }
}

fn apply(sim: Sim, fields: &Value) -> Run {
    Run::apply(sim, "v2").with(|task| task.policy = policy(fields))
}

/// The nodes that did not get their images, by the outcome.
fn not_pulled(run: &Run) -> Vec<String> {
    match run.outcome() {
        Outcome::Paused { why: PauseReason::NotPulled { nodes, skippable: _ } } => {
            nodes.keys().map(ToString::to_string).collect()
        }
        other => panic!("it is not paused for images: {other}"),
    }
}

/// The nodes of the reports about pulls and deletes, in order.
fn course(run: &Run) -> Vec<String> {
    let events = run.reports.iter().filter_map(|report| match report {
        Report::Pulling { node, images: 1 } => Some(format!("pulls {node}")),
        Report::Pulled { node, seconds: _ } => Some(format!("has {node}")),
        Report::NotPulled { node, why: _ } => Some(format!("drops {node}")),
        Report::Deleting(delete) => Some(format!("deletes {}", delete.node)),
        Report::Writing(purpose) => Some(purpose.to_string()),
        _others => None,
    });
    events.collect()
}

#[test]
fn a_node_begins_after_its_images_are_there_and_the_first_comes_before_the_write() {
    let run = apply(Sim::of(3, &json!(1)), &json!({"prePull": {"parallel": 1}})).finish();
    assert_eq!(*run.outcome(), Outcome::Done);
    let events = course(&run);
    assert_eq!(events[..3], ["pulls node-0", "has node-0", "pulls node-1"]);
    let at = |what: &str| events.iter().position(|it| it == what).unwrap();
    assert!(
        at("has node-0") < at("applying") && at("applying") < at("deletes node-0"),
        "{events:?}"
    );
    for node in ["node-0", "node-1", "node-2"] {
        assert!(at(&format!("has {node}")) < at(&format!("deletes {node}")), "{events:?}");
    }
    assert_eq!(run.sim.most_pullers, 1);
    assert!(run.sim.pullers.iter().all(|it| it.terminating), "{:?}", run.sim.pullers);
}

/// Found by the simulation: a pull that took longer than the interval of a gate was abandoned at each
/// question, and begun again, for ever.
#[test]
fn a_pull_is_not_given_up_while_a_gate_is_asked() {
    let mut sim = Sim::of(3, &json!(1));
    for node in 0..3 {
        sim.pulls.insert(format!("node-{node}"), Some(15));
    }
    let gate = json!({
        "name": "errors", "interval": "10s",
        "prometheus": {"address": "https://prom.example", "query": "errors", "max": 1},
    });
    let run = apply(sim, &json!({"gates": [gate], "prePull": {"parallel": 1}})).finish();
    assert_eq!(*run.outcome(), Outcome::Done);
    let pulls = course(&run).into_iter().filter(|it| it.starts_with("pulls")).collect::<Vec<_>>();
    assert_eq!(pulls, ["pulls node-0", "pulls node-1", "pulls node-2"]);
}

#[test]
fn no_more_nodes_pull_at_a_time_than_allowed() {
    for (parallel, most) in [(1, 1), (3, 3), (100, 7)] {
        let fields = json!({"prePull": {"parallel": parallel}});
        let run = apply(Sim::of(7, &json!(2)), &fields).finish();
        assert_eq!((run.outcome(), run.sim.most_pullers), (&Outcome::Done, most), "{parallel}");
    }
}

#[test]
fn a_missing_image_stops_before_anything_is_written() {
    let mut sim = Sim::of(3, &json!(1));
    for node in 0..3 {
        sim.pulls.insert(format!("node-{node}"), None);
    }
    let run = apply(sim, &json!({})).finish();
    assert_eq!(not_pulled(&run), ["node-0", "node-1", "node-2"]);
    assert_eq!((run.deletes.len(), run.sim.writes.len()), (0, 0));
    let Outcome::Paused { why } = run.outcome() else { panic!() };
    let PauseReason::NotPulled { nodes, skippable } = why else { panic!() };
    assert_eq!(*skippable, 1);
    let first = nodes.values().next().unwrap().to_string();
    assert_eq!(first, "v2 not pulled after 60s: ErrImagePull: not found");
    assert!(run.sim.pullers.iter().all(|it| it.terminating));
    // Nothing is remembered: it is tried again.
    let mut sim = run.sim;
    sim.pulls.clear();
    assert_eq!(*apply(sim, &json!({})).finish().outcome(), Outcome::Done);
}

#[test]
fn a_stuck_node_costs_itself_and_no_other() {
    let mut sim = Sim::of(5, &json!(2));
    sim.pulls.insert("node-1".to_owned(), None);
    let run = apply(sim, &json!({})).finish();
    assert_eq!(not_pulled(&run), ["node-1"]);
    assert_eq!(run.sim.nodes_with("v1"), ["node-1"]);
    assert_eq!(run.sim.nodes_with("v2").len(), 4);
    // The controller must not replace the old pod.
    assert_eq!(run.sim.strategy(), on_delete());
    let mut sim = run.sim;
    sim.pulls.clear();
    let again = apply(sim, &json!({})).finish();
    assert_eq!((again.outcome(), again.deletes.len()), (&Outcome::Done, 1));
}

/// Found by the simulation: the node counted as one that is not Ready, so its pod that is down as none.
#[test]
fn a_stuck_node_without_an_available_pod_takes_up_the_budget() {
    let mut sim = Sim::of(3, &json!(1));
    sim.pulls.insert("node-1".to_owned(), None);
    sim.picky.insert("node-1".to_owned(), "v2".to_owned());
    sim.pod_on("node-1").readiness = PodReadiness::NotReady { since: None };
    let run = apply(sim, &json!({})).finish();
    let budget = PauseReason::MaxUnavailableReached { unavailable: 1, allowed: 1, seconds: 600 };
    assert_eq!((run.outcome(), run.deletes.len()), (&Outcome::Paused { why: budget }, 0));
}

#[test]
fn nothing_more_begins_when_more_nodes_are_stuck_than_may_be_skipped() {
    for (stuck, max, updated) in [(2, 2, 4), (2, 1, 0), (3, 2, 0)] {
        let mut sim = Sim::of(6, &json!(1));
        for node in 0..stuck {
            sim.pulls.insert(format!("node-{node}"), None);
        }
        // The others get theirs at the same time as the stuck ones are dropped.
        for node in stuck..6 {
            sim.pulls.insert(format!("node-{node}"), Some(59));
        }
        let fields = json!({"skipUnreadyNodes": {"max": max}});
        let run = apply(sim, &fields).finish();
        assert_eq!(not_pulled(&run).len(), stuck);
        let begun = run.sim.nodes_with("v2").len();
        // Those that were through first have begun; afterwards, nothing does.
        if updated > 0 {
            assert_eq!(begun, updated, "{stuck} stuck, {max} may be skipped");
        } else {
            assert!(begun <= 2, "{stuck} stuck, {max} may be skipped: {begun}");
        }
    }
}

#[test]
fn nodes_that_are_not_ready_count_as_skipped_too() {
    let mut sim = Sim::of(5, &json!(1));
    sim.set_ready(4, false);
    sim.pulls.insert("node-0".to_owned(), None);
    sim.pulls.insert("node-1".to_owned(), Some(70));
    let run = apply(sim, &json!({"skipUnreadyNodes": {"max": 1}})).finish();
    assert_eq!(not_pulled(&run), ["node-0", "node-1"]);
}

#[test]
fn a_run_that_is_started_again_uses_the_pullers_that_are_there_and_removes_the_others() {
    let mut sim = Sim::of(3, &json!(1));
    sim.pulls = (0..3).map(|node| (format!("node-{node}"), Some(20))).collect();
    let mut killed = apply(sim, &json!({"prePull": {"parallel": 3}}));
    killed.look();
    killed.until(|run| run.sim.pullers.len() == 3);
    // Another run of the same target: nothing is created anew.
    let mut sim = killed.sim;
    let before: BTreeSet<_> = sim.pullers.iter().map(|it| it.uid.clone()).collect();
    sim.pass(5);
    let mut again = apply(sim, &json!({"prePull": {"parallel": 3}}));
    again.look();
    for _ in 0..5 {
        again.settle();
    }
    assert_eq!(again.sim.pullers.iter().map(|it| it.uid.clone()).collect::<BTreeSet<_>>(), before);
    // A run of another target, and one without prePull.
    for pre_pull in [json!({}), json!({"prePull": null})] {
        let mut other = Sim::of(3, &json!(1));
        other.pullers = again.sim.pullers.clone();
        for puller in &mut other.pullers {
            puller.uid = format!("left-by-{}", puller.uid).into();
        }
        let before: BTreeSet<_> = other.pullers.iter().map(|it| it.uid.clone()).collect();
        let mut run = Run::apply(other, "v3").with(|task| task.policy = policy(&pre_pull));
        run.look();
        run.until(|run| {
            run.sim.pullers.iter().all(|it| it.terminating || !before.contains(&it.uid))
        });
        assert_eq!(*run.finish().outcome(), Outcome::Done);
    }
}

#[test]
fn a_run_that_only_removes_pullers_says_how_many() {
    let mut sim = Sim::of(3, &json!(1));
    sim.pulls = (0..3).map(|node| (format!("node-{node}"), Some(20))).collect();
    let mut killed = apply(sim, &json!({"prePull": {"parallel": 3}}));
    killed.look();
    killed.until(|run| run.sim.pullers.len() == 3);
    let run = Run::new(killed.sim, task(Goal::RemovePullers)).finish();
    let said: Vec<String> = run.reports.iter().map(ToString::to_string).collect();
    assert_eq!(
        (run.outcome(), &*said),
        (&Outcome::Done, &["removing 3 pods that pull images".to_owned()][..])
    );
    assert!(run.sim.pullers.iter().all(|it| it.terminating));
}

#[test]
fn an_interrupted_run_removes_its_pullers() {
    let mut sim = Sim::of(3, &json!(1));
    sim.pulls = (0..3).map(|node| (format!("node-{node}"), None)).collect();
    let mut run = apply(sim, &json!({}));
    run.look();
    run.until(|run| run.sim.pullers.len() == 3);
    run.feed(Event::Interrupt, 0);
    let run = run.finish();
    assert_eq!(*run.outcome(), Outcome::Interrupted { paused: false });
    assert!(run.sim.pullers.iter().all(|it| it.terminating));
}

#[test]
fn equal_images_and_the_way_back_need_no_pull() {
    let sim = Sim::of(3, &json!(1));
    let strategy = declared(&sim);
    let mut same = target(&sim, "v1", &strategy);
    let mut template = same.template.raw().clone();
    template["metadata"]["annotations"] = json!({"x": "y"});
    template["spec"]["containers"][0]["imagePullPolicy"] = "IfNotPresent".into();
    same.template = daemonset::model::PodTemplate::from_json(template.clone()).unwrap();
    same.written = std::sync::Arc::new(json!({"metadata": {}, "spec": {"template": template}}));
    same.changes = true;
    let run = Run::new(sim, task(Goal::Apply(same))).with(|task| task.policy = policy(&json!({})));
    let run = run.finish();
    assert_eq!((run.outcome(), run.deletes.len()), (&Outcome::Done, 3));
    assert_eq!(run.sim.most_pullers, 0);
    let undone = Run::apply(Sim::of(3, &json!(1)), "v0")
        .with(|task| task.policy = policy(&json!({})).budgets())
        .finish();
    assert_eq!((undone.outcome(), undone.sim.most_pullers), (&Outcome::Done, 0));
}

#[test]
fn a_step_pulls_to_its_own_nodes_only() {
    let fields =
        json!({"steps": [{"name": "canary", "nodes": {"names": ["node-2"]}, "soak": "60s"}]});
    let run = apply(Sim::of(4, &json!(2)), &fields).finish();
    assert!(matches!(run.outcome(), Outcome::Waiting { .. }), "{}", run.outcome());
    let pulls: Vec<String> =
        course(&run).into_iter().filter(|it| it.starts_with("pulls")).collect();
    assert_eq!(pulls, ["pulls node-2"]);
}

#[test]
fn another_node_takes_the_place_of_a_canary_without_images() {
    let canary = json!({"steps": [{"name": "canary", "nodes": 1, "soak": "60s"}]});
    let first = apply(Sim::of(4, &json!(2)), &canary).finish();
    let chosen = first.sim.nodes_with("v2");
    let mut sim = Sim::of(4, &json!(2));
    sim.pulls.insert(chosen[0].clone(), None);
    let other = apply(sim, &canary).finish();
    assert!(matches!(other.outcome(), Outcome::Waiting { .. }), "{}", other.outcome());
    assert_ne!(other.sim.nodes_with("v2"), chosen);
    // A named one has no substitute.
    let named = json!({"steps": [{"name": "canary", "nodes": {"names": ["node-2"]}}]});
    let mut sim = Sim::of(4, &json!(2));
    sim.pulls.insert("node-2".to_owned(), None);
    let run = apply(sim, &named).finish();
    assert_eq!((not_pulled(&run), run.deletes.len()), (vec!["node-2".to_owned()], 0));
}

#[test]
fn before_a_surge_all_nodes_have_their_images() {
    let run = apply(Sim::with_strategy(4, &surging(&json!(2))), &json!({})).finish();
    assert_eq!((run.outcome(), run.deletes.len()), (&Outcome::Done, 0));
    let events = course(&run);
    let has = |at: usize| events.iter().position(|it| *it == format!("has node-{at}")).unwrap();
    let applied = events.iter().position(|it| it == "applying").unwrap();
    assert!((0..4).all(|at| has(at) < applied), "{events:?}");
    // The controller would choose a node without them, too.
    let mut sim = Sim::with_strategy(4, &surging(&json!(2)));
    sim.pulls.insert("node-3".to_owned(), None);
    let run = apply(sim, &json!({})).finish();
    assert_eq!((not_pulled(&run), run.sim.writes.len()), (vec!["node-3".to_owned()], 0));
}

#[test]
fn before_the_last_step_of_a_surge_all_nodes_have_their_images() {
    let fields = json!({"steps": [{"name": "canary", "nodes": {"names": ["node-0"]}}]});
    let run = apply(Sim::with_strategy(4, &surging(&json!(2))), &fields).finish();
    assert_eq!((run.outcome(), run.deleted_nodes()), (&Outcome::Done, vec!["node-0"]));
    let events = course(&run);
    let has = |at: usize| events.iter().position(|it| *it == format!("has node-{at}")).unwrap();
    let restored = events.iter().position(|it| it == "restoring the declared strategy").unwrap();
    assert!((0..4).all(|at| has(at) < restored), "{events:?}");
}

#[test]
fn roll_and_step_pull_too() {
    let rolled = |extent: Extent, stuck: &[&str]| {
        let mut sim = Sim::with_strategy(4, &on_delete());
        sim.cluster.set_image("v2");
        sim.touch();
        sim.pass(2);
        sim.pulls = stuck.iter().map(|node| ((*node).to_owned(), None)).collect();
        let fields = json!({"maxUnavailable": 1});
        Run::new(sim, task(Goal::Roll(extent))).with(|task| task.policy = policy(&fields)).finish()
    };
    let all = rolled(Extent::All, &[]);
    assert_eq!((all.outcome(), all.deletes.len()), (&Outcome::Done, 4));
    assert_eq!(course(&all).iter().filter(|it| it.starts_with("has")).count(), 4);
    let two = rolled(Extent::Count(2), &[]);
    assert_eq!((two.outcome(), two.deletes.len(), two.sim.most_pullers), (&Outcome::Done, 2, 2));
    let named = rolled(Extent::Nodes(["node-3".into()].into()), &[]);
    assert_eq!((named.deleted_nodes(), named.sim.most_pullers), (vec!["node-3"], 1));
    let stuck = rolled(Extent::Nodes(["node-3".into()].into()), &["node-3"]);
    assert_eq!((not_pulled(&stuck), stuck.deletes.len()), (vec!["node-3".to_owned()], 0));
    let one_stuck = rolled(Extent::All, &["node-1"]);
    assert_eq!((not_pulled(&one_stuck), one_stuck.deletes.len()), (vec!["node-1".to_owned()], 3));
}

#[test]
fn lost_requests_and_answers_change_nothing() {
    for post in [Post::AnswerLost, Post::RequestLost, Post::AnswerDelayed] {
        let mut run = apply(Sim::of(3, &json!(1)), &json!({}));
        run.look();
        for _ in 0..3 {
            run.post(post);
        }
        let run = run.finish();
        assert_eq!(*run.outcome(), Outcome::Done, "{post:?}");
        assert!(run.sim.most_pullers <= 3, "{post:?}");
        assert!(run.sim.pullers.iter().all(|it| it.terminating), "{post:?}");
    }
}

/// Found by the simulation: of two that could not be removed, one was always being tried.
#[test]
fn pullers_that_cannot_be_removed_do_not_keep_a_run_from_its_end() {
    let puller = |name: &str| Puller {
        name: name.into(),
        uid: name.into(),
        node: format!("node-{name}").as_str().into(),
        images: "others".into(),
        created: None,
        state: PullState::Pulled,
        terminating: false,
    };
    let pullers = [puller("a"), puller("b")];
    let mut pulls = Pulls::default();
    let mut answers: Vec<(i64, Uid)> = Vec::new();
    for second in 0..600 {
        let now = Timestamp::from_second(second).unwrap();
        for (_, uid) in answers.extract_if(.., |(at, _)| *at <= second) {
            pulls.receive_removed(&uid, &Err(Failure::Unknown { message: "late".into() }), now);
        }
        let pre_pull = PrePull::default();
        let input = PullInput { next: &[], pullers: &pullers, images: "new", pre_pull, now };
        let sent = pulls.decide(input).remove;
        let (at_the_end, is_left) = pulls.remove_all(&pullers, now);
        if !is_left && !pulls.awaits_answers() {
            return;
        }
        for (name, uid) in sent.into_iter().chain(at_the_end.remove) {
            let is_first_of_b = second == 0 && name.as_str() == "b";
            answers.push((second + if is_first_of_b { 10 } else { 20 }, uid));
        }
    }
    panic!("it does not end");
}

/// Found by the simulation: the run waited for the node without end.
#[test]
fn a_puller_whose_removal_is_never_answered_costs_its_node() {
    let pullers = [Puller {
        name: "a".into(),
        uid: "a".into(),
        node: "node-0".into(),
        images: "new".into(),
        created: None,
        state: PullState::Pulling(None),
        terminating: false,
    }];
    let mut pulls = Pulls::default();
    let at = |second| Timestamp::from_second(second).unwrap();
    // The run was about to end, and then it continued.
    let (removal, is_left) = pulls.remove_all(&pullers, at(0));
    assert!(is_left && removal.remove.len() == 1);
    pulls.receive_removed(&"a".into(), &Err(Failure::Unknown { message: "late".into() }), at(10));
    let mut dropped = |second| {
        let (next, pre_pull) = (["node-0".into()], PrePull::default());
        let (pullers, now) = (&pullers, at(second));
        pulls.decide(PullInput { next: &next, pullers, images: "new", pre_pull, now }).dropped
    };
    let limit = i64::from(PrePull::default().timeout.0);
    assert_eq!((dropped(11), dropped(10 + limit)), (vec![], vec![]));
    assert_eq!(dropped(11 + limit), ["node-0"]);
}

/// Found by seed 443685: the creation was refused once, the run waited for the controller, and then
/// dropped the node.
#[test]
fn a_node_is_not_dropped_if_the_run_did_not_try_again_in_its_time() {
    let mut pulls = Pulls::default();
    let limit = i64::from(PrePull::default().timeout.0);
    let mut look = |second: i64| {
        let now = Timestamp::from_second(second).unwrap();
        let (next, pre_pull) = (["node-0".into()], PrePull::default());
        let input = PullInput { next: &next, pullers: &[], images: "new", pre_pull, now };
        let requests = pulls.decide(input);
        for node in &requests.create {
            let refused = Err(Failure::Unknown { message: "500".into() });
            pulls.receive_created(node.clone(), refused, now);
        }
        (requests.create.len(), requests.dropped.len())
    };
    assert_eq!(look(0), (1, 0));
    // The run waits for the controller longer than the node has time.
    let later = limit + 30;
    assert_eq!(look(later), (1, 0));
    for second in (10..limit).step_by(10) {
        assert_eq!(look(later + second), (1, 0), "{second}");
    }
    assert_eq!(look(later + limit), (0, 1), "it was tried in all of its time");
}

/// Found by seed 949359: a skipped node pulled again in each run, and the soak of its domain or step began
/// again when it was dropped, for ever.
#[test]
fn a_soak_continues_while_a_skipped_node_pulls_again() {
    let until = |run: &Run| match run.outcome() {
        Outcome::Waiting { waits_for } => (waits_for[0].kind, waits_for[0].until),
        other => panic!("it does not wait: {other}"),
    };
    let names = json!({"names": ["node-0", "node-1", "node-2", "node-3"]});
    for soaks in [
        json!({"domains": {"key": "zone", "atOnce": 1, "soak": "10m"}}),
        json!({"steps": [{"name": "canary", "nodes": names, "soak": "10m"}]}),
    ] {
        for live in ["lastGood", "target"] {
            let mut fields = soaks.clone();
            fields["whileWaiting"] = live.into();
            fields["gates"] = json!([{
                "name": "errors", "interval": "30s",
                "prometheus": {"address": "https://prom.example", "query": "errors", "max": 1},
            }]);
            let policy = policy(&fields);
            let mut sim = Sim::of(4, &json!(1));
            for node in &mut sim.cluster.nodes {
                node.labels = [("zone", "a")].into_iter().collect();
            }
            sim.pulls.insert("node-3".to_owned(), None);
            let first = super::steps::run(sim, "v2", &policy);
            assert_eq!((until(&first).0, first.deletes.len()), (WaitKind::Soak, 3));
            let ends = until(&first);
            let mut sim = first.sim;
            sim.pass(60);
            let second = super::steps::run(sim, "v2", &policy);
            assert_eq!(until(&second), ends, "{soaks} {live}");
            let mut sim = second.sim;
            sim.pass(600);
            let last = super::steps::run(sim, "v2", &policy);
            assert_eq!(not_pulled(&last), ["node-3"], "{soaks} {live}");
        }
    }
}
