//! The history of the example fleet: nodes that joined, versions that were rolled out, and the
//! failures of its last morning.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::nodes;
use super::story::{Story, now};
use crate::harness::{Component, ControlPlane, FakeNode, wait_for};

/// A rollout over forty nodes takes about ten seconds.
const SOON: Duration = Duration::from_mins(3);

/// The differences of an earlier version of a manifest: text in git now, and the earlier text.
type Edits<'a> = &'a [(&'a str, &'a str)];

/// fluent-bit before it ran on GPU nodes, before some nodes moved to Vector, and before its memory
/// ran out.
const FLUENT_BIT_BEFORE: Edits<'static> = &[
    ("  minReadySeconds: 10\n", ""),
    ("        logging.example.com/agent: fluent-bit\n", ""),
    (
        "        - key: nvidia.com/gpu\n          operator: Exists\n          effect: NoSchedule\n",
        "",
    ),
    ("an-example-key-of-2026", "an-example-key-of-2025"),
    ("value: zstd", "value: gzip"),
    ("memory: 256Mi", "memory: 128Mi"),
];

/// One node at a time takes too long for a test; the strategy is corrected afterwards.
const HASTE: (&str, &str) = ("maxUnavailable: 1\n", "maxUnavailable: 25%\n");

/// The folder of the fleet's manifests.
pub(super) fn manifests() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/fleet/manifests")
}

/// Runs the whole history. The control plane must be fresh.
pub(super) fn live_through(fleet: &mut Fleet<'_>) {
    beginnings(fleet);
    growth(fleet);
    latest_versions(fleet);
    last_morning(fleet);
}

fn beginnings(fleet: &mut Fleet<'_>) {
    fleet.chapter("2026-03-02T08:06:00Z", 10);
    for namespace in ["gpu", "logging", "monitoring", "tracing", "shop"] {
        fleet.plane.kubectl(&["create", "namespace", namespace]);
    }
    fleet.join(nodes::control_plane());
    fleet.create_static_pods();

    fleet.chapter("2026-03-02T08:31:00Z", 10);
    fleet.apply("overlay-agent", &[("1.16.5", "1.15.2"), HASTE]);
    fleet.apply("node-exporter", &[("1.9.1", "1.8.2")]);
    fleet.settle(6);

    fleet.chapter("2026-03-02T09:12:00Z", 10);
    fleet.join(nodes::workers(1..=7));
    fleet.settle(48);

    fleet.chapter("2026-03-18T14:02:00Z", 15);
    fleet.apply_fluent_bit("3.1.9");
    fleet.apply("trace-agent", &[("0.132.0", "0.128.1")]);
    fleet.settle(93);
}

fn growth(fleet: &mut Fleet<'_>) {
    fleet.chapter("2026-04-09T10:45:00Z", 10);
    fleet.join(nodes::arm());
    fleet.settle(117);

    fleet.chapter("2026-04-21T13:20:00Z", 30);
    fleet.apply("node-exporter", &[]);
    fleet.settle(117);

    fleet.chapter("2026-05-06T09:30:00Z", 10);
    fleet.join(nodes::gpu());
    fleet.apply("gpu-device-plugin", &[("0.17.1", "0.16.2")]);
    fleet.settle(133);

    fleet.chapter("2026-05-12T06:15:00Z", 240);
    fleet.apply("overlay-agent", &[HASTE]);
    fleet.settle(133);

    fleet.chapter("2026-05-28T15:10:00Z", 60);
    fleet.apply_fluent_bit("3.2.4");
    fleet.settle(133);

    fleet.chapter("2026-06-10T11:50:00Z", 10);
    fleet.join(nodes::workers(8..=9));
    fleet.settle(157);
}

fn latest_versions(fleet: &mut Fleet<'_>) {
    fleet.chapter("2026-06-17T08:40:00Z", 10);
    let vector = ["label", "--overwrite", "node", "worker-b-09", "worker-c-09"];
    fleet.plane.kubectl(&[&vector[..], &["logging.example.com/agent=vector"]].concat());

    fleet.chapter("2026-06-23T07:05:00Z", 600);
    fleet.apply("gpu-device-plugin", &[]);
    fleet.replace_gpu_pods(&["gpu-a-01", "gpu-a-02", "gpu-b-01"]);
    fleet.settle(157);

    fleet.chapter("2026-07-01T12:25:00Z", 60);
    fleet.apply_fluent_bit("4.0.3");
    fleet.settle(157);

    fleet.chapter("2026-07-09T06:10:00Z", 240);
    fleet.apply("overlay-agent", &[("1.16.5", "1.17.0"), HASTE]);
    fleet.settle(157);
    fleet.apply("overlay-agent", &[("1.16.5", "1.17.0")]);
    fleet.settle(157);
}

