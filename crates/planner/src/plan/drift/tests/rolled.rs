//! Rollouts by `ds-apply roll`: no pause says that they wait, but the note and the policy do.

use std::collections::BTreeMap;

use super::*;
use crate::approval::step_digest;
use crate::digest::template_digest;
use daemonset::controller::test_cluster::OURS;
use daemonset::model::{
    Approval, LockHolder, PodReadiness, REVISION_HASH_LABEL, RolloutPolicy, StepNote, StepsNote,
};

/// Three nodes, whose DaemonSet declares `OnDelete` and has a new template since second 900.
struct Rolled {
    cluster: Cluster,
    desired: DesiredDaemonSet,
    note: StepsNote,
    approvals: Option<BTreeMap<String, Approval>>,
    lock: Option<LockHolder>,
}

impl Rolled {
    /// Its rollout has begun in second 1000.
    fn under(policy: &Value) -> Self {
        Self::of("foo:2", policy)
    }

    /// The same of this image.
    fn of(image: &str, policy: &Value) -> Self {
        let policy = json!({
            "apiVersion": "ds-plan.dev/v1alpha1", "kind": "RolloutPolicy",
            "metadata": {"name": "p"}, "spec": policy,
        });
        let policy: RolloutPolicy = serde_json::from_value(policy).unwrap();
        let mut cluster = settled(3);
        cluster.set_on_delete();
        cluster.set_image(image);
        let desired = DesiredDaemonSet { policy: Some(policy.into()), ..desired(&cluster) };
        cluster.sync_once();
        let note = StepsNote {
            template: template_digest(cluster.daemon_set.spec.template.raw()),
            started_at: Some(at(1000)),
            ..StepsNote::default()
        };
        Self { cluster, desired, note, approvals: Some(BTreeMap::new()), lock: None }
    }

    /// This node got its new pod.
    fn replace(&mut self, node: &str, created: i64) {
        let hash = self.cluster.hash();
        let is_there =
            |pod: &&mut daemonset::model::Pod| pod.node().is_some_and(|name| name.as_str() == node);
        let pod = self.cluster.pods.iter_mut().find(is_there).unwrap();
        pod.labels = OURS.into_iter().chain([(REVISION_HASH_LABEL, hash.as_str())]).collect();
        pod.created = Some(at(created).into());
        pod.readiness = PodReadiness::Ready { since: Some(at(created + 10).into()) };
    }

    /// A run has seen the step complete at this time, and done if its soak `is_over`.
    fn complete(&mut self, step: usize, second: i64, is_over: bool) {
        let step = &self.desired.policy.as_ref().unwrap().spec.steps[step];
        let (digest, complete_at) = (step_digest(step), Some(at(second)));
        let note = StepNote { digest, complete_at, done_at: complete_at.filter(|_| is_over) };
        self.note.steps.insert(step.name.clone(), note);
    }

    fn approve(&mut self, step: usize, second: i64) {
        let step = &self.desired.policy.as_ref().unwrap().spec.steps[step];
        let approval = Approval {
            uid: self.cluster.daemon_set.uid.clone(),
            template: self.note.template.clone(),
            step: step_digest(step),
            by: "alice".to_owned(),
            at: at(second),
        };
        self.approvals.as_mut().unwrap().insert(step.name.clone(), approval);
    }

    /// The drift at this time.
    fn drift(&mut self, second: i64) -> Drift {
        self.cluster.now = at(second);
        let mut snapshot = snapshot(&self.cluster);
        snapshot.set_notes(&self.desired.key, "", Some(self.note.clone()));
        snapshot.leases[0].holder.clone_from(&self.lock);
        let approvals = self.approvals.clone().map(|given| (self.desired.key.clone(), given));
        snapshot.approvals.extend(approvals);
        found(&snapshot, &self.desired)
    }

    /// Checks that it waits for this, and that nothing is drift.
    fn waits(&mut self, second: i64, what: &str) {
        let drift = self.drift(second);
        let want = format!("rollout waiting, begun by ds-apply at 1970-01-01T00:16:40Z, {what}");
        assert_eq!(lines(&drift), [want], "{second}");
        assert_eq!((drift.is_found(), drift.totals), (false, DriftTotals::default()), "{second}");
    }

