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

/// A rollout that waits after its canary, and what the cluster knows of it without a manifest.
#[test]
fn status_explain_and_history_show_the_steps_of_a_live_rollout() {
    let sandbox = sandbox(
        "steps: [{name: canary, nodes: 1, soak: 1h}, {name: half, nodes: 50%, approve: true}]",
    );
    let run = sandbox.ds_apply(&format!("--rehearse --save after.json {}", flags()));
    assert_eq!(run.code, Some(8), "{run}");
    let shown = |command: &str, words: &[&str]| {
        let run = sandbox.ds_plan(&format!("{command} --snapshot after.json"));
        assert_eq!(run.code, Some(0), "{command}: {run}");
        for words in words {
            assert!(run.stdout.contains(words), "{command}: {words}: {run}");
        }
        run.stdout
    };
    let status = format!("status {KEY}");
    let without = shown(&status, &["waiting, begun by ", "step canary soaks until"]);
    assert!(!without.contains("by policy"), "{without}");
    let words = [
        "by policy agents:\n",
        "    step canary: soaking, 1 of 1 node updated\n",
        "    step half: not begun, 1 of 20 nodes updated\n",
        "    step rest: not begun, 1 of 40 nodes updated\n",
        "    waiting: step canary soaks until 2026-07-14T10:1",
        "    step half: approvals could not be read\n",
    ];
    shown(&format!("{status} --policy policy.yaml"), &words);
    // The policy of a source.
    let source = format!("-f {} --policy policy.yaml", example("manifests/overlay-agent.yaml"));
    shown(&format!("{status} {source}"), &words);
    let explain = format!("explain {KEY} gpu-a-01");
    let paused =
        ["! it waits: runs revision 3\n    waiting, begun by ", "the next `ds-apply` continues"];
    let without = shown(&explain, &paused);
    assert!(!without.contains("in wave") && !without.contains("deleted"), "{without}");
    let words = [" (half)", "waiting: step canary soaks until 2026-07-14T10:1"];
    let half = planned(&sandbox)["daemonSets"][0]["waves"][1]["nodes"][0].clone();
    let explain = format!("explain {KEY} {} --policy policy.yaml", half.as_str().unwrap());
    shown(&explain, &words);
    let history =
        shown(&format!("history {KEY}"), &["rollout of 4: waiting since 2026-07-14T09:14"]);
    assert!(history.contains("    step canary: updated at 2026-07-14T09:14"), "{history}");
    assert!(history.contains("    waiting: step canary soaks until"), "{history}");
}

/// Rows of a terminal with 100 columns.
fn first_screen(text: &str) -> String {
    let mut rows = 0;
    let fits = |line: &&str| {
        rows += line.chars().count().div_ceil(100).max(1);
        rows <= 24
    };
    text.lines().take_while(fits).collect::<Vec<_>>().join("\n")
}

/// What takes hours is not below a page of fields.
#[test]
fn the_first_screen_of_each_example_has_its_steps_and_its_end() {
    let sandbox = Sandbox::new();
    let fleet = format!("--snapshot {} -f {}", example("cluster.json"), example("manifests"));
    for (name, selected, steps) in [
        ("cni-by-zone", "kube-system/overlay-agent", vec!["canary", "rest"]),
        ("log-agent-canary", "logging/fluent-bit", vec!["watched", "arm", "half", "rest"]),
        ("gpu-driver", "gpu/gpu-device-plugin", vec!["canary", "others"]),
    ] {
        let policy = format!("--policy {}", example(&format!("../policies/{name}.yaml")));
        let runs =
            if name == "gpu-driver" {
                // Its pods are replaced by `roll`.
                let snapshot = example("cluster.json");
                vec![sandbox.ds_apply(&format!(
                    "roll {selected} --rehearse --snapshot {snapshot} {policy}"
                ))]
            } else {
                ["text", "markdown"]
                    .map(|format| sandbox.ds_plan(&format!("{fleet} {policy} -o {format}")))
                    .into()
            };
        for run in runs {
            let screen = first_screen(&run.stdout);
            for (nth, step) in (1..).zip(&steps) {
                assert!(screen.contains(&format!("step {nth} {step} ")), "{name} {step}: {screen}");
            }
            assert!(screen.contains("Earliest end "), "{name}: {screen}");
        }
    }
}
