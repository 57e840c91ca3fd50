//! From the first version to the last: paced, with surge, `OnDelete`, aborted, undone, pruned,
//! killed and resumed, deleted.

use std::thread;

use super::*;

const NODES: usize = 8;

#[test]
fn rollouts_without_a_controller() {
    let plane = without_controller();
    plane.create_nodes(three_zones(NODES));
    let plane = &plane;
    thread::scope(|scope| {
        for scenario in [
            paced_and_undone,
            in_steps,
            in_steps_before_a_surge,
            surged,
            on_delete,
            aborted,
            released,
            history_is_pruned,
            killed,
            deleted,
            not_adopted,
        ] {
            scope.spawn(move || scenario(plane));
        }
    });
}

fn paced_and_undone(plane: &ControlPlane) {
    let agent = Managed::new(plane, "paced");
    let version = |image: &str| slowly(&manifest("paced", image, &at_most("2")));
    agent.apply(&version("v1"), &[], 0);
    let watcher = agent.watch(NODES);
    let rolled = agent.apply(&version("v2"), &["--max-unavailable=2"], 0);
    assert!(
        output_text(&rolled).contains("restoring the declared strategy"),
        "{}",
        output_text(&rolled)
    );
    let seen = watcher.end();
    assert_eq!((seen.deleted.len(), seen.most_unavailable), (NODES, 2), "{seen:?}");
    agent.is_whole(&version("v2"), NODES);
    let owner = "ConfigMap/ds-plan-agent".to_owned();
    assert_eq!(agent.revisions(), [(1, owner.clone()), (2, owner.clone())]);

    agent.command("undo", &[]);
    assert_eq!(agent.images(), ["v1".to_owned()].into());
    assert_eq!(
        agent.revisions(),
        [(2, owner.clone()), (3, owner)],
        "the revision number increases"
    );
    agent.is_whole(&version("v1"), NODES);
    let history = stdout(&agent.ds_plan(&["history", "paced/agent"], "")).clone();
    assert!(history.lines().nth(3).is_some_and(|line| line.starts_with("3 ")), "{history}");
    let status = stdout(&agent.ds_plan(&["status", "paced/agent"], "")).clone();
    let columns: Vec<&str> = status.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(columns[..6], ["agent", "8", "8", "8", "8", "8"], "{status}");
}

/// Steps, domains, soaks and windows, as with a controller; but no pod is created while nobody runs.
fn in_steps(plane: &ControlPlane) {
    let agent = Managed::new(plane, "in-steps");
    let version = |image: &str| slowly(&manifest("in-steps", image, &at_most("2")));
    agent.apply(&version("v1"), &[], 0);
    let policy = "steps: [{name: canary, nodes: 2, spread: topology.kubernetes.io/zone, soak: 3s}]
  domains: {key: topology.kubernetes.io/zone, first: [c]}
  windows: [{schedule: '* * * * *', duration: 1h}]";
    let watcher = agent.watch(NODES);
    let text = agent.apply_under(policy, &version("v2"), 8);
    assert!(text.contains("waiting: step canary soaks until"), "{text}");
    assert_eq!(agent.pods_of("v2"), 2);
    thread::sleep(Duration::from_secs(4));
    agent.apply_under(policy, &version("v2"), 0);
    let seen = watcher.end();
    assert_eq!((seen.deleted.len(), seen.most_unavailable <= 2), (NODES, true), "{seen:?}");
    for together in &seen.together {
        let zones: BTreeSet<&str> = together.iter().map(|node| &node[..1]).collect();
        assert!(zones.len() <= 1, "one zone at once: {together:?}");
    }
    agent.is_whole(&version("v2"), NODES);
}

fn in_steps_before_a_surge(plane: &ControlPlane) {
    let agent = Managed::new(plane, "in-steps-surged");
    let surge =
        "  updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 0, maxSurge: 2}}";
    let version = |image: &str| slowly(&manifest("in-steps-surged", image, surge));
    agent.apply(&version("v1"), &[], 0);
    let policy = "steps: [{name: canary, nodes: 1}]";
    let watcher = agent.watch(NODES);
    agent.apply_under(policy, &version("v2"), 0);
    let seen = watcher.end();
    let gaps = seen.together.iter().filter(|nodes| !nodes.is_empty());
    assert_eq!(
        (gaps.count(), seen.most_unavailable),
        (1, 1),
        "only the canary has a gap: {seen:?}"
    );
    agent.is_whole(&version("v2"), NODES);
}

