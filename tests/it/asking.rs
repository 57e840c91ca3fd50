//! `ds-plan checks`, on a recorded cluster: exit codes, and what a person has to allow. How it asks
//! a real Prometheus is in `tests/control_plane/checks`.

use serde_json::json;
use testkit::fixture::{AGENT, cluster, cluster_with};
use testkit::sandbox::{Run, Sandbox};

/// A sandbox with a policy that has these checks.
fn sandbox(checks: &str) -> Sandbox {
    let sandbox = Sandbox::with(&[("cluster.json", &cluster().to_string())]);
    sandbox.write("deploy/agent.yaml", AGENT);
    let policy = format!(
        "apiVersion: ds-plan.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {{name: agents}}\nspec:\n  \
         selects: {{names: [logging/agent]}}\n{checks}\n"
    );
    sandbox.write("deploy/policy.yaml", policy);
    sandbox
}

fn checks(sandbox: &Sandbox, flags: &str) -> Run {
    sandbox.ds_plan(&format!("checks --snapshot cluster.json -f deploy {flags}"))
}

const PROGRAMS: &str = "  preconditions: [{name: quiet, command: [sh, -c, 'exit 0']}]
  gates: [{name: healthy, command: [sh, -c, 'echo load 9; exit STATUS']}]";

#[test]
fn the_exit_code_is_that_of_the_most_severe_answer() {
    for (status, code, answer) in [
        ("0", 0, "gate healthy: pass\n"),
        ("1", 4, "gate healthy: fail: exit status 1: load 9 at "),
        ("7", 8, "gate healthy: unknown: `sh` ended with exit status: 7, neither 0 (pass) nor 1"),
    ] {
        let run = checks(&sandbox(&PROGRAMS.replace("STATUS", status)), "--allow-commands");
        assert_eq!(run.code, Some(code), "{run}");
        assert!(run.stdout.contains("precondition quiet: pass\n"), "{run}");
        assert!(run.stdout.contains(answer), "{run}");
    }
    // A fail is graver than what is unknown.
    let both = "  gates: [{name: a, command: [absent]}, {name: b, command: [sh, -c, 'exit 1']}]";
    assert_eq!(checks(&sandbox(both), "--allow-commands").code, Some(4));
}

#[test]
fn without_checks_there_is_nothing_to_ask() {
    let run = checks(&sandbox("  ramp: none"), "");
    assert_eq!(run.code, Some(0), "{run}");
    assert_eq!(run.stdout, "No policy of these DaemonSets has checks.\n");
}

