//! A user who may edit one namespace and attacks another: objects in their namespace affect only
//! the DaemonSets there, and only make the programs more cautious.

use std::fs;

use serde_json::{Value, json};

use testkit::fixture::{AGENT, cluster, of_kind};
use testkit::sandbox::{Run, Sandbox};

/// With another seed than before, so that new pods get other names and uids than the first ones
/// had.
const REHEARSE: &str = "--rehearse --seed 1 --snapshot before.json --save after.json";

/// `a-shop/web` belongs to a tenant, and comes first by name; `logging/agent` does not.
fn sandbox() -> Sandbox {
    let mut cluster = cluster();
    let mut namespace = of_kind(&mut cluster, "Namespace").next().unwrap().clone();
    namespace["metadata"] = json!({"name": "a-shop", "uid": "uid-a-shop"});
    cluster["items"].as_array_mut().unwrap().push(namespace);
    let sandbox = Sandbox::with(&[("cluster.json", &cluster.to_string())]);
    version(&sandbox, "1");
    let run = sandbox.ds_apply(
        "--rehearse --snapshot cluster.json --save before.json -f deploy --source-id prod",
    );
    assert_eq!(run.code, Some(0), "{run}");
    sandbox
}

fn version(sandbox: &Sandbox, version: &str) {
    let image = format!("agent:{version}");
    let agent = AGENT.replace("agent:1", &image);
    sandbox.write("deploy/agent.yaml", &agent);
    let web = agent.replace("namespace: logging", "namespace: a-shop");
    sandbox.write("deploy/web.yaml", web.replace("agent", "web"));
}

fn apply(sandbox: &Sandbox, flags: &str) -> Run {
    sandbox.ds_apply(&format!("{REHEARSE} -f deploy --source-id prod {flags}"))
}

fn recorded(sandbox: &Sandbox, file: &str) -> Value {
    serde_json::from_slice(&fs::read(sandbox.path(file)).unwrap()).unwrap()
}

/// Adds an object to the cluster, as a tenant would.
fn add(sandbox: &Sandbox, object: Value) {
    let mut cluster = recorded(sandbox, "before.json");
    let items = cluster["items"].as_array_mut().unwrap();
    let same = |it: &Value| {
        ["kind", "/metadata/name", "/metadata/namespace"].iter().all(|path| {
            let at = |it: &Value| it.get(path).or_else(|| it.pointer(path)).cloned();
            at(it) == at(&object)
        })
    };
    items.retain(|it| !same(it));
    items.push(object);
    sandbox.write("before.json", cluster.to_string());
}

/// The image of each remaining DaemonSet, `NAMESPACE/NAME IMAGE`.
fn images(sandbox: &Sandbox) -> Vec<String> {
    let mut after = recorded(sandbox, "after.json");
    let image = |one: &mut Value| {
        let metadata = &one["metadata"];
        let image = &one["spec"]["template"]["spec"]["containers"][0]["image"];
        let [namespace, name, image] =
            [&metadata["namespace"], &metadata["name"], image].map(|it| it.as_str().unwrap());
        format!("{namespace}/{name} {}", image.rsplit_once(':').unwrap().1)
    };
    of_kind(&mut after, "DaemonSet").map(image).collect()
}

/// A copy of a DaemonSet under another name, including the source annotation.
fn decoy(sandbox: &Sandbox, namespace: &str, name: &str) -> Value {
    let mut cluster = recorded(sandbox, "before.json");
    let mut all = of_kind(&mut cluster, "DaemonSet");
    let agent = all.find(|it| it["metadata"]["name"] == "agent").unwrap().to_string();
    let mut decoy: Value = serde_json::from_str(&agent.replace("agent", name)).unwrap();
    decoy["metadata"]["namespace"] = json!(namespace);
    // It selects no node.
    decoy["spec"]["template"]["spec"]["nodeSelector"] = json!({"no": "node"});
    decoy["metadata"]["uid"] = json!(format!("uid-{namespace}-{name}"));
    decoy
}

