//! `ds-apply` on a real control plane, with an independent observer that sees every pod event and
//! counts unavailable pods itself.

mod approved;
mod compacted;
mod cost;
mod emptied;
mod git_ops;
mod in_cluster;
mod interference;
mod killed;
mod managed;
mod namespaced;
mod on_delete;
mod outages;
mod predicted;
mod preflight;
mod provenance;
mod pruned;
mod request_log;
mod roles;
mod rolling;
mod saved;
mod shown;
mod steps;
mod surge;
mod taken_over;
mod terminal;
mod together;
mod unready;
mod walk;
mod watcher;
mod workspace;

use std::collections::BTreeSet;
use std::process::Output;
use std::time::Duration;

use serde_json::Value;

use crate::harness::{ControlPlane, FakeNode, Proxy, Running, stdout, wait_for, wait_until};
use watcher::{Seen, Watcher};

/// How long a fleet may take to become ready.
const SOON: Duration = Duration::from_mins(2);

/// One DaemonSet in its own namespace, on every node of the control plane.
struct Fleet<'p> {
    plane: &'p ControlPlane,
    namespace: String,
    nodes: usize,
}

/// A DaemonSet `agent` with this image, and lines of its `spec`.
fn manifest(namespace: &str, image: &str, spec: &str) -> String {
    format!(
        "
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: agent, namespace: {namespace}}}
spec:
  selector: {{matchLabels: {{app: agent}}}}
{spec}
  template:
    metadata: {{labels: {{app: agent}}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{{name: agent, image: 'cr.example/agent:{image}'}}]
"
    )
}

fn at_most(max_unavailable: &str) -> String {
    format!(
        "  updateStrategy: {{type: RollingUpdate, rollingUpdate: {{maxUnavailable: {max_unavailable}}}}}"
    )
}

/// The same, with pods that take half a second to become ready.
fn slowly(manifest: &str) -> String {
    let (labels, slow) = ("labels: {app: agent}", "annotations: {ready-after: 500ms}");
    manifest.replacen(&format!("{{{labels}}}"), &format!("{{{labels}, {slow}}}"), 1)
}

/// Nodes in three zones.
fn three_zones(count: usize) -> Vec<FakeNode> {
    let node = |at: usize| {
        let zone = ["a", "b", "c"][at % 3];
        FakeNode::new(&format!("{zone}-{at:02}")).label("topology.kubernetes.io/zone", zone)
    };
    (0..count).map(node).collect()
}

impl<'p> Fleet<'p> {
    /// Creates the namespace, applies the manifest with `ds-apply`, and waits for every pod.
    fn new(plane: &'p ControlPlane, namespace: &str, nodes: usize, manifest: &str) -> Self {
        plane.kubectl(&["create", "namespace", namespace]);
        let fleet = Self { plane, namespace: namespace.to_owned(), nodes };
        let created = fleet.apply(manifest, &[]);
        assert_eq!(created.status.code(), Some(0), "{}", output_text(&created));
        fleet.wait_until_available();
        fleet
    }

    fn wait_until_available(&self) {
        wait_for("available pods", SOON, self.nodes.to_string(), || self.available());
    }

    /// The number of available pods, by the status of the DaemonSet.
    fn available(&self) -> String {
        let available = "--output=jsonpath={.status.numberAvailable}";
        self.kubectl(&["get", "daemonset", "agent", available])
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        self.plane.kubectl(&[&["--namespace", &self.namespace], arguments].concat())
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.kubectl(&[arguments, &["--output=json"]].concat())).unwrap()
    }

    /// `ds-apply --yes` of a manifest.
    fn apply(&self, manifest: &str, flags: &[&str]) -> Output {
        let arguments = [&["--yes", "-f", "agent.yaml"], flags].concat();
        self.plane.ds_apply(&arguments, &[("agent.yaml", manifest)]).run()
    }

    /// The same, started but not waited for.
    fn start(&self, manifest: &str, flags: &[&str]) -> Running {
        let arguments = [&["--yes", "-f", "agent.yaml"], flags].concat();
        self.plane.ds_apply(&arguments, &[("agent.yaml", manifest)]).start()
    }

    /// Checks that every pod of each version up to `number` was replaced once, within the budget,
    /// and that the declared strategy is live at the end.
    #[track_caller]
    fn is_replaced_within(&self, budget: usize, seen: &Seen, number: usize) {
        let Self { namespace, nodes, plane: _ } = self;
        assert!(seen.most_unavailable <= budget, "{namespace}: {}", seen.most_unavailable);
        assert_eq!(
            seen.deleted.len(),
            (number - 1) * nodes,
            "{namespace}: not replaced once each: {seen:?}"
        );
        assert_eq!(self.images(), [format!("v{number}")].into(), "{namespace}");
        assert_eq!(self.strategy(), "RollingUpdate", "{namespace}");
        let numbers: Vec<i64> = self.revisions().iter().map(|(_, number, _)| *number).collect();
        let all: Vec<i64> = (1..=number.try_into().unwrap()).collect();
        assert_eq!(numbers, all, "{namespace}: one revision per template");
    }

    /// `ds-plan --detailed-exitcode` of a manifest.
    fn plan(&self, manifest: &str) -> Output {
        let arguments = ["--detailed-exitcode", "-f", "agent.yaml"];
        self.plane.ds_plan(&arguments, &[("agent.yaml", manifest)])
    }

    /// `ds-plan checks` of a manifest.
    fn checks(&self, manifest: &str, flags: &[&str]) -> Output {
        let arguments = [&["checks", "-f", "agent.yaml"], flags].concat();
        self.plane.ds_plan(&arguments, &[("agent.yaml", manifest)])
    }

    /// The number of ready pods.
    fn ready(&self) -> usize {
        let ready = "--output=jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}";
        self.kubectl(&["get", "pods", ready]).split(' ').filter(|it| *it == "True").count()
    }

    fn watch(&self) -> Watcher {
        Watcher::begin(self.plane.client(), &self.namespace, self.nodes)
    }

    /// The images of the running pods.
    fn images(&self) -> BTreeSet<String> {
        let images = "--output=jsonpath={.items[*].spec.containers[0].image}";
        let images = self.kubectl(&["get", "pods", images]);
        images.split(' ').map(|image| image.rsplit(':').next().unwrap().to_owned()).collect()
    }

    fn strategy(&self) -> String {
        self.kubectl(&[
            "get",
            "daemonset",
            "agent",
            "--output=jsonpath={.spec.updateStrategy.type}",
        ])
    }

    /// Name, number and annotations of each revision, by number.
    fn revisions(&self) -> Vec<(String, i64, Value)> {
        let list = self.json(&["get", "controllerrevisions"]);
        let one = |revision: &Value| {
            let name = revision["metadata"]["name"].as_str().unwrap().to_owned();
            let number = revision["revision"].as_i64().unwrap();
            (name, number, revision["metadata"]["annotations"].clone())
        };
        let mut all: Vec<_> = list["items"].as_array().unwrap().iter().map(one).collect();
        all.sort_by_key(|(_, number, _)| *number);
        all
    }
}

/// `ds-apply --yes` of a manifest through a proxy, started but not waited for.
fn start_through(proxy: &Proxy, manifest: &str) -> Running {
    let arguments = ["--yes", "-f", "agent.yaml"];
    let files = [("agent.yaml", manifest)];
    ControlPlane::ds_apply_by(proxy.kubeconfig_path(), &arguments, &files).start()
}

/// Both output streams of a program, for messages.
fn output_text(output: &Output) -> String {
    format!("{}\n{}\n{}", output.status, stdout(output), String::from_utf8_lossy(&output.stderr))
}
