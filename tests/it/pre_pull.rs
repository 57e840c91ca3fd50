//! Images that are pulled before pods are replaced: the plan, and rehearsals of the example fleet.

use std::path::Path;

use serde_json::{Value, json};

use testkit::sandbox::{Run, Sandbox};

const POLICY: &str = "
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: pulls-first}
spec:
  selects: {names: [logging/fluent-bit]}
  skipUnreadyNodes: {max: 2}
  prePull: {parallel: 4, timeout: 2m}
";

/// One of the examples, by its path in the repository.
fn example(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("examples").join(path).to_str().unwrap().to_owned()
}

fn source(sandbox: &Sandbox) -> String {
    sandbox.write("policy.yaml", POLICY);
    let (snapshot, manifests) = (example("fleet/cluster.json"), example("fleet/manifests"));
    format!("--snapshot {snapshot} -f {manifests} -f policy.yaml logging/fluent-bit")
}

fn rehearse(sandbox: &Sandbox, more: &str) -> Run {
    let source = source(sandbox);
    sandbox.ds_apply(&format!("--rehearse {source} {more}"))
}

/// The position of the first line that contains these words.
fn at(run: &Run, words: &str) -> usize {
    let found = run.stdout.lines().position(|line| line.contains(words));
    found.unwrap_or_else(|| panic!("no `{words}`: {run}"))
}

#[test]
fn the_plan_says_what_is_pulled() {
    let sandbox = Sandbox::new();
    let source = source(&sandbox);
    let run = sandbox.ds_plan(&source);
    assert!(run.stdout.contains("    Pre-pull: 1 image, 4 nodes at a time"), "{run}");
    let run = sandbox.ds_plan(&format!("{source} -o json"));
    let plan: Value = serde_json::from_str(&run.stdout).unwrap();
    let daemon_sets = plan["daemonSets"].as_array().unwrap();
    let one = daemon_sets.iter().find(|it| it["name"] == "fluent-bit").unwrap();
    let pre_pull = &one["prePull"];
    assert_eq!(pre_pull["images"][0], "registry.example.com/logging/fluent-bit:4.0.7");
    assert_eq!((&pre_pull["parallel"], &pre_pull["timeoutSeconds"]), (&4.into(), &120.into()));
    // Nodes without a pod have nothing to lose.
    assert_eq!(pre_pull["nodes"], one["totals"]["replace"], "{pre_pull}");
    for format in ["markdown", "html"] {
        let run = sandbox.ds_plan(&format!("{source} -o {format}"));
        assert!(run.stdout.contains("pre-pull: 1 image, 4 nodes at a time"), "{format}: {run}");
    }
    // A template with the same images.
    let other = source.replace("logging/fluent-bit", "monitoring/node-exporter");
    assert!(!sandbox.ds_plan(&other).stdout.contains("Pre-pull"));
}

#[test]
fn a_rehearsal_pulls_first() {
    let sandbox = Sandbox::new();
    let run = rehearse(&sandbox, "");
    assert_eq!(run.code, Some(0), "{run}");
    assert!(at(&run, "images pulled after") < at(&run, "applying"), "{run}");
    let node = "worker-c-08";
    let pulled = at(&run, &format!("{node}: images pulled"));
    assert!(pulled < at(&run, &format!("{node}: deleting pod")), "{run}");
}

#[test]
fn an_image_that_is_missing_on_some_machines_stops_before_any_delete() {
    let sandbox = Sandbox::new();
    let faults = example("faults/image-never-pulls.yaml");
    let run = rehearse(&sandbox, &format!("--fault {faults} --save after.json"));
    assert_eq!(run.code, Some(4), "{run}");
    let image = "registry.example.com/logging/fluent-bit:4.0.7 not pulled after";
    assert!(run.stdout.contains(&format!("arm-a-01: {image}")), "{run}");
    assert!(run.stdout.contains("to resume: make the images available"), "{run}");
    // More machines than may be skipped: those that were through before are all that has begun.
    assert!(!run.stdout.contains("arm-a-01: deleting pod"), "{run}");
    assert!(run.stdout.contains("images could not be pulled to"), "{run}");
}

