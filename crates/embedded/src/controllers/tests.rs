//! Histories of small clusters: each rule of a controller, observed from outside.

mod ending;
mod garbage;
mod nodes;
mod rolling;
mod starting;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::{Change, DeleteOptions, Target};
use daemonset::controller::test_cluster::at;
use daemonset::model::DaemonSetKey;
use daemonset::model::{DaemonSetStatus, Pod, PodPhase, REVISION_HASH_LABEL};

/// A small cluster and its history.
struct Little {
    store: Store,
    controllers: Controllers,
    now: Timestamp,
    /// The version up to which [`Little::history`] has returned events.
    reported: u64,
}

/// Timings of a second or less, without a rate limit.
fn brisk() -> Timings {
    Timings {
        informer: Duration::from_millis(1),
        request: Duration::from_millis(1),
        nodes_a_millisecond: 10_000,
        requests_per_second: 10_000.0,
        burst: 10_000,
        stop: Duration::ZERO,
        jitter: 0.0,
        starts: BTreeMap::new(),
        fastest: BTreeMap::new(),
        start: Duration::from_secs(1),
    }
}

fn node(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    })
}

/// `ns/agent` as served, with this strategy.
fn agent(strategy: &Value, min_ready: u32) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "ns", "generation": 1},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {
                    "containers": [{"name": "c", "image": "agent:1", "resources": {}}],
                    "terminationGracePeriodSeconds": 30,
                },
            },
            "updateStrategy": strategy,
            "minReadySeconds": min_ready,
            "revisionHistoryLimit": 2,
        },
    })
}

fn rolling(max_unavailable: &Value, max_surge: &Value) -> Value {
    let limits = json!({"maxUnavailable": max_unavailable, "maxSurge": max_surge});
    json!({"type": "RollingUpdate", "rollingUpdate": limits})
}

fn target() -> Target<'static> {
    Target::new(Kind::DaemonSet, "ns", "agent")
}

impl Little {
    /// A cluster of `nodes` nodes, `node-00` and so on, and the DaemonSet `ns/agent`.
    fn new(nodes: usize, agent: Value, faults: &str) -> Self {
        Self::with(nodes, agent, faults, brisk(), 1)
    }

    fn with(nodes: usize, agent: Value, faults: &str, timings: Timings, seed: u64) -> Self {
        let mut store = Store::new(seed);
        store.load(Kind::Namespace, json!({"metadata": {"name": "ns"}})).unwrap();
        for number in 0..nodes {
            store.load(Kind::Node, node(&format!("node-{number:02}"))).unwrap();
        }
        store.verbs(at(0), "test").create(Kind::DaemonSet, "ns", agent).unwrap();
        let faults = format!("apiVersion: ds-plan.dev/v1alpha1\nkind: Faults\n{faults}");
        let faults = serde_saphyr::from_str(&faults).unwrap();
        let controllers = Controllers::begin(&mut store, timings, faults, seed, at(0));
        let reported = store.version();
        Self { store, controllers, now: at(0), reported }
    }

    /// Runs until `second` seconds after the start.
    fn until(&mut self, second: i64) -> &mut Self {
        let end = at(second);
        while let Some(due) = self.controllers.turn(&mut self.store, self.now) {
            if due > end {
                break;
            }
            self.now = due;
        }
        self.now = end;
        self
    }

    fn pods(&self) -> Vec<&Pod> {
        self.store.objects(Kind::Pod, None).filter_map(|it| it.pod()).collect()
    }

    fn pod_on(&self, node: &str) -> Option<&Pod> {
        self.pods().into_iter().find(|pod| pod.node().is_some_and(|it| it == node))
    }

    fn status(&self) -> DaemonSetStatus {
        self.store.get(Kind::DaemonSet, "ns", "agent").unwrap().daemon_set().unwrap().status
    }

