//! The origin of each revision: in its annotations, in `ds-plan history`, and in kubectl.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::*;

const NODES: usize = 6;

impl Fleet<'_> {
    /// Checks that kubectl and `ds-plan` show the same number and change-cause of each revision.
    pub(super) fn histories_agree(&self) {
        let theirs = self.kubectl(&["rollout", "history", "daemonset/agent"]);
        let theirs = theirs.lines().skip_while(|line| !line.starts_with("REVISION")).skip(1);
        let theirs: Vec<(String, String)> = theirs
            .filter_map(|line| line.split_once(char::is_whitespace))
            .map(|(number, cause)| (number.to_owned(), cause.trim().to_owned()))
            .collect();
        let name = format!("{}/agent", self.namespace);
        let ours = self.plane.ds_plan(&["history", &name, "-o", "json"], &[]);
        let ours: Value = serde_json::from_str(&stdout(&ours)).unwrap();
        let ours = ours["daemonSets"][0]["revisions"].as_array().unwrap().iter();
        let cause =
            |revision: &Value| revision["changeCause"].as_str().unwrap_or("<none>").to_owned();
        let ours: Vec<_> =
            ours.map(|revision| (revision["number"].to_string(), cause(revision))).collect();
        assert_eq!(ours, theirs, "{}", self.namespace);
    }

    /// Checks that the rollout is complete for kubectl.
    pub(super) fn is_rolled_out(&self) {
        let reported = self.kubectl(&["rollout", "status", "daemonset/agent", "--timeout=20s"]);
        assert!(reported.contains("successfully rolled out"), "{reported}");
    }
}

/// A repository with the manifest in it.
struct Repository(tempfile::TempDir);

impl Repository {
    fn new() -> Self {
        let it = Self(tempfile::tempdir().unwrap());
        it.git(&["init", "--quiet"]);
        it
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn git(&self, arguments: &[&str]) -> String {
        let identity = ["-c", "user.name=Test", "-c", "user.email=test@example.com"];
        let mut git = Command::new("git");
        let output = git.args(identity).args(arguments).current_dir(self.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn write(&self, manifest: &str) {
        fs::write(self.path().join("agent.yaml"), manifest).unwrap();
    }

    /// Commits the manifest; returns the commit's id.
    fn commit(&self, manifest: &str, subject: &str) -> String {
        self.write(manifest);
        self.git(&["add", "agent.yaml"]);
        self.git(&["commit", "--quiet", "--message", subject]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Runs `ds-apply --yes` in its folder; returns the newest revision afterwards.
    fn apply(&self, fleet: &Fleet<'_>, arguments: &[&str], code: i32) -> (String, i64, Value) {
        let mut program = fleet.plane.ds_apply(&[arguments, &["--yes"]].concat(), &[]);
        program.command.current_dir(self.path());
        let output = program.run();
        assert_eq!(output.status.code(), Some(code), "{}", output_text(&output));
        fleet.histories_agree();
        if code == 0 {
            fleet.is_rolled_out();
        }
        fleet.revisions().pop().unwrap()
    }
}

fn version(image: &str) -> String {
    manifest("recorded", image, &at_most("2"))
}

fn of<'r>(revision: &'r (String, i64, Value), key: &str) -> &'r str {
    revision.2[key].as_str().unwrap_or("none")
}

const COMMIT: &str = "ds-plan.dev/commit";
const CAUSE: &str = "kubernetes.io/change-cause";
const PLAN: &str = "ds-plan.dev/plan-digest";

#[test]
fn every_revision_records_its_origin() {
    let plane = ControlPlane::start();
    plane.create_nodes(three_zones(NODES));
    plane.kubectl(&["create", "namespace", "recorded"]);
    let fleet = Fleet { plane: &plane, namespace: "recorded".to_owned(), nodes: NODES };
    let repository = Repository::new();

    let first = repository.commit(&version("v1"), "first");
    let one = repository.apply(&fleet, &[], 0);
    fleet.wait_until_available();
    assert_eq!((of(&one, COMMIT), of(&one, CAUSE)), (&*first, &*format!("{} first", &first[..7])));
    assert!(of(&one, PLAN).starts_with("sha256:"), "{one:?}");

    let because = "name: agent, annotations: {kubernetes.io/change-cause: because},";
    let second = repository.commit(&version("v2").replacen("name: agent,", because, 1), "second");
    let two = repository.apply(&fleet, &[], 0);
    assert_eq!((of(&two, COMMIT), of(&two, CAUSE), two.1), (&*second, "because", 2));

    // The first template again: its revision is reused, and records both commits.
    let third = repository.commit(&version("v1"), "third");
    let again = repository.apply(&fleet, &[], 0);
    assert_eq!((&again.0, again.1), (&one.0, 3));
    assert_eq!(of(&again, COMMIT), format!("{first},{third}"));
    assert_eq!(of(&again, CAUSE), format!("{} third", &third[..7]));
    assert_eq!(of(&again, PLAN).matches("sha256:").count(), 2, "{again:?}");

    // Files on disk: equal to the commit, modified, and without a commit.
    let file = ["-f", "agent.yaml"];
    repository.write(&version("v3"));
    let dirty = repository.apply(&fleet, &file, 0);
    assert_eq!(of(&dirty, COMMIT), format!("{third}-dirty"));
    assert_eq!(of(&dirty, CAUSE), format!("{}-dirty third", &third[..7]));
    let fourth = repository.commit(&version("v4"), "fourth");
    let clean = repository.apply(&fleet, &file, 0);
    assert_eq!(of(&clean, COMMIT), fourth);
    let elsewhere = fleet.apply(&version("v5"), &[]);
    assert_eq!(elsewhere.status.code(), Some(0), "{}", output_text(&elsewhere));
    let last = fleet.revisions().pop().unwrap();
    assert!(of(&last, COMMIT).starts_with("sha256:"), "{last:?}");
    assert_eq!(of(&last, CAUSE), "none");
    fleet.histories_agree();
    fleet.is_rolled_out();

    // A failed rollout records its origin too, and so does an aborted one.
    let bad = repository.commit(&version("v6-bad"), "sixth");
    repository.apply(&fleet, &["--progress-deadline=8s"], 4);
    let reported_bad = fleet.revisions().into_iter().any(|one| of(&one, COMMIT) == bad);
    assert!(reported_bad, "{:?}", fleet.revisions());
    let aborted = fleet.revisions().pop().unwrap();
    assert_eq!(aborted.0, last.0, "aborted, with the previous template: {:?}", fleet.revisions());

    let back = ["undo", "recorded/agent", "--to-commit", &second[..9]];
    let undone = repository.apply(&fleet, &back, 0);
    assert_eq!(undone.0, two.0);
    assert_eq!((of(&undone, COMMIT), of(&undone, CAUSE)), (&*second, "because"));
    assert_eq!(fleet.images(), ["v2".to_owned()].into());
}
