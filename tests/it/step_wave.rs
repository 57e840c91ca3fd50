//! `ds-apply step --wave`: one domain of one step after the other, by the numbers that the plan
//! shows. Also `roll` and `step` after a failure.

use serde_json::json;
use testkit::fixture::{AGENT, cluster};
use testkit::sandbox::{Run, Sandbox};

const POLICY: &str = "\
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: agents}
spec:
  selects: {names: [logging/agent]}
  domains: {key: zone, first: [b]}
  steps: [{name: canary, nodes: {names: [b-1]}, soak: 10m}]
";

/// Zones `a` and `b` with three nodes each, and `c` with one; the template is newer than all pods of
/// a DaemonSet that declares `OnDelete`. The policy is in `policy.yaml`.
fn sandbox(policy: &str) -> Sandbox {
    let mut cluster = cluster();
    let items = cluster["items"].as_array_mut().unwrap();
    let model = items.remove(0);
    items.retain(|item| item["kind"] != "Node");
    for (zone, number) in [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2), ("b", 3), ("c", 1)] {
        let (mut node, name) = (model.clone(), format!("{zone}-{number}"));
        node["metadata"]["name"] = json!(name);
        node["metadata"]["uid"] = json!(format!("uid-{name}"));
        node["metadata"]["labels"] = json!({"zone": zone, "kubernetes.io/hostname": name});
        items.push(node);
    }
    let sandbox = Sandbox::with(&[("cluster.json", &cluster.to_string()), ("policy.yaml", policy)]);
    for (version, before, after) in [(1, "cluster", "first"), (2, "first", "now")] {
        let strategy = if version == 1 { "RollingUpdate" } else { "OnDelete" };
        let declared = format!("spec:\n  updateStrategy: {{type: {strategy}}}\n  selector");
        let manifest = AGENT.replacen("spec:\n  selector", &declared, 1);
        let manifest = manifest.replace("agent:1", &format!("agent:{version}"));
        sandbox.write("agent.yaml", manifest);
        let flags = format!("--snapshot {before}.json --save {after}.json -f agent.yaml");
        let run = sandbox.ds_apply(&format!("--rehearse {flags}"));
        assert_eq!(run.code, Some(0), "{run}");
    }
    sandbox
}

/// Replaces the pods of a wave in the last state, which becomes the last one.
fn step(sandbox: &Sandbox, flags: &str) -> Run {
    let files = "--snapshot now.json --save now.json --policy policy.yaml";
    sandbox.ds_apply(&format!("step logging/agent --rehearse --seed 1 {files} {flags}"))
}

/// The nodes whose pods a run has replaced, in order.
fn replaced(run: &Run) -> Vec<String> {
    let deletes = run.stdout.lines().filter_map(|line| {
        let (before, _) = line.split_once(": deleting pod ")?;
        Some(before.rsplit_once(' ')?.1.to_owned())
    });
    deletes.collect()
}

