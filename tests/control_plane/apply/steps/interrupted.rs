//! Rollouts by steps that are killed, waited for, undone, or followed by another commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::Method;

use super::*;
use crate::harness::Fault;

/// No test waits for its end.
const LONG: &str = "  steps: [{name: canary, nodes: 2, soak: 1h}]";

#[test]
fn a_rollout_by_steps_is_killed_and_resumed() {
    side_by_side(&[killed_in_canary, killed_before_wait, killed_after_wait]);
}

#[test]
fn a_rollout_by_steps_is_waited_for_undone_and_replaced() {
    side_by_side(&[waits_itself, undone, undone_with_target_live, newer_commit, approved_before]);
}

fn killed_in_canary(plane: &ControlPlane) {
    let it = Staged::new(plane, "killed-canary", 6, &format!("{LONG}\n  maxUnavailable: 1"));
    let slow = slowly(&it.version("v2")).replace("500ms", "2s");
    let watcher = it.fleet.watch();
    let run = it.fleet.start(&slow, &["--lease=2s"]);
    wait_until("the first canary", SOON, || watcher.gone() == 1);
    assert!(run.kill().is_none());
    assert_eq!(it.live().image, "v2", "nobody has put the last good template back");
    ends(&it.fleet.apply(&slow, &["--lease=2s"]), 8, &["step canary soaks until "]);
    it.is_waiting(&it.live());
    let seen = watcher.end();
    assert_eq!((seen.deleted.len(), seen.most_unavailable), (2, 1), "{:?}", seen.deleted);
    assert_eq!(it.nodes_with("v2"), seen.deleted.into_iter().collect());
}

fn killed_before_wait(plane: &ControlPlane) {
    killed_at_wait(plane, "killed-before", Fault::Silence, "v2");
}

fn killed_after_wait(plane: &ControlPlane) {
    killed_at_wait(plane, "killed-after", Fault::AnswerLost, "v1");
}

/// Killed while it puts the last good template back.
fn killed_at_wait(plane: &ControlPlane, namespace: &str, fault: Fault, left: &str) {
    let it = Staged::new(plane, namespace, 6, LONG);
    let (proxy, writes) = (Proxy::start(plane, "admin"), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&writes);
    proxy.fault(move |method, path| {
        let writes = *method == Method::PATCH && path.contains("/daemonsets/agent?");
        let writes = writes && !path.contains("dryRun");
        // The first one has written the target.
        (writes && counted.fetch_add(1, Ordering::Relaxed) > 0).then(|| fault.clone())
    });
    let arguments = ["--yes", "-f", "agent.yaml", "--lease=2s"];
    let files = [("agent.yaml", &*it.version("v2"))];
    let run = ControlPlane::ds_apply_by(proxy.kubeconfig_path(), &arguments, &files).start();
    wait_until("the write", SOON, || writes.load(Ordering::Relaxed) > 1);
    wait_until("its effect", SOON, || it.live().image == left);
    // It may be over: the run sees the effect, too.
    if let Some(output) = run.kill() {
        ends(&output, 8, &[]);
    }
    let canaries = it.pods("v2");
    assert_eq!(canaries.len(), 2);

    ends(&it.run("v2", &["--lease=2s"]), 8, &["step canary soaks until "]);
    assert_eq!(it.pods("v2"), canaries, "the same nodes");
    let live = it.live();
    assert_eq!(live.image, "v1");
    it.is_waiting(&live);
}

fn waits_itself(plane: &ControlPlane) {
    let steps = "  steps: [{name: canary, nodes: 2, soak: 4s}]";
    let it = Staged::new(plane, "waits-itself", 6, steps);
    let began = Timestamp::now();
    ends(&it.run("v2", &["--wait=30s"]), 0, &["step canary soaks until ", "done"]);
    assert!(Timestamp::now().duration_since(began).as_secs() >= 4);
    it.is_complete("v2");
    // The last good template was never put back.
    assert_eq!(it.numbers(), [("v1".to_owned(), 1), ("v2".to_owned(), 2)].into());
}

