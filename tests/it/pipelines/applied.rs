//! The pipelines that apply: rollouts that wait do not fail them, and are continued or asked about.
//!
//! Here, `ds-apply` rehearses on a recording, so its events and exit codes are those of a real run.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::runner::{Job, ROOT, Runner, options, ran, yaml};
use super::{Api, NOBODY, cloned, gitlab, newer, plan_of_main};
use testkit::fixture::AGENT;
use testkit::sandbox::Sandbox;

/// A policy with these steps, for the agent.
fn policy(steps: &str) -> String {
    format!(
        "apiVersion: ds-plan.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {{name: careful}}\n\
         spec: {{selects: {{names: [logging/agent]}}, steps: [{steps}]}}\n"
    )
}

const SOAK: &str = "{name: canary, nodes: 1, soak: 1h}";
const APPROVAL: &str = "{name: canary, nodes: 1, approve: true}";

/// The action with the command `apply`, and these arguments.
fn applied(sandbox: &Sandbox, api: &Api, args: &str) -> Job {
    let checkout = sandbox.path("checkout");
    let runner = Runner { sandbox, checkout, api, head: "", base: "", installed: true };
    runner.run(&[("command", "apply"), ("args", args)])
}

/// A clone with a newer agent and this policy, and the arguments to rehearse it.
fn to_rehearse(steps: &str) -> (Sandbox, String) {
    let sandbox = cloned(&newer());
    sandbox.write("policy.yaml", policy(steps));
    let of = |name: &str| sandbox.path(name).to_str().unwrap().to_owned();
    let (cluster, policy) = (of("cluster.json"), of("policy.yaml"));
    let rehearse = "--rehearse --force-conflicts=before-first-apply --path deploy";
    let args = format!("{rehearse} --snapshot {cluster} --policy {policy}");
    (sandbox, args)
}

/// The same, with another DaemonSet whose pods crash.
fn with_one_that_fails(steps: &str) -> (Sandbox, String) {
    let (sandbox, args) = to_rehearse(steps);
    sandbox.write("checkout/deploy/broken.yaml", AGENT.replace("agent", "broken"));
    let checkout = sandbox.path("checkout");
    let checkout = checkout.to_str().unwrap();
    sandbox.git(&["-C", checkout, "add", "-A"]);
    sandbox.git(&["-C", checkout, "commit", "-q", "-m", "one that is broken"]);
    let faults = "apiVersion: ds-plan.dev/v1alpha1\nkind: Faults\nimages: [{fault: crashLoops, \
                  image: 'registry.example/broken:1', after: 1s}]\n";
    sandbox.write("faults.yaml", faults);
    let fault = sandbox.path("faults.yaml");
    (sandbox, format!("{args} --fault {}", fault.display()))
}

