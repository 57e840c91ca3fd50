//! Runs a scenario on either cluster.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;
use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};

use super::step::{Node, Scenario, Step};
use super::transcript::Transcript;
use super::view::{View, get, node_of};
use super::watcher::Watcher;

/// The cluster counts as settled after this time without a change: longer than any wait in a
/// scenario, and than a busy machine takes for a step.
const REST: Duration = Duration::from_secs(4);
/// The timeout of a wait in a scenario.
const LONGEST: Duration = Duration::from_mins(3);

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// Stops the controller manager and starts it again.
pub(super) trait Switch {
    async fn stop(&self);
    async fn start(&self);
}

/// Runs a scenario. Returns its transcript, or why it could not be run to its end on the cluster
/// `here`.
pub(super) async fn play(
    client: &Client,
    scenario: &Scenario,
    switch: &impl Switch,
    here: &str,
) -> String {
    let played = AssertUnwindSafe(play_to_the_end(client, scenario, switch)).catch_unwind();
    played.await.unwrap_or_else(|_| format!("cannot be played to its end {here}; see above"))
}

async fn play_to_the_end(client: &Client, scenario: &Scenario, switch: &impl Switch) -> String {
    let namespace = json!({"metadata": {"name": scenario.name}});
    send(client, Method::POST, "/api/v1/namespaces", JSON, &namespace).await;
    let mut player = Player {
        client,
        scenario,
        watcher: Watcher::begin(client, scenario.name).await,
        transcript: Transcript::default(),
    };
    for node in &scenario.nodes {
        player.add_node(node).await;
    }
    player.until("nodes are ready", |view| view.nodes.iter().all(is_fresh)).await;
    for step in &scenario.steps {
        match step {
            Step::Stop => switch.stop().await,
            Step::Start => switch.start().await,
            step => player.perform(step).await,
        }
    }
    player.transcript.text(&player.watcher.hashes(), scenario)
}

/// Whether a new node has lost its initial taint.
fn is_fresh(node: &Value) -> bool {
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    taints.into_iter().all(|taint| taint["key"] != "node.kubernetes.io/not-ready")
}

struct Player<'a> {
    client: &'a Client,
    scenario: &'a Scenario,
    watcher: Watcher,
    transcript: Transcript,
}

