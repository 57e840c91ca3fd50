//! All kinds of pod failures, and the immediate reaction of the controller: its deletes and creates
//! are the planned ones, and its counters the predicted ones.
//!
//! A whole control plane creates the pods. Then its controllers and kubelets are stopped, and the
//! test changes the pods as accidents would. After the plan is made the controllers are started
//! again, and later the kubelets, which end terminating pods. Only the test sets taints, and pods
//! of a deleted node stay: the controllers for both are disabled.

mod cases;
mod effects;
mod hands;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use daemonset::model::DesiredDaemonSet;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use planner::plan::{Counters, DaemonSetPlan, Plan};
use serde_json::{Value, json};

use crate::controller::{Verb, acts, counters, daemon_sets, pods, settle};
use crate::harness::{Component, ControlPlane, kubernetes, wait_until_async};
use crate::planning::{desired_of, documents, live, planned};
use cases::{Case, GONE, NO_EXECUTE, NO_SCHEDULE, Past, cases, nodes};
use effects::{Effects, When, done};
use hands::{break_pods, spoil_status};

/// The timeout for what an idle machine does in seconds.
const SOON: Duration = Duration::from_mins(2);

#[tokio::test(flavor = "multi_thread")]
async fn the_controller_does_at_once_what_the_plan_says() {
    if !kubernetes::since(33, "kubectl reads JSON documents with `---` between them") {
        return;
    }
    let plane = ControlPlane::builder()
        .audit()
        .without_admission("TaintNodesByCondition")
        .without_controller("node-lifecycle-controller")
        .without_controller("taint-eviction-controller")
        .without_controller("pod-garbage-collector-controller")
        .start();
    let cases = cases();
    begin(&plane, &cases).await;
    for component in [Component::ControllerManager, Component::Scheduler, Component::Kwok] {
        plane.stop_component(component);
    }
    go_wrong(&plane, &cases).await;

    let all: Vec<Value> = cases.iter().map(Case::planned).collect();
    let desired = desired_of(&documents(&all));
    let plan = planned(&live(&plane).await, &desired);
    let late = [Past::Planned, Past::LeftBehindPlanned];
    apply(&plane, cases.iter().filter(|case| late.contains(&case.past)).map(Case::planned));

    let run =
        Run { plane: &plane, plan: &plan, before: pods(&plane).await, acted: acts(&plane).len() };
    plane.start_component(Component::ControllerManager);
    run.comes_to(When::AtOnce).await;
    assert_counters(&run, &desired).await;

    plane.start_component(Component::Kwok);
    run.comes_to(When::InTheEnd).await;
    effects::assert_interesting(&plan);
}

/// Runs every DaemonSet on every node, in its first version.
async fn begin(plane: &ControlPlane, cases: &[Case]) {
    plane.create_nodes(nodes());
    apply(plane, cases.iter().map(Case::first));
    let nodes = i32::try_from(nodes().len()).unwrap();
    wait_until_async("every pod is ready", SOON, async || {
        let ready = |it: &DaemonSet| it.status.as_ref().is_some_and(|it| it.number_ready == nodes);
        daemon_sets(plane).await.iter().all(ready)
    })
    .await;
    apply(plane, of(cases, &[Past::Changed]).map(Case::planned));
    settle(plane).await;
    for case in of(cases, &[Past::LeftBehind, Past::LeftBehindPlanned]) {
        plane.kubectl(&["delete", "daemonset", &case.name, "--cascade=orphan"]);
    }
    wait_until_async("no pod is terminating", SOON, async || {
        pods(plane).await.iter().all(|pod| pod.metadata.deletion_timestamp.is_none())
    })
    .await;
}

/// Applies all changes of the cases.
async fn go_wrong(plane: &ControlPlane, cases: &[Case]) {
    apply(plane, of(cases, &[Past::ChangedUnseen, Past::LeftBehind]).map(Case::planned));
    break_pods(plane, cases, &foreign_owner(plane)).await;
    for (node, effect) in [(NO_SCHEDULE, "NoSchedule"), (NO_EXECUTE, "NoExecute")] {
        plane.kubectl(&["taint", "node", node, &format!("maintenance=now:{effect}")]);
    }
    plane.kubectl(&["delete", "node", GONE]);
    let mut labels: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for case in cases {
        let misplaced = case.sites.iter().filter(|(node, site)| site.misplaced && *node != GONE);
        for (node, _) in misplaced {
            labels.entry(node).or_default().push(format!("{}=yes", case.label()));
        }
    }
    for (node, labels) in labels {
        let labels = labels.iter().map(String::as_str);
        plane.kubectl(&["label", "node", node].into_iter().chain(labels).collect::<Vec<_>>());
    }
    let there = cases.iter().filter(|case| case.past != Past::LeftBehindPlanned);
    spoil_status(plane.client(), there.map(|case| case.name.clone())).await;
}

