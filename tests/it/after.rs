//! `after` of policies: a DaemonSet begins when those that come before it are done.

use std::fs;

use serde_json::{Value, json};
use testkit::fixture::{AGENT, cluster};
use testkit::sandbox::{Run, Sandbox};

/// Every new pod of `b` crashes.
const B_CRASHES: &str = "\
apiVersion: ds-plan.dev/v1alpha1
kind: Faults
images:
  - {fault: crashLoops, image: 'registry.example/b:2', after: 1s}
";

/// `a` comes after `b`, `b` after `c`; nothing comes before or after `d`.
const POLICIES: &str = "\
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: a}
spec: {selects: {names: [logging/a]}, after: [logging/b]}
---
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: b}
spec: {selects: {names: [logging/b]}, after: [logging/c]}
";

fn manifest(name: &str, version: u32) -> String {
    AGENT.replace("agent:1", &format!("agent:{version}")).replace("agent", name)
}

/// The four DaemonSets run version 1; the source has version 2.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with(&[
        ("cluster.json", &cluster().to_string()),
        ("deploy/policies.yaml", POLICIES),
        ("faults.yaml", B_CRASHES),
    ]);
    for name in ["a", "b", "c", "d"] {
        sandbox.write(&format!("deploy/{name}.yaml"), manifest(name, 1));
    }
    let run = sandbox.ds_apply("--rehearse --snapshot cluster.json --save before.json -f deploy");
    assert_eq!(run.code, Some(0), "{run}");
    for name in ["a", "b", "c", "d"] {
        sandbox.write(&format!("deploy/{name}.yaml"), manifest(name, 2));
    }
    sandbox
}

fn apply(sandbox: &Sandbox, flags: &str) -> Run {
    let flags = format!("--rehearse --seed 1 --save after.json {flags}");
    sandbox.ds_apply(&if flags.contains("--snapshot") {
        flags
    } else {
        format!("{flags} --snapshot before.json")
    })
}

fn objects(sandbox: &Sandbox, file: &str) -> Value {
    serde_json::from_slice(&fs::read(sandbox.path(file)).unwrap()).unwrap()
}

/// The versions of the live DaemonSets after a run, in order of their names.
fn versions(sandbox: &Sandbox) -> String {
    let cluster = objects(sandbox, "after.json");
    let items = cluster["items"].as_array().unwrap();
    let mut live: Vec<(String, String)> = items
        .iter()
        .filter(|it| it["kind"] == "DaemonSet")
        .map(|it| {
            let image = it.pointer("/spec/template/spec/containers/0/image").unwrap();
            let version = image.as_str().unwrap().rsplit(':').next().unwrap();
            (it["metadata"]["name"].as_str().unwrap().to_owned(), version.to_owned())
        })
        .collect();
    live.sort();
    live.into_iter().map(|(name, version)| name + &version).collect::<Vec<_>>().join(" ")
}

#[test]
fn daemon_sets_are_applied_after_those_that_come_before_them() {
    let sandbox = sandbox();
    let run = apply(&sandbox, "-f deploy");
    assert_eq!(run.code, Some(0), "{run}");
    let done = |name| run.stdout.find(&format!("logging/{name}  done")).unwrap();
    assert!(done("c") < done("b") && done("b") < done("a") && done("a") < done("d"), "{run}");
    assert_eq!(versions(&sandbox), "a2 b2 c2 d2", "{run}");
    let plan = sandbox.ds_plan("--snapshot before.json -f deploy").stdout;
    assert_eq!(plan.matches("    After logging/").count(), 2, "{plan}");
}

#[test]
fn those_that_come_after_an_aborted_one_do_not_begin() {
    let words = "logging/a does not begin: it comes after logging/b, which was aborted\n";
    for (flags, want) in [("", "a1 b1 c2 d1"), ("--keep-going", "a1 b1 c2 d2")] {
        let sandbox = sandbox();
        let run = apply(&sandbox, &format!("-f deploy --fault faults.yaml {flags}"));
        assert_eq!(run.code, Some(4), "{run}");
        assert_eq!(versions(&sandbox), want, "{run}");
        assert!(run.stderr.contains(words), "{run}");

        // As it comes before others, another run finds out by the cluster.
        fs::copy(sandbox.path("after.json"), sandbox.path("aborted.json")).unwrap();
        let alone = apply(&sandbox, "--snapshot aborted.json -f deploy logging/a");
        assert_eq!(alone.code, Some(8), "{alone}");
        assert_eq!(versions(&sandbox), want, "{alone}");
        assert!(alone.stderr.contains(words), "{alone}");

        sandbox.write("deploy/b.yaml", manifest("b", 3));
        let fixed = apply(&sandbox, "--snapshot aborted.json -f deploy");
        assert_eq!(fixed.code, Some(0), "{fixed}");
        assert_eq!(versions(&sandbox), "a2 b3 c2 d2", "{fixed}");
    }
}

