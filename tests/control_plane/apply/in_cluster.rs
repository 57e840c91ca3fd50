//! `deploy/` as in a cluster: the API server accepts its objects, the `restricted` pod security
//! standard its pods; and each program does its whole job with its own account's token, on a clone
//! as git-sync leaves it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use assert_cmd::cargo::cargo_bin;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::approved::ends;
use super::manifest;
use crate::harness::{ControlPlane, FakeNode, kubectl_path, shown_yaml, wait_until};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const SOON: Duration = Duration::from_mins(1);

/// The kustomization that the guide shows, with `deploy/` next to it.
pub(super) fn shown_overlay() -> TempDir {
    let kustomization = shown_yaml("Kustomization");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("kustomization.yaml"), kustomization).unwrap();
    let mut copy = Command::new("cp");
    copy.arg("-r").arg(format!("{ROOT}/deploy")).arg(folder.path());
    assert!(copy.status().unwrap().success());
    folder
}

/// A cluster with all of `deploy/`, and a repository for it.
struct Site {
    plane: ControlPlane,
    folder: TempDir,
}

impl Site {
    fn start() -> Self {
        let plane = ControlPlane::builder().with_controller("job-controller").audit().start();
        plane.create_nodes(FakeNode::many("node", 3));
        plane.kubectl(&["apply", "--kustomize", shown_overlay().path().to_str().unwrap()]);
        let site = Self { plane, folder: tempfile::tempdir().unwrap() };
        fs::create_dir_all(site.path("origin/fleet")).unwrap();
        site.git("origin", &["init", "-q", "-b", "main"]);
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn git(&self, folder: &str, arguments: &[&str]) -> String {
        let person = ["-c", "user.name=Test", "-c", "user.email=test@example.com"];
        let mut git = Command::new("git");
        git.args(person).args(arguments).current_dir(self.path(folder));
        let output = git.output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Pushes this version to the repository.
    fn push(&self, version: &str) {
        let agent = manifest("default", version, "  minReadySeconds: 3");
        fs::write(self.path("origin/fleet/agent.yaml"), agent).unwrap();
        self.git("origin", &["add", "-A"]);
        self.git("origin", &["commit", "-q", "-m", version]);
    }

    /// Adds a policy with a canary to the repository; the next push has it.
    fn soak(&self, seconds: u32) {
        let policy = format!(
            "apiVersion: ds-plan.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {{name: careful}}\nspec: \
             {{selects: {{names: [default/agent]}}, steps: [{{name: canary, nodes: 1, soak: {seconds}s}}]}}\n"
        );
        fs::write(self.path("origin/fleet/policy.yaml"), policy).unwrap();
    }

    /// Starts a Job of the `CronJob` that resumes, as its schedule does; returns its name.
    fn comes_again(&self, number: u32) -> String {
        let name = format!("resume-{number}");
        self.plane.kubectl(&["-n=ds-plan", "create", "job", "--from=cronjob/resume", &name]);
        name
    }

    /// Ends the pod of a Job with this exit code, as a kubelet does; there is none here.
    fn pod_ends(&self, job: &str, code: i32) {
        let pod = self.pods_of(job).pop().unwrap();
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        let container = job.split('-').next().unwrap();
        let ended = json!({"exitCode": code, "reason": "Completed"});
        let status = json!({"phase": phase, "containerStatuses": [{
            "name": container, "image": "i", "imageID": "i", "ready": false, "restartCount": 0,
            "state": {"terminated": ended},
        }]});
        let patch = format!("--patch={}", json!({"status": status}));
        let merge = ["--subresource=status", "--type=merge", &patch];
        self.plane.kubectl(&[&["-n=ds-plan", "patch", &pod][..], &merge].concat());
    }

    /// The pods of a Job that have not ended, once there is one.
    fn pods_of(&self, job: &str) -> Vec<String> {
        let mut found = Vec::new();
        wait_until("a pod of the Job", SOON, || {
            let selector = format!("--selector=job-name={job}");
            let active = "--field-selector=status.phase!=Failed,status.phase!=Succeeded";
            let get = ["-n=ds-plan", "get", "pods", &selector, active, "-o=name"];
            found = self.plane.kubectl(&get).lines().map(str::to_owned).collect();
            !found.is_empty()
        });
        found
    }

    /// Waits for a condition of a Job.
    fn job_is(&self, job: &str, condition: &str) {
        let condition = format!("--for=condition={condition}");
        let job = format!("job/{job}");
        self.plane.kubectl(&["-n=ds-plan", "wait", &condition, "--timeout=60s", &job]);
    }

    /// Clones as git-sync does: one commit without history, in a linked worktree, behind a symbolic
    /// link.
    fn clone_as_git_sync_does(&self) -> PathBuf {
        let root = self.path("git");
        let _ = fs::remove_dir_all(&root);
        fs::create_dir(&root).unwrap();
        self.git("git", &["init", "-q"]);
        let origin = format!("file://{}", self.path("origin").display());
        self.git("git", &["fetch", "-q", "--depth=1", &origin, "HEAD"]);
        let commit = self.git("git", &["rev-parse", "FETCH_HEAD"]);
        let tree = format!(".worktrees/{commit}");
        self.git("git", &["worktree", "add", "-q", "--detach", &tree, &commit]);
        symlink(&tree, root.join("repository")).unwrap();
        root.join("repository")
    }

    /// The pod of a Job, or of a `CronJob`'s Jobs.
    fn pod(&self, kind: &str, name: &str) -> Value {
        let object = self.plane.kubectl(&["-n=ds-plan", "get", kind, name, "-o=json"]);
        let object: Value = serde_json::from_str(&object).unwrap();
        let job = if kind == "cronjob" { &object["spec"]["jobTemplate"] } else { &object };
        job["spec"]["template"]["spec"].clone()
    }

    /// Runs the only container of a pod as its account, with an empty environment.
    fn run(&self, pod: &Value) -> Output {
        let container = &pod["containers"][0];
        let program = match container["command"][0].as_str().unwrap() {
            "/ds-plan" => cargo_bin!("ds-plan"),
            "/ds-apply" => cargo_bin!("ds-apply"),
            other => panic!("{other} is not in the image"),
        };
        let clone = self.clone_as_git_sync_does();
        let arguments = container["args"].as_array().unwrap().iter().map(|argument| {
            let argument = argument.as_str().unwrap();
            let argument = argument.replace("/git/repository", clone.to_str().unwrap());
            argument.replace("$(SOURCE_PATH)", "fleet")
        });
        Command::new(program)
            .args(arguments)
            .env_clear()
            .env("KUBECONFIG", self.kubeconfig(pod["serviceAccountName"].as_str().unwrap()))
            .current_dir("/")
            .output()
            .unwrap()
    }

    fn kubeconfig(&self, account: &str) -> PathBuf {
        let token = self.plane.kubectl(&["-n=ds-plan", "create", "token", account]);
        let admins = fs::read_to_string(self.plane.kubeconfig_path()).unwrap();
        let text = admins.replace("token-of-admin", token.trim());
        assert_ne!(text, admins);
        let path = self.path(account);
        fs::write(&path, text).unwrap();
        path
    }

    fn image(&self) -> String {
        let path = "-o=jsonpath={.spec.template.spec.containers[0].image}";
        self.plane.kubectl(&["get", "daemonset", "agent", path])
    }

    /// The requests of the accounts that were denied.
    fn denied(&self) -> Vec<Value> {
        let mut events = self.plane.audit_log();
        events.retain(|event| {
            let user = event["user"]["username"].as_str().unwrap_or_default();
            user.starts_with("system:serviceaccount:ds-plan:ds-")
                && event["responseStatus"]["code"] == 403
        });
        events
    }
}

#[test]
fn each_account_has_all_permissions_for_its_job() {
    let site = Site::start();
    let [drift, resume] = ["drift", "resume"].map(|name| site.pod("cronjob", name));
    let apply = site.pod("job", "apply");
    let ends = |pod: &Value, code: i32| {
        let output = site.run(pod);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
    };
    // The namespace's pod security standard does not block the Job.
    wait_until("the Job's pod", SOON, || {
        let pods = site.plane.kubectl(&["-n=ds-plan", "get", "pods", "-o=name"]);
        pods.contains("pod/apply-")
    });
    site.push("v1");
    ends(&drift, 3);
    ends(&apply, 0);
    ends(&drift, 0);

    // A paused rollout is resumed, and nothing else is started.
    site.push("v2");
    let manifest = fs::read_to_string(site.path("origin/fleet/agent.yaml")).unwrap();
    let stop = ["--yes", "--timeout=4s", "-f=agent.yaml"];
    let stopped = site.plane.ds_apply(&stop, &[("agent.yaml", &manifest)]).run();
    assert_eq!(stopped.status.code(), Some(4), "{stopped:?}");
    ends(&drift, 3);
    ends(&resume, 0);
    ends(&drift, 0);
    site.push("v3");
    ends(&resume, 0);
    assert_eq!(site.image(), "cr.example/agent:v2");
    assert_eq!(site.denied(), Vec::<Value>::new());
}

/// The Job of `apply` and those of the schedule are complete while a rollout waits, and the last of
/// them finishes it.
#[test]
fn a_rollout_that_waits_fails_no_job_and_is_continued_by_the_schedule() {
    let site = Site::start();
    let (apply, resume) = (site.pod("job", "apply"), site.pod("cronjob", "resume"));
    let drift = site.pod("cronjob", "drift");
    site.push("v1");
    assert_eq!(site.run(&apply).status.code(), Some(0));
    site.soak(20);
    site.push("v2");
    let waits = |output: &Output, job: &str| {
        let words = ["waiting: step canary soaks until ", "exit code 8 is a success"];
        ends(output, 0, &words);
        site.pod_ends(job, 0);
        site.job_is(job, "complete");
        assert_eq!(site.image(), "cr.example/agent:v1", "the last good template is live");
    };
    waits(&site.run(&apply), "apply");
    let job = site.comes_again(1);
    waits(&site.run(&resume), &job);
    // No drift, but it is reported.
    wait_until("a report without drift", SOON, || site.run(&drift).status.code() == Some(0));
    ends(&site.run(&drift), 0, &["Drift: none.", "waiting, begun by ", "step canary soaks until"]);

    let job = site.comes_again(2);
    wait_until("the end of the soak", SOON, || {
        let output = site.run(&resume);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        site.image() == "cr.example/agent:v2"
    });
    site.pod_ends(&job, 0);
    site.job_is(&job, "complete");
    ends(&site.run(&drift), 0, &["Drift: none."]);
    assert_eq!(site.denied(), Vec::<Value>::new());
}

/// The reason for `--success-exit-codes`: the Job controller would retry a pod that waits at once.
#[test]
fn the_job_controller_would_retry_a_pod_that_waits() {
    let site = Site::start();
    for code in [8, 9] {
        let before = site.pods_of("apply");
        site.pod_ends("apply", code);
        wait_until("another pod", SOON, || site.pods_of("apply") != before);
        let failed = ["-n=ds-plan", "get", "job", "apply", "-o=jsonpath={.status.conditions}"];
        assert_eq!(site.plane.kubectl(&failed), "", "{code}");
    }
    site.pod_ends("apply", 4);
    site.job_is("apply", "failed");
}

/// Text, JSON, Markdown, page and metrics of a rollout that waits, and of one that is forgotten.
#[test]
fn drift_tells_a_rollout_that_waits_from_a_forgotten_one() {
    let site = Site::start();
    let apply = site.pod("job", "apply");
    site.push("v1");
    assert_eq!(site.run(&apply).status.code(), Some(0));
    site.soak(3600);
    site.push("v2");
    ends(&site.run(&apply), 0, &["exit code 8 is a success"]);
    let (repository, page) = (site.path("origin"), site.path("drift.html"));
    let metrics = site.path("metrics.txt");
    let report = |format: &str| {
        let repository = format!("--repo={}", repository.display());
        let (report, to) =
            (format!("--report={}", page.display()), format!("--metrics={}", metrics.display()));
        let line = ["drift", &repository, "--path=fleet", &report, &to, "-o", format];
        site.plane.ds_plan(&line, &[])
    };
    wait_until("the status of the controller", SOON, || report("text").status.code() == Some(0));
    let words = "step canary soaks until ";
    for format in ["text", "json", "markdown"] {
        ends(&report(format), 0, &[words]);
    }
    let read = |file: &PathBuf| fs::read_to_string(file).unwrap();
    assert!(read(&page).contains("no drift, 1 DaemonSet checked, 1 rollout waits"));
    let labels = "namespace=\"default\",daemonset=\"agent\"";
    for line in [
        format!("ds_plan_drift{{{labels},class=\"rollout\"}} 0"),
        format!("ds_plan_rollout{{{labels},state=\"waiting\"}} 1"),
        format!("ds_plan_rollout_step{{{labels},step=\"canary\"}} 1"),
    ] {
        assert!(read(&metrics).lines().any(|it| it == line), "{line}: {}", read(&metrics));
    }

    // Nobody has come since two hours after its end.
    let get = "-o=jsonpath={.metadata.annotations.ds-plan\\.dev/rollout}";
    let mut pause: Value =
        serde_json::from_str(&site.plane.kubectl(&["get", "daemonset", "agent", get])).unwrap();
    let until = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(2);
    pause["waitsFor"][0]["until"] = json!(until);
    let note = format!("ds-plan.dev/rollout={pause}");
    site.plane.kubectl(&["annotate", "daemonset", "agent", "--overwrite", &note]);
    for format in ["text", "json", "markdown"] {
        ends(&report(format), 3, &[words, "forgotten: no run has come for "]);
    }
    assert!(read(&page).contains("forgotten: no run has come for "));
    let line = format!("ds_plan_drift{{{labels},class=\"rollout\"}} 2");
    assert!(read(&metrics).lines().any(|it| it == line), "{}", read(&metrics));
}

/// Credentials of one container are not available to the other.
#[test]
fn credentials_are_only_in_the_containers_that_need_them() {
    let overlay = shown_overlay();
    let rendered = Command::new(kubectl_path()).arg("kustomize").arg(overlay.path()).output();
    let text = String::from_utf8(rendered.unwrap().stdout).unwrap();
    let mut seen = Vec::new();
    for object in text.split("---\n") {
        let object: Value = serde_yaml::from_str(object).unwrap();
        let pod = match object["kind"].as_str().unwrap() {
            "CronJob" => &object["spec"]["jobTemplate"]["spec"]["template"]["spec"],
            "Job" => &object["spec"]["template"]["spec"],
            _ => continue,
        };
        let [clone, program] = [&pod["initContainers"][0], &pod["containers"][0]];
        assert_eq!(pod["automountServiceAccountToken"], false);
        assert_eq!(mounts(clone), ["git", "tmp", "deploy-key"]);
        assert_eq!(mounts(program), ["git", "token"]);
        assert!(!program["env"].to_string().contains("secretKeyRef"));
        let image = format!("ghcr.io/your-org/ds-plan:v{}", env!("CARGO_PKG_VERSION"));
        assert_eq!(program["image"], image);
        seen.push(program["name"].as_str().unwrap().to_owned());
    }
    assert_eq!(seen, ["drift", "resume", "apply"]);
}

fn mounts(container: &Value) -> Vec<&str> {
    let mounts = container["volumeMounts"].as_array().unwrap();
    mounts.iter().map(|mount| mount["name"].as_str().unwrap()).collect()
}