/// Where `ds-apply` is the controller, it creates the new pods and the pullers.
#[test]
fn with_the_in_process_controller_images_come_first_too() {
    let sandbox = Sandbox::new();
    let write = |tag: u32| {
        let manifest = format!(
            "
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: mine, namespace: logging}}
spec:
  selector: {{matchExpressions: [{{key: app, operator: In, values: [mine]}}]}}
  template:
    metadata: {{labels: {{app: mine}}}}
    spec:
      nodeSelector: {{kubernetes.io/arch: arm64}}
      initContainers: [{{name: i, image: 'r.example/setup:1'}}]
      containers: [{{name: c, image: 'r.example/agent:{tag}'}}]
---
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {{name: p}}
spec:
  selects: {{names: [logging/mine]}}
  managedBy: ds-apply
  minReadySeconds: 0
  prePull: {{parallel: 2}}
"
        );
        sandbox.write("mine.yaml", manifest);
    };
    write(1);
    let snapshot = example("fleet/cluster.json");
    let created =
        sandbox.ds_apply(&format!("--rehearse --snapshot {snapshot} -f mine.yaml --save 1.json"));
    assert_eq!(created.code, Some(0), "{created}");
    // Nothing is replaced, so nothing is pulled before.
    assert!(!created.stdout.contains("pulling"), "{created}");
    write(2);
    let run = sandbox.ds_apply("--rehearse --snapshot 1.json -f mine.yaml --save 2.json");
    assert_eq!(run.code, Some(0), "{run}");
    assert!(run.stdout.contains("Pre-pull: 2 images, 2 nodes at a time"), "{run}");
    for node in ["arm-a-01", "arm-c-02"] {
        let pulled = at(&run, &format!("{node}: images pulled"));
        assert!(pulled < at(&run, &format!("{node}: deleting pod")), "{run}");
    }
    let after = std::fs::read_to_string(sandbox.path("2.json")).unwrap();
    assert!(!after.contains("ds-plan.dev/pre-pull"), "all pullers are removed");
}

/// A run that was killed while it pulled has written nothing: if git is put back, nothing changes.
#[test]
fn what_a_killed_run_has_left_is_removed_though_nothing_changes() {
    let sandbox = Sandbox::new();
    let done = rehearse(&sandbox, "--save done.json");
    assert_eq!(done.code, Some(0), "{done}");
    let text = std::fs::read_to_string(sandbox.path("done.json")).unwrap();
    let mut recording: Value = serde_json::from_str(&text).unwrap();
    recording["items"].as_array_mut().unwrap().push(json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "ds-plan-pre-pull-left",
            "namespace": "logging",
            "uid": "left",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"ds-plan.dev/pre-pull": "fluent-bit"},
            "ownerReferences": [{
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "name": "ds-plan-fluent-bit",
                "uid": "lease",
                "controller": true,
            }],
        },
        "spec": {"nodeName": "worker-c-08", "containers": [{"name": "image-0", "image": "r.example/other:1"}]},
        "status": {"phase": "Pending"},
    }));
    sandbox.write("left.json", recording.to_string());
    let source = source(&sandbox);
    let source = source.replace(&example("fleet/cluster.json"), "left.json");
    let plan = sandbox.ds_plan(&source);
    assert!(plan.stdout.contains("nothing to do"), "{plan}");
    let run = sandbox.ds_apply(&format!("--rehearse {source} --save after.json"));
    assert_eq!(run.code, Some(0), "{run}");
    let after = std::fs::read_to_string(sandbox.path("after.json")).unwrap();
    let after: Value = serde_json::from_str(&after).unwrap();
    let is_left = |it: &&Value| it["metadata"]["uid"] == "left";
    let left = after["items"].as_array().unwrap().iter().find(is_left);
    let is_deleted = |it: &Value| it["metadata"]["deletionTimestamp"].is_string();
    assert!(left.is_none_or(is_deleted), "{left:?} {run}");
}
