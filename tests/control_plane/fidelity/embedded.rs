//! Scenarios on embedded clusters, one each, on virtual time.

use std::time::Duration;

use cluster::read_recorded_from;
use daemonset::model::Faults;
use embedded::{Rehearsal, Timings, VirtualClock, World, on_virtual_time};
use serde_json::json;

use super::Transcripts;
use super::player::{Switch, play};
use super::step::Scenario;

/// Runs them one after the other.
pub(super) fn play_all(scenarios: &[Scenario]) -> Transcripts {
    let play = |scenario: &Scenario| (scenario.name, play_one(scenario));
    std::thread::scope(|scope| {
        let played = scope.spawn(|| scenarios.iter().map(play).collect());
        played.join().expect("every scenario can be run to its end")
    })
}

fn play_one(scenario: &Scenario) -> String {
    let born = "2026-01-01T00:00:00Z";
    let mut items = ["kube-system", "default"]
        .map(|name| {
            json!({
                "apiVersion": "v1", "kind": "Namespace", "status": {"phase": "Active"},
                "metadata": {"name": name, "uid": name, "creationTimestamp": born},
            })
        })
        .to_vec();
    // A cluster needs at least one node; this one belongs to no scenario.
    items.push(json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "elsewhere", "uid": "elsewhere", "creationTimestamp": born},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }));
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    let snapshot = read_recorded_from(list.as_bytes(), "scenario").unwrap();
    let played = on_virtual_time(async {
        let faults = faults(scenario.stops());
        let rehearsal = Rehearsal { timings: timings(), faults, seed: 1 };
        let world = World::begin(&snapshot, rehearsal).unwrap();
        play(&world.server().client(), scenario, &world.clock(), "on the embedded cluster").await
    });
    played.unwrap()
}

/// Pods that start and stop as fast as kwok's.
fn timings() -> Timings {
    Timings {
        start: Duration::from_millis(100),
        stop: Duration::from_millis(20),
        ..Timings::default()
    }
}

/// When the controller manager is stopped and started, if it is.
const STOP: Duration = Duration::from_mins(2);
const START: Duration = Duration::from_mins(5);

/// The switch is a moment of the virtual clock, before which all earlier steps must be complete.
impl Switch for VirtualClock {
    async fn stop(&self) {
        reach(self, STOP).await;
    }

    async fn start(&self) {
        reach(self, START).await;
    }
}

/// Lets the clock advance to that moment, and to no other.
async fn reach(clock: &VirtualClock, after: Duration) {
    let moment = VirtualClock::start(clock) + after;
    clock.reach(moment).await;
    assert_eq!(clock.now(), moment, "the moment of the switch has passed");
}

/// Images that behave as they do with kwok (`stages/pod.yaml`).
fn faults(stops: bool) -> Faults {
    let down =
        json!([{"from": format!("{}s", STOP.as_secs()), "until": format!("{}s", START.as_secs())}]);
    let faults = json!({
        "apiVersion": "ds-plan.dev/v1alpha1", "kind": "Faults",
        "images": [
            {"fault": "neverPulls", "image": "agent:v2-bad"},
            {"fault": "crashLoops", "image": "agent:v2-crash", "after": "0s"},
            {"fault": "readyLate", "image": "agent:v3-slow", "by": "2s"},
            {"fault": "readyLate", "image": "agent:v4-slow", "by": "2s"},
        ],
        "controllerManagerDown": if stops { down } else { json!([]) },
    });
    serde_json::from_value(faults).unwrap()
}
