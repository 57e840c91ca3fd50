//! Steps, domains and waits of a policy: what one run leaves behind, and what the next one makes of
//! it.
//!
//! Each scenario has nodes of its own, so that they run side by side on one control plane.

mod checks;
mod disturbed;
mod examples;
mod interrupted;
mod limits;
mod observed;
mod shared;
mod soaks;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Output;
use std::thread;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::approved::ends;
use super::*;

/// A DaemonSet with a policy, on its own nodes.
struct Staged<'p> {
    fleet: Fleet<'p>,
    /// The settings of the policy, as lines of its `spec`.
    policy: String,
}

/// The state of the DaemonSet on the server.
struct Live {
    /// Tag of the image in the live template.
    image: String,
    strategy: String,
    /// The annotation of a paused rollout; null without one.
    pause: Value,
    annotations: Value,
    version: String,
}

impl Live {
    /// The time until which the rollout waits.
    fn until(&self) -> Timestamp {
        let until = self.pause["waitsFor"][0]["until"].as_str();
        until.unwrap_or_else(|| panic!("{}", self.pause)).parse().unwrap()
    }
}

impl<'p> Staged<'p> {
    /// Rolls out `v1` on nodes in three zones, at most three of which may be unavailable; the policy
    /// comes after it.
    fn new(plane: &'p ControlPlane, namespace: &str, nodes: usize, policy: &str) -> Self {
        (0..nodes).for_each(|at| add_node(plane, namespace, &format!("{at:02}"), at));
        let v1 = daemon_set(namespace, "v1");
        Self { fleet: Fleet::new(plane, namespace, nodes, &v1), policy: policy.to_owned() }
    }

    /// The manifest with this image, and the policy.
    fn version(&self, image: &str) -> String {
        let Self { fleet: Fleet { namespace, .. }, policy } = self;
        let daemon_set = daemon_set(namespace, image);
        format!(
            "{daemon_set}---
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {{name: staged}}
spec:
  selects: {{names: [{namespace}/agent]}}
{policy}
"
        )
    }

    fn run(&self, image: &str, flags: &[&str]) -> Output {
        self.fleet.apply(&self.version(image), flags)
    }

    /// Runs `v2`, which has to wait for the soak of its canaries; returns what is live then.
    fn soaks(&self) -> Live {
        ends(&self.run("v2", &[]), 8, &["waiting: step canary soaks until "]);
        self.wait_for_the_controller();
        let live = self.live();
        assert_eq!(live.image, "v1", "the last good template is live");
        self.is_waiting(&live);
        live
    }

    /// Waits until the controller has reported everything: its status is a write, too.
    fn wait_for_the_controller(&self) {
        let (mut last, mut same) = (String::new(), 0);
        wait_until("a status that stays", SOON, || {
            let status = self.fleet.kubectl(&["get", "daemonset", "agent", "--output=json"]);
            same = if status == last { same + 1 } else { 0 };
            last = status;
            let live: Value = serde_json::from_str(&last).unwrap();
            same >= 10 && live["status"]["observedGeneration"] == live["metadata"]["generation"]
        });
    }

    fn is_waiting(&self, live: &Live) {
        let state = (&*live.strategy, &live.pause["state"]);
        assert_eq!(state, ("OnDelete", &json!("waiting")), "{}", self.fleet.namespace);
    }

    /// Runs this version to its end, and checks that nothing is left of the wait.
    fn is_completed(&self, image: &str) {
        ends(&self.run(image, &[]), 0, &["done"]);
        self.is_complete(image);
    }

    fn is_complete(&self, image: &str) {
        let Self { fleet, .. } = self;
        assert_eq!(fleet.images(), [image.to_owned()].into(), "{}", fleet.namespace);
        let live = self.live();
        assert_eq!((&*live.image, &*live.strategy), (image, "RollingUpdate"));
        assert_eq!(live.pause, Value::Null, "{}", fleet.namespace);
        ends(&fleet.plan(&self.version(image)), 0, &[]);
        fleet.histories_agree();
        fleet.is_rolled_out();
    }

    fn live(&self) -> Live {
        let live = self.fleet.json(&["get", "daemonset", "agent"]);
        let template = &live["spec"]["template"]["spec"]["containers"][0]["image"];
        let annotations = live["metadata"]["annotations"].clone();
        let pause = annotations["ds-plan.dev/rollout"].as_str();
        Live {
            image: template.as_str().unwrap().rsplit(':').next().unwrap().to_owned(),
            strategy: live["spec"]["updateStrategy"]["type"].as_str().unwrap().to_owned(),
            pause: pause.map_or(Value::Null, |text| serde_json::from_str(text).unwrap()),
            version: live["metadata"]["resourceVersion"].as_str().unwrap().to_owned(),
            annotations,
        }
    }

