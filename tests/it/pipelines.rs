//! The action and the pipelines in `examples/ci`: runs the shell of their steps as a runner would,
//! from the checkout to comment, summary, outputs and annotations; and runs linters on them.
//!
//! The shell scripts of the action's steps are files in `action/`; text from outside reaches them
//! only by environment variables, and only the program's `--annotations` writes CI commands. These
//! tests read `action.yml` and the pipelines, run the steps after a real clone, and answer as the
//! API of the forge. actionlint and GitLab's schema check the rest.

mod api;
mod applied;
mod lint;
#[cfg(target_os = "linux")]
mod released;
mod runner;

use std::fs;
use std::path::Path;

use serde_json::Value;

use api::{Api, TOKEN};
use runner::{Job, PIPEFAIL, ROOT, Runner, options, ran, yaml};
use testkit::fixture::{AGENT, cluster_with};
use testkit::sandbox::{Run, Sandbox};

/// A clone of a repository, with a branch that changes the agent to `manifest`, checked out as the
/// checkout action does it; and a recorded cluster that runs the agent of the main branch.
fn cloned(manifest: &str) -> Sandbox {
    let sandbox = Sandbox::with(&[("origin/deploy/agent.yaml", AGENT)]);
    let cluster = cluster_with(AGENT, &["node-1", "node-2"]);
    let folder = sandbox.path("origin");
    let origin = folder.to_str().unwrap();
    let git = |args: &[&str]| sandbox.git(&[&["-C", origin], args].concat());
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "the agent"]);
    git(&["checkout", "-q", "-b", "request"]);
    sandbox.write("origin/deploy/agent.yaml", manifest);
    git(&["commit", "-q", "--allow-empty", "-am", "another agent"]);
    let checkout = sandbox.path("checkout");
    sandbox.git(&["clone", "-q", origin, checkout.to_str().unwrap()]);
    sandbox.write("cluster.json", cluster.to_string());
    sandbox
}

/// Runs the action on a pull request that changes the agent to `manifest`.
fn requested(manifest: &str, api: &Api, inputs: &[(&str, &str)]) -> (Sandbox, Job) {
    let sandbox = cloned(manifest);
    let job = on_request(&sandbox, api, "octo/fleet", inputs);
    (sandbox, job)
}

fn on_request(sandbox: &Sandbox, api: &Api, head: &'static str, inputs: &[(&str, &str)]) -> Job {
    let cluster = sandbox.path("cluster.json");
    let usual = [("args", "--path deploy"), ("snapshot", cluster.to_str().unwrap())];
    let checkout = sandbox.path("checkout");
    let runner = Runner { sandbox, checkout, api, head, base: "main", installed: true };
    runner.run(&[&usual, inputs].concat())
}

fn newer() -> String {
    AGENT.replace("agent:1", "agent:2")
}

#[test]
fn a_pull_request_gets_one_comment_that_is_updated() {
    let api = Api::start();
    let foreign = "I write <!-- ds-plan:default -->";
    api.add(1, foreign);
    // Enough comments for two pages.
    (0..100).for_each(|_| api.add(1, "chatter"));
    let (sandbox, job) = requested(&newer(), &api, &[]);
    assert_eq!(job.failed, None, "{job:#?}");
    assert_eq!(job.orders(), [""; 0], "{job:#?}");
    let comment = api.bodies().pop().unwrap();
    assert!(comment.starts_with("**Cluster "), "{comment}");
    assert!(comment.ends_with("<!-- ds-plan:default -->\n"), "{comment}");
    assert!(comment.contains("registry.example/agent:2"), "{comment}");
    assert_eq!(job.summary, comment);
    assert_eq!(job.output("plan", "exit-code"), "2");
    assert_eq!(job.output("plan", "changes"), "true");
    let plan: Value =
        serde_json::from_str(&fs::read_to_string(job.output("plan", "plan")).unwrap()).unwrap();
    assert_eq!(plan["kind"], "Plan");
    assert_eq!(job.output("plan", "sha256"), "", "the plan is not applied");
    let report = fs::read_to_string(job.output("plan", "report")).unwrap();
    assert!(report.starts_with("<!doctype html>"), "{report}");

    // The request changes nothing, and its comment says so.
    sandbox.write("checkout/deploy/agent.yaml", AGENT);
    let checkout = sandbox.path("checkout");
    sandbox.git(&["-C", checkout.to_str().unwrap(), "commit", "-qam", "as it was"]);
    let job = on_request(&sandbox, &api, "octo/fleet", &[]);
    assert_eq!(job.output("plan", "changes"), "false", "{job:#?}");
    assert_eq!(api.bodies().len(), 102);
    assert!(api.bodies()[101].contains("changes nothing"), "{:?}", api.bodies()[101]);
    assert_eq!(api.bodies()[0], foreign);
    let writes = api.state().writes.clone();
    let comments = "/repos/octo/fleet/issues";
    assert_eq!(
        writes,
        [format!("POST {comments}/7/comments"), format!("PATCH {comments}/comments/101")]
    );
}

