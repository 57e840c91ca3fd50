//! Containers, init containers and ephemeral containers: required fields, and fields that only some
//! of them may have (upstream: `validateContainers`, `validateInitContainers`,
//! `validateEphemeralContainers`).

use std::collections::BTreeSet;

use super::at::{At, Errors};
use super::security_context;
use super::volumes::Volumes;
use super::{env, mounts, names, ports, probes, resources, restart_rules};

/// Values of `imagePullPolicy`.
pub(super) const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];

/// The parts of the pod that the rules of a container depend on.
pub(super) struct Surroundings<'a> {
    /// The volumes without errors.
    pub(super) volumes: Volumes<'a>,
    /// The names of the pod's resource claims.
    pub(super) claims: BTreeSet<&'a str>,
    /// The pod's `terminationGracePeriodSeconds`.
    pub(super) grace_period: Option<i64>,
    /// `true` if root in the container is root on the node (`hostUsers`).
    pub(super) host_users: bool,
    /// The pod's `restartPolicy`.
    pub(super) restart_policy: &'a str,
}

/// Every container of the pod in the order in which upstream visits them.
pub(super) fn visit_all<'a>(pod: &At<'a>) -> Vec<At<'a>> {
    let kinds = ["initContainers", "containers", "ephemeralContainers"];
    kinds.iter().flat_map(|kind| pod.get(kind).items()).collect()
}

/// Validates `containers`, `initContainers` and `ephemeralContainers`, in this order.
pub(super) fn check(pod: &At<'_>, around: &Surroundings<'_>, errors: &mut Errors) {
    check_regular(&pod.get("containers"), around, errors);
    check_init(pod, around, errors);
    check_ephemeral(pod, around, errors);
}

fn check_regular(containers: &At<'_>, around: &Surroundings<'_>, errors: &mut Errors) {
    containers.not_empty(errors);
    let mut taken = BTreeSet::new();
    for container in containers.items() {
        check_common(&container, around, errors);
        if !taken.insert(container.get("name").text()) {
            errors.push(container.get("name").duplicate());
        }
        probes::check_lifecycle(&container, around, errors);
        probes::check(&container, around, errors);
        restart_rules::check(&container, errors);
    }
    let containers: Vec<_> = containers.items().collect();
    ports::check_host_ports(&containers, errors);
}

fn check_init(pod: &At<'_>, around: &Surroundings<'_>, errors: &mut Errors) {
    let mut taken: BTreeSet<&str> = names_of(&pod.get("containers"));
    let containers = pod.get("initContainers");
    for container in containers.items() {
        let is_sidecar = container.get("restartPolicy").text() == "Always";
        check_common(&container, around, errors);
        restart_rules::check_init(&container, errors);
        let name = container.get("name");
        if taken.contains(name.text()) {
            errors.push(name.duplicate());
        } else if !name.is_empty() {
            taken.insert(name.text());
        }
        // Init containers run one after the other, so they do not share ports; upstream reports all
        // of them as the first container's.
        let first = container.clone().reported_at(format!("{}[0]", containers.path()));
        ports::check_host_ports(&[first], errors);
        if is_sidecar {
            probes::check_lifecycle(&container, around, errors);
            probes::check(&container, around, errors);
        } else {
            check_runs_once(&container, errors);
        }
    }
}

/// Rejects fields that are valid only for containers that keep running, such as probes.
fn check_runs_once(container: &At<'_>, errors: &mut Errors) {
    for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(field) = container.find(field) {
            let why = "may not be set for init containers without restartPolicy=Always";
            errors.push(field.forbidden(why));
        }
    }
    for policy in container.get("resizePolicy").items() {
        let restart = policy.get("restartPolicy");
        if restart.text() == "RestartContainer" {
            let why = "must not be set to 'RestartContainer' for non-sidecar initContainers";
            errors.push(restart.invalid_json(why));
        }
    }
}

/// Validates ephemeral containers; a template may not have any, but upstream reports their errors
/// too.
fn check_ephemeral(pod: &At<'_>, around: &Surroundings<'_>, errors: &mut Errors) {
    let others = names_of(&pod.get("containers"));
    let others: BTreeSet<&str> =
        others.union(&names_of(&pod.get("initContainers"))).copied().collect();
    let mut taken = others.clone();
    for container in pod.get("ephemeralContainers").items() {
        check_common(&container, around, errors);
        let (name, target) = (container.get("name"), container.get("targetContainerName"));
        if container.get("image").text().trim() != container.get("image").text() {
            let why = "must not have leading or trailing whitespace";
            errors.push(container.get("image").invalid(why));
        }
        if !taken.insert(name.text()) {
            errors.push(name.duplicate());
        }
        if !target.is_empty() && !others.contains(target.text()) {
            errors.push(target.not_found());
        }
        check_only_for_debugging(&container, errors);
    }
}

fn check_only_for_debugging(container: &At<'_>, errors: &mut Errors) {
    let why = "cannot be set for an Ephemeral Container";
    for field in ["ports", "resources", "resizePolicy"] {
        if !container.get(field).is_empty() {
            errors.push(container.get(field).forbidden(why));
        }
    }
    for field in [
        "restartPolicy",
        "restartPolicyRules",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "lifecycle",
    ] {
        if let Some(field) = container.find(field) {
            errors.push(field.forbidden(why));
        }
    }
    for mount in container.get("volumeMounts").items() {
        for field in ["subPath", "subPathExpr"] {
            if !mount.get(field).is_empty() {
                errors.push(mount.get(field).forbidden(why));
            }
        }
    }
}

fn names_of<'a>(containers: &At<'a>) -> BTreeSet<&'a str> {
    containers.items().map(|container| container.get("name").text()).collect()
}

/// Validates fields of all types of containers (upstream: `validateContainerCommon`).
fn check_common(container: &At<'_>, around: &Surroundings<'_>, errors: &mut Errors) {
    container.get("name").required_and_follows(names::dns_label, errors);
    container.get("image").not_empty(errors);
    let policies = ["File", "FallbackToLogsOnError"];
    container.get("terminationMessagePolicy").required_one_of(&policies, errors);
    ports::check(&container.get("ports"), errors);
    env::check(&container.get("env"), errors);
    env::check_from(&container.get("envFrom"), errors);
    mounts::check(container, &around.volumes, errors);
    mounts::check_devices(container, &around.volumes, errors);
    container.get("imagePullPolicy").required_one_of(&PULL_POLICIES, errors);
    let resources = container.get("resources");
    resources::check(&resources, resources::check_container_name, &around.claims, errors);
    check_resize_policy(&container.get("resizePolicy"), around.restart_policy, errors);
    security_context::check(&container.get("securityContext"), around.host_users, errors);
}

/// Validates `resizePolicy`; only duplicates are reported with an index.
fn check_resize_policy(policies: &At<'_>, pod_restart_policy: &str, errors: &mut Errors) {
    let mut taken = BTreeSet::new();
    for policy in policies.items() {
        let resource = policy.get("resourceName").reported_at(policies.path());
        if !taken.insert(resource.text()) {
            errors.push(resource.clone().reported_at(policy.path()).duplicate());
        }
        resource.required_one_of(&["cpu", "memory"], errors);
        let restart = policy.get("restartPolicy").reported_at(policies.path());
        restart.required_one_of(&["NotRequired", "RestartContainer"], errors);
        if pod_restart_policy == "Never" && restart.text() != "NotRequired" {
            let why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.push(restart.invalid_json(why));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::table;

    #[test]
    fn rules() {
        table::check(include_str!("containers.yaml"));
    }
}
