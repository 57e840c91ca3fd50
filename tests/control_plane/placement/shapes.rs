//! Random nodes and DaemonSets that are likely to match: they draw labels, taints and names from
//! the same small sets.

use serde_json::{Value, json};

use crate::harness::FakeNode;
use testkit::random::Random;

/// The number of nodes.
pub(super) const NODES: usize = 48;
/// The number of DaemonSets.
pub(super) const DAEMON_SETS: usize = 72;
/// The namespaces of the DaemonSets. The annotations of two of them select nodes that have pods;
/// without an admission plugin that reads them, they have no effect.
pub(super) const NAMESPACES: [(&str, &[(&str, &str)]); 3] = [
    ("plain", &[]),
    ("selecting", &[("scheduler.alpha.kubernetes.io/node-selector", "example.com/pool=gpu")]),
    ("openshift", &[("openshift.io/node-selector", "topology.kubernetes.io/zone=a")]),
];

const TEST: &str = "the_controller_creates_pods_where_the_plan_does";

/// Labels of nodes, and their values.
const LABELS: [(&str, &[&str]); 8] = [
    ("kubernetes.io/os", &["linux", "linux", "linux", "windows"]),
    ("kubernetes.io/arch", &["amd64", "amd64", "arm64", "s390x"]),
    ("topology.kubernetes.io/zone", &["a", "b", "c"]),
    ("example.com/pool", &["general", "general", "gpu", "db"]),
    ("disk", &["ssd", "hdd", ""]),
    ("spot", &["true", "false"]),
    NUMBERS[0],
    NUMBERS[1],
];
/// Labels that `Gt` and `Lt` can compare, and values that they cannot.
const NUMBERS: [(&str, &[&str]); 2] = [
    ("cores", &["4", "8", "16", "64", "08", "many", "1e3", "0x10"]),
    ("rank", &["0", "1", "007", "9223372036854775807", "9223372036854775808", "1_000", ""]),
];
/// Operands for numbers; some cannot be parsed, which the API server accepts.
const BOUNDS: [&str; 9] =
    ["0", "1", "7", "8", "15", "08", "9223372036854775806", "9223372036854775808", "many"];
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
/// Taints that users set, and their values.
const TAINTS: [(&str, &[&str]); 4] = [
    ("dedicated", &["db", "gpu", ""]),
    ("nvidia.com/gpu", &["present", ""]),
    ("node-role.kubernetes.io/control-plane", &[""]),
    ("cores", &["4", "16"]),
];
/// Taints that Kubernetes sets; daemon pods tolerate most of them, but not all.
const CONDITIONS: [(&str, &str); 13] = [
    ("not-ready", "NoExecute"),
    ("not-ready", "NoSchedule"),
    ("unreachable", "NoExecute"),
    ("unreachable", "NoSchedule"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
    ("network-unavailable", "NoSchedule"),
    ("network-unavailable", "NoExecute"),
    ("disk-pressure", "NoExecute"),
    ("out-of-service", "NoExecute"),
    ("unschedulable", "PreferNoSchedule"),
];

fn node_name(index: usize) -> String {
    format!("node-{index:02}")
}

pub(super) fn nodes() -> Vec<FakeNode> {
    (0..NODES).map(node).collect()
}

fn node(index: usize) -> FakeNode {
    let name = node_name(index);
    let mut random = Random::of(TEST, &name);
    let mut node = FakeNode::new(&name);
    for (key, values) in LABELS {
        if !random.one_in(4) {
            node = node.label(key, random.pick(values));
        }
    }
    if random.one_in(6) {
        node = node.cordoned(); // with or without the taint that a controller adds to it
    }
    let count = random.pick(&[0, 0, 1, 1, 2, 3]);
    let mut taken = Vec::new();
    for _ in 0..count {
        let (key, value, effect) = taint(&mut random);
        if !taken.contains(&(key.clone(), effect)) {
            node = node.taint(&key, value, effect);
            taken.push((key, effect));
        }
    }
    node
}

/// Key, value, effect.
fn taint(random: &mut Random) -> (String, &'static str, &'static str) {
    if random.one_in(2) {
        let (key, effect) = random.pick(&CONDITIONS);
        return (format!("node.kubernetes.io/{key}"), "", effect);
    }
    let (key, values) = random.pick(&TAINTS);
    (key.to_owned(), random.pick(values), random.pick(&EFFECTS))
}

pub(super) fn daemon_sets() -> Vec<Value> {
    (0..DAEMON_SETS).map(daemon_set).collect()
}

fn daemon_set(index: usize) -> Value {
    let name = format!("shape-{index:02}");
    let mut random = Random::of(TEST, &name);
    let mut pod = json!({"containers": [{"name": "main", "image": "agent:v1"}]});
    if random.one_in(3) {
        pod["nodeSelector"] = node_selector(&mut random);
    }
    if random.one_in(2) {
        let terms: Vec<Value> = (0..=random.below(3)).map(|_| term(&mut random)).collect();
        let required = json!({"nodeSelectorTerms": terms});
        pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
            required;
    }
    if random.one_in(3) {
        let preferred = json!([{"weight": 1 + random.below(100), "preference": term(&mut random)}]);
        pod["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] =
            preferred;
    }
    if random.one_in(10) {
        pod["nodeName"] = node_name(random.below(NODES + 1)).into(); // the last one does not exist
    }
    if random.one_in(3) {
        pod["hostNetwork"] = true.into();
    }
    let tolerations: Vec<Value> = (0..random.below(5)).map(|_| toleration(&mut random)).collect();
    pod["tolerations"] = tolerations.into();
    object(&name, random.pick(&NAMESPACES).0, &pod)
}

/// DaemonSets with tolerations whose operators an API server accepts only if a feature gate is
/// enabled.
pub(super) fn comparing() -> Vec<Value> {
    let rows = [("Gt", "2"), ("Gt", "20"), ("Lt", "2"), ("Lt", "20")];
    let rows = rows.into_iter().enumerate();
    rows.map(|(index, (operator, value))| {
        let toleration = json!({"key": "cores", "operator": operator, "value": value});
        let pod = json!({
            "containers": [{"name": "main", "image": "agent:v1"}],
            "tolerations": [toleration],
        });
        object(&format!("comparing-{index}"), NAMESPACES[0].0, &pod)
    })
    .collect()
}

fn object(name: &str, namespace: &str, pod: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
        },
    })
}

