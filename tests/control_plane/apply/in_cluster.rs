//! `deploy/` as in a cluster: the API server accepts its objects, the `restricted` pod security
//! standard its pods; and each program does its whole job with its own account's token, on a clone
//! as git-sync leaves it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use tempfile::TempDir;

use super::manifest;
use crate::harness::{ControlPlane, FakeNode, kubectl_path, shown_yaml, wait_until};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const SOON: Duration = Duration::from_mins(1);

/// The kustomization that the guide shows, with `deploy/` next to it.
fn shown_overlay() -> TempDir {
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
        assert_eq!(program["image"], "registry.example.com/ds-plan:0.1.0");
        seen.push(program["name"].as_str().unwrap().to_owned());
    }
    assert_eq!(seen, ["drift", "resume", "apply"]);
}

fn mounts(container: &Value) -> Vec<&str> {
    let mounts = container["volumeMounts"].as_array().unwrap();
    mounts.iter().map(|mount| mount["name"].as_str().unwrap()).collect()
}