#[test]
fn the_digest_of_a_plan_to_approve_is_shown_and_passed_on() {
    let api = Api::start();
    let sandbox = cloned(&newer());
    let (checkout, cluster) = (sandbox.path("checkout"), sandbox.path("cluster.json"));
    let (api, head) = (&api, "");
    let runner = Runner { sandbox: &sandbox, checkout, api, head, base: "", installed: true };
    let job = runner.run(&[("args", "--path deploy"), ("snapshot", cluster.to_str().unwrap())]);
    assert_eq!(job.failed, None, "{job:#?}");
    let digest = job.output("plan", "sha256");
    assert!(job.log.contains(&format!("plan.json, sha256:{digest}\n")), "{job:#?}");
    assert!(job.summary.ends_with(&format!("Saved plan: `sha256:{digest}`\n")), "{job:#?}");
    assert_eq!(digest.len(), 64, "{job:#?}");
}

#[test]
fn no_comment_is_written_without_changes() {
    let api = Api::start();
    let (_sandbox, job) = requested(AGENT, &api, &[]);
    assert_eq!((job.failed, api.bodies().len()), (None, 0), "{job:#?}");
    assert!(job.summary.contains("changes nothing"), "{job:#?}");
}

#[test]
fn the_plan_of_a_fork_is_in_the_summary() {
    let api = Api::start();
    let sandbox = cloned(&newer());
    let job = on_request(&sandbox, &api, "somebody/fleet", &[]);
    assert_eq!(job.failed, None, "{job:#?}");
    assert!(job.summary.starts_with("**Cluster "), "{job:#?}");
    assert!(job.orders()[0].starts_with("::notice::The token of a fork"), "{job:#?}");
    assert_eq!(api.state().writes, [""; 0]);
}

#[test]
fn a_read_only_token_does_not_fail_the_job() {
    let api = Api::start();
    api.state().read_only = true;
    let (_sandbox, job) = requested(&newer(), &api, &[]);
    assert_eq!(job.failed, None, "{job:#?}");
    assert!(job.orders()[0].starts_with("::warning::The comment could not be"), "{job:#?}");
}

#[test]
fn errors_are_annotations_and_content_is_never_a_workflow_command() {
    let api = Api::start();
    let hostile = newer().replace("selector:", "\"\\n::error::x%0A::notice::y\": 1\n  selector:");
    let (_sandbox, job) = requested(&hostile, &api, &[]);
    assert_eq!(job.failed, Some(1), "{job:#?}");
    let [order] = job.orders()[..] else { panic!("{job:#?}") };
    assert!(order.starts_with("::error file=deploy/agent.yaml,line=8,col="), "{order}");
    assert!(job.summary.starts_with("**ds-plan failed** with exit code 1"), "{job:#?}");
    let comment = api.bodies().pop().unwrap();
    assert!(comment.ends_with("<!-- ds-plan:default -->\n"), "the marker for the next run is kept");
}

