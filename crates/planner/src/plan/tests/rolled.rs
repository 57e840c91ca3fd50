//! What `status` and `explain` show of a DaemonSet that declares `OnDelete`, with the policy at hand:
//! what `ds-apply roll` would do, or is doing.

use std::collections::BTreeMap;

use super::*;
use crate::approval::step_digest;
use crate::digest::template_digest;
use crate::roll::as_rolling_update;
use crate::steps::WaitsFor;
use daemonset::model::{
    IntOrPercent, NodeName, REVISION_HASH_LABEL, RolloutPolicy, StepNote, StepsNote,
};

const SOAKS: &str = "step canary soaks until 1970-01-01T00:48:20Z";

/// Three nodes, whose DaemonSet declares `OnDelete` and has a new template since second 900.
struct Rolled {
    cluster: Cluster,
    policy: Arc<RolloutPolicy>,
    note: Option<StepsNote>,
    /// Digest of the template before.
    before: String,
}

impl Rolled {
    /// Its rollout by these steps has begun in second 1000.
    fn by(steps: Value) -> Self {
        let mut policy = RolloutPolicy::named("p");
        policy.spec.steps = serde_json::from_value(steps).unwrap();
        let mut cluster = settled(3);
        let before = template_digest(cluster.daemon_set.spec.template.raw());
        cluster.set_on_delete();
        cluster.set_image("foo:2");
        cluster.sync_once();
        let note = StepsNote {
            template: template_digest(cluster.daemon_set.spec.template.raw()),
            started_at: Some(at(1000)),
            ..StepsNote::default()
        };
        Self { cluster, policy: policy.into(), note: Some(note), before }
    }

    /// The canary has its new pod; a run has seen that in second 1100, and its end if the soak `is_over`.
    fn after_the_canary(is_over: bool) -> Self {
        let mut rolled = Self::by(json!([
            {"name": "canary", "nodes": {"names": ["node-0"]}, "soak": "30m"},
            {"name": "half", "nodes": {"names": ["node-1"]}, "approve": true},
        ]));
        rolled.replace("node-0");
        rolled.complete(0, is_over);
        rolled
    }

    /// This node got its new pod in second 1010.
    fn replace(&mut self, node: &str) {
        let hash = self.cluster.hash();
        let is_there =
            |pod: &&mut daemonset::model::Pod| pod.node().is_some_and(|name| name.as_str() == node);
        let pod = self.cluster.pods.iter_mut().find(is_there).unwrap();
        pod.labels = OURS.into_iter().chain([(REVISION_HASH_LABEL, hash.as_str())]).collect();
        pod.created = Some(at(1010).into());
        pod.readiness = PodReadiness::Ready { since: Some(at(1020).into()) };
    }

    fn complete(&mut self, step: usize, is_over: bool) {
        let step = &self.policy.spec.steps[step];
        let (digest, complete_at) = (step_digest(step), Some(at(1100)));
        let noted = StepNote { digest, complete_at, done_at: complete_at.filter(|_| is_over) };
        self.note.as_mut().unwrap().steps.insert(step.name.clone(), noted);
    }

    /// The cluster in second 1200, without approvals.
    fn snapshot(&mut self) -> Snapshot {
        self.cluster.now = at(1200);
        let key = self.cluster.daemon_set.key.clone();
        let mut snapshot = snapshot(&self.cluster);
        for live in &mut snapshot.daemon_sets {
            live.status.observed_generation = live.generation;
        }
        snapshot.set_notes(&key, "", self.note.clone());
        snapshot.approvals.insert(key, BTreeMap::new());
        snapshot
    }

    fn status(&mut self) -> DaemonSetStatusReport {
        let policy = Arc::clone(&self.policy);
        let mut all = status_under(&self.snapshot(), |_| true, |_| Some(Arc::clone(&policy)));
        all.daemon_sets.remove(0)
    }

    fn explain(&mut self, node: &str) -> Explanation {
        let key = self.cluster.daemon_set.key.clone();
        explain_under(&self.snapshot(), &key, &NodeName::from(node), &self.policy).unwrap()
    }
}