impl Player<'_> {
    async fn perform(&mut self, step: &Step) {
        let agent = self.apps("daemonsets/agent");
        match step {
            Step::Apply(change) => {
                let path = format!("{agent}?fieldManager=tester&force=true");
                self.patch(&path, APPLY, &self.scenario.manifest(change)).await;
            }
            Step::Patch(patch) => self.patch(&agent, MERGE, patch).await,
            Step::Delete(policy) => {
                let options = json!({"propagationPolicy": policy});
                send(self.client, Method::DELETE, &agent, JSON, &options).await;
            }
            Step::Undo(number) => self.undo(*number).await,
            Step::DeletePods(node) => {
                for path in self.pods_on(node, false).await {
                    send(self.client, Method::DELETE, &path, JSON, &json!({})).await;
                }
            }
            Step::PatchPods(node, patch) => {
                for path in self.pods_on(node, true).await {
                    self.patch(&path, MERGE, patch).await;
                }
            }
            Step::PodStatus(node, status) => {
                let status = json!({ "status": status });
                for path in self.pods_on(node, true).await {
                    self.patch(&format!("{path}/status"), MERGE, &status).await;
                }
            }
            Step::AddPod(node, change) => {
                let pods = format!("/api/v1/namespaces/{}/pods", self.scenario.name);
                let pod = self.scenario.pod(node, change);
                send(self.client, Method::POST, &pods, JSON, &pod).await;
            }
            Step::AddNode(node) => self.add_node(node).await,
            Step::RemoveNode(node) => {
                send(self.client, Method::DELETE, &self.node(node), JSON, &json!({})).await;
            }
            Step::PatchNode(node, patch) => self.patch(&self.node(node), MERGE, patch).await,
            Step::NodeReady(node, ready) => self.node_ready(node, *ready).await,
            Step::PatchRevision(number, change) => {
                let revision = self.revision(*number).await;
                let name = revision["metadata"]["name"].as_str().unwrap();
                let path = self.apps(&format!("controllerrevisions/{name}"));
                self.patch(&path, MERGE, change).await;
            }
            Step::DeleteRevision(number) => {
                let revision = self.revision(*number).await;
                self.delete_revision(&revision).await;
            }
            Step::CopyRevision(number, change) => {
                let original = self.revision(*number).await;
                self.copy(&original, change).await;
            }
            Step::SwapRevision(number, change) => {
                let original = self.revision(*number).await;
                self.delete_revision(&original).await;
                self.copy(&original, change).await;
            }
            Step::Stop | Step::Start => {}
            Step::Rest => self.rest().await,
            Step::Until(what, check) => self.until(what, check).await,
        }
    }

    fn apps(&self, rest: &str) -> String {
        format!("/apis/apps/v1/namespaces/{}/{rest}", self.scenario.name)
    }

    fn node(&self, short: &str) -> String {
        format!("/api/v1/nodes/{}", self.scenario.node(short))
    }

    async fn patch(&self, path: &str, media_type: &'static str, change: &Value) {
        send(self.client, Method::PATCH, path, media_type, change).await;
    }

    async fn add_node(&self, node: &Node) {
        let object = self.scenario.node_object(node);
        send(self.client, Method::POST, "/api/v1/nodes", JSON, &object).await;
    }

    /// kwok's kubelets read the label, and write this status themselves.
    async fn node_ready(&self, node: &str, ready: bool) {
        let path = self.node(node);
        let label = if ready { Value::Null } else { "down".into() };
        self.patch(&path, MERGE, &json!({"metadata": {"labels": {"kubelet": label}}})).await;
        let status = if ready { "True" } else { "False" };
        let conditions = json!([{"type": "Ready", "status": status}]);
        let status = json!({"status": {"conditions": conditions}});
        self.patch(&format!("{path}/status"), MERGE, &status).await;
    }

    /// The paths of the pods on a node; terminating ones only if requested.
    async fn pods_on(&self, node: &str, ending: bool) -> Vec<String> {
        let node = self.scenario.node(node);
        let view = View::of(self.client, self.scenario.name).await;
        let here = view.pods.iter().filter(|pod| {
            node_of(pod) == node && (ending || pod["metadata"]["deletionTimestamp"].is_null())
        });
        let name = |pod: &Value| pod["metadata"]["name"].as_str().unwrap().to_owned();
        let path = |name| format!("/api/v1/namespaces/{}/pods/{name}", self.scenario.name);
        let paths: Vec<String> = here.map(name).map(path).collect();
        assert!(!paths.is_empty(), "{}: no pod on {node}", self.scenario.name);
        paths
    }

    async fn revision(&self, number: i64) -> Value {
        let view = View::of(self.client, self.scenario.name).await;
        let found = view.revisions.into_iter().find(|it| it["revision"] == number);
        found.unwrap_or_else(|| panic!("{}: no revision {number}", self.scenario.name))
    }

    async fn undo(&self, number: i64) {
        let mut template = self.revision(number).await["data"]["spec"]["template"].take();
        template.as_object_mut().unwrap().remove("$patch");
        let patch = json!([{"op": "replace", "path": "/spec/template", "value": template}]);
        self.patch(&self.apps("daemonsets/agent"), JSON_PATCH, &patch).await;
    }

    async fn delete_revision(&self, revision: &Value) {
        let name = revision["metadata"]["name"].as_str().unwrap();
        let path = self.apps(&format!("controllerrevisions/{name}"));
        send(self.client, Method::DELETE, &path, JSON, &json!({})).await;
    }

    /// Creates a copy of a revision.
    async fn copy(&self, original: &Value, change: &Value) {
        let metadata = &original["metadata"];
        let mut copy = json!({
            "apiVersion": "apps/v1", "kind": "ControllerRevision",
            "metadata": {
                "name": metadata["name"], "labels": metadata["labels"],
                "ownerReferences": metadata["ownerReferences"],
            },
            "data": original["data"],
            "revision": original["revision"],
        });
        json_patch::merge(&mut copy, change);
        send(self.client, Method::POST, &self.apps("controllerrevisions"), JSON, &copy).await;
    }

    async fn rest(&mut self) {
        let limit = Instant::now() + LONGEST;
        // The watch may not have delivered the last change yet.
        sleep(REST).await;
        loop {
            assert!(Instant::now() < limit, "{}: does not settle", self.scenario.name);
            sleep_until(self.watcher.last_move() + REST).await;
            self.controller_keeps_up().await;
            if self.watcher.last_move() + REST <= Instant::now() && self.is_observed().await {
                break;
            }
            sleep(REST / 10).await;
        }
        let view = View::of(self.client, self.scenario.name).await;
        self.transcript.look(&view, self.watcher.take());
    }

    /// On a busy machine, no change may mean that no component makes progress. So another DaemonSet
    /// is created: when the controller has observed it, it has processed its queue up to there.
    async fn controller_keeps_up(&self) {
        let name = self.scenario.name;
        let path = "/apis/apps/v1/namespaces/default/daemonsets";
        let mut other = self.scenario.manifest(&json!({
            "metadata": {"name": name, "namespace": "default"},
        }));
        other["spec"]["template"]["spec"]["nodeSelector"] = json!({"nowhere": "at-all"});
        send(self.client, Method::POST, path, JSON, &other).await;
        let path = format!("{path}/{name}");
        while get(self.client, &path).await["status"]["observedGeneration"] != 1 {
            sleep(REST / 100).await;
        }
        send(self.client, Method::DELETE, &path, JSON, &json!({})).await;
    }

    async fn is_observed(&self) -> bool {
        let view = View::of(self.client, self.scenario.name).await;
        view.daemon_sets.iter().all(|it| {
            it["metadata"]["deletionTimestamp"].is_string()
                || it["status"]["observedGeneration"] == it["metadata"]["generation"]
        })
    }

    async fn until(&self, what: &str, check: impl Fn(&View) -> bool) {
        let limit = Instant::now() + LONGEST;
        while !check(&View::of(self.client, self.scenario.name).await) {
            let now = Instant::now();
            assert!(now < limit, "{}: timed out: {what}", self.scenario.name);
            sleep(Duration::from_millis(250)).await;
        }
    }
}

async fn send(client: &Client, method: Method, path: &str, media_type: &str, body: &Value) {
    let request = Request::builder()
        .method(method.clone())
        .uri(path)
        .header("content-type", media_type)
        .body(body.to_string().into_bytes())
        .unwrap();
    let answer: Result<Value, _> = client.request(request).await;
    if let Err(error) = answer {
        panic!("{method} {path} {body}: {error}");
    }
}