fn last_morning(fleet: &mut Fleet<'_>) {
    fleet.chapter("2026-07-13T16:30:00Z", 10);
    fleet.plane.kubectl(&["cordon", "worker-c-03"]);

    fleet.chapter("2026-07-14T03:20:00Z", 10);
    fleet.out_of_memory("worker-a-07", 1);

    fleet.chapter("2026-07-14T06:13:00Z", 10);
    fleet.lose_node("worker-b-05");

    fleet.chapter("2026-07-14T09:14:00Z", 1);
    fleet.out_of_memory("worker-a-07", 71);
    fleet.heartbeat("worker-b-05");
}

/// The control plane, and the story that maps its timestamps.
pub(super) struct Fleet<'p> {
    plane: &'p ControlPlane,
    story: Story,
}

impl<'p> Fleet<'p> {
    pub(super) fn new(plane: &'p ControlPlane) -> Self {
        Self { plane, story: Story::default() }
    }

    /// The story that maps its timestamps.
    pub(super) fn story(self) -> Story {
        self.story
    }

    fn chapter(&mut self, mapped: &str, pace: i32) {
        self.story.chapter(mapped, pace);
    }

    /// Adds nodes; their kubelets report.
    fn join(&self, nodes: Vec<FakeNode>) {
        self.plane.create_nodes(nodes);
        let ready = ["wait", "node", "--all", "--for=condition=Ready", "--timeout=3m"];
        self.plane.kubectl(&ready);
    }

    /// Applies the manifest of a DaemonSet, with its differences at the time.
    fn apply(&self, name: &str, edits: Edits<'_>) {
        let path = manifests().join(format!("{name}.yaml"));
        let mut yaml = fs::read_to_string(path).unwrap();
        for (now, then) in edits {
            assert!(yaml.contains(now), "{name}.yaml does not contain {now:?}");
            yaml = yaml.replace(now, then);
        }
        let apply = ["apply", "--server-side", "--field-manager=ds-apply", "--filename=-"];
        self.plane.kubectl_stdin(&apply, &yaml);
    }

    fn apply_fluent_bit(&self, version: &str) {
        let edits = [FLUENT_BIT_BEFORE, &[("4.0.7", version)]].concat();
        self.apply("fluent-bit", &edits);
    }

    /// Waits until `pods` daemon pods are ready, and every rolling update is complete.
    fn settle(&self, pods: u64) {
        wait_for("the count of ready daemon pods", SOON, Ok(pods), || {
            self.daemon_sets().iter().map(settled).sum::<Result<u64, String>>()
        });
    }

    fn daemon_sets(&self) -> Vec<Value> {
        self.objects(&["daemonsets", "--all-namespaces"])
    }

    fn objects(&self, what: &[&str]) -> Vec<Value> {
        let text = self.plane.kubectl(&[&["get", "--output=json"], what].concat());
        let mut list: Value = serde_json::from_str(&text).unwrap();
        serde_json::from_value(list["items"].take()).unwrap()
    }