/// Writes a stand-in for a program, first on `PATH` of a job.
fn stand_in(sandbox: &Sandbox, name: &str, text: &str) {
    let file = format!("bin/{name}");
    sandbox.write(&file, text);
    #[cfg(unix)]
    fs::set_permissions(sandbox.path(&file), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
}

#[test]
fn a_rollout_that_waits_does_not_fail_the_job_and_says_until_when() {
    let api = Api::start();
    for (steps, code, order, kind, asks) in [
        (SOAK, "8", "::notice title=logging/agent::waiting: step canary soaks until ", "soak", 0),
        (
            APPROVAL,
            "9",
            "::warning title=logging/agent::waiting: step canary is not approved",
            "approval",
            1,
        ),
    ] {
        let (sandbox, args) = to_rehearse(steps);
        let job = applied(&sandbox, &api, &args);
        assert_eq!(job.failed, None, "{job:#?}");
        assert_eq!(job.output("apply", "exit-code"), code, "{job:#?}");
        let [said] = job.orders()[..] else { panic!("{job:#?}") };
        assert!(said.starts_with(order), "{said}");
        let waits: Value = serde_json::from_str(job.output("apply", "waits")).unwrap();
        let wait = &waits[0];
        assert_eq!((&wait["daemonSet"], &wait["kind"]), (&json!("logging/agent"), &json!(kind)));
        // The moment is in the summary, the annotation and the output.
        if let Some(until) = wait["until"].as_str() {
            assert!(job.summary.contains(until) && said.contains(until), "{job:#?}");
        }
        let approvals: Value = serde_json::from_str(job.output("apply", "approvals")).unwrap();
        assert_eq!(approvals.as_array().unwrap().len(), asks, "{approvals}");
        if asks > 0 {
            assert_eq!(approvals[0]["step"], "canary");
            assert!(approvals[0]["template"].as_str().unwrap().starts_with("sha256:"));
            assert!(job.summary.contains("ds-apply approve logging/agent canary"), "{job:#?}");
        }
        let page = fs::read_to_string(job.output("apply", "report")).unwrap();
        assert!(page.starts_with("<!doctype html>"), "{page}");
    }
}

#[test]
fn a_rollout_that_ends_is_no_wait_and_one_that_fails_fails_the_job() {
    let api = Api::start();
    let (sandbox, args) = to_rehearse("");
    let job = applied(&sandbox, &api, &args);
    assert_eq!((job.failed, job.output("apply", "waits")), (None, "[]"), "{job:#?}");
    assert!(job.summary.contains("- `logging/agent`: `done`"), "{job:#?}");
    let faults = "apiVersion: ds-plan.dev/v1alpha1\nkind: Faults\nimages: [{fault: crashLoops, \
                  image: 'registry.example/agent:2', after: 1s}]\n";
    sandbox.write("faults.yaml", faults);
    let fault = sandbox.path("faults.yaml");
    let job = applied(&sandbox, &api, &format!("{args} --fault {}", fault.display()));
    assert_eq!(job.failed, Some(4), "{job:#?}");
    assert_eq!(job.output("apply", "exit-code"), "4", "{job:#?}");
    assert!(job.summary.contains("aborted"), "{job:#?}");
}

/// Messages quote metrics, kubelets and images.
#[test]
fn messages_are_neither_commands_nor_markdown() {
    let sandbox = Sandbox::new();
    let message = "x`\n\n## Title\n![i](https://evil.example/x.png)\n##[error]y \u{1b}[31m";
    let event = json!({
        "event": "ended", "time": "T", "daemonSet": "logging/agent", "message": message,
    });
    sandbox.write("events.json", event.to_string());
    sandbox.write("home/summary", "");
    sandbox.write("checkout/README.md", "");
    stand_in(&sandbox, "ds-apply", "#!/bin/bash\ncat \"$HOME/../events.json\"\n");
    let script = format!("PATH=\"$HOME/../bin:$PATH\" {ROOT}/action/apply.sh");
    let path = |name: &str| sandbox.path(name).to_str().unwrap().to_owned();
    let (home, summary, output) = (path("home"), path("home/summary"), path("home/output"));
    let files =
        [("RUNNER_TEMP", &*home), ("GITHUB_STEP_SUMMARY", &summary), ("GITHUB_OUTPUT", &output)];
    let run = ran(&sandbox, &["-e"], &script, &files);
    assert_eq!(run.code, Some(0), "{run}");
    assert!(!run.stdout.contains("##[") && !run.stdout.contains('\u{1b}'), "{run}");
    assert_eq!(run.stdout.lines().count(), 1, "{run}");
    let summary = fs::read_to_string(summary).unwrap();
    assert_eq!(summary.lines().count(), 1, "{summary}");
    assert!(summary.starts_with("- `logging/agent`: `x'"), "{summary}");
}

/// The arguments that the workflows pass to the action, with the outputs of other steps.
#[test]
fn the_workflows_pass_valid_arguments() {
    let api = Api::start();
    let mut called = 0;
    for file in ["ds-apply.yml", "ds-resume.yml"] {
        let workflow = yaml(&Path::new(ROOT).join("examples/ci/github").join(file));
        let jobs = workflow["jobs"].as_object().unwrap().values();
        let steps = jobs.flat_map(|job| job["steps"].as_array().unwrap());
        for step in steps.filter(|step| step["with"]["command"] == "apply") {
            let sandbox = cloned(&newer());
            let digest = plan_of_main(&sandbox, "temp/plan/plan.json");
            sandbox.write("kubeconfig", NOBODY);
            let args = |digest: &str| {
                let temp = sandbox.path("temp");
                let args = step["with"]["args"].as_str().unwrap().to_owned();
                let args = args.replace("${{ runner.temp }}", temp.to_str().unwrap());
                let args = args.replace("${{ needs.plan.outputs.sha256 }}", digest);
                assert!(!args.contains("${{"), "{args}");
                format!("{args} --kubeconfig {}", sandbox.path("kubeconfig").display())
            };
            let job = applied(&sandbox, &api, &args(&digest));
            assert_eq!(job.failed, Some(1), "{file}: {job:#?}");
            assert!(job.log.contains("127.0.0.1:1"), "{file}: {job:#?}");
            if file == "ds-apply.yml" {
                let job = applied(&sandbox, &api, &args(&"0".repeat(64)));
                assert!(job.log.contains("is not the approved plan"), "{job:#?}");
            }
            called += 1;
        }
    }
    assert_eq!(called, 2);
}

/// Answers `gh run list` with the requests so far, and remembers those that are started.
const GH: &str = r#"#!/bin/bash
case "$1 $2" in
'run list') cat "$HOME/../asked.json" ;;
'run view') jq -r "${!#}" "$HOME/../run-$3.json" ;;
'workflow run') echo "$*" >>"$HOME/../started" ;;
*) exit 1 ;;
esac
"#;