    fn edit_template(&mut self, change: impl FnOnce(&mut Value)) {
        let verbs = &mut self.store.verbs(self.now, "test");
        verbs.edit(target(), |it| change(&mut it["spec"]["template"])).unwrap();
    }

    fn set_image(&mut self, image: &str) {
        self.edit_template(|template| template["spec"]["containers"][0]["image"] = json!(image));
    }

    fn delete_pod(&mut self, name: &str) {
        let target = Target::new(Kind::Pod, "ns", name);
        self.store.verbs(self.now, "test").delete(target, &DeleteOptions::default()).unwrap();
    }

    /// Number, hash and name of each revision, by number.
    fn revisions(&self) -> Vec<(i64, String)> {
        let all = self.store.objects(Kind::ControllerRevision, None);
        let mut all: Vec<_> = all
            .filter_map(|it| it.revision())
            .map(|it| (it.number.0, it.name.to_string()))
            .collect();
        all.sort();
        all
    }

    fn image_of(&self, pod: &Pod) -> String {
        let object = self.store.get(Kind::Pod, "ns", pod.name.as_str()).unwrap().value();
        object["spec"]["containers"][0]["image"].as_str().unwrap().to_owned()
    }

    /// The events since the last call: second, change, kind and name.
    fn history(&mut self) -> Vec<String> {
        let mut events = Vec::new();
        for kind in KINDS {
            events.extend(self.store.events_after(kind, self.reported).unwrap().cloned());
        }
        events.sort_by_key(Event::version);
        self.reported = self.store.version();
        let line =
            |it: &Event| format!("{:?} {:?} {}", it.change, it.object.kind(), it.object.json());
        events.iter().map(line).collect()
    }

    /// The number of pods added or deleted in each second since the last call.
    fn waves(&mut self, change: Change) -> Vec<usize> {
        let events = self.store.events_after(Kind::Pod, self.reported).unwrap();
        let mut waves = BTreeMap::new();
        for event in events.filter(|it| it.change == change) {
            let meta = event.object.meta();
            let time = if change == Change::Added { meta.created } else { meta.deleted };
            *waves.entry(time.unwrap()).or_insert(0) += 1;
        }
        self.reported = self.store.version();
        waves.into_values().collect()
    }
}

#[test]
fn pods_come_up_and_are_counted() {
    let mut little = Little::new(5, agent(&rolling(&json!(1), &json!(0)), 0), "");
    little.until(10);
    let want = DaemonSetStatus {
        observed_generation: 1,
        desired_number_scheduled: 5,
        current_number_scheduled: 5,
        number_ready: 5,
        updated_number_scheduled: 5,
        number_available: 5,
        ..DaemonSetStatus::default()
    };
    assert_eq!(little.status(), want);
    let revisions = little.revisions();
    assert_eq!(revisions.len(), 1);
    for pod in little.pods() {
        let hash = pod.labels.get(REVISION_HASH_LABEL).unwrap();
        assert_eq!(revisions[0], (1, format!("agent-{hash}")));
    }
    little.history();
    little.until(1000);
    assert_eq!(little.history(), Vec::<String>::new(), "no further events");
}

#[test]
fn the_same_seed_gives_the_same_history() {
    let history = |seed| {
        let faults = "nodes: [{event: dies, at: 30s, nodes: {names: [node-03]}}]\n";
        let timings = Timings { jitter: 0.5, ..brisk() };
        let agent = agent(&rolling(&json!(2), &json!(0)), 3);
        let mut little = Little::with(8, agent, faults, timings, seed);
        little.until(20).set_image("agent:2");
        little.until(300);
        little.history()
    };
    let first = history(1);
    assert!(first.len() > 50, "{}", first.len());
    assert_eq!(first, history(1));
    assert_ne!(first, history(2));
}