/// Steps as `NAME STATE UPDATED/NODES`.
fn steps(status: &DaemonSetStatusReport) -> Vec<String> {
    let steps = status.progress.iter().flat_map(|progress| &progress.steps);
    let line =
        |step: &StepPlan| format!("{} {:?} {}/{}", step.name, step.state, step.updated, step.nodes);
    steps.map(line).collect()
}

fn sentences(waits: &[WaitsFor]) -> Vec<String> {
    waits.iter().map(ToString::to_string).collect()
}

fn codes(shown: &Explanation) -> Vec<&'static str> {
    shown.reasons.iter().map(|it| it.reason.code()).collect()
}

#[test]
fn status_shows_the_steps_of_a_roll_that_soaks() {
    let status = Rolled::after_the_canary(false).status();
    assert_eq!(steps(&status), ["canary Soaking 1/1", "half Pending 1/2", "rest Pending 1/3"]);
    let progress = status.progress.as_ref().unwrap();
    assert_eq!(sentences(&progress.waits_for), [SOAKS]);
    assert_eq!(progress.roll_since, Some(at(1000)));
    let approvals: Vec<_> = progress.approvals.iter().map(|it| (&*it.step, it.approved)).collect();
    assert_eq!(approvals, [("half", Some(false))]);
    // How the others are replaced.
    let reasons: Vec<String> =
        status.obstacles.iter().map(|it| format!("{} {}", it.node, it.reasons[0])).collect();
    let why = "strategy OnDelete: replaced by `ds-apply roll`, or after it is deleted";
    assert_eq!(reasons, ["node-1", "node-2"].map(|node| format!("{node} {why}")));
    assert_eq!(Completion::of(&status), Completion::Waiting { for_approval: false });
}

#[test]
fn status_shows_that_a_roll_waits_for_an_approval() {
    let status = Rolled::after_the_canary(true).status();
    assert_eq!(steps(&status), ["canary Done 1/1", "half InProgress 1/2", "rest Pending 1/3"]);
    let waits = sentences(&status.progress.as_ref().unwrap().waits_for);
    assert_eq!(waits, ["step half is not approved"]);
    assert_eq!(Completion::of(&status), Completion::Waiting { for_approval: true });
}

/// No pod is outdated any more, and `roll` still has to come again.
#[test]
fn status_shows_that_a_roll_waits_for_its_last_soak() {
    let nodes = ["node-0", "node-1", "node-2"];
    let mut rolled = Rolled::by(json!([
        {"name": "canary", "nodes": {"names": nodes}, "soak": "30m"},
    ]));
    for node in nodes {
        rolled.replace(node);
    }
    rolled.complete(0, false);
    let status = rolled.status();
    assert_eq!(status.obstacles, []);
    assert_eq!(steps(&status)[0], "canary Soaking 3/3");
    assert_eq!(sentences(&status.progress.as_ref().unwrap().waits_for), [SOAKS]);
    assert_eq!(Completion::of(&status), Completion::Waiting { for_approval: false });
    // It has ended.
    rolled.note.as_mut().unwrap().started_at = None;
    let status = rolled.status();
    assert_eq!(steps(&status), [""; 0]);
    assert!(matches!(Completion::of(&status), Completion::Complete { .. }), "{status:?}");
}

/// What the note says about another template is over: a roll replaces pods by those of the live one.
#[test]
fn status_shows_the_steps_of_a_roll_that_has_not_begun() {
    let mut without_note = Rolled::after_the_canary(false);
    without_note.note = None;
    let mut superseded = Rolled::after_the_canary(false);
    superseded.note.as_mut().unwrap().template.clone_from(&superseded.before);
    for mut rolled in [without_note, superseded] {
        // The canary was deleted by hand, say.
        let status = rolled.status();
        assert_eq!(steps(&status)[0], "canary Soaking 1/1");
        let progress = status.progress.as_ref().unwrap();
        assert_eq!((progress.roll_since, progress.waits_for.len()), (None, 1));
        assert_eq!(Completion::of(&status), Completion::OnDelete { outdated: 2 });
    }
}

