//! Runs that lose their lock while their deletes are in flight.

use std::time::Duration;

use ds_plan::{Exit, ds_apply_at};
use embedded::{Fault, Hook, Rehearsal, Seen, Store, VirtualClock, World, on_virtual_time};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::cluster;
use crate::crash::scenario;
use crate::scenario::{Change, Fate, Interference, PodSpec, Scenario, What, slow_deletes};
use crate::trial;

#[test]
fn a_run_that_lost_its_lock_ends_with_a_delete_in_flight() {
    let mut lost = 0;
    for name in ["two at once", "no controller"] {
        for (late, at) in [("9s", 2), ("9s", 4), ("9s", 13), ("25s", 3), ("25s", 16)] {
            for interrupted in [None, Some(at + 1), Some(at + 6)] {
                let outcome = trial::run(&Scenario {
                    faults: vec![("api", slow_deletes(late))],
                    external_actors: vec![Interference { at, what: What::Unlock }],
                    fates: interrupted.map(Fate::Interrupted).into_iter().collect(),
                    ..scenario(name)
                });
                let case = format!("{name}: {late} at {at}, {interrupted:?}: {:?}", outcome.ended);
                assert!(outcome.broken.is_empty(), "{case}: {:#?}", outcome.broken);
                let [(_, ended)] = &outcome.ended[..] else { panic!("{case}") };
                lost += usize::from(ended.exit == Exit::Locked);
            }
        }
    }
    assert!(lost >= 20, "only {lost} of 30 had lost their lock");
}

#[test]
fn a_reconcile_that_loses_its_lock_is_not_reported_as_done() {
    let orphan = || {
        let mut scenario = scenario("no controller");
        scenario.agents[0].change = Change::Nothing;
        for node in &mut scenario.nodes {
            node.pod = PodSpec::Available;
        }
        scenario.nodes[1].pod = PodSpec::Orphan;
        scenario
    };
    let slow_adoption =
        json!({"answer": {"late": "9s"}, "verbs": ["patch"], "resources": ["pods"]});
    for (unlocked, exit) in [(None, Exit::Done), (Some(3), Exit::Locked)] {
        let unlocks = unlocked.map(|at| Interference { at, what: What::Unlock });
        let outcome = trial::run(&Scenario {
            faults: vec![("api", slow_adoption.clone())],
            external_actors: unlocks.into_iter().collect(),
            ..orphan()
        });
        let ended: Vec<Exit> = outcome.ended.iter().map(|(_, ended)| ended.exit).collect();
        assert_eq!(ended, [exit], "{unlocked:?}: {:#?}", outcome.broken);
    }
}

/// Cuts off the first run from its 12th second on: none of its requests arrives.
struct Killed(VirtualClock);

impl Hook for Killed {
    fn before(&mut self, request: &Seen, _store: &Store) -> Vec<Fault> {
        let gone = request.user == "first" && self.0.elapsed() >= Duration::from_secs(12);
        if gone { vec![Fault::Silence] } else { Vec::new() }
    }
}

#[test]
fn only_force_takes_the_lock_of_an_active_run() {
    let scenario = scenario("image");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("agents.yaml"), cluster::manifests(&scenario)).unwrap();
    let lines = [
        // The run is active.
        (4, "unlock agents/agent --yes", Exit::Locked),
        (5, "unlock agents/agent --force", Exit::Failed),
        (6, "unlock agents/agent", Exit::Locked),
        // The run is gone, but other clients cannot know that yet.
        (20, "unlock agents/agent --yes", Exit::Locked),
        // No terminal, so no confirmation is possible.
        (40, "unlock agents/agent", Exit::Failed),
        (41, "unlock agents/agent --yes", Exit::Done),
        (42, "unlock agents/agent", Exit::Done),
    ];
    on_virtual_time(async {
        let world = World::begin(&cluster::snapshot(&scenario), Rehearsal::default()).unwrap();
        world.server().set_hook(Some(Box::new(Killed(world.clock()))));
        let (_keep, interrupts) = mpsc::channel(1);
        let line = ["-f", "agents.yaml", "--yes"];
        let run = ds_apply_at(&world, "first", folder.path(), interrupts, &line);
        let run = async { drop(tokio::time::timeout(Duration::from_secs(12), run).await) };
        let others = async {
            let mut now = 0;
            for (at, line, want) in lines {
                sleep(Duration::from_secs(at - now)).await;
                now = at;
                let words: Vec<&str> = line.split(' ').collect();
                let (_keep, interrupts) = mpsc::channel(1);
                let ended = ds_apply_at(&world, "other", folder.path(), interrupts, &words).await;
                assert_eq!(ended.exit, want, "{line} at {at}: {:?}", ended.errors);
            }
        };
        tokio::join!(run, others);
    })
    .unwrap();
}
