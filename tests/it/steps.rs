//! Rollouts by steps and domains, as they are shown.

use std::fs;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use testkit::pages::pages;
use testkit::sandbox::{Run, Sandbox};

const KEY: &str = "kube-system/overlay-agent";

/// A file of the example fleet.
fn example(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/fleet");
    root.join(path).to_str().unwrap().to_owned()
}

/// A sandbox with a policy of these settings, in `policy.yaml`.
fn sandbox(spec: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let policy = format!(
        "apiVersion: ds-plan.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {{name: agents}}\n\
         spec: {{selects: {{names: [{KEY}]}}, {spec}}}\n"
    );
    sandbox.write("policy.yaml", &policy);
    sandbox
}

fn flags() -> String {
    let (snapshot, manifest) = (example("cluster.json"), example("manifests/overlay-agent.yaml"));
    format!("--snapshot {snapshot} -f {manifest} --policy policy.yaml")
}

fn planned(sandbox: &Sandbox) -> Value {
    let run = sandbox.ds_plan(&format!("{} -o json", flags()));
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run}"))
}

/// The time that a rehearsal took on the clock of its cluster.
fn lasted(run: &Run) -> SignedDuration {
    let line = run.to_string();
    let (before, _) = line.split_once(" of the cluster's time").unwrap_or_else(|| panic!("{run}"));
    let (_, time) = before.rsplit_once(" nodes: ").unwrap_or_else(|| panic!("{run}"));
    time.parse().unwrap_or_else(|error| panic!("{error}: {run}"))
}

#[test]
fn the_earliest_end_is_near_the_end_of_a_rehearsal() {
    let zone = "topology.kubernetes.io/zone";
    for spec in [
        format!(
            "domains: {{key: {zone}, maxUnavailable: 10%, soak: 2m}}, \
             steps: [{{name: canary, nodes: 3, spread: {zone}, soak: 5m}}]"
        ),
        "steps: [{name: canary, nodes: 1, soak: 1m}, {name: some, nodes: 20%, soak: 3m}]"
            .to_owned(),
    ] {
        let sandbox = sandbox(&spec);
        let plan = planned(&sandbox);
        let time = |pointer: &str| -> Timestamp {
            let time = plan.pointer(pointer).and_then(Value::as_str);
            time.unwrap_or_else(|| panic!("{spec}: {pointer}")).parse().unwrap()
        };
        let forecast = time("/forecast/earliestEnd").duration_since(time("/cluster/observedAt"));
        let run = sandbox.ds_apply(&format!("--rehearse --wait 48h {}", flags()));
        assert_eq!(run.code, Some(0), "{spec}: {run}");
        let off = (lasted(&run) - forecast).abs();
        assert!(off * 4 <= lasted(&run), "{spec}: {forecast:#}, but it took {:#}", lasted(&run));
    }
}

/// The lines of a terminal window.
const FIRST_SCREEN: usize = 40;

/// The three examples, on the recorded fleet: its pod network is not done, one of its nodes is lost,
/// and on another one the log agent does not run.
#[test]
fn the_examples_of_policies_are_planned_and_rehearsed_to_the_end() {
    let sandbox = Sandbox::new();
    let gpu = fs::read_to_string(example("manifests/gpu-device-plugin.yaml")).unwrap();
    let gpu = gpu.replace("type: OnDelete", "type: RollingUpdate").replace(":0.17.1", ":0.18.0");
    sandbox.write("gpu.yaml", &gpu);
    sandbox.write(
        "faults.yaml",
        "apiVersion: ds-plan.dev/v1alpha1\nkind: Faults\napprovals: [{step: others, at: 17h}]\n",
    );
    let shown = "--rehearse --wait 48h --snapshot examples/fleet/cluster.json -f \
                 examples/fleet/manifests/fluent-bit.yaml --policy \
                 examples/policies/log-agent-canary.yaml\n";
    assert!(pages().iter().any(|(_, page)| page.contains(shown)), "the guide has: {shown}");
    let (cni, log) =
        (example("manifests/overlay-agent.yaml"), example("manifests/fluent-bit.yaml"));
    let soak = |step: &str| format!("step {step} soaks until");
    for (manifest, policy, waits) in [
        (
            &*cni,
            "cni-by-zone",
            vec![
                soak("canary"),
                soak("rest, eu-central-1c,"),
                soak("rest, eu-central-1a,"),
                soak("rest, eu-central-1b,"),
            ],
        ),
        (&log, "log-agent-canary", ["watched", "arm", "half"].map(soak).to_vec()),
        (
            "gpu.yaml",
            "gpu-driver",
            vec![
                "step canary waits for a maintenance window".to_owned(),
                soak("canary"),
                "step others is not approved".to_owned(),
            ],
        ),
    ] {
        is_rehearsed_to_the_end(&sandbox, manifest, &format!("../policies/{policy}.yaml"), &waits);
    }
}

fn is_rehearsed_to_the_end(sandbox: &Sandbox, manifest: &str, policy: &str, waits: &[String]) {
    let snapshot = example("cluster.json");
    let flags = format!("--snapshot {snapshot} -f {manifest} --policy {}", example(policy));
    let plan = sandbox.ds_plan(&flags);
    let screen: Vec<&str> = plan.stdout.lines().take(FIRST_SCREEN).map(str::trim).collect();
    for words in ["step 1 ", "step 2 ", "Earliest end "] {
        assert!(screen.iter().any(|line| line.starts_with(words)), "{words}: {plan}");
    }
    let rehearsal = "--rehearse --wait 48h --fault faults.yaml --save after.json";
    let run = sandbox.ds_apply(&format!("{rehearsal} {flags}"));
    assert_eq!(run.code, Some(0), "{run}");
    let waited = run.stdout.lines().filter(|line| line.contains("  waiting: "));
    let waited: Vec<&str> = waited.collect();
    assert_eq!(waited.len(), waits.len(), "{run}");
    for (line, words) in waited.iter().zip(waits) {
        assert!(line.contains(words), "{words}: {line}");
    }
    let json = |flags: &str| -> Value {
        serde_json::from_str(&sandbox.ds_plan(&format!("{flags} -o json")).stdout).unwrap()
    };
    let plan = json(&flags);
    let time = |value: &Value| value.as_str().unwrap().parse::<Timestamp>().unwrap();
    let (end, observed) = (&plan["forecast"]["earliestEnd"], &plan["cluster"]["observedAt"]);
    let forecast = time(end).duration_since(time(observed));
    let off = (lasted(&run) - forecast).abs();
    assert!(off * 4 <= lasted(&run), "{policy}: {forecast:#}, but it took {:#}", lasted(&run));
    let left = json(&flags.replace(&snapshot, "after.json"));
    assert_eq!(left["totals"]["replace"], 0, "{policy}");
}