    /// Creates the static pods of the control plane's nodes.
    fn create_static_pods(&self) {
        let mut pods = Vec::new();
        for node in self.objects(&["nodes"]) {
            let (node, uid) = (&node["metadata"]["name"], &node["metadata"]["uid"]);
            for name in ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"] {
                pods.push(json!({
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {
                        "namespace": "kube-system",
                        "name": format!("{name}-{}", node.as_str().unwrap()),
                        "labels": {"component": name, "tier": "control-plane"},
                        "ownerReferences": [{
                            "apiVersion": "v1", "kind": "Node", "name": node, "uid": uid,
                            "controller": true,
                        }],
                    },
                    "spec": {
                        "nodeName": node,
                        "hostNetwork": true,
                        "priorityClassName": "system-node-critical",
                        "tolerations": [{"operator": "Exists", "effect": "NoExecute"}],
                        "containers": [{
                            "name": name,
                            "image": format!("registry.example.com/kubernetes/{name}:1.36.3"),
                        }],
                    },
                }));
            }
        }
        let list = json!({"apiVersion": "v1", "kind": "List", "items": pods});
        self.plane.kubectl_stdin(&["create", "--filename=-"], &list.to_string());
    }

    /// Drains these nodes and deletes the GPU plugin's pods there, as a user would.
    fn replace_gpu_pods(&self, nodes: &[&str]) {
        for node in nodes {
            let on_node = format!("--field-selector=spec.nodeName={node}");
            self.plane.kubectl(&["--namespace=gpu", "delete", "pods", &on_node]);
        }
        wait_for("the count of new GPU plugins", SOON, Some(nodes.len() as u64), || {
            let plugins = self.objects(&["daemonsets", "--namespace=gpu"]);
            plugins.first()?.pointer("/status/updatedNumberScheduled")?.as_u64()
        });
    }

    /// fluent-bit's memory runs out on a node, with this restart count.
    fn out_of_memory(&self, node: &str, restarts: u32) {
        let on_node = format!("--field-selector=spec.nodeName={node}");
        let pods = self.objects(&["pods", "--namespace=logging", &on_node]);
        let [pod] = &pods[..] else { panic!("one fluent-bit runs on {node}") };
        let (name, since) = (pod["metadata"]["name"].as_str().unwrap(), now_text());
        let mut status = pod["status"]["containerStatuses"].clone();
        status[0]["ready"] = json!(false);
        status[0]["started"] = json!(false);
        status[0]["restartCount"] = json!(restarts);
        status[0]["state"] = json!({"waiting": {
            "reason": "CrashLoopBackOff",
            "message": format!("back-off 5m0s restarting failed container=fluent-bit pod={name}"),
        }});
        status[0]["lastState"] = json!({"terminated": {
            "exitCode": 137, "reason": "OOMKilled", "startedAt": since, "finishedAt": since,
        }});
        let mut patch = json!({"status": {"containerStatuses": status}});
        if restarts == 1 {
            patch["status"]["conditions"] = unready(&since);
        }
        self.patch_status(&["--namespace=logging", "pod", name], &patch);
    }

    /// A node's container runtime dies; its kubelet reports itself and its pods as not ready, and
    /// the control plane reacts. The fake kubelets must be stopped: they would report the node
    /// ready again.
    fn lose_node(&self, node: &str) {
        self.plane.stop_component(Component::Kwok);
        let since = now_text();
        let down = json!({"status": {
            "nodeInfo": {"kubeletVersion": "v1.35.6"},
            "conditions": [{
                "type": "Ready", "status": "False", "reason": "KubeletNotReady",
                "message": "container runtime is down",
                "lastHeartbeatTime": since, "lastTransitionTime": since,
            }],
        }});
        self.patch_status(&["node", node], &down);
        let on_node = format!("--field-selector=spec.nodeName={node}");
        for pod in self.objects(&["pods", "--all-namespaces", &on_node]) {
            let text = |field: &str| pod["metadata"][field].as_str().unwrap().to_owned();
            let namespace = format!("--namespace={}", text("namespace"));
            let unready = json!({"status": {"conditions": unready(&since)}});
            self.patch_status(&[&namespace, "pod", &text("name")], &unready);
        }
        // On a tainted node, pods that do not tolerate the taint are misscheduled; for the other
        // DaemonSets its pod is unavailable, as is the one that runs out of memory elsewhere.
        let counters = ["numberMisscheduled", "numberUnavailable"];
        wait_for("misscheduled and unavailable pods", SOON, [2, 3], || {
            let daemon_sets = self.daemon_sets();
            counters.map(|counter| {
                let counts = daemon_sets.iter().filter_map(|ds| ds["status"][counter].as_u64());
                counts.sum::<u64>()
            })
        });
    }

    /// Every kubelet but one reports once more. Some nodes are not upgraded yet.
    fn heartbeat(&self, lost: &str) {
        let nodes = self.objects(&["nodes"]);
        let names: Vec<&str> = nodes
            .iter()
            .map(|node| node["metadata"]["name"].as_str().unwrap())
            .filter(|name| *name != lost)
            .collect();
        let (old, new): (Vec<&str>, Vec<&str>) =
            names.into_iter().partition(|name| name.starts_with("worker-c"));
        let beat = now_text();
        let types = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];
        for (names, version) in [(old, "v1.35.6"), (new, "v1.36.3")] {
            let conditions = types.map(|kind| json!({"type": kind, "lastHeartbeatTime": beat}));
            let patch = json!({"status": {
                "conditions": conditions,
                "nodeInfo": {"kubeletVersion": version},
            }});
            self.patch_status(&[&["node"], &names[..]].concat(), &patch);
        }
    }

    fn patch_status(&self, what: &[&str], patch: &Value) {
        let patch = format!("--patch={patch}");
        let how = ["patch", "--subresource=status", "--type=strategic", &patch];
        self.plane.kubectl(&[&how[..], what].concat());
    }
}

/// The number of ready pods of a DaemonSet; or its status, if its controller is not done yet.
fn settled(daemon_set: &Value) -> Result<u64, String> {
    let (metadata, status) = (&daemon_set["metadata"], &daemon_set["status"]);
    let on_delete = daemon_set["spec"]["updateStrategy"]["type"] == "OnDelete";
    let desired = &status["desiredNumberScheduled"];
    let observed = status["observedGeneration"] == metadata["generation"];
    let updated = status["updatedNumberScheduled"] == *desired || on_delete;
    let available = status["numberAvailable"] == *desired;
    let ready = status["numberReady"].as_u64().filter(|_| observed && updated && available);
    ready.ok_or_else(|| format!("{} with {status}", metadata["name"]))
}

/// The conditions of a pod whose containers are no longer ready.
fn unready(since: &str) -> Value {
    let conditions = ["Ready", "ContainersReady"].map(|kind| {
        json!({
            "type": kind, "status": "False", "reason": "ContainersNotReady",
            "lastTransitionTime": since,
        })
    });
    conditions.into()
}

/// The current time in the API's format.
fn now_text() -> String {
    let seconds = now().as_second();
    jiff::Timestamp::from_second(seconds).unwrap().to_string()
}
