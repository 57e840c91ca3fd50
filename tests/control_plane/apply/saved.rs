//! Plans that were saved: from a git repository, carried out later, on a cluster that has moved on.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use assert_cmd::cargo::cargo_bin;

use super::*;

const NODES: usize = 6;

/// A git repository with one manifest, beside which the programs run.
struct Repository<'p> {
    fleet: Fleet<'p>,
    folder: tempfile::TempDir,
}

impl<'p> Repository<'p> {
    /// One whose `v1` is live, and whose `v2` is the newest commit.
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

    /// Commits the manifest with this image; the commit's id.
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
        assert!(output.status.success(), "{}", told(&output));
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

    /// `ds-plan --out`.
    fn save(&self) {
        let output = self
            .command(cargo_bin!("ds-plan"))
            .args(["--out", "plan.json", "-n", &self.fleet.namespace])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    }

    /// `ds-apply` of the saved plan.
    fn carry_out(&self, flags: &[&str]) -> Output {
        let arguments = [&["--plan", "plan.json"], flags].concat();
        self.command(cargo_bin!("ds-apply")).args(arguments).output().unwrap()
    }

    /// The plan is stale for this reason, and nothing has changed.
    #[track_caller]
    fn is_stale(&self, flags: &[&str], why: &str) {
        let before = self.state();
        let output = self.carry_out(flags);
        assert_eq!(output.status.code(), Some(5), "{}", told(&output));
        assert!(told(&output).contains(why), "{why}: {}", told(&output));
        assert_eq!(self.state(), before, "{}", told(&output));
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

    /// Deletes one pod, and waits until the controller has made up for it.
    fn lose_a_pod(&self) {
        let name = "--output=jsonpath={.items[0].metadata.name}";
        let (pod, uid) = (self.fleet.kubectl(&["get", "pods", name]), self.uid_of_a_pod());
        self.fleet.kubectl(&["delete", "pod", &pod]);
        let uids = "--output=jsonpath={.items[*].metadata.uid}";
        wait_until("the pod to be gone", SOON, || {
            !self.fleet.kubectl(&["get", "pods", uids]).contains(&uid)
        });
        wait_for("all pods to be ready", SOON, NODES, || self.fleet.ready());
    }
}

#[test]
fn a_saved_plan_is_carried_out_or_says_why_not() {
    let plane = ControlPlane::start();
    plane.create_nodes(three_zones(NODES));
    let scenarios: [fn(&ControlPlane); 6] = [
        what_was_planned_is_carried_out_whatever_git_has_since,
        pods_come_and_go_unless_strict,
        what_others_changed_makes_it_stale,
        another_object_of_the_name_makes_it_stale,
        other_manifests_make_it_stale,
        a_plan_that_was_broken_off_goes_on,
    ];
    thread::scope(|scope| {
        for scenario in scenarios {
            let plane = &plane;
            scope.spawn(move || scenario(plane));
        }
    });
}

fn what_was_planned_is_carried_out_whatever_git_has_since(plane: &ControlPlane) {
    let repository = Repository::new(plane, "planned");
    let commit = repository.git(&["rev-parse", "HEAD"]);
    repository.save();
    repository.commit("v3");
    let watcher = repository.fleet.watch();
    let output = repository.carry_out(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    repository.fleet.is_replaced_within(2, &watcher.end(), 2);
    let revisions = repository.fleet.revisions();
    let newest = &revisions.last().unwrap().2;
    assert_eq!(newest["ds-plan.dev/commit"], commit.as_str());
    let cause = format!("{} Ship v2", &commit[..7]);
    assert_eq!(newest["kubernetes.io/change-cause"], cause.as_str());
    // Once more: there is nothing left to do.
    let before = repository.state();
    let again = repository.carry_out(&[]);
    assert_eq!(again.status.code(), Some(0), "{}", told(&again));
    assert_eq!(repository.state(), before);
}

fn pods_come_and_go_unless_strict(plane: &ControlPlane) {
    let repository = Repository::new(plane, "strictly");
    repository.save();
    repository.lose_a_pod();
    repository.is_stale(&["--strict"], "other pods would go than planned: 1 more, 1 fewer");
    let output = repository.carry_out(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    repository.commit("v3");
    repository.save();
    let output = repository.carry_out(&["--strict"]);
    assert_eq!(output.status.code(), Some(0), "as planned: {}", told(&output));
    assert_eq!(repository.fleet.images(), ["v3".to_owned()].into());
}

fn what_others_changed_makes_it_stale(plane: &ControlPlane) {
    let repository = Repository::new(plane, "others");
    repository.save();
    repository.fleet.kubectl(&["set", "image", "daemonset/agent", "agent=cr.example/agent:v9"]);
    wait_for("the other image", SOON, ["v9".to_owned()].into(), || repository.fleet.images());
    wait_for("all pods to be ready", SOON, NODES, || repository.fleet.ready());
    repository.is_stale(&[], "somebody changed its template meanwhile");
}

fn another_object_of_the_name_makes_it_stale(plane: &ControlPlane) {
    let repository = Repository::new(plane, "another");
    repository.save();
    repository.fleet.kubectl(&["delete", "daemonset", "agent"]);
    wait_for("no pods", SOON, String::new(), || {
        repository.fleet.kubectl(&["get", "pods", "--output=name"])
    });
    repository.is_stale(&[], "is no longer the object that was planned on");
    let version = manifest("another", "v1", &at_most("2"));
    let created = repository.fleet.apply(&version, &[]);
    assert_eq!(created.status.code(), Some(0), "{}", told(&created));
    repository.fleet.wait_until_available();
    repository.is_stale(&[], "is no longer the object that was planned on");
}

fn other_manifests_make_it_stale(plane: &ControlPlane) {
    let repository = Repository::new(plane, "manifests");
    repository.save();
    repository.commit("v3");
    repository.is_stale(&["-f", "agent.yaml"], "would get another template than was planned");
    let emptied = "apiVersion: v1\nkind: List\nitems: []\n";
    std::fs::write(repository.folder.path().join("agent.yaml"), emptied).unwrap();
    let before = repository.state();
    let output = repository.carry_out(&["-f", "agent.yaml"]);
    assert_ne!(output.status.code(), Some(0), "{}", told(&output));
    assert_eq!(repository.state(), before);
}

fn a_plan_that_was_broken_off_goes_on(plane: &ControlPlane) {
    let repository = Repository::new(plane, "broken-off");
    repository.save();
    let watcher = repository.fleet.watch();
    let mut run = repository.command(cargo_bin!("ds-apply"));
    let mut run =
        run.args(["--plan", "plan.json", "--lease=2s"]).stdout(Stdio::null()).spawn().unwrap();
    wait_until("pods to go", SOON, || watcher.gone() > 0);
    run.kill().unwrap();
    run.wait().unwrap();
    let output = repository.carry_out(&["--lease=2s"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    repository.fleet.is_replaced_within(2, &watcher.end(), 2);
}
