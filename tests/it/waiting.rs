//! Runs that leave a rollout waiting, and the schedule that comes again (`--resume`).

use std::fs;

use serde_json::{Value, json};
use testkit::fixture::{AGENT, cluster};
use testkit::sandbox::{Run, Sandbox};

/// `soaks` has a canary, `after` comes after it, `closed` has a window two hours after the times in the
/// cluster, `asks` an approval; `free` waits for nothing.
const POLICIES: &str = "\
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: soaks}
spec: {selects: {names: [logging/soaks]}, steps: [{name: canary, nodes: 1, soak: 30m}]}
---
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: after}
spec: {selects: {names: [logging/after]}, after: [logging/soaks]}
---
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: asks}
spec: {selects: {names: [logging/asks]}, steps: [{name: all, nodes: 100%, approve: true}]}
---
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: closed}
spec: {selects: {names: [logging/closed]}, windows: [{schedule: '0 2 * * *', duration: 1h}]}
";

const NAMES: [&str; 5] = ["after", "asks", "closed", "free", "soaks"];

/// Approves the step of `asks` at once.
const APPROVALS: &str = "\
apiVersion: ds-plan.dev/v1alpha1
kind: Faults
approvals:
  - {daemonSet: logging/asks, step: all}
";

fn manifest(name: &str, version: u32) -> String {
    AGENT.replace("agent:1", &format!("agent:{version}")).replace("agent", name)
}

/// All DaemonSets run version 1; the source has version 2.
fn sandbox() -> Sandbox {
    let files = [("cluster.json", &*cluster().to_string()), ("approvals.yaml", APPROVALS)];
    let sandbox = Sandbox::with(&files);
    write(&sandbox, &NAMES, 1);
    let run = sandbox.ds_apply("--rehearse --snapshot cluster.json --save after.json -f deploy");
    assert_eq!(run.code, Some(0), "{run}");
    sandbox.write("deploy/policies.yaml", POLICIES);
    write(&sandbox, &NAMES, 2);
    sandbox
}

fn write(sandbox: &Sandbox, names: &[&str], version: u32) {
    for name in names {
        sandbox.write(&format!("deploy/{name}.yaml"), manifest(name, version));
    }
}

/// A run on the cluster that the last one has left.
fn again(sandbox: &Sandbox, flags: &str) -> Run {
    fs::copy(sandbox.path("after.json"), sandbox.path("before.json")).unwrap();
    let line = "--rehearse --snapshot before.json --save after.json -f deploy";
    sandbox.ds_apply(&format!("{line} {flags}"))
}

/// The versions of the live templates, in order of the names.
fn versions(sandbox: &Sandbox) -> [u32; 5] {
    let text = fs::read(sandbox.path("after.json")).unwrap();
    let cluster: Value = serde_json::from_slice(&text).unwrap();
    NAMES.map(|name| {
        let is_it = |it: &&Value| it["kind"] == "DaemonSet" && it["metadata"]["name"] == name;
        let live = cluster["items"].as_array().unwrap().iter().find(is_it).unwrap();
        let image = live.pointer("/spec/template/spec/containers/0/image").unwrap();
        image.as_str().unwrap().rsplit(':').next().unwrap().parse().unwrap()
    })
}

#[test]
fn a_schedule_resumes_what_waits_and_starts_nothing_else() {
    let sandbox = sandbox();
    // Before anybody has applied them, there is nothing to resume.
    let none = again(&sandbox, "--resume --wait 48h");
    assert_eq!((none.code, versions(&sandbox)), (Some(0), [1; 5]), "{none}");

    let first = again(&sandbox, "");
    assert_eq!((first.code, versions(&sandbox)), (Some(9), [1, 1, 1, 2, 1]), "{first}");
    for words in [
        "logging/asks  waiting: step all is not approved",
        "logging/closed  waiting: step rest waits for a maintenance window",
        "logging/soaks  waiting: step canary soaks until",
        "logging/after does not begin: it comes after logging/soaks, which waits",
    ] {
        assert!(first.to_string().contains(words), "{words}: {first}");
    }

    // Commits that nobody has applied are not started.
    write(&sandbox, &["free", "closed"], 3);
    let waits = again(&sandbox, "--resume");
    assert_eq!((waits.code, versions(&sandbox)), (Some(9), [1, 1, 1, 2, 1]), "{waits}");
    write(&sandbox, &["closed"], 2);
    let done = again(&sandbox, "--resume --wait 48h --fault approvals.yaml");
    assert_eq!((done.code, versions(&sandbox)), (Some(0), [2, 2, 2, 2, 2]), "{done}");

    // What is done is not kept up.
    write(&sandbox, &["closed", "free"], 1);
    let done = again(&sandbox, "--resume --wait 48h");
    assert_eq!((done.code, versions(&sandbox)), (Some(0), [2; 5]), "{done}");
}

#[test]
fn the_events_say_what_each_one_waits_for() {
    let sandbox = sandbox();
    let run = again(&sandbox, "-o json --success-exit-codes 8,9");
    assert_eq!(run.code, Some(0), "{run}");
    assert!(run.stderr.contains("exit code 9 is a success (--success-exit-codes)"), "{run}");
    let events: Vec<Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ended = |name: &str| {
        let is_it = |it: &&Value| it["event"] == "ended" && it["daemonSet"] == name;
        events.iter().find(is_it).unwrap_or_else(|| panic!("{name}: {run}")).clone()
    };
    let after = ended("logging/after");
    let want = json!([{"kind": "order", "daemonSet": "logging/soaks"}]);
    assert_eq!((&after["exitCode"], &after["waitsFor"]), (&json!(8), &want), "{after}");
    let words = "does not begin: it comes after logging/soaks, which waits";
    assert_eq!(after["message"], words);
    assert!(!run.stderr.contains(words), "{run}");
    let asks = ended("logging/asks");
    let want = json!([{"kind": "approval", "step": "all"}]);
    assert_eq!((&asks["exitCode"], &asks["waitsFor"]), (&json!(9), &want), "{asks}");
    let soaks = &ended("logging/soaks")["waitsFor"][0];
    assert_eq!(soaks["kind"], "soak");
    soaks["until"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    assert_eq!(events.last().unwrap()["exitCode"], 9, "the code of the outcome");
}

#[test]
fn only_codes_of_waits_are_successes() {
    let sandbox = sandbox();
    for (codes, want) in [("8", 9), ("9", 0), ("7,9", 0)] {
        let run = again(&sandbox, &format!("--success-exit-codes {codes}"));
        assert_eq!(run.code, Some(want), "{codes}: {run}");
    }
    let run = again(&sandbox, "--success-exit-codes 4");
    assert_eq!(run.code, Some(64), "{run}");
}