/// The lines of the waves in the plan of a run.
fn waves(run: &Run) -> Vec<String> {
    let lines = run.stdout.lines().map(str::trim).filter(|line| line.starts_with("wave "));
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn waves_keep_their_numbers_from_the_first_to_the_last() {
    let sandbox = sandbox(POLICY);
    let whole = "roll logging/agent --rehearse --snapshot now.json --policy policy.yaml";
    let all = waves(&sandbox.ds_apply(whole));
    let starts: Vec<&str> = all.iter().map(|line| line.split(" node").next().unwrap()).collect();
    assert_eq!(
        starts,
        ["wave 1 canary, b 1", "wave 2 rest, b 2", "wave 3 rest, a 3", "wave 4 rest, c 1"]
    );
    for (number, nodes) in [
        (1, vec!["b-1"]),
        (2, vec!["b-2", "b-3"]),
        (3, vec!["a-1", "a-2", "a-3"]),
        (4, vec!["c-1"]),
    ] {
        let wait = if number == 2 { "--wait 1h" } else { "" };
        let run = step(&sandbox, &format!("--wave {number} {wait}"));
        assert_eq!(
            (run.code, replaced(&run)),
            (Some(0), nodes.into_iter().map(str::to_owned).collect()),
            "{run}"
        );
        let [shown] = &waves(&run)[..] else { panic!("{run}") };
        assert!(shown.starts_with(starts[number - 1]), "{shown}");
    }
    // All pods are up to date.
    let run = step(&sandbox, "--wave 4");
    assert_eq!(run.code, Some(0), "{run}");
    assert!(run.stdout.contains("Plan: nothing to do"), "{run}");
}

#[test]
fn only_a_wave_that_comes_next_is_replaced() {
    let sandbox = sandbox(POLICY);
    let refused = |flags: &str, code: i32, words: &[&str]| {
        let run = step(&sandbox, flags);
        assert_eq!((run.code, replaced(&run).len()), (Some(code), 0), "{flags}: {run}");
        for words in words {
            assert!(run.to_string().contains(words), "{flags}: {words}: {run}");
        }
    };
    let after = "wave 3 (rest, a) of logging/agent comes after wave 1 (canary, b)";
    refused("--wave 3", 6, &[after, "replace that one first"]);
    refused(
        "--wave 9",
        5,
        &["the plan of logging/agent has no wave 9", "1 (canary, b), 2 (rest, b)"],
    );
    assert_eq!(replaced(&step(&sandbox, "--wave 1")), ["b-1"]);
    // A number that was right before: it is not that of another wave now.
    refused("--wave 1", 5, &["has no wave 1", "waves that are left: 2 (rest, b), 3 (rest, a)"]);
    refused("--wave 2", 8, &["waiting: step canary soaks until "]);
    refused("--wave 3", 8, &["waiting: step canary soaks until "]);
}

#[test]
fn a_wave_waits_for_its_window_and_its_approval() {
    for (rule, setting, code, words) in [
        (
            "a closed window",
            "windows: [{schedule: '0 2 * * *', duration: 3h}]\n  steps: [{name: canary, nodes: 1}]",
            8,
            "step canary waits for a maintenance window, the next one opens at ",
        ),
        (
            "no approval",
            "steps: [{name: canary, nodes: 1, approve: true}]",
            9,
            "to approve: ds-apply approve logging/agent canary",
        ),
    ] {
        let before = POLICY.find("  domains").unwrap();
        let sandbox = sandbox(&format!("{}  {setting}\n", &POLICY[..before]));
        let run = step(&sandbox, "--wave 1");
        assert_eq!((run.code, replaced(&run).len()), (Some(code), 0), "{rule}: {run}");
        assert!(run.stdout.contains(words), "{rule}: {run}");
    }
}

/// The file is the only source of policies.
#[test]
fn a_policy_that_does_not_select_the_daemon_set_is_reported() {
    let words = "warning: no policy of --policy selects logging/agent";
    let sandbox = sandbox(&POLICY.replace("logging/agent", "logging/agnet"));
    let roll = "roll logging/agent --rehearse --seed 1 --snapshot now.json";
    for (run, warned) in [
        (step(&sandbox, "--count 1"), true),
        (sandbox.ds_apply(&format!("{roll} --policy policy.yaml")), true),
        (sandbox.ds_apply(roll), false),
        (sandbox.ds_apply(&format!("{} --policy policy.yaml", roll.replace("roll", "undo"))), true),
    ] {
        assert_eq!(run.code, Some(0), "{run}");
        assert_eq!(run.stderr.contains(words), warned, "{run}");
    }
    sandbox.write("policy.yaml", POLICY.replace("RolloutPolicy", "Rolloutpolicy"));
    let run = sandbox.ds_apply(&format!("{roll} --policy policy.yaml"));
    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stderr.contains("policy.yaml:1:1: unknown kind `Rolloutpolicy`"), "{run}");
}

