//! Checks of a policy: in plans, and in rehearsals, answered by the fault file.

use std::path::Path;

use serde_json::Value;
use testkit::sandbox::{Run, Sandbox};

const POLICY: &str = "\
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: agents}
spec:
  selects: {names: [kube-system/overlay-agent]}
  steps: [{name: canary, nodes: 3, soak: 10m}]
  preconditions: [{name: quiet, http: {url: 'https://incidents.example/none'}}]
  gates:
  - name: errors
    prometheus: {address: 'https://prom.example', query: 'sum(rate(errors[5m]))', max: 0.5}
";

fn sandbox(faults: &str) -> Sandbox {
    let head = "apiVersion: ds-plan.dev/v1alpha1\nkind: Faults\n";
    Sandbox::with(&[("policy.yaml", POLICY), ("faults.yaml", &format!("{head}{faults}\n"))])
}

fn flags() -> String {
    let example = |path: &str| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/fleet");
        root.join(path).to_str().unwrap().to_owned()
    };
    let (snapshot, manifest) = (example("cluster.json"), example("manifests/overlay-agent.yaml"));
    format!("--snapshot {snapshot} -f {manifest} --policy policy.yaml")
}

fn rehearsed(faults: &str, more: &str) -> Run {
    sandbox(faults).ds_apply(&format!("--rehearse --fault faults.yaml {more} {}", flags()))
}

#[test]
fn a_rehearsal_gets_the_answers_of_checks_from_the_fault_file() {
    let good = rehearsed("checks: []", "--wait 48h");
    assert_eq!(good.code, Some(0), "{good}");

    let waits = rehearsed("checks: [{check: quiet, to: 5m, answer: fail}]", "");
    assert_eq!(waits.code, Some(8), "{waits}");
    let words = "step canary waits for a precondition since ";
    assert!(waits.to_string().contains(words), "{waits}");
    assert!(waits.to_string().contains("check quiet: fails by the fault file"), "{waits}");
    assert!(!waits.to_string().contains("deleting pod"), "{waits}");

    // The run itself waits until it passes.
    let later = rehearsed("checks: [{check: quiet, to: 5m, answer: fail}]", "--wait 48h");
    assert_eq!(later.code, Some(0), "{later}");

    let unknown = rehearsed("checks: [{check: errors, from: 5m, answer: unknown}]", "--wait 48h");
    assert_eq!(unknown.code, Some(4), "{unknown}");
    let words = "at most 60m allowed (`unknownFor`): check errors: unknown by the fault file";
    assert!(unknown.to_string().contains(words), "{unknown}");
}

/// The pods and conditions of a recording say nothing about the rehearsed ones.
#[test]
fn in_a_rehearsal_the_fault_file_answers_for_the_cluster() {
    let policy = POLICY.replace(
        "http: {url: 'https://incidents.example/none'}",
        "pods: {resource: nvidia.com/gpu, expect: absent}",
    );
    let rehearsed = |faults: &str| {
        let sandbox = sandbox(faults);
        sandbox.write("policy.yaml", &policy);
        sandbox.ds_apply(&format!("--rehearse --fault faults.yaml --wait 48h {}", flags()))
    };
    let good = rehearsed("checks: []");
    assert_eq!(good.code, Some(0), "{good}");
    let waits = rehearsed("checks: [{check: quiet, answer: fail}]");
    assert_eq!(waits.code, Some(8), "{waits}");
    assert!(waits.to_string().contains("check quiet: fails by the fault file"), "{waits}");
}

#[test]
fn a_gate_that_fails_aborts_with_its_values_and_nodes() {
    let faults = "checks: [{check: errors, from: 5m, to: 6m, answer: fail}]";
    let run = rehearsed(faults, "--wait 48h -o json");
    assert_eq!(run.code, Some(4), "{run}");
    let events = run.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let ended: Vec<Value> = events.filter(|event| event["event"] == "ended").collect();
    let gate = &ended[0]["failedGate"];
    assert_eq!(gate["check"], "errors", "{run}");
    assert_eq!(gate["reason"]["code"], "outOfBounds", "{run}");
    assert_eq!(gate["reason"]["value"], "1.5", "{run}");
    assert_eq!(gate["nodes"].as_array().unwrap().len(), 3, "{run}");
    let said = ended[0]["message"].as_str().unwrap();
    assert!(said.contains("gate errors failed: 1.5 at "), "{said}");
    assert!(said.contains("at most 0.5 allowed"), "{said}");
}

#[test]
fn the_log_has_the_checks_that_nobody_answers() {
    let sandbox = sandbox("checks: []");
    let (prometheus, http) = ("https://prom.example", "https://incidents.example/none");
    let nobody = "http://127.0.0.1:1";
    sandbox.write("policy.yaml", POLICY.replace(prometheus, nobody).replace(http, nobody));
    let run = sandbox.ds_plan(&format!("checks -vv {}", flags()));
    assert_eq!(run.code, Some(8), "{run}");
    assert!(
        run.stderr.contains("DEBUG check quiet: http://127.0.0.1:1 cannot be reached"),
        "{run}"
    );
}

#[test]
fn a_plan_names_the_checks_of_a_policy() {
    let sandbox = sandbox("checks: []");
    let text = sandbox.ds_plan(&flags()).to_string();
    for words in [
        "Check: precondition quiet: https://incidents.example/none has status 200; sampled only \
         during a run.",
        "Check: gate errors: sum(rate(errors[5m])), at most 0.5.",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    for format in ["markdown", "html"] {
        let page = sandbox.ds_plan(&format!("{} -o {format}", flags())).to_string();
        assert!(page.contains("gate errors"), "{page}");
    }
    let plan = sandbox.ds_plan(&format!("{} -o json", flags()));
    let plan: Value = serde_json::from_str(&plan.stdout).unwrap();
    let checks = &plan["daemonSets"][0]["checks"];
    assert_eq!(checks[1]["role"], "gate", "{checks}");
    assert_eq!(checks[1]["intervalSeconds"], 60, "{checks}");
}

#[test]
fn the_status_names_the_check_that_holds_a_rollout_and_since_when() {
    let later = "checks: [{check: quiet, from: 5m, answer: fail}]";
    let failing = "checks: [{check: errors, from: 5m, to: 6m, answer: fail}]";
    for (faults, flag, code, want) in [
        (
            "checks: [{check: errors, from: 5m, answer: unknown}]",
            "",
            8,
            "step canary waits for a check that is unknown since 2026-07-14T09:19:24Z: check errors: \
             unknown by the fault file",
        ),
        (later, "", 8, ": check quiet: fails by the fault file at 2026-07-14T09:28:44Z"),
        (failing, "", 4, "aborted by "),
        (failing, "--on-failure=pause", 4, "paused by "),
    ] {
        let sandbox = sandbox(faults);
        let line = "--rehearse --fault faults.yaml --wait 15m --save after.json";
        let run = sandbox.ds_apply(&format!("{line} {flag} {}", flags()));
        assert_eq!(run.code, Some(code), "{run}");
        let status = sandbox.ds_plan("status --snapshot after.json kube-system/overlay-agent");
        assert!(status.stdout.contains(want), "{want}: {status}");
        if code == 4 {
            let gate = ", gate errors failed at 2026-07-14T09:19:24Z: 1.5 at ";
            assert!(status.stdout.contains(gate), "{status}");
        }
    }
}
