//! What others do while a rollout waits with the last good template live.

use super::*;

/// No test waits for its end.
const LONG: &str = "  steps: [{name: canary, nodes: 2, soak: 1h}]";

#[test]
fn others_interfere_while_a_rollout_waits() {
    side_by_side(&[canary_recreated, without_history, restarted_by_kubectl, image_set_by_hand]);
}

/// A pod that is recreated during the wait gets the last good template, whenever that is: its step
/// is then not complete, even after the moment for which the rollout waited.
fn canary_recreated(plane: &ControlPlane) {
    let it =
        Staged::new(plane, "recreated-canary", 6, "  steps: [{name: canary, nodes: 2, soak: 5s}]");
    let waiting = it.soaks();
    let canaries = it.nodes_with("v2");
    sleep_past(waiting.until());
    it.recreate_pod_on(canaries.first().unwrap(), "v1");
    assert_eq!(it.nodes_with("v2").len(), 1);
    ends(&it.run("v2", &[]), 8, &["step canary soaks until "]);
    let again = it.live();
    it.is_waiting(&again);
    assert!(again.until() > waiting.until());
    assert_eq!((it.pods("v2").len(), it.pods("v1").len()), (2, 4));
    sleep_past(again.until());
    it.is_completed("v2");
}

/// Without a history, the last good revision goes with its last pod: then there is nothing to put
/// back.
fn without_history(plane: &ControlPlane) {
    let steps = "  steps: [{name: canary, nodes: 1, soak: 4s}, {name: all, nodes: 100%, soak: 4s}]";
    let it = Staged::new(plane, "no-history", 3, steps);
    let without = |image: &str| {
        let own = "spec:\n  revisionHistoryLimit: 0\n  selector";
        it.version(image).replacen("spec:\n  selector", own, 1)
    };
    ends(&it.fleet.apply(&without("v1"), &[]), 0, &[]);
    let run = || it.fleet.apply(&without("v2"), &[]);
    ends(&run(), 8, &["step canary soaks until "]);
    assert_eq!((it.live().image, it.numbers().len()), ("v1".to_owned(), 2));
    sleep_past(it.live().until());
    ends(&run(), 8, &["step all soaks until "]);
    it.is_waiting(&it.live());
    assert_eq!(it.pods("v2").len(), 3);
    sleep_past(it.live().until());
    ends(&run(), 0, &["done"]);
    let live = it.live();
    assert_eq!((&*live.image, &*live.strategy, live.pause), ("v2", "RollingUpdate", Value::Null));
}

/// `kubectl rollout restart` changes the template that is live, and owns the field from then on. No
/// pod restarts during the pause. With the restart, it is another template: its steps begin anew, with
/// the same canaries. The flag that takes the field from kubectl drops the restart.
fn restarted_by_kubectl(plane: &ControlPlane) {
    let it = Staged::new(plane, "restarted-wait", 6, LONG);
    it.soaks();
    let (others, canaries) = (it.pods("v1"), it.pods("v2"));
    it.fleet.kubectl(&["rollout", "restart", "daemonset/agent"]);
    it.wait_for_the_controller();
    assert_eq!(it.pods("v1"), others, "the controller replaces nothing");
    ends(&it.run("v2", &[]), 8, &["restartedAt] kept", "waiting: step canary soaks until"]);
    let again = it.pods("v2");
    assert_eq!(it.pods("v1"), others, "no other node begins");
    assert!(again.keys().eq(canaries.keys()) && again != canaries, "{again:?} {canaries:?}");
    let live = it.live();
    it.is_waiting(&live);
    assert_eq!(live.image, "v1");
    let dropped = it.run("v2", &["--force-conflicts=kubectl-rollout"]);
    ends(&dropped, 8, &["waiting: step canary soaks until"]);
    let annotations = "--output=jsonpath={.spec.template.metadata.annotations}";
    assert_eq!(it.fleet.kubectl(&["get", "daemonset", "agent", annotations]), "");
    assert_eq!((it.pods("v1"), it.nodes_with("v2")), (others, canaries.into_keys().collect()));
}

/// Another client changes the image: that is found before anything is written. With its fields taken,
/// a run that has to wait still deletes nothing.
fn image_set_by_hand(plane: &ControlPlane) {
    let it = Staged::new(plane, "set-by-hand", 6, LONG);
    it.soaks();
    it.fleet.kubectl(&["set", "image", "daemonset/agent", "agent=cr.example/agent:hotfix"]);
    it.wait_for_the_controller();
    let (before, others, canaries) = (it.live().version, it.pods("v1"), it.pods("v2"));
    ends(&it.run("v2", &[]), 6, &["--force-conflicts=kubectl-set"]);
    assert_eq!(it.live().version, before);
    let forced = it.run("v2", &["--force-conflicts=kubectl-set"]);
    ends(&forced, 8, &["step canary soaks until "]);
    assert_eq!((it.pods("v1"), it.pods("v2")), (others, canaries));
    let live = it.live();
    assert_eq!((&*live.image, &*live.strategy), ("v1", "OnDelete"));
}
