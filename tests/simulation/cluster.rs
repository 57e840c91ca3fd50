//! The objects of a scenario: the recorded cluster, and the manifests that are applied.

use cluster::read_recorded_from;
use daemonset::controller::hash::hash;
use daemonset::controller::revision_data::data_for;
use daemonset::model::{RECORD_LABEL, Snapshot, record_name};
use jiff::Timestamp;
use manifest::default_daemon_set;
use serde_json::{Map, Value, json};

use crate::checks::{BROKEN, Checks};
use crate::rules::Rules;
use crate::scenario::{AgentSpec, Change, NodeSpec, PodSpec, Scenario};

/// The namespace of the agents.
pub(crate) const NAMESPACE: &str = "agents";

/// The creation time of all objects; the cluster is a day old.
const BORN: &str = "2026-01-01T00:00:00Z";
const READ: &str = "2026-01-02T00:00:00Z";
/// The time since which a young pod is Ready.
const YOUNG: &str = "2026-01-01T23:59:20Z";

/// The time at the beginning, unless a story begins at another.
pub(crate) fn start(scenario: &Scenario) -> Timestamp {
    let of_story = scenario.story.as_ref().and_then(|story| story.start);
    of_story.unwrap_or(READ).parse().expect("a time")
}

/// The cluster at the beginning.
pub(crate) fn snapshot(scenario: &Scenario) -> Snapshot {
    let namespace = |name: &str| {
        let metadata =
            json!({"name": name, "uid": format!("uid-{name}"), "creationTimestamp": READ});
        json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": metadata,
            "status": {"phase": "Active"},
        })
    };
    let mut items: Vec<Value> =
        ["kube-system", "default", NAMESPACE].into_iter().map(namespace).collect();
    let checks = scenario.story.as_ref().and_then(|story| story.rules.checks.as_ref());
    let tells = checks.is_some_and(Checks::looks_at_nodes);
    items.extend(scenario.nodes.iter().map(|it| node(it, tells)));
    for agent in &scenario.agents {
        items.extend(scenario.nodes.iter().map(|node| other_pod(agent, node)));
        items.extend(live(agent, scenario));
    }
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    let snapshot = read_recorded_from(list.as_bytes(), "scenario").expect("a readable cluster");
    Snapshot { observed_at: start(scenario), ..snapshot }
}

/// The manifests that were applied before, without a policy.
pub(crate) fn manifests_before(scenario: &Scenario) -> String {
    documents(&scenario.agents.iter().map(before).collect::<Vec<_>>())
}

/// The manifests that are applied: one document per DaemonSet, and the policy.
pub(crate) fn manifests(scenario: &Scenario) -> String {
    let documents = scenario.agents.iter().map(after).collect();
    with_policy(documents, scenario.policy.clone(), scenario)
}

/// The manifests of a commit of a story.
pub(crate) fn manifests_of(image: u32, rules: &Rules, scenario: &Scenario) -> String {
    let of = |agent: &AgentSpec| manifest_of(image.into(), agent);
    let spec = rules.json(start(scenario).as_second());
    with_policy(scenario.agents.iter().map(of).collect(), Some(spec), scenario)
}

/// The manifest of a DaemonSet with this image.
pub(crate) fn manifest_of(image: u64, agent: &AgentSpec) -> Value {
    let mut manifest = before(agent);
    let image = format!("registry.example/agent:{image}");
    manifest["spec"]["template"]["spec"]["containers"][0]["image"] = image.into();
    manifest
}

fn with_policy(mut documents: Vec<Value>, spec: Option<Value>, scenario: &Scenario) -> String {
    if let Some(mut spec) = spec {
        let names = scenario.agents.iter().map(|agent| format!("{NAMESPACE}/{}", agent.name));
        spec["selects"] = json!({"names": names.collect::<Vec<_>>()});
        documents.push(json!({
            "apiVersion": "ds-plan.dev/v1alpha1", "kind": "RolloutPolicy",
            "metadata": {"name": "pace"}, "spec": spec,
        }));
    }
    self::documents(&documents)
}

fn documents(all: &[Value]) -> String {
    all.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n")
}