#[test]
fn a_pod_that_is_deleted_comes_back_as_the_template_is_now() {
    let mut little = Little::new(2, agent(&json!({"type": "OnDelete"}), 0), "");
    little.until(10).set_image("agent:2");
    little.until(20);
    assert_eq!(little.status().updated_number_scheduled, 0);
    let name = little.pod_on("node-01").unwrap().name.to_string();
    little.delete_pod(&name);
    little.until(30);
    let images: Vec<String> =
        ["node-00", "node-01"].map(|node| little.image_of(little.pod_on(node).unwrap())).into();
    assert_eq!(images, ["agent:1", "agent:2"]);
    assert_eq!(little.status().updated_number_scheduled, 1);
}

#[test]
fn revisions_are_reused_and_pruned() {
    let mut little = Little::new(1, agent(&rolling(&json!(1), &json!(0)), 0), "");
    let mut end = 0;
    let mut set = |little: &mut Little, image: &str| {
        end += 20;
        little.until(end).set_image(image);
        end += 20;
        little.until(end);
    };
    set(&mut little, "agent:2");
    let two = little.revisions();
    set(&mut little, "agent:1");
    let back = little.revisions();
    let numbers = |all: &[(i64, String)]| all.iter().map(|it| it.0).collect::<Vec<_>>();
    assert_eq!((numbers(&two), numbers(&back)), (vec![1, 2], vec![2, 3]));
    assert_eq!(two[0].1, back[1].1, "the same revision with a new number");
    for image in ["agent:3", "agent:4", "agent:5"] {
        set(&mut little, image);
    }
    assert_eq!(numbers(&little.revisions()), [4, 5, 6], "the current one and two old ones");
}

#[test]
fn a_name_that_is_taken_is_counted_and_hashed_again() {
    let quiet = little_revision_of("agent:1");
    let mut store = Store::new(1);
    store.load(Kind::Namespace, json!({"metadata": {"name": "ns"}})).unwrap();
    store.load(Kind::Node, node("node-00")).unwrap();
    let taken = json!({
        "metadata": {"name": quiet, "namespace": "ns"}, "revision": 1, "data": {"spec": {}},
    });
    store.load(Kind::ControllerRevision, taken).unwrap();
    store.load(Kind::DaemonSet, served_agent()).unwrap();
    let controllers = Controllers::begin(&mut store, brisk(), Faults::default(), 1, at(0));
    let mut little = Little { store, controllers, now: at(0), reported: 0 };
    little.until(20);
    assert_eq!(little.status().collision_count, Some(1));
    assert_eq!(little.status().number_available, 1);
    let own: Vec<_> = little.revisions().into_iter().filter(|it| it.1 != quiet).collect();
    assert_eq!(own.len(), 1);
}

