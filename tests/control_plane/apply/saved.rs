//! Saved plans: from a git repository, applied later, on a cluster that has changed.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use assert_cmd::cargo::cargo_bin;

use super::*;

const NODES: usize = 6;

/// A git repository with one manifest, in which the programs run.
struct Repository<'p> {
    fleet: Fleet<'p>,
    folder: tempfile::TempDir,
}

impl<'p> Repository<'p> {
    /// A repository whose `v1` is live, and whose `v2` is the newest commit.
    fn new(plane: &'p ControlPlane, namespace: &str) -> Self {
        let version = manifest(namespace, "v1", &at_most("2"));
        let fleet = Fleet::new(plane, namespace, NODES, &version);
        let folder = tempfile::tempdir().unwrap();
        let repository = Self { fleet, folder };
        repository.git(&["init", "-q", "-b", "main"]);
        repository.commit("v1");
        repository.commit("v2");
        repository
    }

    /// Commits the manifest with this image; returns the commit's id.
    fn commit(&self, image: &str) -> String {
        let version = manifest(&self.fleet.namespace, image, &at_most("2"));
        std::fs::write(self.folder.path().join("agent.yaml"), version).unwrap();
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", &format!("Ship {image}")]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn git(&self, arguments: &[&str]) -> String {
        let person = ["-c", "user.name=Test", "-c", "user.email=test@example.com"];
        let output = self.command(Path::new("git")).args(person).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", output_text(&output));
        stdout(&output).trim().to_owned()
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.folder.path())
            .env("HOME", self.folder.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("KUBECONFIG", self.fleet.plane.kubeconfig_path());
        command
    }

    /// Runs `ds-plan --out`.
    fn save(&self) {
        let output = self
            .command(cargo_bin!("ds-plan"))
            .args(["--out", "plan.json", "-n", &self.fleet.namespace])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", output_text(&output));
    }

    /// Runs `ds-apply` of the saved plan.
    fn carry_out(&self, flags: &[&str]) -> Output {
        let arguments = [&["--plan", "plan.json"], flags].concat();
        self.command(cargo_bin!("ds-apply")).args(arguments).output().unwrap()
    }

    /// Checks that the plan is stale for this reason, and nothing has changed.
    #[track_caller]
    fn is_stale(&self, flags: &[&str], why: &str) {
        let before = self.state();
        let output = self.carry_out(flags);
        assert_eq!(output.status.code(), Some(5), "{}", output_text(&output));
        assert!(output_text(&output).contains(why), "{why}: {}", output_text(&output));
        assert_eq!(self.state(), before, "{}", output_text(&output));
    }

    /// The uid and generation of the DaemonSet, and the uids of its pods.
    fn state(&self) -> String {
        let of = |kind: &str, what: &str| {
            let what = format!("--output=jsonpath={{range .items[*]}}{{{what}}} {{end}}");
            self.fleet.kubectl(&["get", kind, &what])
        };
        let set = of("daemonsets", ".metadata.uid") + &of("daemonsets", ".metadata.generation");
        set + &of("pods", ".metadata.uid")
    }

    fn uid_of_a_pod(&self) -> String {
        self.fleet.kubectl(&["get", "pods", "--output=jsonpath={.items[0].metadata.uid}"])
    }

    /// Deletes one pod, and waits until the controller has replaced it.
    fn lose_a_pod(&self) {
        let name = "--output=jsonpath={.items[0].metadata.name}";
        let (pod, uid) = (self.fleet.kubectl(&["get", "pods", name]), self.uid_of_a_pod());
        self.fleet.kubectl(&["delete", "pod", &pod]);
        let uids = "--output=jsonpath={.items[*].metadata.uid}";
        wait_until("the pod to be deleted", SOON, || {
            !self.fleet.kubectl(&["get", "pods", uids]).contains(&uid)
        });
        wait_for("all pods to be ready", SOON, NODES, || self.fleet.ready());
    }
}

#[test]
fn a_saved_plan_is_applied_or_reported_as_stale() {
    let plane = ControlPlane::start();
    plane.create_nodes(three_zones(NODES));
    let scenarios: [fn(&ControlPlane); 6] = [
        the_saved_plan_is_applied_despite_later_commits,
        changed_pods_matter_only_if_strict,
        changes_by_other_clients_make_it_stale,
        another_object_of_the_name_makes_it_stale,
        other_manifests_make_it_stale,
        an_interrupted_plan_is_resumed,
    ];
    thread::scope(|scope| {
        for scenario in scenarios {
            let plane = &plane;
            scope.spawn(move || scenario(plane));
        }
    });
}

