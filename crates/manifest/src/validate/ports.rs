//! Container ports, and conflicts of host ports (upstream: `validateContainerPorts`,
//! `AccumulateUniqueHostPorts`).

use std::collections::BTreeSet;

use super::at::At;
use super::formats::port_name;
use super::go_text::quoted;
use super::rules::Rule::{self, Follows, Required, RequiredOneOf, Within};

const PORT_NUMBER: Rule = Within(1, 65535);

/// Validates the ports of one container.
pub(super) fn check(ports: &At<'_>) {
    let mut all_names = BTreeSet::new();
    for port in ports.items() {
        let (name, number) = (port.get("name"), port.get("containerPort"));
        let complaints = if name.is_empty() { vec![] } else { port_name(name.text()) };
        if complaints.is_empty() && !name.is_empty() {
            name.unique_in(&mut all_names);
        }
        name.invalids_as(name.text(), complaints);
        number.check(Required);
        // 0 means absent.
        for number in [number, port.get("hostPort")].iter().filter(|number| !number.is_empty()) {
            number.check(PORT_NUMBER);
        }
        port.get("protocol").check(RequiredOneOf(&["SCTP", "TCP", "UDP"]));
    }
}

/// Validates a port number or name, as used by probes (upstream: `ValidatePortNumOrName`).
pub(super) fn check_reference(port: &At<'_>) {
    if port.json().is_string() {
        port.check(Follows(port_name));
    } else {
        port.with_value(&port.int().into()).check(PORT_NUMBER);
    }
}

/// Validates that no two of these containers use the same host port.
pub(super) fn check_host_ports<'a>(containers: impl Iterator<Item = At<'a>>) {
    let mut all_host_ports = BTreeSet::new();
    for port in containers.flat_map(|container| container.get("ports").items()) {
        let host = port.get("hostPort");
        let [protocol, ip] = ["protocol", "hostIP"].map(|field| port.get(field).text());
        let wanted = format!("{protocol}/{ip}/{}", host.int());
        if host.int() != 0 && !all_host_ports.insert(wanted.clone()) {
            host.duplicate_as(quoted(&wanted));
        }
    }
}

/// Validates ports with `hostNetwork`, where host port and container port must match (upstream:
/// `validatePodHostNetworkDeps`).
pub(super) fn check_host_network(pod: &At<'_>) {
    if !pod.get("hostNetwork").is_true() {
        return;
    }
    for port in pod.each("containers[*].ports[*]") {
        let host = port.get("hostPort");
        let differs = host.int() != 0 && host.int() != port.get("containerPort").int();
        host.invalid_if(differs, "must match `containerPort` when `hostNetwork` is true");
    }
}