/// The manifest of a DaemonSet before the change.
fn before(agent: &AgentSpec) -> Value {
    let name = agent.name;
    let mut template = json!({
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{
            "name": "main", "image": "registry.example/agent:1",
            "env": [{"name": "LEVEL", "value": "info"}],
        }]},
    });
    if agent.probed {
        let probe = json!({"tcpSocket": {"port": 8080}});
        template["spec"]["containers"][0]["readinessProbe"] = probe;
    }
    if let Some(pool) = agent.pool {
        template["spec"]["nodeSelector"] = json!({"pool": pool});
    }
    let context = match agent.change {
        Change::Emptied => Some(json!({"runAsUser": 1000})),
        Change::Filled => Some(json!({})),
        Change::Image | Change::Env | Change::Pool | Change::Nothing => None,
    };
    if let Some(context) = context {
        template["spec"]["containers"][0]["securityContext"] = context;
    }
    if agent.tolerates {
        template["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
    }
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": name}},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "updateStrategy": agent.strategy,
            "minReadySeconds": agent.min_ready_seconds,
            "template": template,
        },
    })
}

/// The manifest of a DaemonSet after the change.
fn after(agent: &AgentSpec) -> Value {
    let mut manifest = before(agent);
    let spec = &mut manifest["spec"]["template"]["spec"];
    match agent.change {
        Change::Image => spec["containers"][0]["image"] = "registry.example/agent:2".into(),
        Change::Env => spec["containers"][0]["env"][0]["value"] = "debug".into(),
        Change::Pool => spec["nodeSelector"] = json!({"pool": "green"}),
        Change::Filled => {
            spec["containers"][0]["image"] = "registry.example/agent:2".into();
            spec["containers"][0]["securityContext"] = json!({"runAsUser": 1000});
        }
        Change::Emptied => spec["containers"][0]["securityContext"] = json!({}),
        Change::Nothing => {}
    }
    manifest
}

/// A node; whether it tells if it is broken.
fn node(node: &NodeSpec, tells: bool) -> Value {
    let mut taints = Vec::new();
    if node.tainted {
        taints.push(json!({"key": "trial", "effect": "NoSchedule"}));
    }
    if node.cordoned {
        taints.push(json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}));
    }
    if !node.ready {
        taints.push(json!({"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}));
        taints.push(json!({"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}));
    }
    let status = if node.ready { "True" } else { "Unknown" };
    let condition =
        |kind, status| json!({"type": kind, "status": status, "lastTransitionTime": BORN});
    let mut conditions = vec![condition("Ready", status)];
    if tells {
        conditions.push(condition(BROKEN, "False"));
    }
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": node.name, "uid": format!("uid-{}", node.name), "creationTimestamp": BORN,
            "labels": {
                "kubernetes.io/hostname": node.name, "pool": node.pool,
                "topology.kubernetes.io/zone": format!("zone-{}", node.zone),
            },
        },
        "spec": {"unschedulable": node.cordoned, "taints": taints},
        "status": {
            "conditions": conditions,
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        },
    })
}

/// A live DaemonSet with its revision and its pods; for a deleted one, the orphaned pods.
fn live(agent: &AgentSpec, scenario: &Scenario) -> Vec<Value> {
    let manifest = before(agent);
    let mut live = default_daemon_set(manifest.clone()).expect("a valid manifest");
    let uid = format!("uid-{}", agent.name);
    live["metadata"]["uid"] = uid.clone().into();
    live["metadata"]["generation"] = 1.into();
    live["metadata"]["creationTimestamp"] = BORN.into();
    live["metadata"]["annotations"] = json!({"deprecated.daemonset.template.generation": "1"});
    live["metadata"]["managedFields"] = json!([{
        "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "manager": "ds-apply",
        "operation": "Apply", "time": BORN, "fieldsV1": owned(&manifest),
    }]);
    live["status"] = json!({"observedGeneration": 1});
    let template = live["spec"]["template"].clone();
    let hash = hash(&template, None).to_string();
    let managed_by = scenario.managed_by();
    let owner = json!([{
        "apiVersion": managed_by.owner_api_version(), "kind": managed_by.owner_kind(),
        "name": managed_by.owner_name(&agent.name.into()), "uid": uid,
        "controller": true, "blockOwnerDeletion": true,
    }]);
    let labels = json!({
        "app": agent.name, "controller-revision-hash": hash, "pod-template-generation": "1",
    });
    let revision = json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1,
        "metadata": {
            "name": format!("{}-{hash}", agent.name), "namespace": NAMESPACE,
            "uid": format!("uid-revision-{}", agent.name), "labels": labels,
            "ownerReferences": owner, "creationTimestamp": BORN,
        },
        "data": data_for(&template),
    });
    let is_left = |node: &&NodeSpec| agent.live || node.pod == PodSpec::Orphan;
    if scenario.managed {
        live = record(agent, &live);
    }
    let mut items = if agent.live { vec![revision, live] } else { Vec::new() };
    let here = scenario.nodes.iter().filter(|node| runs_on(agent, node));
    for node in here.filter(is_left) {
        let name = format!("{}-{}", agent.name, node.name);
        let owner = if node.pod == PodSpec::Orphan { json!([]) } else { owner.clone() };
        let ready = node.pod != PodSpec::Unready;
        items.push(pod(&name, &labels, &owner, &template, node, ready));
    }
    items
}