fn the_saved_plan_is_applied_despite_later_commits(plane: &ControlPlane) {
    let repository = Repository::new(plane, "planned");
    let commit = repository.git(&["rev-parse", "HEAD"]);
    repository.save();
    repository.commit("v3");
    let watcher = repository.fleet.watch();
    let output = repository.carry_out(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", output_text(&output));
    repository.fleet.is_replaced_within(2, &watcher.end(), 2);
    let revisions = repository.fleet.revisions();
    let newest = &revisions.last().unwrap().2;
    assert_eq!(newest["ds-plan.dev/commit"], commit.as_str());
    let cause = format!("{} Ship v2", &commit[..7]);
    assert_eq!(newest["kubernetes.io/change-cause"], cause.as_str());
    // Applied again: there is nothing left to do.
    let before = repository.state();
    let again = repository.carry_out(&[]);
    assert_eq!(again.status.code(), Some(0), "{}", output_text(&again));
    assert_eq!(repository.state(), before);
}

fn changed_pods_matter_only_if_strict(plane: &ControlPlane) {
    let repository = Repository::new(plane, "strictly");
    repository.save();
    repository.lose_a_pod();
    repository.is_stale(&["--strict"], "other pods would be deleted than planned: 1 more, 1 fewer");
    let output = repository.carry_out(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", output_text(&output));
    repository.commit("v3");
    repository.save();
    let output = repository.carry_out(&["--strict"]);
    assert_eq!(output.status.code(), Some(0), "as planned: {}", output_text(&output));
    assert_eq!(repository.fleet.images(), ["v3".to_owned()].into());
}

fn changes_by_other_clients_make_it_stale(plane: &ControlPlane) {
    let repository = Repository::new(plane, "others");
    repository.save();
    repository.fleet.kubectl(&["set", "image", "daemonset/agent", "agent=cr.example/agent:v9"]);
    wait_for("the other image", SOON, ["v9".to_owned()].into(), || repository.fleet.images());
    wait_for("all pods to be ready", SOON, NODES, || repository.fleet.ready());
    repository.is_stale(&[], "its live template was changed since the plan");
}

fn another_object_of_the_name_makes_it_stale(plane: &ControlPlane) {
    let repository = Repository::new(plane, "another");
    repository.save();
    repository.fleet.kubectl(&["delete", "daemonset", "agent"]);
    wait_for("no pods", SOON, String::new(), || {
        repository.fleet.kubectl(&["get", "pods", "--output=name"])
    });
    repository.is_stale(&[], "was created, deleted or recreated since the plan");
    let version = manifest("another", "v1", &at_most("2"));
    let created = repository.fleet.apply(&version, &[]);
    assert_eq!(created.status.code(), Some(0), "{}", output_text(&created));
    repository.fleet.wait_until_available();
    repository.is_stale(&[], "was created, deleted or recreated since the plan");
}

fn other_manifests_make_it_stale(plane: &ControlPlane) {
    let repository = Repository::new(plane, "manifests");
    repository.save();
    repository.commit("v3");
    repository.is_stale(&["-f", "agent.yaml"], "would get a different template than planned");
    let emptied = "apiVersion: v1\nkind: List\nitems: []\n";
    std::fs::write(repository.folder.path().join("agent.yaml"), emptied).unwrap();
    let before = repository.state();
    let output = repository.carry_out(&["-f", "agent.yaml"]);
    assert_ne!(output.status.code(), Some(0), "{}", output_text(&output));
    assert_eq!(repository.state(), before);
}

fn an_interrupted_plan_is_resumed(plane: &ControlPlane) {
    let repository = Repository::new(plane, "broken-off");
    repository.save();
    let watcher = repository.fleet.watch();
    let mut run = repository.command(cargo_bin!("ds-apply"));
    let mut run =
        run.args(["--plan", "plan.json", "--lease=2s"]).stdout(Stdio::null()).spawn().unwrap();
    wait_until("pods to be deleted", SOON, || watcher.gone() > 0);
    run.kill().unwrap();
    run.wait().unwrap();
    let output = repository.carry_out(&["--lease=2s"]);
    assert_eq!(output.status.code(), Some(0), "{}", output_text(&output));
    repository.fleet.is_replaced_within(2, &watcher.end(), 2);
}