/// The name of the revision that a new cluster creates for this image.
fn little_revision_of(image: &str) -> String {
    let mut agent = agent(&rolling(&json!(1), &json!(0)), 0);
    agent["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
    let mut little = Little::new(1, agent, "");
    little.until(10);
    little.revisions()[0].1.clone()
}

#[test]
fn orphans_are_adopted() {
    let mut little = Little::new(3, agent(&rolling(&json!(1), &json!(0)), 0), "");
    little.until(10);
    let names: Vec<String> = little.pods().iter().map(|pod| pod.name.to_string()).collect();
    for name in &names {
        let target = Target::new(Kind::Pod, "ns", name);
        let mut verbs = little.store.verbs(little.now, "test");
        verbs.edit(target, |pod| pod["metadata"]["ownerReferences"] = json!([])).unwrap();
    }
    assert!(little.pods().iter().all(|pod| pod.controller.is_none()));
    little.until(20);
    let after: Vec<String> = little.pods().iter().map(|pod| pod.name.to_string()).collect();
    assert_eq!(after, names, "no pod is created again");
    assert!(little.pods().iter().all(|pod| pod.controller.is_some()));
}

#[test]
fn pods_that_the_selector_does_not_select_any_more_are_released() {
    let mut little = Little::new(1, agent(&rolling(&json!(1), &json!(0)), 0), "");
    little.until(10);
    let name = little.pods()[0].name.to_string();
    let target = Target::new(Kind::Pod, "ns", &name);
    let mut verbs = little.store.verbs(little.now, "test");
    verbs.edit(target, |pod| pod["metadata"]["labels"]["app"] = json!("other")).unwrap();
    little.until(20);
    assert_eq!(little.pods().len(), 2);
    let released = little.pods().into_iter().find(|pod| *pod.name.as_str() == *name).unwrap();
    assert_eq!(released.controller, None);
}

#[test]
fn failed_pods_are_replaced_with_increasing_delays() {
    let mut little = Little::new(1, agent(&rolling(&json!(1), &json!(0)), 0), "");
    let mut gone = Vec::new();
    for second in 1..60 {
        little.until(second * 2);
        let Some(pod) = little.pod_on("node-00").filter(|pod| pod.phase == PodPhase::Running)
        else {
            continue;
        };
        let (name, uid) = (pod.name.to_string(), pod.uid.clone());
        gone.push(uid);
        let target = Target::new(Kind::Pod, "ns", &name);
        let mut verbs = little.store.verbs(little.now, "test");
        verbs.edit(target.status(), |pod| pod["status"]["phase"] = json!("Failed")).unwrap();
    }
    assert_eq!(gone.len(), 8, "1, 2, 4 and so on up to 64 s in between");
}

#[test]
fn the_status_is_written_although_pods_cannot_be_created() {
    let mut store = Store::new(1);
    for number in 0..4 {
        store.load(Kind::Node, node(&format!("node-{number:02}"))).unwrap();
    }
    // The namespace does not exist; the revisions do, so that only pods are missing.
    store.load(Kind::DaemonSet, served_agent()).unwrap();
    let name = little_revision_of("agent:1");
    let revision = whole_revision("agent:1");
    store.load(Kind::ControllerRevision, revision).unwrap();
    let controllers = Controllers::begin(&mut store, brisk(), Faults::default(), 1, at(0));
    let mut little = Little { store, controllers, now: at(0), reported: 0 };
    little.until(100);
    assert_eq!(little.revisions(), [(1, name)]);
    assert_eq!(little.pods().len(), 0);
    assert_eq!(little.status().desired_number_scheduled, 4, "the status is written all the same");
    assert_eq!(little.status().observed_generation, 1);
}

#[test]
fn a_repeated_warning_is_counted() {
    let mut store = Store::new(1);
    store.load(Kind::Namespace, json!({"metadata": {"name": "ns"}})).unwrap();
    let key = DaemonSetKey::new("ns", "agent");
    for (second, message) in [(1, "a"), (2, "a"), (3, "b")] {
        complaints::warn(&mut store, &key, &"uid".into(), "FailedCreate", message, at(second));
    }
    let events: Vec<Value> = store.objects(Kind::Event, None).map(|it| it.value()).collect();
    let counts: Vec<&Value> = events.iter().map(|event| &event["count"]).collect();
    assert_eq!(counts, [2, 1]);
    assert_eq!(events[0]["lastTimestamp"], "1970-01-01T00:00:02Z");
}

/// The DaemonSet as served, before any controller has seen it.
fn served_agent() -> Value {
    let mut little = Little::new(0, agent(&rolling(&json!(1), &json!(0)), 0), "");
    little.until(0);
    let mut agent = little.store.get(Kind::DaemonSet, "ns", "agent").unwrap().value();
    agent["status"] = json!({});
    agent
}

/// The revision that a new cluster creates for this image, without an owner.
fn whole_revision(image: &str) -> Value {
    let mut agent = agent(&rolling(&json!(1), &json!(0)), 0);
    agent["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
    let mut little = Little::new(1, agent, "");
    little.until(10);
    let name = little.revisions()[0].1.clone();
    let mut revision = little.store.get(Kind::ControllerRevision, "ns", &name).unwrap().value();
    revision["metadata"]["ownerReferences"] = json!([]);
    revision
}