#[test]
fn forged_failed_templates_block_only_one_daemon_set() {
    let sandbox = sandbox();
    version(&sandbox, "2");
    let plan = sandbox.ds_plan("-f deploy --snapshot before.json --source-id prod -o json").stdout;
    let plan: Value = serde_json::from_str(&plan).unwrap();
    assert_eq!(plan["daemonSets"][0]["namespace"], "a-shop");
    let digest = &plan["daemonSets"][0]["targetTemplate"];
    add(
        &sandbox,
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {
                "name": "ds-plan-web", "namespace": "a-shop", "uid": "forged",
                "annotations": {"ds-plan.dev/failed-templates": digest},
            },
            "spec": {},
        }),
    );
    let run = apply(&sandbox, "");
    assert_eq!(run.code, Some(6), "{run}");
    assert!(run.stderr.contains("a-shop/web: the rollout of this template failed before"), "{run}");
    assert_eq!(images(&sandbox), ["a-shop/web 1", "logging/agent 2"], "{run}");
}

#[test]
fn a_refusal_stops_only_daemon_sets_that_come_after_it() {
    let sandbox = sandbox();
    version(&sandbox, "2");
    // Another selector, which cannot be changed by an update.
    let web = fs::read_to_string(sandbox.path("deploy/web.yaml")).unwrap();
    sandbox.write("deploy/web.yaml", web.replace("app: web", "app: shop"));
    let policy = "apiVersion: ds-plan.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {name: last}\n\
                  spec: {selects: {names: [logging/agent]}, after: [a-shop/web]}\n";
    sandbox.write("deploy/policy.yaml", policy);
    for flags in ["", "--keep-going"] {
        let run = apply(&sandbox, flags);
        assert_eq!(run.code, Some(6), "{run}");
        assert_eq!(images(&sandbox), ["a-shop/web 1", "logging/agent 1"], "{run}");
        let words = "logging/agent does not begin: it comes after a-shop/web, which is blocked";
        assert!(run.stderr.contains(words), "{run}");
    }
    sandbox.write("deploy/policy.yaml", policy.replace("a-shop/web", "logging/none"));
    let run = apply(&sandbox, "");
    assert_eq!(run.code, Some(6), "{run}");
    assert_eq!(images(&sandbox), ["a-shop/web 1", "logging/agent 1"], "{run}");
    let words = "logging/none, which is waited for: it exists neither in the source nor in the";
    assert!(run.stderr.contains(words), "{run}");
    fs::remove_file(sandbox.path("deploy/policy.yaml")).unwrap();
    let run = apply(&sandbox, "");
    assert_eq!(run.code, Some(6), "{run}");
    assert_eq!(images(&sandbox), ["a-shop/web 1", "logging/agent 2"], "{run}");
}

#[test]
fn source_annotations_count_only_in_the_sources_namespaces() {
    let sandbox = sandbox();
    // The source removes its DaemonSet in one namespace, and keeps the rest.
    add(&sandbox, decoy(&sandbox, "logging", "old"));
    for name in ["decoy-1", "decoy-2", "decoy-3", "decoy-4"] {
        add(&sandbox, decoy(&sandbox, "default", name));
    }
    let run = apply(&sandbox, "--prune");
    assert_eq!(run.code, Some(0), "{run}");
    assert!(
        run.stderr.contains("default/decoy-1: it has the annotation of source `prod`"),
        "{run}"
    );
    let left = images(&sandbox);
    assert_eq!(left.iter().filter(|it| it.starts_with("default/decoy")).count(), 4, "{left:?}");
    assert!(!left.iter().any(|it| it.starts_with("logging/old")), "{left:?}");
    // With the namespace as an explicit argument, the guard counts it.
    let named = apply(&sandbox, "--prune --prune-namespace default");
    assert_eq!(named.code, Some(6), "{named}");
    assert!(named.stderr.contains("--allow-mass-deletion"), "{named}");
}

#[test]
fn a_decoy_in_another_namespace_is_refused_alone() {
    let sandbox = sandbox();
    version(&sandbox, "2");
    add(&sandbox, decoy(&sandbox, "logging", "old"));
    let mut other = decoy(&sandbox, "a-shop", "decoy");
    other["metadata"]["annotations"]["ds-plan.dev/source-paths"] = json!("elsewhere");
    add(&sandbox, other);
    let run = apply(&sandbox, "--prune");
    assert_eq!(run.code, Some(6), "{run}");
    assert!(run.stderr.contains("--allow-other-source"), "{run}");
    let left = images(&sandbox);
    assert_eq!(left, ["a-shop/decoy 1", "a-shop/web 2", "logging/agent 2"], "{run}");
}