fn surged(plane: &ControlPlane) {
    let agent = Managed::new(plane, "surged");
    let surge = "  updateStrategy: {rollingUpdate: {maxSurge: 3, maxUnavailable: 0}}";
    let version = |image: &str| slowly(&manifest("surged", image, surge));
    agent.apply(&version("v1"), &[], 0);
    let watcher = agent.watch(NODES);
    agent.apply(&version("v2"), &[], 0);
    let seen = watcher.end();
    assert_eq!((seen.deleted.len(), seen.most_unavailable), (NODES, 0), "{seen:?}");
    agent.is_whole(&version("v2"), NODES);
}

fn on_delete(plane: &ControlPlane) {
    let agent = Managed::new(plane, "stepped");
    let version = |image: &str| manifest("stepped", image, "  updateStrategy: {type: OnDelete}");
    agent.apply(&version("v1"), &[], 0);
    agent.apply(&version("v2"), &[], 0);
    assert_eq!(agent.images(), ["v1".to_owned()].into(), "the pods are not replaced");
    agent.command("step", &["--count=3"]);
    let new = agent
        .pods()
        .iter()
        .filter(|pod| pod["spec"]["containers"][0]["image"].as_str().unwrap().ends_with("v2"))
        .count();
    assert_eq!(new, 3);
    agent.command("roll", &[]);
    agent.is_whole(&version("v2"), NODES);
}

fn aborted(plane: &ControlPlane) {
    let agent = Managed::new(plane, "aborted");
    let version = |image: &str| manifest("aborted", image, &at_most("2"));
    agent.apply(&version("v1"), &[], 0);
    let stopped = agent.apply(&version("v2-bad"), &["--progress-deadline=15s"], 4);
    assert!(output_text(&stopped).contains("aborted"), "{}", output_text(&stopped));
    // A node that loses its pod now gets the good version, at the next run.
    let good = agent
        .pods()
        .into_iter()
        .find(|pod| pod["spec"]["containers"][0]["image"].as_str().unwrap().ends_with(":v1"));
    let name = good.unwrap()["metadata"]["name"].as_str().unwrap().to_owned();
    agent.kubectl(&["delete", "pod", &name]);
    agent.apply(&version("v2-bad"), &[], 6);
    agent.apply(&version("v1"), &[], 0);
    agent.is_whole(&version("v1"), NODES);
}

fn released(plane: &ControlPlane) {
    let agent = Managed::new(plane, "released");
    let version = |image: &str| manifest("released", image, &at_most("2"));
    agent.apply(&version("v1"), &[], 0);
    agent.apply(&version("v2-bad"), &["--progress-deadline=15s"], 4);
    let before = agent.uids();
    let released = agent.command("release", &[]);
    assert!(
        output_text(&released).contains("when ds-apply runs again"),
        "{}",
        output_text(&released)
    );
    assert_eq!(agent.uids(), before, "no rollout without gates");
    agent.apply(&version("v1"), &[], 0);
    agent.is_whole(&version("v1"), NODES);
}

fn history_is_pruned(plane: &ControlPlane) {
    let agent = Managed::new(plane, "short");
    let spec = format!("{}\n  revisionHistoryLimit: 1", at_most("100%"));
    let version = |image: &str| manifest("short", image, &spec);
    for image in ["v1", "v2", "v3", "v4"] {
        agent.apply(&version(image), &[], 0);
    }
    let numbers: Vec<i64> = agent.revisions().iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [3, 4]);

    // A second revision of the same template: one of them is deleted, and pods stay.
    let before = agent.uids();
    let mut twin = agent.json(&["get", "controllerrevisions"])["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["revision"] == 4)
        .unwrap()
        .clone();
    let name = twin["metadata"]["name"].as_str().unwrap().to_owned();
    twin["metadata"] = serde_json::json!({
        "name": format!("{name}-twin"), "namespace": "short",
        "labels": {"app": "agent", "controller-revision-hash": "twin"},
        "ownerReferences": twin["metadata"]["ownerReferences"],
    });
    twin["revision"] = 3.into();
    plane.kubectl_stdin(&["create", "-f", "-"], &twin.to_string());
    let extra = &manifest("short", "v4", &format!("{spec}\n  minReadySeconds: 1"));
    agent.apply(extra, &[], 0);
    let all = agent.revisions();
    assert_eq!(all.iter().filter(|(number, _)| *number >= 3).count(), 2, "{all:?}");
    assert_eq!(agent.uids(), before);
    agent.is_whole(extra, NODES);
}

