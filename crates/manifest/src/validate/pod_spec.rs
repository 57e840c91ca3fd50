//! The pod: the order of its rules, and its single fields (upstream: `ValidatePodSpec`).

use std::collections::BTreeSet;

use super::at::{At, Errors};
use super::containers::{self, Surroundings, visit_all};
use super::{
    affinity, dns, env, metadata, names, operating_system, ports, resource_claims, resources,
    security_context, spread, tolerations, volumes, windows,
};

/// Validates `spec.template.spec`, in upstream's order.
pub(super) fn check(pod: &At<'_>, errors: &mut Errors) {
    check_containers(pod, errors);
    ports::check_host_network(pod, errors);
    pod.get("restartPolicy").required_one_of(&["Always", "OnFailure", "Never"], errors);
    dns::check_policy(&pod.get("dnsPolicy"), errors);
    metadata::labels(&pod.get("nodeSelector"), errors);
    security_context::check_pod(pod, errors);
    affinity::check(&pod.get("affinity"), errors);
    dns::check_config(pod, errors);
    check_gates(pod, errors);
    spread::check(&pod.get("topologySpreadConstraints"), errors);
    windows::check_host_process(pod, errors);
    check_host_users(pod, errors);
    dns::check_hostname_override(pod, errors);
    check_names(pod, errors);
    operating_system::check(pod, errors);
    env::check_file_volumes(pod, errors);
}

fn check_containers(pod: &At<'_>, errors: &mut Errors) {
    let volumes = volumes::check(&pod.get("volumes"), errors);
    let claims = resource_claims::check(&pod.get("resourceClaims"), errors);
    let around = Surroundings {
        volumes,
        claims,
        grace_period: pod.find("terminationGracePeriodSeconds").map(|seconds| seconds.int()),
        host_users: has_host_users(pod),
        restart_policy: pod.get("restartPolicy").text(),
    };
    containers::check(pod, &around, errors);
    resources::check_pod(pod, &around.claims, errors);
}

/// The value of `hostUsers`, which defaults to true.
fn has_host_users(pod: &At<'_>) -> bool {
    pod.find("hostUsers").is_none_or(|host_users| host_users.is_true())
}

/// Validates `readinessGates` and `schedulingGates`.
fn check_gates(pod: &At<'_>, errors: &mut Errors) {
    for gate in pod.get("readinessGates").items() {
        gate.get("conditionType").follows(names::label_key, errors);
    }
    let mut taken = BTreeSet::new();
    for gate in pod.get("schedulingGates").items() {
        let name = gate.get("name").reported_at(gate.path());
        name.follows(names::label_key, errors);
        if !taken.insert(name.text()) {
            errors.push(name.duplicate());
        }
    }
}

/// Validates that `hostUsers: false` is not combined with the node's other namespaces. Two of them
/// are reported in upper case.
fn check_host_users(pod: &At<'_>, errors: &mut Errors) {
    if has_host_users(pod) {
        return;
    }
    let why = "when `hostUsers` is false";
    for (field, spelled) in
        [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")]
    {
        if pod.get(field).is_true() {
            errors.push(pod.get(field).reported_at(pod.path_of(spelled)).forbidden(why));
        }
    }
    for container in visit_all(pod) {
        if !container.get("volumeDevices").is_empty() {
            errors.push(container.get("volumeDevices").forbidden(why));
        }
    }
}

fn check_names(pod: &At<'_>, errors: &mut Errors) {
    pod.get("serviceAccountName").follows_if_set(names::dns_subdomain, errors);
    pod.get("nodeName").follows_if_set(names::dns_subdomain, errors);
    if let Some(deadline) = pod.find("activeDeadlineSeconds") {
        deadline.within(1, i64::from(i32::MAX), errors);
    }
    pod.get("hostname").follows_if_set(names::dns_label, errors);
    pod.get("subdomain").follows_if_set(names::dns_label, errors);
    tolerations::check(&pod.get("tolerations"), errors);
    dns::check_host_aliases(&pod.get("hostAliases"), errors);
    pod.get("priorityClassName").follows_if_set(names::dns_subdomain, errors);
    if let Some(class) = pod.find("runtimeClassName") {
        class.follows(names::dns_subdomain, errors);
    }
    if let Some(policy) = pod.find("preemptionPolicy") {
        policy.required_one_of(&["PreemptLowerPriority", "Never"], errors);
    }
    check_overhead(&pod.get("overhead"), errors);
}

/// Validates `overhead`, with the rules for a container's limits.
fn check_overhead(overhead: &At<'_>, errors: &mut Errors) {
    if overhead.is_set() {
        let limits = serde_json::json!({ "limits": overhead.json() });
        let resources = At::root(&limits).reported_at(overhead.path());
        let no_claims = BTreeSet::new();
        resources::check(&resources, resources::check_container_name, &no_claims, errors);
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::table;

    #[test]
    fn rules() {
        table::check(include_str!("pod_spec.yaml"));
    }
}