#[test]
fn approvals_are_asked_for_once() {
    let (sandbox, args) = to_rehearse(APPROVAL);
    let api = Api::start();
    let job = applied(&sandbox, &api, &args);
    let approvals = job.output("apply", "approvals").to_owned();
    let asked: Value = serde_json::from_str(&approvals).unwrap();
    let template = asked[0]["template"].as_str().unwrap();
    let workflow = yaml(&Path::new(ROOT).join("examples/ci/github/ds-resume.yml"));
    let steps = workflow["jobs"]["resume"]["steps"].as_array().unwrap();
    let step = steps.iter().find(|step| step["name"] == "Ask for approvals").unwrap();
    let options = options(step, &workflow["jobs"]["resume"], &workflow);
    let script = step["run"].as_str().unwrap();
    stand_in(&sandbox, "gh", GH);
    let script = format!("PATH=\"$HOME/../bin:$PATH\"\n{script}");
    // The title that the workflow gives its runs.
    let approve = yaml(&Path::new(ROOT).join("examples/ci/github/ds-approve.yml"));
    let title = approve["run-name"].as_str().unwrap().to_owned();
    let title = title.replace("${{ inputs.daemon-set }}", "logging/agent");
    let title = title.replace("${{ inputs.step }}", "canary");
    let title = title.replace("${{ inputs.template }}", template);
    assert!(!title.contains("${{") && approve["jobs"]["approve"].is_object(), "{title}");
    // The conclusions of the run and of its second job.
    for (title, conclusion, approve, asks) in [
        ("another", "", "", true),
        (title.as_str(), "", "", false),
        (&title, "failure", "failure", false),
        (&title, "cancelled", "cancelled", false),
        // The evidence could not be shown, so no approver was asked.
        (&title, "failure", "skipped", true),
        // Used up: the rollout has begun again.
        (&title, "success", "success", true),
    ] {
        let runs = json!([{"databaseId": 3, "displayTitle": title, "conclusion": conclusion}]);
        sandbox.write("asked.json", runs.to_string());
        let jobs = [("evidence", conclusion), ("approve", approve)];
        let jobs = jobs.map(|(name, conclusion)| json!({"name": name, "conclusion": conclusion}));
        sandbox.write("run-3.json", json!({"jobs": jobs}).to_string());
        sandbox.write("started", "");
        let run = ran(&sandbox, options, &script, &[("APPROVALS", &approvals)]);
        assert_eq!(run.code, Some(0), "{run}");
        let started = fs::read_to_string(sandbox.path("started")).unwrap();
        let want = format!(
            "workflow run ds-approve.yml -f daemon-set=logging/agent -f step=canary -f \
             template={template}\n"
        );
        assert_eq!(started, if asks { want } else { String::new() }, "{title} {conclusion}");
    }
}