/// The record ConfigMap of a DaemonSet, as `ds-apply` writes it: without the template generation
/// annotation, which the API server sets.
fn record(agent: &AgentSpec, live: &Value) -> Value {
    let mut object = live.clone();
    let status = object["status"].take().to_string();
    let metadata = object["metadata"].as_object_mut().expect("an object");
    metadata.remove("annotations");
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": record_name(&agent.name.into()), "namespace": NAMESPACE,
            "uid": live["metadata"]["uid"], "creationTimestamp": BORN,
            "labels": {RECORD_LABEL: "true"},
        },
        "data": {"daemonSet": object.to_string(), "status": status},
    })
}

/// Whether the node has a pod of the agent at the beginning.
fn runs_on(agent: &AgentSpec, node: &NodeSpec) -> bool {
    let is_kept_off = node.tainted && !agent.tolerates;
    node.pod != PodSpec::Missing && !is_kept_off && agent.pool.is_none_or(|pool| pool == node.pool)
}

/// A pod with the agent's labels that another controller owns.
fn other_pod(agent: &AgentSpec, node: &NodeSpec) -> Value {
    let owner = json!([{
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "stranger", "uid": "uid-stranger",
        "controller": true,
    }]);
    let template = json!({"spec": {"containers": [{"name": "main", "image": "stranger:1"}]}});
    let name = format!("stranger-{}-{}", agent.name, node.name);
    pod(&name, &json!({"app": agent.name}), &owner, &template, node, true)
}

fn pod(
    name: &str,
    labels: &Value,
    owner: &Value,
    template: &Value,
    node: &NodeSpec,
    ready: bool,
) -> Value {
    let mut spec = template["spec"].clone();
    spec["nodeName"] = node.name.clone().into();
    let ready = if ready && node.ready { "True" } else { "False" };
    let since = if node.pod == PodSpec::Young { YOUNG } else { BORN };
    let conditions = json!([{"type": "Ready", "status": ready, "lastTransitionTime": since}]);
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": NAMESPACE, "uid": format!("uid-{name}"), "labels": labels,
            "ownerReferences": owner, "creationTimestamp": BORN,
        },
        "spec": spec,
        "status": {"phase": "Running", "conditions": conditions},
    })
}

/// The fields of a manifest, as its applier owns them (upstream: `FieldsV1`).
fn owned(manifest: &Value) -> Value {
    let spec = &manifest["spec"];
    let mut owned = json!({
        "f:metadata": {"f:labels": fields(&manifest["metadata"]["labels"])},
        "f:spec": fields(spec),
    });
    owned["f:spec"]["f:selector"] = json!({});
    let pod = &mut owned["f:spec"]["f:template"]["f:spec"];
    if pod.get("f:nodeSelector").is_some() {
        pod["f:nodeSelector"] = json!({});
    }
    if pod.get("f:tolerations").is_some() {
        pod["f:tolerations"] = json!({});
    }
    owned
}

fn fields(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            object.iter().map(|(key, value)| (format!("f:{key}"), fields(value))).collect()
        }
        Value::Array(list) => {
            let item = |value: &Value| {
                let mut inside: Map<String, Value> =
                    fields(value).as_object().cloned().unwrap_or_default();
                inside.insert(".".to_owned(), json!({}));
                (format!("k:{}", json!({"name": value["name"]})), Value::Object(inside))
            };
            list.iter().map(item).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => json!({}),
    }
}