#[test]
fn a_predecessor_that_is_not_selected_must_have_an_empty_plan() {
    let sandbox = sandbox();
    for (name, code, want) in [
        ("logging/a", 8, "logging/a does not begin: it comes after logging/c, which is not rolled"),
        ("logging/b", 8, "logging/b does not begin: it comes after logging/c, which is not rolled"),
        ("logging/c", 0, ""),
        ("logging/d", 0, ""),
    ] {
        let run = apply(&sandbox, &format!("-f deploy {name}"));
        assert_eq!(run.code, Some(code), "{name}: {run}");
        assert!(run.stderr.contains(want), "{name}: {run}");
        assert_eq!(versions(&sandbox) == "a1 b1 c1 d1", code == 8, "{name}: {run}");
    }
    // With a predecessor done, the next one begins.
    fs::remove_file(sandbox.path("after.json")).unwrap();
    let run = apply(&sandbox, "-f deploy logging/c");
    assert_eq!(run.code, Some(0), "{run}");
    fs::copy(sandbox.path("after.json"), sandbox.path("before.json")).unwrap();
    let run = apply(&sandbox, "-f deploy logging/b");
    assert_eq!(run.code, Some(0), "{run}");
    assert_eq!(versions(&sandbox), "a1 b2 c2 d1", "{run}");
}

/// The predecessor was applied with the id, too: without it, it would seem to have changed.
#[test]
fn one_that_is_selected_alone_begins_after_those_of_the_same_source_id() {
    let sandbox = sandbox();
    let id = "-f deploy --source-id prod";
    for name in ["b", "c"] {
        sandbox.write(&format!("deploy/{name}.yaml"), manifest(name, 1));
    }
    let whole = apply(&sandbox, &format!("{id} logging/b logging/c"));
    assert_eq!(whole.code, Some(0), "{whole}");
    let alone = apply(&sandbox, &format!("{id} logging/a --snapshot after.json"));
    assert_eq!(alone.code, Some(0), "{alone}");
    assert!(versions(&sandbox).starts_with("a2"), "{alone}");
}

/// Cases: a change of the live predecessor, and the reason why `a` does not begin.
#[test]
fn a_predecessor_outside_of_the_source_is_judged_by_the_live_object() {
    type Change = fn(&mut Value);
    let cases: [(Change, Option<&str>); 4] = [
        (|_| {}, None),
        (|live| live["metadata"]["generation"] = 9.into(), Some("is not rolled out")),
        (
            |live| {
                let paused = json!({
                    "state": "paused", "planDigest": "sha256:1", "since": "2026-01-01T00:00:00Z",
                    "declared": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
                });
                live["metadata"]["annotations"]["ds-plan.dev/rollout"] = paused.to_string().into();
                live["metadata"]["managedFields"] = json!([]);
                live["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
            },
            Some("is paused"),
        ),
        (
            |live| live["metadata"]["name"] = "other".into(),
            Some("is waited for: it exists neither in the source nor in the cluster"),
        ),
    ];
    for (change, want) in cases {
        let sandbox = sandbox();
        fs::remove_file(sandbox.path("deploy/b.yaml")).unwrap();
        fs::remove_file(sandbox.path("deploy/c.yaml")).unwrap();
        let policies = POLICIES.replace("logging/c]", "]");
        sandbox.write("deploy/policies.yaml", policies.replace(", after: []", ""));
        let mut cluster = objects(&sandbox, "before.json");
        let items = cluster["items"].as_array_mut().unwrap();
        let mut named = items.iter_mut().filter(|it| it["metadata"]["name"] == "b");
        change(named.find(|it| it["kind"] == "DaemonSet").unwrap());
        sandbox.write("before.json", cluster.to_string());
        let run = apply(&sandbox, "-f deploy");
        let words = want.map(|want| {
            format!("logging/a does not begin: it comes after logging/b, which {want}\n")
        });
        assert_eq!(run.code, Some(if want.is_some() { 8 } else { 0 }), "{want:?}: {run}");
        assert!(words.is_none_or(|words| run.stderr.contains(&words)), "{want:?}: {run}");
        let image = if want.is_some() { "a1" } else { "a2" };
        assert!(versions(&sandbox).starts_with(image), "{want:?}: {run}");
        assert!(versions(&sandbox).contains("d2"), "{want:?}: {run}");
    }
}

/// The policies of the examples are for DaemonSets of the example fleet.
#[test]
fn the_examples_of_policies_select_daemon_sets_of_the_fleet() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let path = |name: &str| root.join(name).to_str().unwrap().to_owned();
    for (name, selected, steps) in [
        ("cni-by-zone", "kube-system/overlay-agent", vec!["canary", "rest"]),
        ("log-agent-canary", "logging/fluent-bit", vec!["watched", "arm", "half", "rest"]),
        ("gpu-driver", "gpu/gpu-device-plugin", vec![]),
    ] {
        let sandbox = Sandbox::new();
        let run = sandbox.ds_plan(&format!(
            "--snapshot {} -f {} --policy {} -o json",
            path("fleet/cluster.json"),
            path("fleet/manifests"),
            path(&format!("policies/{name}.yaml")),
        ));
        let plan: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run}"));
        let all = plan["daemonSets"].as_array().unwrap();
        let mut paced = all.iter().filter(|one| one["policy"] == name);
        let one = paced.next().unwrap_or_else(|| panic!("{run}"));
        let key = format!("{}/{}", one["namespace"], one["name"]).replace('"', "");
        assert_eq!((key.as_str(), paced.next()), (selected, None));
        let found = one["steps"].as_array().cloned().unwrap_or_default();
        let found: Vec<&str> = found.iter().map(|step| step["name"].as_str().unwrap()).collect();
        assert_eq!(found, steps, "{name}");
    }
}