/// A fault, in `faults.yaml`.
fn write_fault(sandbox: &Sandbox, fault: &str) {
    let head = "apiVersion: ds-plan.dev/v1alpha1\nkind: Faults";
    sandbox.write("faults.yaml", format!("{head}\n{fault}\n"));
}

/// Checks the exit code of a run, and on how many nodes it replaced the pod in the last state, which
/// becomes the last one. Returns its output.
fn ends(sandbox: &Sandbox, command: &str, code: i32, nodes: usize) -> String {
    let files = "--rehearse --seed 1 --snapshot now.json --save now.json";
    let run = sandbox.ds_apply(&format!("{command} {files}"));
    assert_eq!((run.code, replaced(&run).len()), (Some(code), nodes), "{command}: {run}");
    run.to_string()
}

/// Also for a schedule of `roll`: without `--retry`, the template is replaced on no further node.
#[test]
fn a_template_whose_roll_failed_needs_retry() {
    let sandbox = sandbox(POLICY);
    write_fault(&sandbox, "images: [{fault: neverPulls, image: 'registry.example/agent:2'}]");
    let run = |flags: &str, code: i32, nodes: usize| {
        // The pod that has failed does not use up the budget, which would be another guard.
        let pace = "--max-unavailable 2 --fault faults.yaml";
        ends(&sandbox, &format!("{flags} {pace}"), code, nodes)
    };
    run("roll logging/agent", 4, 1);
    for again in ["roll logging/agent", "step logging/agent --count 2"] {
        let refused = run(again, 6, 0);
        assert!(refused.contains("the rollout of this template failed before"), "{refused}");
        assert!(refused.contains("--retry"), "{refused}");
    }
    // The pod that has failed is tried, and no further node.
    run("roll logging/agent --retry", 4, 0);
    run("step logging/agent --count 2 --retry", 4, 0);
}

/// Also if the failure came last: no pod is outdated any more, and the schedule must not be green.
#[test]
fn a_template_that_fails_on_its_last_node_needs_retry_too() {
    let sandbox = sandbox(&POLICY[..POLICY.find("  domains").unwrap()]);
    let fault = "{fault: neverPulls, image: 'registry.example/agent:2', nodes: {names: [c-1]}}";
    write_fault(&sandbox, &format!("images: [{fault}]"));
    let roll = |flags: &str, code: i32, nodes: usize| {
        let all = "roll logging/agent --max-unavailable 7 --ramp none --fault faults.yaml";
        ends(&sandbox, &format!("{all} {flags}"), code, nodes)
    };
    roll("", 4, 7);
    let refused = roll("", 6, 0);
    assert!(refused.contains("the rollout of this template failed before"), "{refused}");
    ends(&sandbox, "step logging/agent --count 1", 6, 0);
    roll("--retry", 4, 0);
}

/// The gates are asked again, and once they pass, that is the end.
#[test]
fn a_template_whose_last_gate_failed_needs_retry_too() {
    let head = &POLICY[..POLICY.find("  domains").unwrap()];
    let sandbox = sandbox(&format!(
        "{head}  gates: [{{name: quiet, http: {{url: 'https://x.example'}}}}]\n  \
         steps: [{{name: all, nodes: 100%, soak: 10m}}]\n"
    ));
    write_fault(&sandbox, "checks: [{check: quiet, from: 0s, to: 300h, answer: fail}]");
    let roll = |flags: &str, code: i32, nodes: usize| {
        let all = "roll logging/agent --max-unavailable 7 --ramp none";
        ends(&sandbox, &format!("{all} --policy policy.yaml --wait 1h {flags}"), code, nodes)
    };
    roll("--fault faults.yaml", 4, 7);
    roll("", 6, 0);
    roll("--retry --fault faults.yaml", 4, 0);
    roll("--retry", 0, 0);
    roll("", 0, 0);
}
