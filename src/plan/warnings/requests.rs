//! What the pods of all DaemonSets together request on a node, against what the node can allocate
//! (upstream: `PodRequests`, and the scheduler's `NodeResourcesFit`).
//!
//! Only pods of DaemonSets are counted. They are where they must be; other pods come and go, and
//! are preempted or scheduled elsewhere.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use crate::controller::node_pods::Fleet;
use crate::controller::placement::Judge;
use crate::manifest::quantity::billionths;
use crate::model::{
    DaemonSetKey, DaemonSetSpec, DesiredDaemonSet, Node, NodeName, PodPlacement, Snapshot,
};
use crate::plan::document::Warning;

/// Amounts of resources by name, in billionths.
type Amounts = BTreeMap<String, i128>;

/// Every pod takes one of these.
const PODS: &str = "pods";
const ONE: i128 = 1_000_000_000;
/// So many DaemonSets are named at most, those that request most.
const MOST_NAMES: usize = 3;

/// A DaemonSet, and what each of its pods requests.
struct Asking<'a> {
    key: &'a DaemonSetKey,
    placement: &'a PodPlacement,
    is_planned: bool,
    requests: Amounts,
}

impl<'a> Asking<'a> {
    fn of(key: &'a DaemonSetKey, spec: &'a DaemonSetSpec, is_planned: bool) -> Self {
        let requests = pod_requests(spec.template.raw());
        Self { key, placement: &spec.template.placement, is_planned, requests }
    }

    fn of_resource(&self, resource: &str) -> i128 {
        self.requests.get(resource).copied().unwrap_or_default()
    }
}

/// A warning for each resource of which the DaemonSets request more than nodes have. The fleet must
/// be one for the templates of all DaemonSets, planned and live.
pub(in crate::plan) fn warnings(
    desired: &[&DesiredDaemonSet],
    snapshot: &Snapshot,
    fleet: &Fleet<'_>,
) -> Vec<Warning> {
    let planned: BTreeSet<&DaemonSetKey> = desired.iter().map(|it| &it.key).collect();
    let live = snapshot.daemon_sets.iter();
    let others = live.filter(|it| !it.terminating && !planned.contains(&it.key));
    let asking: Vec<Asking<'_>> = desired
        .iter()
        .map(|it| Asking::of(&it.key, &it.spec, true))
        .chain(others.map(|it| Asking::of(&it.key, &it.spec, false)))
        .collect();
    let classes = Class::all(fleet.judge(), &asking);
    let mut overfull: BTreeMap<&str, Overfull<'_>> = BTreeMap::new();
    let mut rooms = Rooms::default();
    for (node, class) in snapshot.nodes.iter().zip(fleet.judge().classes()) {
        // A recording may leave it out.
        if node.allocatable.is_empty() {
            continue;
        }
        let class = &classes[*class];
        for (resource, &requested) in &class.together {
            let room = rooms.of(node, resource);
            if requested > room {
                let worst = overfull.entry(resource).or_default();
                worst.add(node, requested, room, class);
            }
        }
    }
    let of_scope = snapshot.coverage.scope.is_some();
    let warning = |(resource, found): (&str, Overfull<'_>)| found.warning(resource, of_scope);
    overfull.into_iter().filter_map(warning).collect()
}

/// Nodes that no DaemonSet can tell apart.
struct Class<'a> {
    /// The DaemonSets that run there.
    here: Vec<&'a Asking<'a>>,
    /// What they request together of the resources that a planned one requests.
    together: BTreeMap<&'a str, i128>,
}

impl<'a> Class<'a> {
    fn all(judge: &Judge<'_>, asking: &'a [Asking<'a>]) -> Vec<Self> {
        let mut here: Vec<Vec<&Asking<'_>>> = Vec::new();
        for one in asking {
            let placements = judge.by_class(one.placement);
            here.resize_with(placements.len(), Vec::new);
            for (here, _) in here.iter_mut().zip(placements).filter(|(_, it)| it.may_start) {
                here.push(one);
            }
        }
        here.into_iter().map(Self::of).collect()
    }

    fn of(here: Vec<&'a Asking<'a>>) -> Self {
        let planned = here.iter().filter(|it| it.is_planned);
        let resources: BTreeSet<&str> =
            planned.flat_map(|it| it.requests.keys()).map(String::as_str).collect();
        let sum = |resource: &str| here.iter().map(|it| it.of_resource(resource)).sum();
        let together = resources.into_iter().map(|resource| (resource, sum(resource))).collect();
        Self { here, together }
    }
}

/// What nodes can allocate; the same few texts come again and again.
#[derive(Default)]
struct Rooms<'a>(HashMap<&'a str, i128>);

