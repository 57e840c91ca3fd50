//! Structs that a manifest empties, for example `securityContext: {}`: the server would create two
//! templates from such a manifest, one after the other, and restore the strategy with the second.

use std::thread;

use serde_json::json;

use super::*;

const NODES: usize = 8;

/// The name, the field before, and the field after.
const CASES: [(&str, &str, &str); 3] = [
    ("context", "securityContext: {runAsUser: 1}", "securityContext: {}"),
    ("hooks", "lifecycle: {preStop: {exec: {command: [x]}}}", "lifecycle: {}"),
    (
        "affinity",
        "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: \
         {nodeSelectorTerms: [{matchExpressions: [{key: none, operator: DoesNotExist}]}]}}}",
        "affinity: {}",
    ),
];

/// A manifest with this field in the container, or in the pod if it belongs there.
fn version(namespace: &str, field: &str) -> String {
    let text = manifest(namespace, "v1", &at_most("1"));
    if field.starts_with("affinity") {
        text.replacen("containers:", &format!("{field}\n      containers:"), 1)
    } else {
        text.replacen("{name: agent, image:", &format!("{{name: agent, {field}, image:"), 1)
    }
}

#[test]
fn one_revision_is_created_and_each_pod_is_replaced_once() {
    let plane = ControlPlane::start();
    plane.create_nodes(three_zones(NODES));
    thread::scope(|scope| {
        for (namespace, before, after) in CASES {
            let plane = &plane;
            scope.spawn(move || {
                let version = |fields: &str| version(namespace, fields);
                let fleet = Fleet::new(plane, namespace, NODES, &version(before));
                let watcher = fleet.watch();
                let output = fleet.apply(&version(after), &[]);
                assert_eq!(output.status.code(), Some(0), "{namespace}: {}", output_text(&output));
                assert!(
                    output_text(&output).contains("creates two revisions"),
                    "{}",
                    output_text(&output)
                );
                // Any action of the controller would happen within this time.
                thread::sleep(Duration::from_secs(5));
                let seen = watcher.end();
                assert_eq!(seen.deleted.len(), NODES, "{namespace}: each pod is replaced once");
                assert!(seen.most_unavailable <= 1, "{namespace}: {}", seen.most_unavailable);
                let revisions = fleet.revisions();
                let numbers: Vec<i64> = revisions.iter().map(|(_, number, _)| *number).collect();
                assert_eq!(numbers, [1, 2], "{namespace}: {revisions:?}");
                let pod =
                    fleet.json(&["get", "daemonset", "agent"])["spec"]["template"]["spec"].clone();
                let container = &pod["containers"][0];
                let emptied = match namespace {
                    "context" => &container["securityContext"],
                    "hooks" => &container["lifecycle"],
                    _ => &pod["affinity"],
                };
                assert_eq!(*emptied, json!({}), "{namespace}");
                let next = fleet.plan(&version(after));
                assert_eq!(next.status.code(), Some(0), "{namespace}: {}", output_text(&next));
            });
        }
    });
}

/// The template that is live at the release was created by one apply of another tool: the next
/// apply would create another template from it.
#[test]
fn release_and_undo_change_no_other_template() {
    let plane = ControlPlane::start();
    plane.create_nodes(three_zones(4));
    let (_, before, after) = CASES[0];
    let version = |fields: &str| version("released", fields);
    let fleet = Fleet::new(&plane, "released", 4, &version(before));
    let mut run = fleet.start(&version(after), &[]);
    let watcher = fleet.watch();
    wait_until("a pod to be deleted", SOON, || watcher.gone() > 0 || run.has_ended());
    run.kill();
    assert_eq!(fleet.strategy(), "OnDelete", "it is paused");
    let template = || fleet.json(&["get", "daemonset", "agent"])["spec"]["template"].clone();
    let held = template();
    let released = plane.ds_apply(&["release", "released/agent", "--yes"], &[]).run();
    assert_eq!(released.status.code(), Some(0), "{}", output_text(&released));
    assert_eq!((fleet.strategy().as_str(), template()), ("RollingUpdate", held));
    fleet.wait_until_available();
    let undone = plane.ds_apply(&["undo", "released/agent", "--to-revision=1", "--yes"], &[]).run();
    assert_eq!(undone.status.code(), Some(0), "{}", output_text(&undone));
    assert_eq!(fleet.revisions().len(), 2, "{:?}", fleet.revisions());
}