fn killed(plane: &ControlPlane) {
    let agent = Managed::new(plane, "killed");
    let version = |image: &str| slowly(&manifest("killed", image, &at_most("2")));
    agent.apply(&version("v1"), &["--lease=2s"], 0);
    let watcher = agent.watch(NODES);
    let arguments = ["--yes", "-f", "agent.yaml", "--lease=2s"];
    for at in [1, 3, 6] {
        let files = agent.files(&version("v2"));
        let run = plane.ds_apply_as(RUNNER, &arguments, &[("agent.yaml", &files)]);
        let mut run = run.start();
        wait_until("pods to be deleted", SOON, || watcher.gone() >= at || run.has_ended());
        let _ = run.kill();
    }
    agent.apply(&version("v2"), &["--lease=2s"], 0);
    let seen = watcher.end().without_surplus();
    assert_eq!(seen.deleted.len(), NODES, "{seen:?}");
    assert!(seen.most_unavailable <= 2, "{seen:?}");
    agent.is_whole(&version("v2"), NODES);
}

fn deleted(plane: &ControlPlane) {
    let agent = Managed::new(plane, "deleted");
    let version = manifest("deleted", "v1", &at_most("1"));
    agent.apply(&version, &[], 0);
    agent.kubectl(&["delete", "configmap", "ds-plan-agent"]);
    let gone = || agent.kubectl(&["get", "pods,controllerrevisions", "--output=name"]);
    wait_for("nothing", SOON, String::new(), gone);
    // And pruned, because the source no longer contains it.
    let other = version.replace("name: agent, ", "name: other, ");
    let both = format!("{version}---{other}");
    let flags = ["--prune", "--source-id=fleet", "--managed-by=ds-apply"];
    agent.apply(&both, &flags, 0);
    agent.apply(&version, &[&flags[..], &["--allow-mass-deletion"]].concat(), 0);
    wait_for("one record", SOON, "configmap/ds-plan-agent\n".to_owned(), || {
        agent.kubectl(&["get", "configmap", "-l", "ds-plan.dev/record", "--output=name"])
    });
    wait_for("one agent's pods", SOON, NODES, || agent.pods().len());
}

/// Admission that lets no pod of the namespace change.
const UNCHANGED: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: unchanged}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: not-adopted}}
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [pods]}
  validations:
  - expression: "false"
    message: no pod may change
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: unchanged}
spec: {policyName: unchanged, validationActions: [Deny]}
"#;

/// Nothing is left to roll out, but an orphan cannot be adopted: the run fails, and says why.
fn not_adopted(plane: &ControlPlane) {
    let agent = Managed::new(plane, "not-adopted");
    let version = manifest("not-adopted", "v1", &at_most("1"));
    agent.apply(&version, &[], 0);
    let name = agent.pods()[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let orphan = r#"{"metadata": {"ownerReferences": null}}"#;
    agent.kubectl(&["patch", "pod", &name, "--patch", orphan]);
    plane.kubectl_stdin(&["apply", "-f", "-"], UNCHANGED);
    wait_until("the policy to take effect", SOON, || {
        let label = ["--namespace=not-adopted", "label", "--dry-run=server", "pod", &name, "a=b"];
        !plane.try_kubectl(&label).status.success()
    });
    let text = output_text(&agent.apply(&version, &[], 1));
    for said in [
        "not-adopted/agent adopts 1 pod that matches its selector and has no owner",
        "the pods of not-adopted/agent could not be reconciled within 30 s",
        "no pod may change",
    ] {
        assert!(text.contains(said), "{text}");
    }
}