/// Creates a `ReplicaSet`; returns an owner reference to it.
fn foreign_owner(plane: &ControlPlane) -> Value {
    let object = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "foreign"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "foreign"}},
            "template": {
                "metadata": {"labels": {"app": "foreign"}},
                "spec": {"containers": [{"name": "main", "image": "agent:v1"}]},
            },
        },
    });
    let uid = plane.kubectl_stdin(
        &["create", "--filename=-", "--output=jsonpath={.metadata.uid}"],
        &object.to_string(),
    );
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "foreign", "uid": uid,
        "controller": true, "blockOwnerDeletion": true,
    })
}

fn of<'a>(cases: &'a [Case], pasts: &'a [Past]) -> impl Iterator<Item = &'a Case> {
    cases.iter().filter(|case| pasts.contains(&case.past))
}

fn apply(plane: &ControlPlane, objects: impl Iterator<Item = Value>) {
    let documents = documents(&objects.collect::<Vec<_>>());
    plane.kubectl_stdin(&["apply", "--server-side", "--filename=-"], &documents);
}

/// The controller's activity after the plan was made.
struct Run<'a> {
    plane: &'a ControlPlane,
    plan: &'a Plan,
    before: Vec<Pod>,
    /// The number of the controller's earlier requests.
    acted: usize,
}

impl Run<'_> {
    /// Waits until the controller has done what was planned and has nothing left to do; then checks
    /// that it has done nothing else.
    async fn comes_to(&self, when: When) {
        let planned = effects::planned(self.plan, when);
        // A timeout is reported by the comparison below.
        let start = Instant::now();
        while !self.done().await.is_superset(&planned) && start.elapsed() < SOON {
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        settle(self.plane).await;
        let done = self.done().await;
        assert!(done == planned, "{when:?}: {}", self.differences(&planned, &done));
        let acts = acts(self.plane);
        let created = acts[self.acted..].iter().filter(|act| act.verb == Verb::Create);
        let here = done.iter().filter(|effect| effect.starts_with("create "));
        assert_eq!(created.count(), here.count(), "one pod per node, none deleted");
    }

    async fn done(&self) -> Effects {
        let acts = acts(self.plane);
        done(&self.before, &pods(self.plane).await, &acts[self.acted..])
    }

    fn differences(&self, planned: &Effects, done: &Effects) -> String {
        let missing = planned - done;
        let extra = done - planned;
        let nodes: Vec<_> = self
            .plan
            .daemon_sets
            .iter()
            .filter(|it| {
                let key = format!("{}/{}", it.namespace, it.name);
                missing.iter().chain(&extra).any(|effect| effect.contains(&key))
            })
            .collect();
        format!(
            "planned, but not done: {missing:#?}; done, but not planned: {extra:#?}; {nodes:#?}"
        )
    }
}

/// Checks the counters of the new state; where no pod came or went they are the predicted ones. A
/// pod that the controller has deleted but no kubelet has ended still counts.
async fn assert_counters(run: &Run<'_>, desired: &[DesiredDaemonSet]) {
    let written = counters(run.plane).await;
    let now = planned(&live(run.plane).await, desired);
    assert_eq!(
        wrong(now.daemon_sets.iter(), &written),
        BTreeMap::new(),
        "counters predicted after the run"
    );

    let after = pods(run.plane).await;
    let (before, after) = (names(&run.before), names(&after));
    let same_pods = |it: &&DaemonSetPlan| {
        before.get(it.name.as_str()) == after.get(it.name.as_str()) && it.status.is_some()
    };
    let same_template =
        |it: &&DaemonSetPlan| !it.changes.iter().any(|it| it.path.starts_with("spec.template"));
    let lasting = run.plan.daemon_sets.iter().filter(same_pods).filter(same_template);
    assert!(lasting.clone().count() >= 10, "too few DaemonSets keep their pods");
    assert_eq!(wrong(lasting, &written), BTreeMap::new(), "counters predicted by the plan");
}

/// The predicted counters and those that the controller has written, where they differ.
fn wrong<'a>(
    plans: impl Iterator<Item = &'a DaemonSetPlan>,
    written: &BTreeMap<String, Counters>,
) -> BTreeMap<String, [Option<Counters>; 2]> {
    let both = plans.map(|it| {
        let key = format!("{}/{}", it.namespace, it.name);
        let pair = [it.status, written.get(&key).copied()];
        (key, pair)
    });
    both.filter(|(_, [predicted, written])| predicted != written).collect()
}

/// The names of pods, by their label.
fn names(pods: &[Pod]) -> BTreeMap<&str, BTreeSet<String>> {
    let mut names: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for pod in pods {
        let app = pod.labels().get("app").map_or("", String::as_str);
        names.entry(app).or_default().insert(pod.name_any());
    }
    names
}
