//! `managedBy: ds-apply`, on a control plane without a DaemonSet controller: the run is the
//! controller, and a record ConfigMap stands for the DaemonSet.

mod batches;
mod cron;
mod handed_over;
mod life;
mod rights;

use super::request_log::RUNNER;
use super::*;

/// A DaemonSet `agent` without a controller in the cluster.
struct Managed<'p> {
    plane: &'p ControlPlane,
    namespace: String,
}

/// The policy that sets `managedBy`.
fn policy(namespace: &str) -> String {
    format!(
        "---
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {{name: ours}}
spec: {{selects: {{names: [{namespace}/agent]}}, managedBy: ds-apply}}
"
    )
}

/// A control plane without a DaemonSet controller.
fn without_controller() -> ControlPlane {
    ControlPlane::builder()
        .without_controller("daemonset-controller")
        .user(RUNNER, &["system:masters"])
        .audit()
        .start()
}

impl<'p> Managed<'p> {
    fn new(plane: &'p ControlPlane, namespace: &str) -> Self {
        plane.kubectl(&["create", "namespace", namespace]);
        Self { plane, namespace: namespace.to_owned() }
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        self.plane.kubectl(&[&["--namespace", &self.namespace], arguments].concat())
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.kubectl(&[arguments, &["--output=json"]].concat())).unwrap()
    }

    fn files(&self, manifest: &str) -> String {
        format!("{manifest}{}", policy(&self.namespace))
    }

    /// Runs `ds-apply --yes` of a manifest, with the policy; checks the exit code.
    #[track_caller]
    fn apply(&self, manifest: &str, flags: &[&str], code: i32) -> Output {
        let arguments = [&["--yes", "-f", "agent.yaml"], flags].concat();
        let files = self.files(manifest);
        let run = self.plane.ds_apply_as(RUNNER, &arguments, &[("agent.yaml", &files)]);
        let output = run.run();
        assert_eq!(
            output.status.code(),
            Some(code),
            "{}: {}",
            self.namespace,
            output_text(&output)
        );
        output
    }

    /// Runs `ds-apply --yes` of a manifest, with these fields in the policy; checks the exit code, and
    /// returns the output.
    #[track_caller]
    fn apply_under(&self, fields: &str, manifest: &str, code: i32) -> String {
        let Self { plane, namespace } = self;
        let files = format!(
            "{manifest}---
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {{name: ours}}
spec:
  selects: {{names: [{namespace}/agent]}}
  managedBy: ds-apply
  {fields}
"
        );
        let arguments = ["--yes", "-f", "agent.yaml"];
        let output = plane.ds_apply_as(RUNNER, &arguments, &[("agent.yaml", &files)]).run();
        let text = output_text(&output);
        assert_eq!(output.status.code(), Some(code), "{namespace}: {text}");
        text
    }

    /// Number of pods with this image.
    fn pods_of(&self, image: &str) -> usize {
        let pods = self.json(&["get", "pods"]);
        let full = format!("cr.example/agent:{image}");
        let pods = pods["items"].as_array().unwrap().iter();
        pods.filter(|pod| pod["spec"]["containers"][0]["image"] == full.as_str()).count()
    }

    /// Runs `ds-apply COMMAND ns/agent --yes`, which must succeed.
    #[track_caller]
    fn command(&self, command: &str, flags: &[&str]) -> Output {
        let name = format!("{}/agent", self.namespace);
        let arguments = [&[command, &name, "--yes"], flags].concat();
        let output = self.plane.ds_apply_as(RUNNER, &arguments, &[]).run();
        assert_eq!(output.status.code(), Some(0), "{}: {}", self.namespace, output_text(&output));
        output
    }

    /// Runs a command of `ds-plan` with this manifest.
    fn ds_plan(&self, arguments: &[&str], manifest: &str) -> Output {
        self.plane.ds_plan(arguments, &[("agent.yaml", &self.files(manifest))])
    }

    /// Checks that a new plan is empty, nothing has drifted, and the record's counters are
    /// complete.
    #[track_caller]
    fn is_whole(&self, manifest: &str, nodes: usize) {
        let arguments = ["--detailed-exitcode", "-f", "agent.yaml"];
        let planned = self.ds_plan(&arguments, manifest);
        assert_eq!(planned.status.code(), Some(0), "{}: {}", self.namespace, output_text(&planned));
        let drift = self.ds_plan(&["drift", "-f", "agent.yaml"], manifest);
        assert_eq!(drift.status.code(), Some(0), "{}: {}", self.namespace, output_text(&drift));
        let record = self.json(&["get", "configmap", "ds-plan-agent"]);
        let status: Value =
            serde_json::from_str(record["data"]["status"].as_str().unwrap()).unwrap();
        for counter in [
            "desiredNumberScheduled",
            "currentNumberScheduled",
            "numberReady",
            "updatedNumberScheduled",
            "numberAvailable",
        ] {
            assert_eq!(status[counter], nodes, "{}: {counter} of {status}", self.namespace);
        }
        for counter in ["numberMisscheduled", "numberUnavailable"] {
            assert_eq!(status[counter], 0, "{}: {counter} of {status}", self.namespace);
        }
    }

    fn pods(&self) -> Vec<Value> {
        self.json(&["get", "pods"])["items"].as_array().unwrap().clone()
    }

    /// Node and uid of each pod.
    fn uids(&self) -> BTreeSet<(String, String)> {
        let pods = self.pods();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let one = |pod: &Value| (text(&pod["spec"]["nodeName"]), text(&pod["metadata"]["uid"]));
        pods.iter().map(one).collect()
    }

    /// The image tags of the running pods.
    fn images(&self) -> BTreeSet<String> {
        let tag = |pod: &Value| {
            let image = pod["spec"]["containers"][0]["image"].as_str().unwrap().to_owned();
            image.rsplit(':').next().unwrap().to_owned()
        };
        self.pods().iter().map(tag).collect()
    }

    /// The revisions in order: their numbers and owners.
    fn revisions(&self) -> Vec<(i64, String)> {
        let list = self.json(&["get", "controllerrevisions"]);
        let one = |revision: &Value| {
            let owner = &revision["metadata"]["ownerReferences"][0];
            let [kind, name] = ["kind", "name"].map(|key| owner[key].as_str().unwrap_or("nobody"));
            (revision["revision"].as_i64().unwrap(), format!("{kind}/{name}"))
        };
        let mut all: Vec<_> = list["items"].as_array().unwrap().iter().map(one).collect();
        all.sort();
        all
    }

    fn watch(&self, nodes: usize) -> Watcher {
        Watcher::begin(self.plane.client(), &self.namespace, nodes)
    }
}