#[test]
fn the_job_fails_on_the_configured_results() {
    let recreated = AGENT.replace("app: agent", "app: other");
    for (manifest, fail_on, failed, order) in [
        (newer(), "guards", None, None),
        (newer(), "changes", Some(2), Some("::error::there are changes")),
        (newer(), "nothing", None, None),
        (recreated.clone(), "guards", Some(6), Some("::error::ds-apply would refuse this plan")),
        (recreated, "nothing", None, None),
        (
            newer(),
            "nonsense",
            Some(64),
            Some("::error::the input `fail-on` is `guards`, `changes` or `nothing`"),
        ),
    ] {
        let api = Api::start();
        let inputs = [("fail-on", fail_on), ("comment", "none")];
        let (_sandbox, job) = requested(&manifest, &api, &inputs);
        assert_eq!(job.failed, failed, "{fail_on}: {job:#?}");
        assert_eq!(job.orders(), Vec::from_iter(order), "{fail_on}: {job:#?}");
        assert_eq!(api.bodies().len(), 0);
    }
}

#[test]
fn drift_fails_the_job_and_is_in_the_summary() {
    let api = Api::start();
    let (_sandbox, job) = requested(&newer(), &api, &[("command", "drift"), ("comment", "none")]);
    assert_eq!(job.failed, Some(3), "{job:#?}");
    assert!(job.summary.contains("1 spec"), "{job:#?}");
    assert_eq!(job.output("plan", "plan"), "");
}

#[test]
fn several_clusters_have_several_comments() {
    let api = Api::start();
    let sandbox = cloned(&newer());
    for name in ["prod-eu", "prod-us", "prod-eu"] {
        let job = on_request(&sandbox, &api, "octo/fleet", &[("comment", name)]);
        assert_eq!(job.failed, None, "{job:#?}");
    }
    let ends: Vec<String> =
        api.bodies().iter().map(|body| body.lines().last().unwrap().to_owned()).collect();
    assert_eq!(ends, ["<!-- ds-plan:prod-eu -->", "<!-- ds-plan:prod-us -->"]);
}

