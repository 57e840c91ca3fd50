//! Beside Flux: its kustomize-controller applies DaemonSets from a source, and `ds-apply` paces the
//! pods of those that declare `OnDelete`.
//!
//! Building Flux takes minutes, so these tests are run by a job of their own:
//! `cargo test --features control-plane --test control_plane -- --ignored flux`.

mod controller;

use super::*;
use controller::{FLUX, Flux};

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
    let plane = ControlPlane::builder().user(FLUX, &["system:masters"]).start();
    plane.create_nodes(three_zones(NODES));
    let mut flux = Flux::start(&plane);
    flux.commit("1111", &source("v1", &rolling("v1")));
    let fleet =
        |namespace: &str| Fleet { plane: &plane, namespace: namespace.to_owned(), nodes: NODES };
    let (paced, rolled) = (fleet("logging"), fleet("rolling"));
    paced.wait_until_available();
    rolled.wait_until_available();

    flux.commit("2222", &source("v2", &rolling("v1")));
    paces(&mut flux, &paced);
    a_pause_is_undone(&flux, &rolled);
    drift_is_the_same(&flux, &paced);
    leaves(&mut flux, &rolled);
}

/// The new template changes no pod until `ds-apply roll` replaces them, under the policy; Flux finds
/// nothing to undo.
fn paces(flux: &mut Flux<'_>, fleet: &Fleet<'_>) {
    flux.compares();
    assert_eq!(fleet.images(), ["v1".to_owned()].into(), "the controller waits");
    let generation = || fleet.kubectl(&["get", "daemonset", "agent", GENERATION]);
    let before = generation();
    let files = [("policy.yaml", POLICY)];
    let roll = ["roll", "logging/agent", "--yes", "--policy", "policy.yaml"];
    let run = || fleet.plane.ds_apply(&roll, &files).run();
    let watcher = fleet.watch();
    let canary = run();
    assert_eq!(canary.status.code(), Some(8), "{}", output_text(&canary));
    flux.compares();
    assert_eq!(fleet.images().len(), 2, "the canary has the new version");
    let rest = run();
    assert_eq!(rest.status.code(), Some(0), "{}", output_text(&rest));
    let seen = watcher.end();
    assert!(seen.most_unavailable <= 2, "{}", seen.most_unavailable);
    assert_eq!((seen.deleted.len(), fleet.images()), (NODES, ["v2".to_owned()].into()));
    flux.compares();
    assert_eq!(generation(), before, "neither has changed the object");
    let plan = fleet.plan(&on_delete("v2"));
    assert_eq!(plan.status.code(), Some(0), "{}", output_text(&plan));
}

/// `ds-apply` refuses to roll out what Flux applies. If something does pause it, Flux undoes that
/// within its interval, and the controller rolls all pods by its own rules.
fn a_pause_is_undone(flux: &Flux<'_>, fleet: &Fleet<'_>) {
    let before = fleet.kubectl(&["get", "daemonset", "agent", GENERATION]);
    let refused = fleet.apply(&manifest("rolling", "v2", &at_most("1")), &[]);
    assert_eq!(refused.status.code(), Some(6), "{}", output_text(&refused));
    assert!(output_text(&refused).contains("Flux"), "{}", output_text(&refused));
    assert_eq!(fleet.kubectl(&["get", "daemonset", "agent", GENERATION]), before);

    let pause = r#"{"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}}}"#;
    fleet.kubectl(&["patch", "daemonset", "agent", "--type=merge", "-p", pause]);
    assert_eq!(fleet.strategy(), "OnDelete");
    flux.compares();
    assert_eq!(fleet.strategy(), "RollingUpdate");
}

/// What `ds-plan drift` reports is what Flux then changes.
fn drift_is_the_same(flux: &Flux<'_>, fleet: &Fleet<'_>) {
    let drift = || {
        let file = [("agent.yaml", &*on_delete("v2"))];
        fleet.plane.ds_plan(&["drift", "-f", "agent.yaml", "-o", "json"], &file)
    };
    let none = drift();
    assert_eq!(none.status.code(), Some(0), "{}", output_text(&none));
    flux.suspend(true);
    fleet.kubectl(&["set", "image", "daemonset/agent", "agent=cr.example/agent:hotfix"]);
    let found = drift();
    assert_eq!(found.status.code(), Some(3), "{}", output_text(&found));
    let report: Value = serde_json::from_str(&stdout(&found)).unwrap();
    let deviations = report["daemonSets"][0]["deviations"].as_array().unwrap();
    let paths: Vec<&str> = deviations.iter().filter_map(|it| it["path"].as_str()).collect();
    assert_eq!(paths, ["spec.template.spec.containers[agent].image"]);
    flux.suspend(false);
    flux.compares();
    let image = "--output=jsonpath={.spec.template.spec.containers[0].image}";
    assert_eq!(fleet.kubectl(&["get", "daemonset", "agent", image]), "cr.example/agent:v2");
    let after = drift();
    assert_eq!(after.status.code(), Some(0), "{}", output_text(&after));
}

/// A DaemonSet that leaves what Flux applies, and that `ds-apply` takes over.
fn leaves(flux: &mut Flux<'_>, fleet: &Fleet<'_>) {
    let kept = "annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}, name: agent";
    flux.commit("3333", &source("v2", &rolling("v1").replace("name: agent,", &format!("{kept},"))));
    flux.commit("4444", &source("v2", &namespace("rolling")));
    let labels = ["name", "namespace"].map(|it| format!("kustomize.toolkit.fluxcd.io/{it}-"));
    fleet.kubectl(&["label", "daemonset", "agent", &labels[0], &labels[1]]);
    let mine = manifest("rolling", "v2", &at_most("1"));
    let refused = fleet.apply(&mine, &[]);
    assert_eq!(refused.status.code(), Some(6), "{}", output_text(&refused));
    let taken = fleet.apply(&mine, &["--force-conflicts=kustomize-controller"]);
    assert_eq!(taken.status.code(), Some(0), "{}", output_text(&taken));
    assert_eq!(fleet.images(), ["v2".to_owned()].into());
    flux.compares();
    assert_eq!(
        (fleet.images(), fleet.strategy()),
        (["v2".to_owned()].into(), "RollingUpdate".into())
    );
    let plan = fleet.plan(&mine);
    assert_eq!(plan.status.code(), Some(0), "{}", output_text(&plan));
}

const GENERATION: &str = "--output=jsonpath={.metadata.generation}";
