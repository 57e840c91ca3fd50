//! `maxSurge`: the controller creates the surge pods, and is stopped when the new pods fail.

use super::request_log::{RUNNER, RequestLog};
use super::*;

const NODES: usize = 6;

fn version(image: &str) -> String {
    let surge = "{maxUnavailable: 0, maxSurge: 2}";
    let strategy = format!("  updateStrategy: {{type: RollingUpdate, rollingUpdate: {surge}}}");
    manifest("surge", image, &strategy)
}

#[test]
fn a_surge_completes_or_is_stopped_before_any_node_is_without_a_pod() {
    let plane = ControlPlane::builder().user(RUNNER, &["system:masters"]).audit().start();
    plane.create_nodes(three_zones(NODES));
    let fleet = Fleet::new(&plane, "surge", NODES, &version("v1"));

    let watcher = fleet.watch();
    let output = fleet.begin(&version("v2"), &[]).wait();
    let seen = watcher.end();
    assert_eq!(output.status.code(), Some(0), "{}", output_text(&output));
    assert_eq!(seen.most_unavailable, 0);
    assert_eq!(fleet.images(), ["v2".to_owned()].into());
    assert_eq!(fleet.strategy(), "RollingUpdate");
    fleet.histories_agree();
    fleet.is_rolled_out();
    let next = fleet.plan(&version("v2"));
    assert_eq!(next.status.code(), Some(0), "{}", output_text(&next));

    let (watcher, request_log) = (fleet.watch(), RequestLog::begin(&fleet));
    let output = fleet.begin(&version("v3-bad"), &["--progress-deadline=8s"]).wait();
    assert_eq!(output.status.code(), Some(4), "{}", output_text(&output));
    assert!(output_text(&output).contains("ImagePullBackOff"), "{}", output_text(&output));
    assert_eq!(fleet.strategy(), "OnDelete", "halted");
    let live = "--output=jsonpath={.spec.template.spec.containers[0].image}";
    assert_eq!(fleet.kubectl(&["get", "daemonset", "agent", live]), "cr.example/agent:v2");
    // The controller deletes the surge pods, which were never available.
    wait_for("only the old pods", SOON, BTreeSet::from(["v2".to_owned()]), || fleet.images());
    let seen = watcher.end();
    assert_eq!(seen.most_unavailable, 0);
    assert!(request_log.restored().is_empty());
    assert!(seen.gone.values().all(|gone| gone.image == "v3-bad"), "{:?}", seen.gone);
    assert_eq!(fleet.deleted_by_runner(), [""; 0], "the controller does all of it");
    fleet.histories_agree();

    let undone = plane.ds_apply(&["undo", "surge/agent", "--yes"], &[]).run();
    assert_eq!(undone.status.code(), Some(0), "{}", output_text(&undone));
    assert_eq!(fleet.strategy(), "RollingUpdate");
    fleet.is_rolled_out();
    let forward = fleet.apply(&version("v4"), &[]);
    assert_eq!(forward.status.code(), Some(0), "{}", output_text(&forward));
    assert_eq!(fleet.images(), ["v4".to_owned()].into());
}
