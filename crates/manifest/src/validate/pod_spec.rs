//! The pod: the order of its rules, and its single fields (upstream: `ValidatePodSpec`).

use std::collections::BTreeSet;

use super::at::At;
use super::context::{ContainerContext, visit_containers};
use super::formats::{dns_label, dns_subdomain, ip_address, label_key};
use super::rules::Rule::{
    Check, Empty, Fields, Follows, FollowsIfNotEmpty, FollowsIfSet, RequiredOneOf, Within,
};
use super::rules::Rules;
use super::{
    containers, dns, env, metadata, operating_system, ports, resource_claims, resources,
    scheduling, security_context, volumes,
};

const HOST_ALIAS: Rules = &[("ip", Follows(ip_address)), ("hostnames[*]", Follows(dns_subdomain))];

/// Validates `spec.template.spec`, in upstream's order.
pub(super) fn check(pod: &At<'_>) {
    check_containers(pod);
    ports::check_host_network(pod);
    pod.check_fields(&[
        ("restartPolicy", RequiredOneOf(&["Always", "OnFailure", "Never"])),
        (
            "dnsPolicy",
            RequiredOneOf(&["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]),
        ),
        ("nodeSelector", Check(metadata::labels)),
    ]);
    security_context::check_pod(pod);
    pod.check_fields(&[("affinity", Check(scheduling::check_affinity))]);
    dns::check_config(pod);
    pod.check_fields(&[
        ("readinessGates[*].conditionType", Follows(label_key)),
        ("schedulingGates", Check(check_scheduling_gates)),
        ("topologySpreadConstraints", Check(scheduling::check_spread)),
    ]);
    operating_system::check_host_process(pod);
    check_host_users(pod);
    dns::check_hostname_override(pod);
    pod.check_fields(&[
        ("serviceAccountName", FollowsIfNotEmpty(dns_subdomain)),
        ("nodeName", FollowsIfNotEmpty(dns_subdomain)),
        ("activeDeadlineSeconds", Within(1, i32::MAX)),
        ("hostname", FollowsIfNotEmpty(dns_label)),
        ("subdomain", FollowsIfNotEmpty(dns_label)),
        ("tolerations[*]", Check(scheduling::check_toleration)),
        ("hostAliases[*]", Fields(HOST_ALIAS)),
        ("priorityClassName", FollowsIfNotEmpty(dns_subdomain)),
        ("runtimeClassName", FollowsIfSet(dns_subdomain)),
        (
            "preemptionPolicy",
            Check(|policy| policy.check(RequiredOneOf(&["PreemptLowerPriority", "Never"]))),
        ),
        ("overhead", Check(check_overhead)),
    ]);
    operating_system::check(pod);
    env::check_file_volumes(pod);
}

fn check_containers(pod: &At<'_>) {
    let volumes = volumes::check(&pod.get("volumes"));
    let claims = resource_claims::check(&pod.get("resourceClaims"));
    let context = ContainerContext {
        volumes,
        claims,
        grace_period: pod.find("terminationGracePeriodSeconds").map(|seconds| seconds.int()),
        host_users: has_host_users(pod),
        restart_policy: pod.get("restartPolicy").text(),
    };
    containers::check(pod, &context);
    resources::check_pod(pod, &context.claims);
}

/// The value of `hostUsers`, which defaults to true.
fn has_host_users(pod: &At<'_>) -> bool {
    pod.find("hostUsers").is_none_or(|host_users| host_users.is_true())
}

/// Validates `schedulingGates`; errors are reported without the field.
fn check_scheduling_gates(gates: &At<'_>) {
    let mut all_names = BTreeSet::new();
    for gate in gates.items() {
        let name = gate.get("name").reported_at(gate.path());
        name.check(Follows(label_key));
        name.unique_in(&mut all_names);
    }
}

/// Validates that `hostUsers: false` is not combined with the node's other namespaces. Two of them
/// are reported in upper case.
fn check_host_users(pod: &At<'_>) {
    if has_host_users(pod) {
        return;
    }
    let why = "when `hostUsers` is false";
    for (field, spelled) in
        [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")]
    {
        pod.get(field).reported_at(pod.path_of(spelled)).check(Empty(why));
    }
    for container in visit_containers(pod) {
        container.get("volumeDevices").check(Empty(why));
    }
}

/// Validates `overhead`, with the rules for a container's limits.
fn check_overhead(overhead: &At<'_>) {
    let limits = serde_json::json!({ "limits": overhead.json() });
    resources::check_container(&overhead.with_value(&limits), &BTreeSet::new());
}
