//! Beside Flux and Argo CD: each applies DaemonSets from a source, and `ds-apply` paces the pods of
//! those that declare `OnDelete`.
//!
//! Building them takes minutes, so these tests are run by a job of their own:
//! `cargo test --features control-plane --test control_plane -- --ignored git_ops`.

mod argo_cd;
mod flux;
mod git_server;

use std::process::Command;

use tempfile::TempDir;

use super::*;
use crate::harness::watchdog::{Watched, log_tail};
use argo_cd::ArgoCd;
use flux::Flux;

const NODES: usize = 6;

const POLICY: &str = "
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: paced}
spec:
  selects: {names: [logging/agent]}
  maxUnavailable: 2
  minReadySeconds: 0
  steps: [{name: canary, nodes: 1, soak: 2s}]
";

/// A running product that applies everything in its source, and sets back what differs.
trait GitOps<'p>: Sized {
    /// Its name, as the guard has it.
    const NAME: &'static str;
    /// Its user at the API server.
    const USER: &'static str;
    /// The field manager with which it applies.
    const MANAGER: &'static str;
    /// The annotation of an object that stays when it leaves the source.
    const KEEPS: &'static str;
    /// What it marks its objects with: `label` or `annotate`, as kubectl has it, and a key.
    const MARKS: &'static [(&'static str, &'static str)];

    /// Starts it. The control plane has its user.
    fn start(plane: &'p ControlPlane) -> Self;

    /// A commit: from now on the source has these manifests and no others. Returns when they are
    /// applied.
    fn commit(&mut self, manifests: &str);

    /// Stops or continues applying.
    fn suspend(&self, suspend: bool);

    /// Waits until it has compared the cluster with its source from beginning to end.
    fn compares(&self);
}

/// The processes of a product, and the folder for what they write.
struct Processes {
    folder: TempDir,
    /// Each with the name of its log.
    all: Vec<(&'static str, Watched)>,
}

impl Processes {
    /// No process yet.
    fn none() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), all: Vec::new() }
    }

    /// Starts one under this name.
    fn start(&mut self, name: &'static str, command: &mut Command) {
        let folder = self.folder.path();
        let command = command.env("HOME", folder).env("TMPDIR", folder).current_dir(folder);
        self.all.push((name, Watched::spawn(command, &folder.join(name))));
    }

    /// Panics with the end of its log if one has ended.
    fn all_run(&mut self) {
        for (name, process) in &mut self.all {
            let log = self.folder.path().join(*name);
            assert!(process.ended().is_none(), "{name} ended; {}", log_tail(&log));
        }
    }
}

/// Creates its kinds, and the namespace of its own objects.
fn install(plane: &ControlPlane, kinds: &[String], namespace: &str) {
    for kind in kinds {
        plane.apply_yaml(kind);
    }
    plane.kubectl(&["wait", "crd", "--all", "--for=condition=Established", "--timeout=60s"]);
    plane.kubectl(&["create", "namespace", namespace]);
}

fn namespace(name: &str) -> String {
    format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n---\n")
}

/// What the source has: a DaemonSet whose pods the user replaces, and those of `others`.
fn source(image: &str, others: &str) -> String {
    format!("{}{}---\n{others}", namespace("logging"), on_delete(image))
}

/// A DaemonSet whose pods the DaemonSet controller replaces.
fn rolling(image: &str) -> String {
    format!("{}{}", namespace("rolling"), manifest("rolling", image, &at_most("1")))
}

fn on_delete(image: &str) -> String {
    manifest("logging", image, "  updateStrategy: {type: OnDelete}")
}

#[test]
#[ignore = "builds Flux; a job of its own runs it"]
fn flux_applies_and_ds_apply_paces() {
    applies_beside::<Flux<'_>>(&control_plane::<Flux<'_>>());
}

#[test]
#[ignore = "builds Argo CD; a job of its own runs it"]
fn argo_cd_applies_and_ds_apply_paces() {
    applies_beside::<ArgoCd<'_>>(&control_plane::<ArgoCd<'_>>());
}

fn control_plane<'p, G: GitOps<'p>>() -> ControlPlane {
    ControlPlane::builder().user(G::USER, &["system:masters"]).start()
}

fn applies_beside<'p, G: GitOps<'p>>(plane: &'p ControlPlane) {
    plane.create_nodes(three_zones(NODES));
    let mut git_ops = G::start(plane);
    git_ops.commit(&source("v1", &rolling("v1")));
    let fleet = |namespace: &str| Fleet { plane, namespace: namespace.to_owned(), nodes: NODES };
    let (paced, rolled) = (fleet("logging"), fleet("rolling"));
    paced.wait_until_available();
    rolled.wait_until_available();

    previews(&paced);
    git_ops.commit(&source("v2", &rolling("v1")));
    paces(&git_ops, &paced);
    a_pause_is_undone(&git_ops, &rolled);
    drift_is_the_same(&git_ops, &paced);
    leaves(&mut git_ops, &rolled);
}

/// The plan of a pull request shows what is written after its merge, and no guard fails its check.
fn previews(fleet: &Fleet<'_>) {
    let changed = |manifest: &str| -> Vec<String> {
        let arguments = ["--fail-on-guards", "-f", "agent.yaml", "-o", "json"];
        let plan = fleet.plane.ds_plan(&arguments, &[("agent.yaml", manifest)]);
        assert_eq!(plan.status.code(), Some(0), "{}", output_text(&plan));
        let plan: Value = serde_json::from_str(&stdout(&plan)).unwrap();
        let changes = plan["daemonSets"][0]["changes"].as_array().into_iter().flatten();
        changes.filter_map(|change| change["path"].as_str().map(str::to_owned)).collect()
    };
    assert_eq!(changed(&on_delete("v1")), [""; 0]);
    assert_eq!(changed(&on_delete("v2")), ["spec.template.spec.containers[agent].image"]);
    let fewer = on_delete("v1").replace("      terminationGracePeriodSeconds: 1\n", "");
    assert_eq!(changed(&fewer), ["spec.template.spec.terminationGracePeriodSeconds"]);
}

