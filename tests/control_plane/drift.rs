//! Each kind of drift from git is reported in its class, with the client that caused it.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{ControlPlane, FakeNode, stdout, wait_until};

const SOON: Duration = Duration::from_mins(1);

/// The manifest in git; the test chooses version and strategy.
fn manifest(name: &str, version: &str, strategy: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {
            "name": name, "namespace": "default", "labels": {"tier": "node"},
            "annotations": {
                "ds-plan.dev/commit": format!("commit-of-{version}"),
                "kubernetes.io/change-cause": format!("version {version}"),
            },
        },
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "updateStrategy": strategy,
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "agent", "image": format!("agent:{version}")}]},
            },
        },
    })
}

fn rolling() -> Value {
    json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%"}})
}

/// A fleet of three nodes, with one DaemonSet at a time.
struct Fleet {
    plane: ControlPlane,
}

impl Fleet {
    fn new() -> Self {
        let plane = ControlPlane::start();
        plane.create_nodes(FakeNode::many("node", 3));
        Self { plane }
    }

    /// Applies it as `ds-apply` would, and waits until the controller has observed it.
    fn apply(&self, manifest: &Value) {
        let command = ["apply", "--server-side", "--field-manager=ds-apply", "-f", "-"];
        self.plane.kubectl_stdin(&command, &manifest.to_string());
        self.observed(name(manifest));
    }

    /// Applies it and waits until it is rolled out.
    fn roll_out(&self, manifest: &Value) {
        self.apply(manifest);
        self.rolled_out(name(manifest));
    }

    fn rolled_out(&self, name: &str) {
        self.plane.wait_until_rolled_out(name, 3);
    }

    fn observed(&self, name: &str) {
        let path = "-o=jsonpath={.metadata.generation} {.status.observedGeneration}";
        wait_until("the controller to observe it", SOON, || {
            let text = self.plane.kubectl(&["get", "daemonset", name, path]);
            text.split_once(' ').is_some_and(|(now, seen)| now == seen)
        });
    }

    /// The deviations as `CLASS CODE PATH by MANAGER`, and the exit code that matches them.
    fn drift(&self, manifest: &Value) -> BTreeSet<String> {
        let file = manifest.to_string();
        let output =
            self.plane.ds_plan(&["drift", "-f", "git.json", "-o", "json"], &[("git.json", &file)]);
        let report: Value = serde_json::from_str(&stdout(&output))
            .unwrap_or_else(|error| panic!("{error}: {output:?}"));
        let deviations = report["daemonSets"][0]["deviations"].as_array().unwrap();
        let code = if deviations.is_empty() { 0 } else { 3 };
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        deviations.iter().map(line).collect()
    }
}

fn name(manifest: &Value) -> &str {
    manifest["metadata"]["name"].as_str().unwrap()
}

fn line(deviation: &Value) -> String {
    let text = |field: &str| deviation[field].as_str().unwrap_or_default();
    let mut line = format!("{} {}", text("class"), text("code"));
    if deviation["path"].is_string() {
        let writers = deviation["writers"].as_array().unwrap().iter();
        let writers: Vec<String> = writers
            .map(|it| {
                assert!(it["time"].is_string(), "{it}");
                format!("{} {}", it["manager"].as_str().unwrap(), it["operation"].as_str().unwrap())
            })
            .collect();
        line = format!("{line} {} by {}", text("path"), writers.join(", "));
    }
    line
}

fn set<const N: usize>(lines: [&str; N]) -> BTreeSet<String> {
    lines.into_iter().map(str::to_owned).collect()
}

const IMAGE: &str = "spec.template.spec.containers[agent].image";

