//! Runs that are killed, and later runs that resume them.

use std::thread;

use super::*;
use testkit::random::Random;

const NODES: usize = 10;
const BUDGET: usize = 2;
/// The kills of one namespace.
const KILLS: usize = 3;
/// The namespaces at a time.
const AT_ONCE: usize = 10;

/// The number of namespaces: those of thirty kills, or of `ROLLOUT_KILLS`.
#[expect(clippy::disallowed_methods, reason = "a setting of the tests, not of the program")]
fn namespaces() -> usize {
    let kills = std::env::var("ROLLOUT_KILLS");
    kills.map_or(30, |kills| kills.parse().expect("ROLLOUT_KILLS is a number")) / KILLS
}

/// Each kill comes a moment after a certain number of deletions; some come while a run is still
/// planning, or waits for the lock of the previous one. The first pods of a wave are then
/// terminating, or not Ready yet.
#[test]
fn killed_at_any_moment_a_rollout_resumes_within_its_budget() {
    let plane = ControlPlane::start();
    plane.create_nodes(three_zones(NODES));
    let numbers: Vec<usize> = (0..namespaces()).collect();
    for numbers in numbers.chunks(AT_ONCE) {
        thread::scope(|scope| {
            for number in numbers {
                let plane = &plane;
                scope.spawn(move || killed_again_and_again(plane, &format!("killed-{number}")));
            }
        });
    }
}

fn killed_again_and_again(plane: &ControlPlane, namespace: &str) {
    let mut random = Random::of("killed", namespace);
    let version =
        |number: usize| slowly(&manifest(namespace, &format!("v{number}"), &at_most("2")));
    let fleet = Fleet::new(plane, namespace, NODES, &version(1));
    let watcher = fleet.watch();
    let (mut kills, mut number) = (0, 2);
    while kills < KILLS {
        let mut run = fleet.start(&version(number), &["--lease=2s"]);
        // Only pods of this version: those of earlier versions are gone.
        let (before, all) = (watcher.gone(), (number - 1) * NODES);
        let at = if random.one_in(4) { before } else { before + random.below(all - before + 1) };
        wait_until("pods to be deleted", SOON, || watcher.gone() >= at || run.has_ended());
        thread::sleep(Duration::from_millis(random.below(1_000).try_into().unwrap()));
        match run.kill() {
            None => kills += 1,
            // The run was faster: the next version is to be killed.
            Some(output) => {
                assert_eq!(output.status.code(), Some(0), "{namespace}: {}", output_text(&output));
                number += 1;
            }
        }
    }
    let output = fleet.apply(&version(number), &["--lease=2s"]);
    assert_eq!(output.status.code(), Some(0), "{namespace}: {}", output_text(&output));
    fleet.is_replaced_within(BUDGET, &watcher.end(), number);
    let next = fleet.plan(&version(number));
    assert_eq!(next.status.code(), Some(0), "{namespace}: {}", output_text(&next));
}