    /// What is noted on the lock about the steps.
    fn note(&self) -> Value {
        let lease = self.fleet.json(&["get", "lease", "ds-plan-agent"]);
        let note = lease["metadata"]["annotations"]["ds-plan.dev/steps"].as_str();
        serde_json::from_str(note.unwrap_or("null")).unwrap()
    }

    /// Node and uid of each pod with this image.
    fn pods(&self, image: &str) -> BTreeMap<String, String> {
        let list = self.fleet.json(&["get", "pods"]);
        let all = list["items"].as_array().unwrap().iter();
        let of_image = all.filter(|pod| {
            let own = pod["spec"]["containers"][0]["image"].as_str().unwrap();
            own.ends_with(&format!(":{image}")) && pod["metadata"]["deletionTimestamp"].is_null()
        });
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        of_image
            .map(|pod| (text(&pod["spec"]["nodeName"]), text(&pod["metadata"]["uid"])))
            .collect()
    }

    fn nodes_with(&self, image: &str) -> BTreeSet<String> {
        self.pods(image).into_keys().collect()
    }

    /// The name of the pod on this node, as an argument of kubectl.
    fn pod_on(&self, node: &str) -> String {
        let on_node = format!("--field-selector=spec.nodeName={node}");
        self.fleet.kubectl(&["get", "pods", &on_node, "--output=name"]).trim().to_owned()
    }

    /// Deletes the pod on this node, as a drain does, and waits for the next one.
    fn recreate_pod_on(&self, node: &str, image: &str) {
        let before = self.pods(image).get(node).cloned();
        self.fleet.kubectl(&["delete", &self.pod_on(node), "--wait=false"]);
        wait_until("the next pod", SOON, || {
            let next = self.pods(image).get(node).cloned();
            next.is_some() && next != before
        });
        self.fleet.wait_until_available();
    }

    /// resourceVersions of all that a run may write.
    fn versions(&self) -> Value {
        let kinds = "daemonsets,pods,controllerrevisions,leases,configmaps";
        let list = self.fleet.json(&["get", kinds]);
        let one = |it: &Value| {
            let name = format!("{} {}", it["kind"], it["metadata"]["name"]);
            (name, it["metadata"]["resourceVersion"].clone())
        };
        Value::Object(list["items"].as_array().unwrap().iter().map(one).collect())
    }

    /// Numbers of the revisions, by the tag of their image; one revision for each.
    fn numbers(&self) -> BTreeMap<String, i64> {
        let list = self.fleet.json(&["get", "controllerrevisions"]);
        let all = list["items"].as_array().unwrap();
        let one = |it: &Value| {
            let image = &it["data"]["spec"]["template"]["spec"]["containers"][0]["image"];
            let image = image.as_str().unwrap().rsplit(':').next().unwrap().to_owned();
            (image, it["revision"].as_i64().unwrap())
        };
        let numbers: BTreeMap<String, i64> = all.iter().map(one).collect();
        assert_eq!(numbers.len(), all.len(), "a template has two revisions: {list}");
        numbers
    }
}

/// The DaemonSet on the nodes of a scenario.
fn daemon_set(namespace: &str, image: &str) -> String {
    let own = format!("      nodeSelector: {{pool: {namespace}}}\n      containers:");
    manifest(namespace, image, &at_most("3")).replace("      containers:", &own)
}

/// Adds a node for the scenario; nodes follow one another through three zones.
fn add_node(plane: &ControlPlane, namespace: &str, name: &str, at: usize) {
    let zone = ["a", "b", "c"][at % 3];
    let node = FakeNode::new(&format!("{namespace}-{name}"))
        .label("pool", namespace)
        .label("topology.kubernetes.io/zone", zone);
    plane.create_nodes([node]);
}

/// Runs scenarios side by side.
fn side_by_side(scenarios: &[fn(&ControlPlane)]) {
    let plane = ControlPlane::start();
    thread::scope(|scope| {
        for scenario in scenarios {
            let plane = &plane;
            scope.spawn(move || scenario(plane));
        }
    });
}

/// Sleeps until this moment has passed.
fn sleep_past(moment: Timestamp) {
    // Times of the cluster are in whole seconds.
    let left = moment.duration_since(Timestamp::now()) + jiff::SignedDuration::from_secs(1);
    thread::sleep(left.try_into().unwrap_or_default());
}