#[test]
fn changes_by_other_clients() {
    let fleet = Fleet::new();
    let git = manifest("edited", "1", &rolling());
    fleet.roll_out(&git);
    assert_eq!(fleet.drift(&git), set([]), "after the apply");

    // As `kubectl edit` does it.
    let patch = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "agent", "image": "agent:hotfix"}]}}}});
    let patch = patch.to_string();
    fleet.plane.kubectl(&[
        "patch",
        "daemonset",
        "edited",
        "--field-manager=kubectl-edit",
        "-p",
        &patch,
    ]);
    let label = ["label", "daemonset", "edited", "--overwrite", "--field-manager=labeller"];
    fleet.plane.kubectl(&[&label[..], &["tier=edge", "unheard-of=by-git"]].concat());
    fleet.rolled_out("edited");
    assert_eq!(
        fleet.drift(&git),
        set([
            &format!("spec fieldDiffers {IMAGE} by kubectl-edit Update"),
            "spec fieldDiffers metadata.labels.tier by labeller Update",
        ])
    );

    // A field of another applier.
    let foreign = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "edited", "namespace": "default"},
        "spec": {"minReadySeconds": 1},
    });
    fleet.plane.kubectl_stdin(
        &["apply", "--server-side", "--field-manager=tuner", "-f", "-"],
        &foreign.to_string(),
    );
    fleet.observed("edited");
    let found = fleet.drift(&git);
    assert!(found.contains("spec fieldDiffers spec.minReadySeconds by tuner Apply"), "{found:?}");
}

#[test]
fn undone_and_restarted() {
    let fleet = Fleet::new();
    fleet.roll_out(&manifest("undone", "1", &rolling()));
    let git = manifest("undone", "2", &rolling());
    fleet.roll_out(&git);
    fleet.plane.kubectl(&["rollout", "undo", "daemonset/undone"]);
    fleet.rolled_out("undone");
    assert_eq!(fleet.drift(&git), set([&format!("spec fieldDiffers {IMAGE} by kubectl Update")]));

    let git = manifest("restarted", "1", &rolling());
    fleet.roll_out(&git);
    fleet.plane.kubectl(&["rollout", "restart", "daemonset/restarted"]);
    fleet.rolled_out("restarted");
    assert_eq!(
        fleet.drift(&git),
        set(["spec fieldDiffers spec.template.metadata.annotations by kubectl-rollout Update"])
    );
}

#[test]
fn orphaned_and_created_again() {
    let fleet = Fleet::new();
    fleet.roll_out(&manifest("orphaned", "1", &rolling()));
    fleet.plane.kubectl(&["delete", "daemonset", "orphaned", "--cascade=orphan"]);
    let git = manifest("orphaned", "2", &rolling());
    assert_eq!(fleet.drift(&git), set(["spec objectMissing", "history revisionOrphaned"]));

    // The template generation of the new object is 1 again, like that of the old pods: the
    // controller considers them up to date and never replaces them.
    fleet.apply(&git);
    fleet.rolled_out("orphaned");
    assert_eq!(
        fleet.drift(&git),
        set(["pod podOutdated", "rollout unfinished", "history statusDisagrees"])
    );

    let git = manifest("again", "1", &rolling());
    fleet.roll_out(&git);
    fleet.plane.kubectl(&["delete", "daemonset", "again", "--cascade=orphan"]);
    fleet.roll_out(&git);
    assert_eq!(fleet.drift(&git), set([]), "the same template is adopted unchanged");
}

#[test]
fn a_rollout_that_waits_or_is_paused() {
    let fleet = Fleet::new();
    let on_delete = json!({"type": "OnDelete"});
    fleet.roll_out(&manifest("waits", "1", &on_delete));
    let git = manifest("waits", "2", &on_delete);
    fleet.apply(&git);
    assert_eq!(fleet.drift(&git), set(["pod podOutdated", "rollout unfinished"]));

    let first = manifest("held", "1", &rolling());
    fleet.roll_out(&first);
    let git = manifest("held", "2", &rolling());
    let from = "-o=jsonpath={.items[?(@.metadata.labels.app=='held')].metadata.name}";
    let from = fleet.plane.kubectl(&["get", "controllerrevisions", from]);
    let declared = json!({
        "type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%", "maxSurge": 0}
    });
    let held = |state: &str, version: &str| {
        let mut held = manifest("held", version, &on_delete);
        let annotation = json!({
            "state": state, "declared": declared, "planDigest": "sha256:0",
            "from": {"name": from, "number": 1}, "since": "2026-08-01T12:00:00Z",
        });
        held["metadata"]["annotations"]["ds-plan.dev/rollout"] = annotation.to_string().into();
        held
    };
    fleet.apply(&held("paused", "2"));
    assert_eq!(fleet.drift(&git), set(["rollout paused", "pod podOutdated", "rollout unfinished"]));
    fleet.apply(&held("aborted", "1"));
    assert_eq!(fleet.drift(&git), set(["rollout aborted"]));
}
