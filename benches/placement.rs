//! The placement of many DaemonSets on a large cluster, as the plan evaluates it, compared with
//! evaluating each pair of DaemonSet and node separately with the same rules: `cargo bench --bench
//! placement`. Both results are compared.

#![allow(clippy::unwrap_used, reason = "a bench without input has to stop")]
#![allow(clippy::disallowed_methods, reason = "a bench has a clock of its own")]
#![allow(clippy::print_stdout, reason = "what it measures goes to standard output")]

use std::time::{Duration, Instant};

use daemonset::controller::node_pods::Fleet;
use daemonset::controller::placement::{Placement, judge};
use daemonset::model::{
    Labels, Node, NodeReadiness, PodPlacement, PodTemplate, Taint, TaintEffect,
};
use serde_json::json;

/// Nodes, unless a number is given.
const NODES: usize = 65_000;

const DAEMON_SETS: usize = 100;

/// Pools of nodes.
const POOLS: usize = 12;

fn main() {
    let nodes = std::env::args().find_map(|arg| arg.parse().ok()).unwrap_or(NODES);
    let nodes: Vec<Node> = (0..nodes).map(node).collect();
    let templates: Vec<PodPlacement> = (0..DAEMON_SETS).map(template).collect();
    let (of_pairs, by_pairs) = timed(|| each_pair(&templates, &nodes));
    let mut shared: Vec<Duration> = Vec::new();
    for _ in 0..5 {
        let (placed, took) = timed(|| together(&templates, &nodes));
        assert_eq!(placed, of_pairs, "the two results differ");
        shared.push(took);
    }
    shared.sort_unstable();
    let ratio = |took: &Duration| by_pairs.as_secs_f64() / took.as_secs_f64();
    println!(
        "{} nodes, {DAEMON_SETS} DaemonSets: in classes {:.0} times as fast as pair by pair",
        nodes.len(),
        ratio(&shared[2])
    );
    println!(
        "(least {:.0}, most {:.0}); eligible pairs: {}",
        ratio(&shared[4]),
        ratio(&shared[0]),
        eligible(&of_pairs)
    );
}

/// For each template and each node, whether a pod may start and whether it may stay.
type Verdicts = Vec<Vec<(bool, bool)>>;

fn verdict(placement: &Placement) -> (bool, bool) {
    (placement.may_start, placement.may_stay)
}

fn each_pair(templates: &[PodPlacement], nodes: &[Node]) -> Verdicts {
    let of = |template| nodes.iter().map(|node| verdict(&judge(template, node))).collect();
    templates.iter().map(of).collect()
}

/// As the plan does it: classes of nodes that look the same to all templates, evaluated once each.
fn together(templates: &[PodPlacement], nodes: &[Node]) -> Verdicts {
    let fleet = Fleet::seen_by(nodes, templates);
    let classes = fleet.judge().classes();
    let of = |template| {
        let answers: Vec<_> = fleet.judge().by_class(template).iter().map(verdict).collect();
        classes.iter().map(|class| answers[*class]).collect()
    };
    templates.iter().map(of).collect()
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let done = work();
    (done, start.elapsed())
}

fn eligible(verdicts: &Verdicts) -> usize {
    verdicts.iter().flatten().filter(|(may_start, _)| *may_start).count()
}

/// A node of a cluster with pools, zones and two architectures; some are tainted, some cordoned.
fn node(at: usize) -> Node {
    let name = format!("node-{at:05}");
    let pool = format!("pool-{}", at % POOLS);
    let arch = if at.is_multiple_of(5) { "arm64" } else { "amd64" };
    let labels: Labels = [
        ("kubernetes.io/arch", arch.to_owned()),
        ("kubernetes.io/hostname", name.clone()),
        ("kubernetes.io/os", "linux".to_owned()),
        ("node.example.com/pool", pool),
        ("topology.kubernetes.io/zone", format!("zone-{}", at % 3)),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into_iter()
    .collect();
    let taint = |key: &str, effect| Taint { key: key.into(), value: "".into(), effect };
    let mut taints = Vec::new();
    if at % POOLS == 3 {
        taints.push(taint("nvidia.com/gpu", TaintEffect::NoSchedule));
    }
    if at % 100 == 42 {
        taints.push(taint("node.kubernetes.io/unreachable", TaintEffect::NoExecute));
    }
    if at % 200 == 7 {
        taints.push(taint("node.kubernetes.io/unschedulable", TaintEffect::NoSchedule));
    }
    Node {
        uid: format!("uid-{name}").as_str().into(),
        name: name.as_str().into(),
        labels,
        taints: taints.into(),
        unschedulable: at % 200 == 7,
        readiness: NodeReadiness::Ready,
        conditions: Box::default(),
        allocatable: Labels::default(),
        created: None,
    }
}

/// A third runs everywhere, a third in one pool, a third according to an affinity; half tolerate
/// GPUs.
fn template(set: usize) -> PodPlacement {
    let pool = format!("pool-{}", set % POOLS);
    let mut spec = json!({});
    match set % 3 {
        0 => {}
        1 => spec["nodeSelector"] = json!({"node.example.com/pool": pool}),
        _ => {
            spec["affinity"] = json!({"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                    {"matchExpressions": [
                        {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                        {"key": "topology.kubernetes.io/zone", "operator": "NotIn", "values": [format!("zone-{}", set % 5)]},
                    ]},
                    {"matchExpressions": [
                        {"key": "node.example.com/pool", "operator": "In", "values": [pool]},
                    ]},
                ]},
            }});
        }
    }
    if set.is_multiple_of(2) {
        spec["tolerations"] = json!([{"key": "nvidia.com/gpu", "operator": "Exists"}]);
    }
    PodTemplate::from_json(json!({"spec": spec})).unwrap().placement
}