    /// Checks that it is drift, and whether a wait is reported as forgotten.
    fn is_drift(&mut self, second: i64, is_forgotten: bool) {
        let drift = self.drift(second);
        let lines = lines(&drift);
        assert!(drift.is_found(), "{second}: {lines:#?}");
        let forgotten = lines.iter().filter(|line| line.contains("; forgotten: no run has come"));
        assert_eq!(forgotten.count(), usize::from(is_forgotten), "{second}: {lines:#?}");
        let waiting = lines.iter().filter(|line| line.contains("waiting"));
        assert_eq!(waiting.count(), usize::from(is_forgotten), "{second}: {lines:#?}");
        for part in ["with a pod of another template", "the live template, revision 2, runs on"] {
            assert!(lines.iter().any(|line| line.contains(part)), "{second}: {lines:#?}");
        }
    }
}

/// A policy with a window at 02:00, of this duration.
fn nightly(duration: &str) -> Value {
    json!({
        "selects": {"names": ["default/foo"]},
        "windows": [{"schedule": "0 2 * * *", "duration": duration}],
    })
}

fn soaking() -> Rolled {
    let canary = json!({"name": "canary", "nodes": {"names": ["node-0"]}, "soak": "30m"});
    let mut rolled = Rolled::under(&json!({
        "selects": {"names": ["default/foo"]}, "steps": [canary],
    }));
    rolled.replace("node-0", 1010);
    rolled.complete(0, 1100, false);
    rolled
}

const SOAKS: &str = "step canary soaks until 1970-01-01T00:48:20Z";

#[test]
fn a_soak_is_no_drift_until_it_is_forgotten_for_an_hour() {
    let mut rolled = soaking();
    for second in [1200, 2899, 2900, 2900 + 3599] {
        rolled.waits(second, SOAKS);
    }
    for second in [2900 + 3600, 1_000_000] {
        rolled.is_drift(second, true);
    }
}

#[test]
fn only_a_roll_that_a_run_has_seen_waiting_waits() {
    // The run was killed before it had seen the canary available.
    let mut killed = soaking();
    killed.note.steps.clear();
    killed.is_drift(1200, false);
    // The policy was edited.
    let mut edited = soaking();
    edited.note.steps.get_mut("canary").unwrap().digest = "sha256:other".to_owned();
    edited.is_drift(1200, false);
    let mut other = soaking();
    other.note.template = "sha256:other".to_owned();
    other.is_drift(1200, false);
    let mut ended = soaking();
    ended.note.started_at = None;
    ended.is_drift(1200, false);
    let mut without_policy = soaking();
    without_policy.desired.policy = None;
    without_policy.is_drift(1200, false);
    // A run is at work.
    let mut running = soaking();
    let renewed = Some(at(3000));
    running.lock =
        Some(LockHolder { name: "ci".into(), since: renewed, renewed, lease_seconds: 15 });
    running.is_drift(3001, false);
    running.waits(3100, SOAKS);
}

#[test]
fn another_template_in_git_supersedes_a_roll_that_waits() {
    let mut rolled = soaking();
    let policy = rolled.desired.policy.clone();
    rolled.cluster.set_image("foo:3");
    rolled.desired = DesiredDaemonSet { policy, ..desired(&rolled.cluster) };
    rolled.cluster.set_image("foo:2");
    rolled.cluster.sync_once();
    let drift = rolled.drift(1200);
    let lines = lines(&drift);
    assert!(drift.is_found());
    let end = "; superseded: the source declares another template";
    assert!(lines.iter().any(|line| line.ends_with(end)), "{lines:#?}");
}

