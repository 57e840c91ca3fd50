//! Rollouts by steps and domains, as they are shown.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
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