/// The new template changes no pod until `ds-apply roll` replaces them, under the policy; there
/// is nothing to set back.
fn paces<'p>(git_ops: &impl GitOps<'p>, fleet: &Fleet<'_>) {
    git_ops.compares();
    assert_eq!(fleet.images(), ["v1".to_owned()].into(), "the controller waits");
    let generation = || fleet.kubectl(&["get", "daemonset", "agent", GENERATION]);
    let before = generation();
    let files = [("policy.yaml", POLICY)];
    let roll = ["roll", "logging/agent", "--yes", "--policy", "policy.yaml"];
    let run = || fleet.plane.ds_apply(&roll, &files).run();
    let watcher = fleet.watch();
    let canary = run();
    assert_eq!(canary.status.code(), Some(8), "{}", output_text(&canary));
    git_ops.compares();
    assert_eq!(fleet.images().len(), 2, "the canary has the new version");
    let rest = run();
    assert_eq!(rest.status.code(), Some(0), "{}", output_text(&rest));
    let seen = watcher.end();
    assert!(seen.most_unavailable <= 2, "{}", seen.most_unavailable);
    assert_eq!((seen.deleted.len(), fleet.images()), (NODES, ["v2".to_owned()].into()));
    git_ops.compares();
    assert_eq!(generation(), before, "neither has changed the object");
    let plan = fleet.plan(&on_delete("v2"));
    assert_eq!(plan.status.code(), Some(0), "{}", output_text(&plan));
}

/// `ds-apply` refuses to roll out what is applied from a source. If something does pause it, that is
/// set back soon, and the controller rolls all pods by its own rules.
fn a_pause_is_undone<'p, G: GitOps<'p>>(git_ops: &G, fleet: &Fleet<'_>) {
    let before = fleet.kubectl(&["get", "daemonset", "agent", GENERATION]);
    let refused = fleet.apply(&manifest("rolling", "v2", &at_most("1")), &[]);
    assert_eq!(refused.status.code(), Some(6), "{}", output_text(&refused));
    assert!(output_text(&refused).contains(G::NAME), "{}", output_text(&refused));
    assert_eq!(fleet.kubectl(&["get", "daemonset", "agent", GENERATION]), before);

    let pause = r#"{"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}}}"#;
    fleet.kubectl(&["patch", "daemonset", "agent", "--type=merge", "-p", pause]);
    assert_eq!(fleet.strategy(), "OnDelete");
    git_ops.compares();
    assert_eq!(fleet.strategy(), "RollingUpdate");
}

/// What `ds-plan drift` reports is what is then set back.
fn drift_is_the_same<'p>(git_ops: &impl GitOps<'p>, fleet: &Fleet<'_>) {
    let drift = || {
        let file = [("agent.yaml", &*on_delete("v2"))];
        fleet.plane.ds_plan(&["drift", "-f", "agent.yaml", "-o", "json"], &file)
    };
    let none = drift();
    assert_eq!(none.status.code(), Some(0), "{}", output_text(&none));
    git_ops.suspend(true);
    fleet.kubectl(&["set", "image", "daemonset/agent", "agent=cr.example/agent:hotfix"]);
    let found = drift();
    assert_eq!(found.status.code(), Some(3), "{}", output_text(&found));
    let report: Value = serde_json::from_str(&stdout(&found)).unwrap();
    let deviations = report["daemonSets"][0]["deviations"].as_array().unwrap();
    let paths: Vec<&str> = deviations.iter().filter_map(|it| it["path"].as_str()).collect();
    assert_eq!(paths, ["spec.template.spec.containers[agent].image"]);
    git_ops.suspend(false);
    git_ops.compares();
    let image = "--output=jsonpath={.spec.template.spec.containers[0].image}";
    assert_eq!(fleet.kubectl(&["get", "daemonset", "agent", image]), "cr.example/agent:v2");
    let after = drift();
    assert_eq!(after.status.code(), Some(0), "{}", output_text(&after));
}

/// A DaemonSet that leaves the source, and that `ds-apply` takes over.
fn leaves<'p, G: GitOps<'p>>(git_ops: &mut G, fleet: &Fleet<'_>) {
    let kept = format!("name: agent, annotations: {{{}}},", G::KEEPS);
    git_ops.commit(&source("v2", &rolling("v1").replacen("name: agent,", &kept, 1)));
    git_ops.commit(&source("v2", &namespace("rolling")));
    for (command, key) in G::MARKS {
        fleet.kubectl(&[command, "daemonset", "agent", &format!("{key}-")]);
    }
    let mine = manifest("rolling", "v2", &at_most("1"));
    let refused = fleet.apply(&mine, &[]);
    assert_eq!(refused.status.code(), Some(6), "{}", output_text(&refused));
    let taken = fleet.apply(&mine, &[&*format!("--force-conflicts={}", G::MANAGER)]);
    assert_eq!(taken.status.code(), Some(0), "{}", output_text(&taken));
    assert_eq!(fleet.images(), ["v2".to_owned()].into());
    git_ops.compares();
    assert_eq!(
        (fleet.images(), fleet.strategy()),
        (["v2".to_owned()].into(), "RollingUpdate".into())
    );
    let plan = fleet.plan(&mine);
    assert_eq!(plan.status.code(), Some(0), "{}", output_text(&plan));
}

const GENERATION: &str = "--output=jsonpath={.metadata.generation}";