#[test]
fn an_approval_has_no_end_until_it_is_given() {
    let steps = json!([
        {"name": "canary", "nodes": {"names": ["node-0"]}},
        {"name": "half", "nodes": {"names": ["node-1"]}, "approve": true},
    ]);
    let mut rolled = Rolled::under(&json!({"selects": {"names": ["default/foo"]}, "steps": steps}));
    rolled.replace("node-0", 1010);
    rolled.complete(0, 1100, true);
    for second in [1200, 1_000_000] {
        rolled.waits(second, "step half is not approved");
    }
    rolled.approve(1, 5000);
    rolled.waits(5000 + 3599, "step half is not approved until 1970-01-01T01:23:20Z");
    rolled.is_drift(5000 + 3600, true);
    // Not known.
    rolled.approvals = None;
    rolled.is_drift(1200, false);
}

#[test]
fn a_window_is_forgotten_once_another_one_has_opened_without_a_run() {
    let (hour, day) = (3600, 86_400);
    let mut rolled = Rolled::under(&nightly("1h"));
    let first = "step rest waits for a maintenance window, the next one opens at \
                 1970-01-01T02:00:00Z";
    for second in [1200, 2 * hour, 3 * hour - 1] {
        rolled.waits(second, first);
    }
    for second in [3 * hour, 12 * hour, day + 2 * hour + 1, 10 * day] {
        rolled.is_drift(second, true);
    }
    // A run has replaced one, and continues as long as the window is open.
    rolled.replace("node-0", 2 * hour + 1000);
    rolled.is_drift(2 * hour + 1200, false);
    let second = "step rest waits for a maintenance window, the next one opens at \
                  1970-01-02T02:00:00Z";
    for time in [3 * hour, 12 * hour, day + 2 * hour, day + 3 * hour - 1] {
        rolled.waits(time, second);
    }
    for time in [day + 3 * hour, day + 12 * hour, 10 * day] {
        rolled.is_drift(time, true);
    }
}

/// Its nodes need some seconds each, and the progress deadline is ten minutes.
#[test]
fn a_window_that_is_shorter_than_the_progress_deadline_is_forgotten_too() {
    let (hour, day) = (3600, 86_400);
    // Another tag of the image that runs.
    let mut rolled = Rolled::of("foo/bar:2", &nightly("8m"));
    for pod in &mut rolled.cluster.pods {
        pod.created = Some(at(500).into());
        pod.readiness = PodReadiness::Ready { since: Some(at(510).into()) };
    }
    rolled.replace("node-0", 2 * hour + 60);
    let second = "step rest waits for a maintenance window, the next one opens at \
                  1970-01-02T02:00:00Z";
    for time in [3 * hour, 12 * hour, day + 2 * hour] {
        rolled.waits(time, second);
    }
    for time in [day + 3 * hour, 10 * day] {
        rolled.is_drift(time, true);
    }
}

/// An autoscaler adds nodes also when no schedule comes any more.
#[test]
fn the_pod_of_a_node_that_has_joined_is_no_sign_of_a_run() {
    let (hour, day) = (3600, 86_400);
    let mut rolled = Rolled::under(&nightly("1h"));
    rolled.replace("node-1", 9 * day + 2 * hour + 60);
    let window = "step rest waits for a maintenance window, the next one opens at \
                  1970-01-11T02:00:00Z";
    rolled.waits(9 * day + 3 * hour, window);
    rolled.cluster.nodes[1].created = Some(at(9 * day + 2 * hour).into());
    rolled.is_drift(9 * day + 3 * hour, true);
}

#[test]
fn a_window_may_be_closed_at_the_end_of_a_soak() {
    let mut rolled = Rolled::under(&json!({
        "selects": {"names": ["default/foo"]},
        "steps": [{"name": "canary", "nodes": {"names": ["node-0"]}, "soak": "30m"}],
        "windows": [{"schedule": "0 0 * * *", "duration": "1h"}],
    }));
    rolled.replace("node-0", 2000);
    rolled.complete(0, 2100, false);
    rolled.waits(3000, "step canary soaks until 1970-01-01T01:05:00Z");
    let day = 86_400;
    let window = "step rest waits for a maintenance window, the next one opens at \
                  1970-01-02T00:00:00Z";
    for second in [3900, day, day + 3599] {
        rolled.waits(second, window);
    }
    rolled.is_drift(day + 3600, true);
}
