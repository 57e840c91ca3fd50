//! Host ports that two DaemonSets use on the same node: the second pod stays Pending there.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use crate::plan::Warning;
use crate::words::count;
use daemonset::controller::node_pods::Fleet;
use daemonset::model::{
    DaemonSetKey, DaemonSetSpec, DesiredDaemonSet, NodeName, PodPlacement, Snapshot,
};

/// A DaemonSet whose pods use host ports.
struct Taker<'a> {
    key: &'a DaemonSetKey,
    placement: &'a PodPlacement,
    ports: BTreeSet<HostPort>,
}

impl<'a> Taker<'a> {
    fn of(key: &'a DaemonSetKey, spec: &'a DaemonSetSpec) -> Option<Self> {
        let ports = host_ports(spec.template.raw());
        (!ports.is_empty()).then_some(Self { key, placement: &spec.template.placement, ports })
    }
}

/// A warning for each pair of DaemonSets, one of them desired, that use the same host port on
/// nodes where both may start a pod.
pub(in crate::plan) fn warnings(
    desired: &[&DesiredDaemonSet],
    snapshot: &Snapshot,
    fleet: &Fleet<'_>,
) -> Vec<Warning> {
    let is_desired = |key: &DaemonSetKey| desired.iter().any(|it| it.key == *key);
    let planned = desired.iter().filter_map(|it| Taker::of(&it.key, &it.spec));
    let mut planned: Vec<Taker<'_>> = planned.collect();
    planned.sort_by_key(|taker| taker.key);
    let live = snapshot.daemon_sets.iter().filter(|it| !it.terminating && !is_desired(&it.key));
    let others: Vec<Taker<'_>> = live.filter_map(|it| Taker::of(&it.key, &it.spec)).collect();
    let mut warnings = Vec::new();
    for (at, one) in planned.iter().enumerate() {
        let rest = planned[at + 1..].iter().chain(&others);
        warnings.extend(rest.filter_map(|other| clash(one, other, fleet)));
    }
    warnings
}

fn clash(one: &Taker<'_>, other: &Taker<'_>, fleet: &Fleet<'_>) -> Option<Warning> {
    let ports = clashes(&one.ports, &other.ports);
    if ports.is_empty() {
        return None;
    }
    let [ours, theirs] = [one, other].map(|taker| fleet.placements(taker.placement));
    let both = fleet.nodes().iter().zip(ours.iter().zip(&theirs));
    let common = both.filter(|(_, (ours, theirs))| ours.may_start && theirs.may_start);
    let nodes: Vec<NodeName> = common.map(|(node, _)| node.name.clone()).collect();
    if nodes.is_empty() {
        return None;
    }
    let count = count(nodes.len(), "node");
    let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
    let (one, other) = (one.key, other.key);
    Some(Warning {
        code: "hostPortClash".to_owned(),
        message: format!(
            "{one} and {other} both use host port {} on {count}: the pod that is scheduled second \
             stays Pending",
            ports.join(", ")
        ),
        daemon_set: Some(one.to_string()),
        nodes,
    })
}

/// A port of the node that a pod uses exclusively.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct HostPort {
    number: u64,
    protocol: String,
    /// `hostIP`; `0.0.0.0` means all addresses.
    ip: String,
}

const ANY_IP: &str = "0.0.0.0";

impl HostPort {
    /// Whether two pods on one node cannot use both ports (upstream: `HostPortInfo.CheckConflict`
    /// of the scheduler).
    fn excludes(&self, other: &Self) -> bool {
        self.number == other.number
            && self.protocol == other.protocol
            && (self.ip == other.ip || self.ip == ANY_IP || other.ip == ANY_IP)
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.protocol)
    }
}

/// The host ports of a pod template: those of its containers, and of the init containers that
/// keep running as sidecars (upstream: `schedutil.GetHostPorts`).
fn host_ports(template: &Value) -> BTreeSet<HostPort> {
    let spec = &template["spec"];
    let on_host = spec["hostNetwork"] == true;
    let list = |field: &str| spec[field].as_array().into_iter().flatten();
    let sidecars = list("initContainers").filter(|it| it["restartPolicy"] == "Always");
    let ports = list("containers").chain(sidecars).filter_map(|it| it["ports"].as_array());
    ports.flatten().filter_map(|port| host_port(port, on_host)).collect()
}

fn host_port(port: &Value, on_host: bool) -> Option<HostPort> {
    let number = |field: &str| port[field].as_u64().filter(|number| *number > 0);
    // With `hostNetwork`, every container port is a host port, declared as one or not.
    let number = number("hostPort").or_else(|| number("containerPort").filter(|_| on_host))?;
    let text = |field: &str, default: &str| match port[field].as_str() {
        None | Some("") => default.to_owned(),
        Some(text) => text.to_owned(),
    };
    Some(HostPort { number, protocol: text("protocol", "TCP"), ip: text("hostIP", ANY_IP) })
}

/// The ports of `ours` that conflict with `theirs` on the same node.
fn clashes<'a>(ours: &'a BTreeSet<HostPort>, theirs: &BTreeSet<HostPort>) -> Vec<&'a HostPort> {
    ours.iter().filter(|port| theirs.iter().any(|other| port.excludes(other))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn template(spec: &Value) -> Value {
        json!({ "spec": spec })
    }

    fn clash(ours: &Value, theirs: &Value) -> String {
        let (ours, theirs) = (host_ports(&template(ours)), host_ports(&template(theirs)));
        let found = clashes(&ours, &theirs);
        found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn ports_that_exclude_each_other() {
        let port = |port: Value| json!({"containers": [{"ports": [port]}]});
        let plain = port(json!({"containerPort": 80, "hostPort": 9100}));
        for (rule, ours, want) in [
            ("the same", plain.clone(), "9100/TCP"),
            ("no host port", port(json!({"containerPort": 9100})), ""),
            ("hostPort 0 is unset", port(json!({"containerPort": 9100, "hostPort": 0})), ""),
            ("another number", port(json!({"containerPort": 80, "hostPort": 9101})), ""),
            (
                "another protocol",
                port(json!({"containerPort": 80, "hostPort": 9100, "protocol": "UDP"})),
                "",
            ),
            (
                "one address against all",
                port(json!({"containerPort": 80, "hostPort": 9100, "hostIP": "10.0.0.1"})),
                "9100/TCP",
            ),
            (
                "on the host's network",
                json!({"hostNetwork": true, "containers": [{"ports": [{"containerPort": 9100}]}]}),
                "9100/TCP",
            ),
            (
                "a sidecar",
                json!({"initContainers": [
                    {"restartPolicy": "Always", "ports": [{"containerPort": 1, "hostPort": 9100}]}
                ]}),
                "9100/TCP",
            ),
            (
                "an init container has ended by then",
                json!({"initContainers": [{"ports": [{"containerPort": 1, "hostPort": 9100}]}]}),
                "",
            ),
        ] {
            assert_eq!(clash(&ours, &plain), want, "{rule}");
        }
        let at = |ip: &str| port(json!({"containerPort": 80, "hostPort": 53, "hostIP": ip}));
        assert_eq!(clash(&at("10.0.0.1"), &at("10.0.0.2")), "");
        assert_eq!(clash(&at("10.0.0.1"), &at("10.0.0.1")), "53/TCP");
    }
}