fn node_selector(random: &mut Random) -> Value {
    let mut selector = json!({});
    for _ in 0..=random.below(2) {
        let (key, values) = random.pick(&LABELS);
        selector[key] = random.pick(values).into();
    }
    selector
}

/// A term; one in eight has no requirement, and so matches no node.
fn term(random: &mut Random) -> Value {
    if random.one_in(8) {
        return json!({});
    }
    let mut term = json!({});
    if random.one_in(4) {
        let operator = random.pick(&["In", "NotIn"]);
        let name = node_name(random.below(NODES));
        term["matchFields"] =
            json!([{"key": "metadata.name", "operator": operator, "values": [name]}]);
    }
    let count = if term == json!({}) { 1 + random.below(2) } else { random.below(2) };
    let expressions: Vec<Value> = (0..count).map(|_| expression(random)).collect();
    term["matchExpressions"] = expressions.into();
    term
}

fn expression(random: &mut Random) -> Value {
    let (key, known) = random.pick(&LABELS);
    match random.pick(&["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]) {
        operator @ ("Exists" | "DoesNotExist") => json!({"key": key, "operator": operator}),
        operator @ ("Gt" | "Lt") => {
            let (key, _) = random.pick(&NUMBERS);
            json!({"key": key, "operator": operator, "values": [random.pick(&BOUNDS)]})
        }
        operator => {
            let values: Vec<&str> = (0..=random.below(3)).map(|_| random.pick(known)).collect();
            json!({"key": key, "operator": operator, "values": values})
        }
    }
}

fn toleration(random: &mut Random) -> Value {
    let (key, value, effect) = taint(random);
    match random.below(10) {
        0 => json!({"operator": "Exists"}),
        1 => json!({"operator": "Exists", "effect": effect}),
        2 | 3 => json!({"key": key, "operator": "Exists"}),
        4 => json!({"key": key, "operator": "Exists", "effect": effect}),
        5 => json!({"key": key, "value": value, "effect": effect}),
        6 => json!({"key": key, "operator": "Equal", "value": value}),
        7 => json!({"key": key, "operator": "Equal", "value": "other", "effect": effect}),
        8 => json!({
            "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30,
        }),
        _ => json!({"key": key, "value": value}),
    }
}