/// Never on to the template that waits, and without its soak.
fn undone(plane: &ControlPlane) {
    let it = Staged::new(plane, "undone-wait", 6, LONG);
    it.soaks();
    let canaries = it.nodes_with("v2");
    let watcher = it.fleet.watch();
    let undo = || plane.ds_apply(&["undo", "undone-wait/agent", "--yes"], &[]).run();
    ends(&undo(), 0, &["done"]);
    let seen = watcher.end();
    assert_eq!(canaries, seen.deleted.iter().cloned().collect(), "only the canaries");
    assert!(seen.most_unavailable <= 3, "{}", seen.most_unavailable);
    it.is_complete("v1");
    let numbers = it.numbers();
    assert!(numbers["v1"] > numbers["v2"], "{numbers:?}");
    // Nothing of its steps is left: they begin anew.
    assert_eq!(it.note()["steps"], Value::Null, "{}", it.note());
    it.soaks();
    assert_eq!(it.nodes_with("v2").len(), 2);
}

fn undone_with_target_live(plane: &ControlPlane) {
    let it = Staged::new(plane, "target-live", 4, &format!("{LONG}\n  whileWaiting: target"));
    ends(&it.run("v2", &[]), 8, &["step canary soaks until "]);
    let live = it.live();
    assert_eq!(live.image, "v2", "the policy wants it so");
    it.is_waiting(&live);
    ends(&it.run("v2", &[]), 8, &["step canary soaks until "]);
    assert_eq!(it.live().version, live.version, "nothing is written");
    add_node(plane, "target-live", "new", 0);
    wait_until("a pod", SOON, || it.nodes_with("v2").contains("target-live-new"));
    let undo = ["undo", "target-live/agent", "--yes"];
    ends(&plane.ds_apply(&undo, &[]).run(), 0, &["done"]);
    it.is_complete("v1");
}

/// The nodes of the intermediate version go first; a failure goes back to what was proven.
fn newer_commit(plane: &ControlPlane) {
    let it = Staged::new(plane, "newer", 6, LONG);
    it.soaks();
    let canaries = it.nodes_with("v2");
    ends(&it.run("v3", &[]), 8, &["step canary soaks until "]);
    assert_eq!((it.nodes_with("v3"), it.live().image), (canaries.clone(), "v1".to_owned()));
    assert!(it.pods("v2").is_empty());
    let watcher = it.fleet.watch();
    let failed = it.run("v4-bad", &["--progress-deadline=8s"]);
    ends(&failed, 4, &["aborted: new pods failed on", "ImagePullBackOff"]);
    let deleted = watcher.end().deleted;
    assert!(!deleted.is_empty() && deleted.iter().all(|node| canaries.contains(node)));
    let live = it.live();
    assert_eq!((&*live.image, &live.pause["state"]), ("v1", &json!("aborted")));
    let undo = ["undo", "newer/agent", "--yes"];
    ends(&plane.ds_apply(&undo, &[]).run(), 0, &["done"]);
    it.is_complete("v1");
}

/// The approval of one template is not that of the next.
fn approved_before(plane: &ControlPlane) {
    let steps = "  steps: [{name: canary, nodes: 1, approve: true}, \
                 {name: half, nodes: 50%, approve: true}]";
    let it = Staged::new(plane, "approved-before", 4, steps);
    let approve = |image: &str, step: &str| {
        let arguments = ["approve", "approved-before/agent", step, "-f", "agent.yaml", "--yes"];
        plane.ds_apply(&arguments, &[("agent.yaml", &it.version(image))]).run()
    };
    ends(&it.run("v2", &[]), 9, &["step canary is not approved", "ds-apply approve"]);
    ends(&approve("v2", "canary"), 0, &[]);
    ends(&it.run("v2", &[]), 9, &["step half is not approved"]);
    let canary = it.pods("v2");
    assert_eq!((canary.len(), it.live().image), (1, "v1".to_owned()));
    ends(&approve("v2", "half"), 0, &[]);

    let before = it.live().version;
    ends(&it.run("v3", &[]), 9, &["step canary is not approved"]);
    assert_eq!((it.pods("v2"), it.pods("v3").len()), (canary, 0));
    let after = it.live();
    assert_eq!((&*after.image, it.numbers().contains_key("v3")), ("v1", false), "{before}");
    // They stand, unused, for the template that was approved.
    it.is_completed("v2");
}