/// One that has failed must not keep the others from being approved.
#[test]
fn github_asks_for_approvals_although_another_rollout_has_failed() {
    let (sandbox, args) = with_one_that_fails(APPROVAL);
    let job = applied(&sandbox, &Api::start(), &format!("{args} --keep-going"));
    assert_eq!(job.failed, Some(4), "{job:#?}");
    let approvals: Value = serde_json::from_str(job.output("apply", "approvals")).unwrap();
    assert_eq!(approvals[0]["daemonSet"], "logging/agent", "{job:#?}");
    let workflow = yaml(&Path::new(ROOT).join("examples/ci/github/ds-resume.yml"));
    let steps = workflow["jobs"]["resume"]["steps"].as_array().unwrap();
    let step = steps.iter().find(|step| step["name"] == "Ask for approvals").unwrap();
    let condition = step["if"].as_str().unwrap();
    // Without a function of the status, a condition implies `success()`. A step that did not run has
    // no outputs.
    assert!(condition.starts_with("${{ !cancelled() && "), "{condition}");
    assert!(condition.contains("steps.resume.outputs.approvals != ''"), "{condition}");
}

#[test]
fn gitlab_asks_for_approvals_although_another_rollout_has_failed() {
    let api = Api::start();
    let (sandbox, args) = with_one_that_fails(APPROVAL);
    stand_in(&sandbox, "ds-apply", &rehearsing(&args));
    // The manual job is skipped if the one that it needs has failed: 9 is allowed to fail.
    let run = gitlab(&sandbox, &api, "ds-resume", "", "");
    assert_eq!(run.code, Some(9), "{run}");
    let run = gitlab(&sandbox, &api, "ds-approve", "", "");
    assert!(run.stdout.contains("approve logging/agent canary --yes"), "{run}");
    let run = gitlab(&sandbox, &api, "ds-resumed", "", "");
    assert_eq!(run.code, Some(4), "{run}");
}

/// The jobs of the schedule at GitLab, in the order of their stages.
#[test]
fn the_schedule_of_gitlab_resumes_and_asks() {
    let api = Api::start();
    let sandbox = cloned(&newer());
    plan_of_main(&sandbox, "checkout/plan.json");
    // The server does not exist, so no rollout waits, and there is nothing to approve.
    let run = gitlab(&sandbox, &api, "ds-resume", "", "");
    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stderr.contains("127.0.0.1:1"), "{run}");
    let approvals = fs::read_to_string(sandbox.path("checkout/approvals.txt")).unwrap();
    assert_eq!(approvals, "");
    let run = gitlab(&sandbox, &api, "ds-approve", "", "");
    assert_eq!((run.code, &*run.stderr), (Some(0), ""), "{run}");

    // The same script, with a program that rehearses a rollout that waits.
    for (steps, code, want) in [(SOAK, 0, ""), (APPROVAL, 9, "logging/agent canary\n")] {
        let (sandbox, args) = to_rehearse(steps);
        stand_in(&sandbox, "ds-apply", &rehearsing(&args));
        let run = gitlab(&sandbox, &api, "ds-resume", "", "");
        assert_eq!(run.code, Some(code), "{run}");
        let resumed = gitlab(&sandbox, &api, "ds-resumed", "", "");
        assert_eq!(resumed.code, Some(0), "{resumed}");
        let approvals = fs::read_to_string(sandbox.path("checkout/approvals.txt")).unwrap();
        assert_eq!(approvals, want, "{run}");
        let run = gitlab(&sandbox, &api, "ds-approve", "", "");
        assert_eq!(run.code, Some(0), "{run}");
        assert_eq!(run.stdout.contains("approve logging/agent canary --yes"), code == 9, "{run}");
    }
}

/// A stand-in for `ds-apply` that runs it as a rehearsal; an approval is only printed.
fn rehearsing(args: &str) -> String {
    let program = assert_cmd::cargo::cargo_bin!("ds-apply");
    format!(
        "#!/bin/bash\nif [ \"$1\" = approve ]; then echo \"$*\"; exit 0; fi\nfor word; do case $word in \
         --resume | --kubeconfig | */kubeconfig) ;; --path | deploy) ;; *) words+=(\"$word\") ;; \
         esac; done\nexec {} {args} \"${{words[@]}}\"\n",
        program.display()
    )
}