/// Compiling is left to other tests; here only the name is checked.
#[test]
fn a_missing_program_is_built_under_a_name_of_its_source() {
    let api = Api::start();
    let sandbox = cloned(&newer());
    let checkout = sandbox.path("checkout");
    let built = sandbox.path("temp/ds-plan-built/bin/ds-plan");
    sandbox.write("temp/ds-plan-built/bin/ds-plan", "#!/bin/sh\n");
    #[cfg(unix)]
    fs::set_permissions(&built, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let (api, head) = (&api, "octo/fleet");
    let runner = Runner { sandbox: &sandbox, checkout, api, head, base: "main", installed: false };
    let job = runner.run(&[("command", "install")]);
    assert_eq!(job.failed, None, "{job:#?}");
    assert_eq!(job.output("program", "found"), "false");
    assert_eq!(job.output("program", "version").len(), 16, "{job:#?}");
    let path = fs::read_to_string(sandbox.path("path")).unwrap();
    assert_eq!(Path::new(path.trim()), built.parent().unwrap());
    assert_eq!(job.output("plan", "exit-code"), "", "nothing was planned");
}

/// Checks out the main branch and saves its plan; returns the SHA-256 of the file.
fn plan_of_main(sandbox: &Sandbox, file: &str) -> String {
    let checkout = sandbox.path("checkout");
    sandbox.git(&["-C", checkout.to_str().unwrap(), "checkout", "-q", "main"]);
    let plan = "--repo checkout --path deploy --snapshot cluster.json --out temp-plan.json";
    let run = sandbox.ds_plan(plan);
    assert_eq!(run.code, Some(0), "{run}");
    sandbox.write(file, fs::read(sandbox.path("temp-plan.json")).unwrap());
    let digest = run.stderr.lines().find_map(|line| line.strip_prefix("saved temp-plan.json, "));
    digest.unwrap().to_owned()
}

/// A kubeconfig for a server that does not exist: flags are parsed before any connection.
const NOBODY: &str = "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, \
                      context: {cluster: a, user: a}}], users: [{name: a, user: {}}], clusters: \
                      [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]}";

#[test]
fn the_other_steps_of_the_workflows_use_valid_arguments() {
    let mut called = 0;
    for file in lint::examples("github") {
        let workflow = yaml(&file);
        for job in workflow["jobs"].as_object().unwrap().values() {
            for step in job["steps"].as_array().unwrap() {
                let script = step["run"].as_str().unwrap_or_default();
                assert!(
                    !script.contains("${{"),
                    "untrusted text must be passed in `env`: {script}"
                );
                if !script.contains("ds-plan ") && !script.contains("ds-apply ") {
                    continue;
                }
                let sandbox = cloned(&newer());
                plan_of_main(&sandbox, "temp/plan/plan.json");
                let temp = sandbox.path("temp");
                let summary = sandbox.path("summary");
                let variables = [
                    ("RUNNER_TEMP", temp.to_str().unwrap()),
                    ("KUBECONFIG_TEXT", NOBODY),
                    ("DAEMON_SET", "logging/agent"),
                    ("STEP", "canary"),
                    ("GITHUB_STEP_SUMMARY", summary.to_str().unwrap()),
                ];
                let run = ran(&sandbox, options(step, job, &workflow), script, &variables);
                assert_eq!(run.code, Some(1), "{}: {run}", file.display());
                assert!(run.stderr.contains("127.0.0.1:1"), "{}: {run}", file.display());
                called += 1;
            }
        }
    }
    assert_eq!(called, 3, "the steps that record, show what is to be approved, and approve");
}

#[test]
fn the_workflows_use_existing_inputs_of_the_action() {
    let action = yaml(&Path::new(ROOT).join("action.yml"));
    for file in lint::examples("github") {
        assert!(yaml(&file)["on"].get("pull_request_target").is_none(), "{}", file.display());
        for job in yaml(&file)["jobs"].as_object().unwrap().values() {
            for step in job["steps"].as_array().unwrap() {
                if !step["uses"].as_str().unwrap_or_default().contains("/ds-plan@") {
                    continue;
                }
                for name in step["with"].as_object().unwrap().keys() {
                    assert!(action["inputs"].get(name).is_some(), "{}: {name}", file.display());
                }
            }
        }
    }
}

fn of_gitlab() -> Value {
    let [file] = &lint::examples("gitlab")[..] else { panic!("one file") };
    yaml(file)
}

/// The branch on which the rules of a job of GitLab let it run.
fn branch_of<'a>(pipeline: &'a Value, job: &str) -> &'a str {
    let rules = pipeline[job]["rules"].to_string();
    if rules.contains("merge_request_event") {
        "refs/merge-requests/7/head"
    } else if rules.contains("$CI_COMMIT_BRANCH == $DS_PLAN_RECORDING") {
        pipeline["variables"]["DS_PLAN_RECORDING"].as_str().unwrap()
    } else {
        "main"
    }
}

