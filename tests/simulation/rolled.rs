//! `ds-apply roll` and `step`, as schedules and users run them: another client applies templates under
//! `OnDelete`, requests fail, and runs are killed. Own laws, with own counts: the other ones expect that
//! runs write the DaemonSet.
//!
//! A node is replaced once for each template, within the budget and the window, after the soaks, the gate
//! and the approvals of the steps before its own; no run ends as done before the last step is over; and
//! after a failure, no node begins without `--retry`. Not here: nodes that are down, domains, several
//! DaemonSets.

mod laws;
mod pace;
mod runs;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ds_plan::Exit;
use embedded::{Rehearsal, World, on_virtual_time};
use serde_json::json;
use tokio::time::sleep;

use crate::cluster;
use crate::crash::scenario;
use crate::dice::Dice;
use crate::scenario::{NodeSpec, Scenario};
use crate::setting;
use laws::{Laws, Rollout, Watcher};
use pace::{BAD, Pace};
use runs::Runs;

/// The default number of seeds.
const SEEDS: u64 = 200;

/// A rollout that is not done by then is stuck.
const LONGEST: Duration = Duration::from_hours(24);

fn fleet(nodes: usize) -> Scenario {
    let calm = scenario("by hand");
    let node = |at| NodeSpec { name: format!("node-{at}"), ..calm.nodes[0].clone() };
    Scenario { nodes: (0..nodes).map(node).collect(), policy: None, ..calm.clone() }
}

/// The laws that the runs of a seed break, and how each run has ended.
fn rolled(seed: u64) -> (Vec<String>, Vec<Option<Exit>>) {
    let mut dice = Dice::new(seed);
    let pace = Pace::random(&mut dice);
    let [has_faults, kills, changes, steps] = [2, 2, 2, 3].map(|sides| dice.one_in(sides));
    let interval = Duration::from_secs(dice.pick(&[15, 60, 300]));
    let fleet = &fleet(pace.nodes);
    let folder = tempfile::tempdir().unwrap();
    let mut rehearsal = Rehearsal { seed, ..Rehearsal::default() };
    rehearsal.faults.images.extend(pace.bad_node.map(|node| {
        let image = format!("registry.example/agent:{BAD}");
        let nodes = json!({"names": [format!("node-{node}")]});
        serde_json::from_value(json!({"fault": "neverPulls", "image": image, "nodes": nodes}))
            .unwrap()
    }));
    on_virtual_time(async {
        let world = &World::begin(&cluster::snapshot(fleet), rehearsal).unwrap();
        let laws = Arc::new(Mutex::new(Laws {
            clock: world.clock(),
            pace,
            dice: Dice::new(seed ^ 1),
            has_faults,
            killed: BTreeSet::new(),
            broken: Vec::new(),
            failed: BTreeSet::new(),
            rollout: Rollout::default(),
        }));
        world.server().set_hook(Some(Box::new(Watcher(Arc::clone(&laws)))));
        let (folder, exits) = (folder.path(), Vec::new());
        let mut runs = Runs {
            world,
            folder,
            fleet,
            dice,
            laws,
            exits,
            ignored: 0,
            image: 1,
            kills,
            steps,
            retries: false,
        };
        runs.sync(BAD).await;
        let mut is_done = false;
        while !is_done && world.clock().elapsed() < LONGEST {
            sleep(interval).await;
            if changes && runs.exits.len() == 2 {
                runs.sync(runs.image + 1).await;
            }
            runs.before_next().await;
            is_done = runs.once().await;
            if !runs.laws().broken.is_empty() {
                break;
            }
        }
        let mut broken = std::mem::take(&mut runs.laws().broken);
        broken.extend((broken.is_empty() && !is_done).then(|| "it is stuck".to_owned()));
        (broken, runs.exits)
    })
    .unwrap()
}

#[test]
fn a_roll_by_schedule_keeps_to_its_policy() {
    let first = setting("SIMULATION_FROM", 0);
    let seeds = first..first + setting("SIMULATION_SEEDS", SEEDS);
    let mut all = Vec::new();
    for seed in seeds.clone() {
        let (broken, exits) = rolled(seed);
        let alike = exits.chunk_by(|one, next| one == next);
        let runs: Vec<_> = alike.map(|runs| (runs.len(), runs[0])).collect();
        assert!(broken.is_empty(), "seed {seed}: {broken:#?}, runs: {runs:?}");
        all.extend(exits);
    }
    // Otherwise hardly any soak was longer than a run, and hardly anything failed or was approved.
    let count = |wanted| all.iter().filter(|exit| **exit == Some(wanted)).count() as u64;
    let tenth = (seeds.end - seeds.start) / 10;
    assert!(count(Exit::Waiting) > 10 * tenth, "{}", count(Exit::Waiting));
    for exit in [Exit::ApprovalNeeded, Exit::Paused, Exit::Blocked] {
        assert!(count(exit) > tenth, "{exit:?}: {}", count(exit));
    }
}