#[test]
fn a_program_has_to_be_allowed_on_the_command_line() {
    let sandbox = sandbox(&PROGRAMS.replace("exit STATUS", "touch ran"));
    let run = checks(&sandbox, "");
    assert_eq!(run.code, Some(8), "{run}");
    let answer = "gate healthy: unknown: it runs a program; --allow-commands allows that\n";
    assert!(run.stdout.contains(answer), "{run}");
    let mut by_variable = sandbox.ds_plan_command("checks --snapshot cluster.json -f deploy");
    by_variable.env("DS_PLAN_ALLOW_COMMANDS", "true");
    assert_eq!(sandbox.run(by_variable).code, Some(8));
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn a_file_of_the_folder_runs_only_for_the_policies_of_the_folder() {
    let sandbox = sandbox("  gates: [{name: g, command: [./check.sh]}]");
    sandbox.write("check.sh", "#!/bin/sh\nexit 1\n");
    sandbox.write(".gitignore", "cluster.json\n");
    sandbox.git(&["init", "-q", "-b", "main"]);
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["update-index", "--chmod=+x", "check.sh"]);
    sandbox.git(&["commit", "-q", "-m", "a commit"]);
    sandbox.git(&["checkout", "-q", "-f", "main"]);
    sandbox.git(&["config", "core.fileMode", "false"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(sandbox.path("check.sh"), executable).unwrap();
    }
    let ask = |flags: &str| {
        sandbox.ds_plan(&format!("checks --snapshot cluster.json --allow-commands {flags}"))
    };
    assert_eq!(ask("-f deploy").code, Some(4));
    assert_eq!(ask("").code, Some(4));
    for flags in ["--rev main", "--policy-from main", "--repo ."] {
        let run = ask(flags);
        assert_eq!(run.code, Some(8), "{flags}: {run}");
        assert!(run.stdout.contains("whose policies are not used"), "{flags}: {run}");
    }
}

#[test]
fn a_token_that_cannot_be_read_is_an_error_at_once() {
    let sandbox = sandbox(PROGRAMS);
    sandbox.write("empty", "\n");
    for (flag, want) in [
        (
            "prom.example=absent",
            "error: cannot read the token in absent\n  caused by: No such file",
        ),
        ("prom.example=empty", "error: cannot read the token in empty\n  caused by: it is empty"),
    ] {
        let run = checks(&sandbox, &format!("--check-token {flag}"));
        assert_eq!(run.code, Some(1), "{run}");
        assert!(run.stderr.contains(want), "{run}");
    }
    let run = checks(&sandbox, "--check-token https://prom.example=token");
    assert_eq!(run.code, Some(64), "{run}");
    assert!(run.stderr.contains("HOST=FILE"), "{run}");
}

#[test]
fn the_nodes_of_a_rollout_are_told_apart() {
    let policy = "  gates: [{name: g, command: [sh, -c, 'exit 0']}]";
    for (version, nodes, want) in [
        ("1", &["node-1", "node-2"][..], "logging/agent  no rollout; asked about 2 nodes"),
        ("2", &["node-1", "node-2"], "logging/agent  no rollout; asked about 2 nodes"),
    ] {
        let sandbox = sandbox(policy);
        sandbox.write("cluster.json", cluster_with(AGENT, nodes).to_string());
        sandbox.write("deploy/agent.yaml", AGENT.replace("agent:1", &format!("agent:{version}")));
        let run = checks(&sandbox, "--allow-commands");
        assert!(run.stdout.starts_with(want), "{run}");
    }
}

#[test]
fn the_recorded_nodes_answer_and_a_recording_has_no_other_pods() {
    let ask = |check: &str| {
        let sandbox = sandbox(&format!("  gates: [{{name: g, {check}}}]"));
        let nodes = ["node-1", "node-2"];
        sandbox.write("cluster.json", cluster_with(AGENT, &nodes).to_string());
        checks(&sandbox, "")
    };
    for (check, code, answer) in [
        ("nodeConditions: {Ready: 'True'}", 0, "gate g: pass\n"),
        ("nodeConditions: {Ready: 'False'}", 4, "gate g: fail: node node-1 has Ready=True"),
        ("nodeConditions: {Disk: 'True'}", 8, "gate g: unknown: node node-1 has no Disk"),
        ("pods: {resource: gpu, on: node}", 8, "gate g: unknown: a recording has no other pods\n"),
    ] {
        let run = ask(check);
        assert_eq!(run.code, Some(code), "{run}");
        assert!(run.stdout.contains(answer), "{run}");
    }
}

/// A canary soaks for half an hour, with a gate that is a query.
const GATED: &str = "  steps: [{name: canary, nodes: 1, soak: 30m}]
  gates:
  - name: errors
    prometheus: {address: 'https://prom.example', query: errors, max: 1}";

/// Recorded answers of the gate: a value for each of so many minutes.
fn answers(check: &str, minutes: i64, value: impl Fn(i64) -> u32) -> String {
    let from = jiff::Timestamp::from_second(1_000_000_000).unwrap();
    let until = from + jiff::SignedDuration::from_mins(minutes);
    let points: Vec<_> =
        (0..=minutes).map(|at| json!([1_000_000_000 + 60 * at, value(at).to_string()])).collect();
    json!({
        "apiVersion": "ds-plan.dev/v1alpha1", "kind": "CheckAnswers",
        "from": from, "until": until,
        "answers": [{
            "daemonSet": "logging/agent", "check": check, "step": 60,
            "series": [{"labels": ["a=b"], "points": points}],
        }],
    })
    .to_string()
}

#[test]
fn a_rehearsal_is_answered_from_a_recording() {
    let spike = |at: i64| if at == 20 { 5 } else { 0 };
    for (answers, code, words) in [
        (answers("errors", 120, |_| 0), 0, "done"),
        (answers("errors", 120, spike), 4, "gate errors failed: 5 at "),
        (answers("errors", 10, |_| 0), 4, "errors: the recorded answers end after 10m"),
        // What was not recorded passes.
        (answers("other", 120, spike), 0, "done"),
    ] {
        let sandbox = sandbox(GATED);
        sandbox.write("cluster.json", cluster_with(AGENT, &["node-1", "node-2"]).to_string());
        sandbox.write("deploy/agent.yaml", AGENT.replace("agent:1", "agent:2"));
        sandbox.write("answers.json", &answers);
        let run = sandbox.ds_apply(
            "--rehearse --snapshot cluster.json -f deploy --check-answers answers.json --wait 3h \
             --force-conflicts=before-first-apply",
        );
        assert_eq!(run.code, Some(code), "{run}");
        assert!(format!("{}{}", run.stdout, run.stderr).contains(words), "{words}: {run}");
    }
}

#[test]
fn a_file_that_is_no_recording_is_an_error() {
    let sandbox = sandbox(GATED);
    sandbox.write("faults.json", r#"{"apiVersion": "ds-plan.dev/v1alpha1", "kind": "Faults"}"#);
    for (file, want) in [
        ("absent.json", "error: cannot read the answers of checks absent.json"),
        ("faults.json", "error: faults.json is not a CheckAnswers document: "),
    ] {
        let run = sandbox.ds_apply(&format!(
            "--rehearse --snapshot cluster.json -f deploy --check-answers {file}"
        ));
        assert_eq!(run.code, Some(1), "{run}");
        assert!(run.stderr.contains(want), "{run}");
    }
}
