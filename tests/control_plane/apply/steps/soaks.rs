//! A canary, its soak, and what happens to its nodes meanwhile.

use super::*;

/// Two canaries, long enough that a run fits into their soak on a slow machine.
const CANARIES: &str = "  steps: [{name: canary, nodes: 2, soak: 15s}]";

#[test]
fn a_canary_soaks_between_two_runs() {
    side_by_side(&[soaks, node_joins, canary_leaves, canary_restarts]);
}

fn soaks(plane: &ControlPlane) {
    const COMMIT: &str = "ds-plan.dev/commit";
    let it = Staged::new(plane, "soaks", 6, CANARIES);
    let before = it.live();
    assert_eq!(it.numbers(), [("v1".to_owned(), 1)].into());
    let began = Timestamp::now();
    let waiting = it.soaks();
    let canaries = it.pods("v2");
    assert_eq!((canaries.len(), it.pods("v1").len()), (2, 4));
    assert_eq!(waiting.annotations[COMMIT], before.annotations[COMMIT], "provenance of v1");
    let soak = waiting.until().duration_since(began).as_secs();
    assert!((14..30).contains(&soak), "{soak} s");
    assert_eq!(it.numbers(), [("v1".to_owned(), 3), ("v2".to_owned(), 2)].into());

    // Too early.
    assert!(Timestamp::now() < waiting.until(), "this machine is too slow");
    let moment = format!("step canary soaks until {}", waiting.until());
    ends(&it.run("v2", &[]), 8, &[&moment, "run it again then"]);
    assert_eq!(it.live().version, waiting.version, "nothing is written");
    assert_eq!(it.pods("v2"), canaries);

    sleep_past(waiting.until());
    let watcher = it.fleet.watch();
    it.is_completed("v2");
    let seen = watcher.end();
    assert!(seen.most_unavailable <= 3, "{}", seen.most_unavailable);
    assert_eq!(seen.deleted.len(), 4, "the canaries stay: {:?}", seen.deleted);
    assert!(canaries.iter().all(|(node, uid)| it.pods("v2").get(node) == Some(uid)));
    assert_eq!(it.numbers(), [("v1".to_owned(), 3), ("v2".to_owned(), 4)].into());
    assert_ne!(it.live().annotations[COMMIT], before.annotations[COMMIT], "provenance of v2");
}

fn node_joins(plane: &ControlPlane) {
    let it = Staged::new(plane, "joins", 4, CANARIES);
    let waiting = it.soaks();
    let canaries = it.pods("v2");
    add_node(plane, "joins", "new", 0);
    wait_until("a pod on the new node", SOON, || it.nodes_with("v1").contains("joins-new"));
    // It belongs to the last step.
    if Timestamp::now() < waiting.until() {
        ends(&it.run("v2", &[]), 8, &["step canary soaks until "]);
    }
    assert_eq!(it.pods("v2"), canaries);
    assert!(it.nodes_with("v1").contains("joins-new"));
    sleep_past(waiting.until());
    it.is_completed("v2");
    assert_eq!(it.pods("v2").len(), 5);
    assert!(canaries.iter().all(|(node, uid)| it.pods("v2").get(node) == Some(uid)));
}

/// Its place is taken by another node, which soaks for itself. What is done stays done.
fn canary_leaves(plane: &ControlPlane) {
    let steps = "  steps: [{name: first, nodes: 1}, {name: canary, nodes: 3, soak: 12s}]";
    let it = Staged::new(plane, "leaves", 6, steps);
    let watcher = it.fleet.watch();
    let waiting = it.soaks();
    let deleted = watcher.end().deleted;
    assert_eq!(deleted.len(), 3);
    let before = it.pods("v2");
    let done = it.note()["steps"]["first"].clone();
    assert!(done["doneAt"].is_string(), "{done}");

    plane.kubectl(&["delete", "node", &deleted[2]]);
    sleep_past(waiting.until());
    let watcher = it.fleet.watch();
    ends(&it.run("v2", &[]), 8, &["step canary soaks until "]);
    let replaced = watcher.end().deleted.into_iter().filter(|node| *node != deleted[2]);
    let replaced: Vec<String> = replaced.collect();
    assert_eq!(replaced.len(), 1, "one other node: {replaced:?}");
    assert!(!deleted.contains(&replaced[0]), "{replaced:?}");
    let again = it.live();
    it.is_waiting(&again);
    let later = again.until().duration_since(waiting.until()).as_secs();
    assert!(later >= 12, "it soaks for itself: {later} s later");
    assert_eq!(it.note()["steps"]["first"], done, "what is done is not touched");
    let stays = |node: &String| it.pods("v2").get(node) == before.get(node);
    assert!(stays(&deleted[0]) && stays(&deleted[1]));
    sleep_past(again.until());
    ends(&it.run("v2", &[]), 0, &["done"]);
}

/// A restart begins the soak of its node again; too many of them are a failure.
fn canary_restarts(plane: &ControlPlane) {
    let it = Staged::new(plane, "restarts", 4, CANARIES);
    let waiting = it.soaks();
    let canary = it.nodes_with("v2").pop_first().unwrap();
    thread::sleep(Duration::from_secs(7));
    let restarted = it.restart(&canary, 1);
    sleep_past(waiting.until());
    ends(&it.run("v2", &[]), 8, &["step canary soaks until "]);
    let again = it.live();
    let soak = again.until().duration_since(restarted).as_secs();
    assert!(again.until() > waiting.until() && soak >= 15, "{soak} s after the restart");
    assert_eq!(it.pods("v2").len(), 2);

    it.restart(&canary, 4);
    let failed = it.run("v2", &[]);
    ends(&failed, 4, &["aborted: new pods failed on 1 node", &canary]);
    let live = it.live();
    assert_eq!((&*live.image, &live.pause["state"]), ("v1", &json!("aborted")));
    assert_eq!(it.pods("v2").len(), 2, "no other node begins");
    ends(&it.run("v2", &[]), 6, &["--retry"]);
}

impl Staged<'_> {
    /// Reports a restart of the container on this node, as its kubelet does; returns its time.
    fn restart(&self, node: &str, restarts: u32) -> Timestamp {
        let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap();
        let ended = json!({"exitCode": 1, "reason": "Error", "startedAt": now, "finishedAt": now});
        let container = "/status/containerStatuses/0";
        let set = |field: &str, value: Value| json!({"op": "add", "path": format!("{container}/{field}"), "value": value});
        let patch = json!([
            set("restartCount", json!(restarts)),
            set("lastState", json!({"terminated": ended})),
            set("state", json!({"running": {"startedAt": now}})),
        ]);
        let patch = format!("--patch={patch}");
        let pod = self.pod_on(node);
        self.fleet.kubectl(&["patch", &pod, "--subresource=status", "--type=json", &patch]);
        now
    }
}