/// Its template is live, so its nodes are outdated already.
#[test]
fn status_shows_the_check_that_holds_the_first_node_of_a_roll_back() {
    let mut rolled = Rolled::by(json!([{"name": "canary", "nodes": 1}]));
    let note = rolled.note.as_mut().unwrap();
    (note.started_at, note.waits_since) = (None, Some(at(1000)));
    note.held_by = vec![json!({
        "kind": "precondition", "step": "canary",
        "check": {"check": "quiet", "since": at(60), "reason": {"code": "empty"}},
    })];
    let status = rolled.status();
    assert_eq!(steps(&status), ["canary InProgress 0/1", "rest Pending 0/3"]);
    let held_since = "step canary waits for a precondition since 1970-01-01T00:01:00Z: check quiet: \
                      the query has no series";
    assert_eq!(sentences(&status.progress.as_ref().unwrap().waits_for), [held_since]);
    assert_eq!(Completion::of(&status), Completion::Waiting { for_approval: false });
}

#[test]
fn a_node_of_a_roll_is_explained_with_its_wave() {
    let mut rolled = Rolled::after_the_canary(false);
    let later = rolled.explain("node-2");
    assert_eq!((later.action, later.wave_name.as_deref()), (Action::Replace, Some("rest")));
    assert_eq!(sentences(&later.waits_for), [SOAKS]);
    assert_eq!(codes(&later), ["outdated", "onDelete"]);
    let done = rolled.explain("node-0");
    assert_eq!((done.action, done.wave), (Action::Keep, None));
    assert_eq!(codes(&done), ["upToDate"]);
}

/// A failed template has broken node-2, which a later step of the next one has, and which uses up the
/// budget.
#[test]
fn what_a_failed_template_has_broken_blocks_no_step_of_a_roll() {
    let by_names = json!([{"name": "canary", "nodes": {"names": ["node-0"]}}]);
    let by_count = json!([{"name": "canary", "nodes": 1}]);
    let canary = |steps: &Value, is_remembered: bool| {
        let mut rolled = Rolled::by(steps.clone());
        rolled.replace("node-2");
        let failed = template_digest(rolled.cluster.daemon_set.spec.template.raw());
        let cluster = &mut rolled.cluster;
        let is_on = |pod: &&mut daemonset::model::Pod| {
            pod.node().is_some_and(|name| *name.as_str() == *"node-2")
        };
        let pod = cluster.pods.iter_mut().find(is_on).unwrap();
        pod.readiness = PodReadiness::NotReady { since: Some(at(1010).into()) };
        cluster.set_image("foo:3");
        cluster.sync_once();
        cluster.now = at(100_000);
        let mut snapshot = snapshot(cluster);
        let failed = if is_remembered { failed.as_str() } else { "" };
        snapshot.set_notes(&rolled.cluster.daemon_set.key, failed, None);
        let live = snapshot.daemon_sets[0].clone();
        let budget = IntOrPercent::Int(1);
        let (snapshot, mut wanted) = as_rolling_update(&snapshot, &live, budget).unwrap();
        wanted.policy = Some(rolled.policy);
        let plan = planned(&snapshot, &[wanted]);
        let codes: Vec<GuardCode> = plan.guards.iter().map(|guard| guard.code).collect();
        let nodes: Vec<String> =
            plan.daemon_sets[0].waves[0].nodes.iter().map(ToString::to_string).collect();
        (codes, nodes.join(" "))
    };
    let deadlock = vec![GuardCode::Deadlock];
    assert_eq!(canary(&by_names, true), (vec![], "node-0".to_owned()));
    assert_eq!(canary(&by_names, false), (deadlock, "node-0".to_owned()));
    // Where the step takes any node, it begins with that one.
    assert_eq!(canary(&by_count, true), (vec![], "node-2".to_owned()));
}