impl<'a> Rooms<'a> {
    /// What is not there is nothing, as to the scheduler.
    fn of(&mut self, node: &'a Node, resource: &str) -> i128 {
        let Some(text) = node.allocatable.get(resource) else { return 0 };
        *self.0.entry(text).or_insert_with(|| billionths(text).unwrap_or_default())
    }
}

/// Nodes on which too much of one resource is requested.
#[derive(Default)]
struct Overfull<'a> {
    nodes: Vec<NodeName>,
    worst: Option<Worst<'a>>,
}

/// The node where most is missing.
struct Worst<'a> {
    node: &'a NodeName,
    requested: i128,
    room: i128,
    here: &'a [&'a Asking<'a>],
}

impl<'a> Overfull<'a> {
    fn add(&mut self, node: &'a Node, requested: i128, room: i128, class: &'a Class<'a>) {
        self.nodes.push(node.name.clone());
        if self.worst.as_ref().is_none_or(|it| requested - room > it.requested - it.room) {
            self.worst = Some(Worst { node: &node.name, requested, room, here: &class.here });
        }
    }

    fn warning(self, resource: &str, of_scope: bool) -> Option<Warning> {
        let Worst { node, requested, room, here } = self.worst?;
        let count = match self.nodes.len() {
            1 => "1 node".to_owned(),
            more => format!("{more} nodes"),
        };
        let counted = if of_scope {
            "Only pods of the DaemonSets in the namespaces read are counted"
        } else {
            "Only pods of DaemonSets are counted"
        };
        let message = format!(
            "the DaemonSets together request more {resource} than {count} can allocate; at the \
             worst {} of {} on {node} ({}), so pods stay Pending. {counted}: others come and go",
            words(resource, requested, Edge::Up),
            words(resource, room, Edge::Down),
            by_share(here, resource),
        );
        let code = "requestsExceedNode".to_owned();
        Some(Warning { code, message, daemon_set: None, nodes: self.nodes })
    }
}

