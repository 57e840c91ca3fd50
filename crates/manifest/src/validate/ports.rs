//! Container ports, and conflicts of host ports (upstream: `validateContainerPorts`,
//! `AccumulateUniqueHostPorts`).

use std::collections::BTreeSet;

use super::at::{At, Errors};
use super::go_text::quoted;
use super::names;

/// Validates the ports of one container.
pub(super) fn check(ports: &At<'_>, errors: &mut Errors) {
    let mut taken = BTreeSet::new();
    for port in ports.items() {
        check_name(&port.get("name"), &mut taken, errors);
        let (number, host) = (port.get("containerPort"), port.get("hostPort"));
        if number.int() == 0 {
            errors.push(number.required(""));
        } else {
            errors.extend(number.invalids(names::port_number(number.int())));
        }
        if host.int() != 0 {
            errors.extend(host.invalids(names::port_number(host.int())));
        }
        port.get("protocol").required_one_of(&["SCTP", "TCP", "UDP"], errors);
    }
}

fn check_name<'a>(name: &At<'a>, taken: &mut BTreeSet<&'a str>, errors: &mut Errors) {
    if name.is_empty() {
        return;
    }
    let complaints = names::port_name(name.text());
    if complaints.is_empty() && !taken.insert(name.text()) {
        errors.push(name.duplicate());
    }
    errors.extend(name.invalids(complaints));
}

/// Validates a port number or name, as used by probes (upstream: `ValidatePortNumOrName`).
pub(super) fn check_reference(port: &At<'_>, errors: &mut Errors) {
    if port.json().is_string() {
        port.follows(names::port_name, errors);
    } else {
        let complaints = names::port_number(port.int()).into_iter();
        errors.extend(complaints.map(|why| port.invalid_as(port.int().to_string(), &why)));
    }
}

/// Validates that no two of these containers use the same host port.
pub(super) fn check_host_ports(containers: &[At<'_>], errors: &mut Errors) {
    let mut taken = BTreeSet::new();
    for port in containers.iter().flat_map(|container| container.get("ports").items()) {
        let host = port.get("hostPort");
        let [protocol, ip] = ["protocol", "hostIP"].map(|field| port.get(field).text());
        let wanted = format!("{protocol}/{ip}/{}", host.int());
        if host.int() != 0 && !taken.insert(wanted.clone()) {
            errors.push(host.duplicate_as(quoted(&wanted)));
        }
    }
}

/// Validates ports with `hostNetwork`, where host port and container port must match (upstream:
/// `validatePodHostNetworkDeps`).
pub(super) fn check_host_network(pod: &At<'_>, errors: &mut Errors) {
    if !pod.get("hostNetwork").is_true() {
        return;
    }
    for port in pod.get("containers").items().flat_map(|container| container.get("ports").items()) {
        let host = port.get("hostPort");
        if host.int() != 0 && host.int() != port.get("containerPort").int() {
            errors.push(host.invalid("must match `containerPort` when `hostNetwork` is true"));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::table;

    #[test]
    fn rules() {
        table::check(include_str!("ports.yaml"));
    }
}
