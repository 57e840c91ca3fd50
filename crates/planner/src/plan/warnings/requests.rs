//! Compares the requests of all DaemonSet pods on a node with the node's allocatable resources
//! (upstream: `PodRequests`, and the scheduler's `NodeResourcesFit`).
//!
//! Only pods of DaemonSets are counted: they are bound to their node, while other pods can be
//! preempted or scheduled elsewhere.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use crate::plan::document::Warning;
use crate::words::count;
use daemonset::controller::node_pods::Fleet;
use daemonset::controller::placement::Judge;
use daemonset::model::{
    DaemonSetKey, DaemonSetSpec, DesiredDaemonSet, Node, NodeName, PodPlacement, Snapshot,
};
use manifest::quantity::billionths;

/// Amounts of resources by name, in billionths.
type Amounts = BTreeMap<String, i128>;

/// Name of the resource of which every pod requests one.
const PODS: &str = "pods";
const ONE: i128 = 1_000_000_000;
/// Maximum number of DaemonSets that are named, largest requests first.
const MOST_NAMES: usize = 3;

/// A DaemonSet, and the resource requests of one of its pods.
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

/// A warning for each resource of which the DaemonSets request more than nodes have. `fleet` must
/// be built for the templates of all DaemonSets, planned and live.
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
        // A recorded snapshot may not have it.
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

/// Nodes that are the same to the placement rules of every DaemonSet.
struct Class<'a> {
    /// The DaemonSets that run there.
    here: Vec<&'a Asking<'a>>,
    /// Sum of their requests, for each resource that a planned DaemonSet requests.
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

/// Parsed `allocatable` values of nodes, cached because most nodes have the same few.
#[derive(Default)]
struct Rooms<'a>(HashMap<&'a str, i128>);

impl<'a> Rooms<'a> {
    /// A resource that is not there counts as zero, as in the scheduler.
    fn of(&mut self, node: &'a Node, resource: &str) -> i128 {
        let Some(text) = node.allocatable.get(resource) else { return 0 };
        *self.0.entry(text).or_insert_with(|| billionths(text).unwrap_or_default())
    }
}

/// The nodes on which more of one resource is requested than is allocatable.
#[derive(Default)]
struct Overfull<'a> {
    nodes: Vec<NodeName>,
    worst: Option<Worst<'a>>,
}

/// The node with the largest shortage.
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
        let count = count(self.nodes.len(), "node");
        let counted = if of_scope {
            "Only pods of the DaemonSets in the namespaces read are counted"
        } else {
            "Only pods of DaemonSets are counted"
        };
        let message = format!(
            "the DaemonSets together request more {resource} than {count} can allocate; worst: {} \
             of {} on {node} ({}), so pods stay Pending. {counted}",
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

/// Rounding direction for display, so that a shortage never looks like enough.
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

/// The requests of a pod of the template, as the scheduler counts them (upstream: `PodRequests`,
/// after `SetDefaults_Pod`).
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

/// `requests`, and `limits` for resources without a request.
fn container_requests(container: &Value) -> Amounts {
    let mut all = amounts(&container["resources"]["limits"]);
    all.extend(amounts(&container["resources"]["requests"]));
    all
}

/// Pod-level requests replace those of the containers; pod-level limits do so where neither the pod
/// nor a container has a request (upstream: `setDefaultPodResources`).
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
    fn requests_of_a_pod() {
        let cpu = |request: &str| json!({"resources": {"requests": {"cpu": request}}});
        let sidecar = |request: &str| json!({"restartPolicy": "Always", "resources": {"requests": {"cpu": request}}});
        for (rule, spec, want) in [
            ("no requests", json!({"containers": [{}]}), None),
            ("the sum", json!({"containers": [cpu("1"), cpu("500m")]}), Some("1500m")),
            (
                "a limit counts as the request where there is none",
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
                "a sidecar runs next to all containers",
                json!({"initContainers": [sidecar("1"), cpu("3")], "containers": [cpu("2")]}),
                Some("4"),
            ),
            (
                "a sidecar that starts later",
                json!({"initContainers": [cpu("3"), sidecar("1")], "containers": [cpu("1")]}),
                Some("3"),
            ),
            (
                "overhead",
                json!({"containers": [cpu("1")], "overhead": {"cpu": "250m"}}),
                Some("1250m"),
            ),
            (
                "pod-level requests",
                json!({"containers": [cpu("1")], "resources": {"requests": {"cpu": "5"}}}),
                Some("5"),
            ),
            (
                "a pod-level limit is ignored where containers have requests",
                json!({"containers": [cpu("1")], "resources": {"limits": {"cpu": "5"}}}),
                Some("1"),
            ),
            (
                "a pod-level limit where no container has a request",
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
    fn rounding_never_hides_a_shortage() {
        let (more, room) = (billionths("1048577").unwrap(), billionths("1Mi").unwrap());
        assert_eq!(words("memory", more, Edge::Up), "2Mi");
        assert_eq!(words("memory", room, Edge::Down), "1Mi");
        assert_eq!(words("cpu", billionths("1.5").unwrap(), Edge::Up), "1500m");
        assert_eq!(words("example.com/gpu", ONE * 3, Edge::Up), "3");
    }
}