/// `kube-system/cilium 2, logging/agent 500m and 3 more`, the largest first.
fn by_share(here: &[&Asking<'_>], resource: &str) -> String {
    let mut shares: Vec<(i128, &DaemonSetKey)> =
        here.iter().map(|it| (it.of_resource(resource), it.key)).filter(|it| it.0 > 0).collect();
    shares.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    let named = shares.iter().take(MOST_NAMES);
    let named: Vec<String> =
        named.map(|(share, key)| format!("{key} {}", words(resource, *share, Edge::Up))).collect();
    match shares.len() - named.len() {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// Which way an amount is rounded for display, so that too much never looks like enough.
#[derive(Clone, Copy)]
enum Edge {
    Up,
    Down,
}

/// `3900m` of cpu, `512Mi` of memory, `2` of anything else.
fn words(resource: &str, billionths: i128, edge: Edge) -> String {
    let in_units = |unit: i128| match edge {
        Edge::Up => (billionths + unit - 1).div_euclid(unit),
        Edge::Down => billionths.div_euclid(unit),
    };
    let is_bytes =
        ["memory", "ephemeral-storage"].contains(&resource) || resource.starts_with("hugepages-");
    if is_bytes {
        return format!("{}Mi", in_units(ONE << 20));
    }
    match billionths % ONE {
        0 => (billionths / ONE).to_string(),
        _ => format!("{}m", in_units(ONE / 1_000)),
    }
}

/// What the scheduler takes a pod of the template to request (upstream: `PodRequests`, after
/// `SetDefaults_Pod`).
fn pod_requests(template: &Value) -> Amounts {
    let spec = &template["spec"];
    let list = |field: &str| spec[field].as_array().into_iter().flatten();
    let mut running = Amounts::new();
    list("containers").for_each(|container| add(&mut running, &container_requests(container)));
    let (mut sidecars, mut starting) = (Amounts::new(), Amounts::new());
    for container in list("initContainers") {
        let own = container_requests(container);
        let mut meanwhile = sidecars.clone();
        add(&mut meanwhile, &own);
        if container["restartPolicy"] == "Always" {
            add(&mut running, &own);
            sidecars.clone_from(&meanwhile);
        }
        for (resource, amount) in meanwhile {
            let most = starting.entry(resource).or_default();
            *most = amount.max(*most);
        }
    }
    for (resource, amount) in starting {
        let most = running.entry(resource).or_default();
        *most = amount.max(*most);
    }
    of_pod_level(spec, &mut running);
    add(&mut running, &amounts(&spec["overhead"]));
    running.insert(PODS.to_owned(), ONE);
    running
}

/// `requests`, and where they say nothing, `limits`.
fn container_requests(container: &Value) -> Amounts {
    let mut all = amounts(&container["resources"]["limits"]);
    all.extend(amounts(&container["resources"]["requests"]));
    all
}

/// Requests of the pod as a whole stand in place of those of its containers; its limits do where
/// neither it nor a container requests anything (upstream: `setDefaultPodResources`).
fn of_pod_level(spec: &Value, requests: &mut Amounts) {
    let supported = |resource: &str| {
        ["cpu", "memory"].contains(&resource) || resource.starts_with("hugepages-")
    };
    for (resource, amount) in amounts(&spec["resources"]["limits"]) {
        if supported(&resource) {
            requests.entry(resource).or_insert(amount);
        }
    }
    let own = amounts(&spec["resources"]["requests"]);
    requests.extend(own.into_iter().filter(|(resource, _)| supported(resource)));
}

fn add(to: &mut Amounts, more: &Amounts) {
    for (resource, amount) in more {
        *to.entry(resource.clone()).or_default() += amount;
    }
}

fn amounts(quantities: &Value) -> Amounts {
    let pairs = quantities.as_object().into_iter().flatten();
    let read = |text: &Value| match text {
        Value::String(text) => billionths(text).ok(),
        Value::Number(number) => billionths(&number.to_string()).ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    pairs.filter_map(|(name, text)| Some((name.clone(), read(text)?))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_pod_requests() {
        let cpu = |request: &str| json!({"resources": {"requests": {"cpu": request}}});
        let sidecar = |request: &str| json!({"restartPolicy": "Always", "resources": {"requests": {"cpu": request}}});
        for (rule, spec, want) in [
            ("nothing but itself", json!({"containers": [{}]}), None),
            ("the sum", json!({"containers": [cpu("1"), cpu("500m")]}), Some("1500m")),
            (
                "a limit is a request where there is none",
                json!({"containers": [
                    {"resources": {"limits": {"cpu": "2"}}},
                    {"resources": {"limits": {"cpu": "9"}, "requests": {"cpu": "1"}}},
                ]}),
                Some("3"),
            ),
            (
                "an init container only if it is larger",
                json!({"initContainers": [cpu("1")], "containers": [cpu("2")]}),
                Some("2"),
            ),
            (
                "the largest init container",
                json!({"initContainers": [cpu("3"), cpu("1")], "containers": [cpu("2")]}),
                Some("3"),
            ),
            (
                "a sidecar runs beside them all",
                json!({"initContainers": [sidecar("1"), cpu("3")], "containers": [cpu("2")]}),
                Some("4"),
            ),
            (
                "a sidecar that begins later",
                json!({"initContainers": [cpu("3"), sidecar("1")], "containers": [cpu("1")]}),
                Some("3"),
            ),
            (
                "overhead",
                json!({"containers": [cpu("1")], "overhead": {"cpu": "250m"}}),
                Some("1250m"),
            ),
            (
                "the pod as a whole",
                json!({"containers": [cpu("1")], "resources": {"requests": {"cpu": "5"}}}),
                Some("5"),
            ),
            (
                "the pod's limit is no request where containers have some",
                json!({"containers": [cpu("1")], "resources": {"limits": {"cpu": "5"}}}),
                Some("1"),
            ),
            (
                "the pod's limit where nobody requests",
                json!({"containers": [{}], "resources": {"limits": {"cpu": "5"}}}),
                Some("5"),
            ),
        ] {
            let requests = pod_requests(&json!({ "spec": spec }));
            assert_eq!(requests.get(PODS), Some(&ONE), "{rule}");
            let cpu = requests.get("cpu").map(|amount| words("cpu", *amount, Edge::Up));
            assert_eq!(cpu.as_deref(), want, "{rule}");
        }
    }

    #[test]
    fn too_much_never_looks_like_enough() {
        let (more, room) = (billionths("1048577").unwrap(), billionths("1Mi").unwrap());
        assert_eq!(words("memory", more, Edge::Up), "2Mi");
        assert_eq!(words("memory", room, Edge::Down), "1Mi");
        assert_eq!(words("cpu", billionths("1.5").unwrap(), Edge::Up), "1500m");
        assert_eq!(words("example.com/gpu", ONE * 3, Edge::Up), "3");
    }
}