/// Runs a job of the pipeline for GitLab in the clone.
fn gitlab(sandbox: &Sandbox, api: &Api, job: &str, token: &str, digest: &str) -> Run {
    let pipeline = of_gitlab();
    let lines: Vec<&str> =
        pipeline[job]["script"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    sandbox.write("kubeconfig", NOBODY);
    let kubeconfig = sandbox.path("kubeconfig");
    let variables = [
        ("CI_API_V4_URL", api.url.as_str()),
        ("CI_DEFAULT_BRANCH", "main"),
        ("CI_JOB_TOKEN", TOKEN),
        ("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main"),
        ("CI_PROJECT_ID", "12"),
        ("CI_MERGE_REQUEST_IID", "7"),
        ("CI_MERGE_REQUEST_PROJECT_ID", "12"),
        ("DS_PLAN_PATH", "deploy"),
        ("DS_PLAN_RECORDING", pipeline["variables"]["DS_PLAN_RECORDING"].as_str().unwrap()),
        ("DS_PLAN_TOKEN", token),
        ("KUBECONFIG_APPLY", kubeconfig.to_str().unwrap()),
        ("KUBECONFIG_APPROVE", kubeconfig.to_str().unwrap()),
        ("KUBECONFIG_READ", kubeconfig.to_str().unwrap()),
        ("DS_PLAN_SHA256", digest),
    ];
    // Stand-ins of a test come first.
    let script = format!("PATH=\"$HOME/../bin:$PATH\"\n{}", lines.join("\n"));
    let run = ran(sandbox, PIPEFAIL, &script, &variables);
    if run.code == Some(0) {
        api.state().pipelines.push((branch_of(&pipeline, job).to_owned(), job.to_owned()));
    }
    run
}

#[test]
fn a_merge_request_gets_one_note_that_is_updated() {
    let api = Api::start();
    api.add(1, "I write <!-- ds-plan:default -->");
    // Enough notes for two pages.
    (0..100).for_each(|_| api.add(1, "chatter"));
    let sandbox = cloned(&newer());
    let cluster = fs::read(sandbox.path("cluster.json")).unwrap();
    api.state().files.push(("/raw/cluster.json.gz".to_owned(), cluster));
    // The recording of an hour ago: later pipelines of other jobs must not hide it.
    let job = "ds-snapshot".to_owned();
    let branch = branch_of(&of_gitlab(), &job).to_owned();
    api.state().pipelines.push((branch, job));
    api.state().files.push(("/merge_requests".to_owned(), br#"[{"iid": 7}]"#.to_vec()));
    let checkout = sandbox.path("checkout");
    let checkout = checkout.to_str().unwrap();
    sandbox.git(&["-C", checkout, "push", "-q", "origin", "HEAD:refs/merge-requests/7/head"]);
    // The pipeline of the merge request has no token, and writes nothing.
    let run = gitlab(&sandbox, &api, "ds-plan", "", "");
    assert_eq!((run.code, api.state().writes.len()), (Some(0), 0), "{run}");
    let report = fs::read_to_string(sandbox.path("checkout/report.html")).unwrap();
    assert!(report.starts_with("<!doctype html>"));
    // The pipeline of the default branch does.
    sandbox.git(&["-C", checkout, "checkout", "-q", "--detach", "origin/main"]);
    for _ in 0..2 {
        let run = gitlab(&sandbox, &api, "ds-comment", TOKEN, "");
        assert_eq!(run.code, Some(0), "{run}");
    }
    let notes = "/projects/12/merge_requests/7/notes";
    assert_eq!(api.state().writes, [format!("POST {notes}"), format!("PUT {notes}/101")]);
    assert!(api.bodies()[101].contains("registry.example/agent:2"), "{:?}", api.bodies());
    sandbox.git(&["-C", checkout, "checkout", "-q", "-"]);

    // A plan that `ds-apply` would refuse fails the job.
    sandbox.write("checkout/deploy/agent.yaml", AGENT.replace("app: agent", "app: other"));
    sandbox.git(&["-C", checkout, "commit", "-qam", "another selector"]);
    let run = gitlab(&sandbox, &api, "ds-plan", "", "");
    assert_eq!(run.code, Some(6), "{run}");
}

#[test]
fn the_other_jobs_use_valid_arguments() {
    let api = Api::start();
    for job in ["ds-snapshot", "ds-plan-production", "ds-apply", "ds-drift"] {
        let sandbox = cloned(&newer());
        let digest = plan_of_main(&sandbox, "checkout/plan.json");
        let run = gitlab(&sandbox, &api, job, TOKEN, &digest);
        assert_eq!(run.code, Some(1), "{job}: {run}");
        assert!(run.stderr.contains("127.0.0.1:1"), "{job}: {run}");
    }
}
