//! Requests and limits of containers and of the pod as a whole (upstream:
//! `validateResourceRequirements`, `validatePodResourceConsistency`).

use std::collections::{BTreeMap, BTreeSet};

use super::amount::{self, Amount};
use super::at::{At, Errors};
use super::go_text::quoted;
use super::{names, resource_claims};

/// Unprefixed resources of the API; most of them are for quotas only.
const STANDARD: [&str; 20] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];

/// Unprefixed resources with integer amounts.
const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// Validates `requests`, `limits` and `claims`; `check_name` validates the names of resources.
pub(super) fn check(
    resources: &At<'_>,
    check_name: fn(&str, &At<'_>, &mut Errors),
    claims_of_pod: &BTreeSet<&str>,
    errors: &mut Errors,
) {
    let (limits, requests) = (resources.get("limits"), resources.get("requests"));
    for (name, limit) in limits.entries() {
        check_name(name, &limit, errors);
        check_amount(name, &limit, errors);
        check_hugepages(name, &limit, errors);
    }
    for (name, request) in requests.entries() {
        check_name(name, &request, errors);
        check_amount(name, &request, errors);
        check_against_limit(name, &request, &limits, requests.path(), errors);
        check_hugepages(name, &request, errors);
    }
    let mut all = limits.entries().chain(requests.entries()).map(|(name, _)| name);
    let has_hugepages = all.clone().any(is_hugepages);
    if has_hugepages && !all.any(|name| ["cpu", "memory"].contains(&name)) {
        errors.push(resources.forbidden("HugePages require cpu or memory"));
    }
    resource_claims::check_references(&resources.get("claims"), claims_of_pod, errors);
}

/// Validates the name of a container's resource (upstream: `validateContainerResourceName`).
pub(super) fn check_container_name(name: &str, amount: &At<'_>, errors: &mut Errors) {
    check_standard_name(name, amount, errors);
    let (is_fine, why) = if name.contains('/') {
        let is_fine = is_native(name) || is_extended(name);
        (is_fine, "doesn't follow extended resource name standard")
    } else {
        let known = ["cpu", "memory", "ephemeral-storage"].contains(&name) || is_hugepages(name);
        (known, "must be a standard resource for containers")
    };
    if !is_fine {
        errors.push(amount.invalid_as(quoted(name), why));
    }
}

/// Validates the name of a pod-level resource (upstream: `validatePodResourceName`).
fn check_pod_name(name: &str, amount: &At<'_>, errors: &mut Errors) {
    let before = errors.len();
    check_standard_name(name, amount, errors);
    let known = ["cpu", "memory"].contains(&name) || is_hugepages(name);
    if errors.len() == before && !known {
        errors.push(amount.not_supported_as(quoted(name), &["cpu", "hugepages-", "memory"]));
    }
}

fn check_standard_name(name: &str, amount: &At<'_>, errors: &mut Errors) {
    let mut complaints = names::label_key(name);
    let is_standard = STANDARD.contains(&name) || is_quota_hugepages(name);
    if complaints.is_empty() && !name.contains('/') && !is_standard {
        complaints.push("must be a standard resource type or fully qualified".to_owned());
    }
    errors.extend(complaints.iter().map(|why| amount.invalid_as(quoted(name), why)));
}

fn is_hugepages(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn is_quota_hugepages(name: &str) -> bool {
    is_hugepages(name) || name.starts_with("requests.hugepages-")
}

/// `true` for resources of Kubernetes itself, by name or by prefix.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// `true` for extended resources, such as a GPU; a quota must be able to name it.
fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::label_key(&format!("requests.{name}")).is_empty()
}

/// `true` if a node may promise more of the resource than it has.
fn can_be_overcommitted(name: &str) -> bool {
    is_native(name) && !is_hugepages(name)
}

/// Validates that the amount is not negative, and an integer where required (upstream:
/// `ValidateResourceQuantityValue`).
fn check_amount(name: &str, amount: &At<'_>, errors: &mut Errors) {
    let value = amount::read(amount);
    if value.is_negative() {
        errors.push(amount.invalid("must be greater than or equal to 0"));
    }
    if (COUNTED.contains(&name) || is_extended(name)) && !value.is_whole() {
        errors.push(amount.invalid("must be an integer"));
    }
}

/// Validates a request against its limit; the error is reported at `requests`, without the key.
fn check_against_limit(
    name: &str,
    request: &At<'_>,
    limits: &At<'_>,
    requests: &str,
    errors: &mut Errors,
) {
    let limit = limits.get(name);
    let overcommits = can_be_overcommitted(name);
    if !limit.is_set() {
        if !overcommits {
            errors.push(limits.required("Limit must be set for non overcommitable resources"));
        }
        return;
    }
    let (wanted, allowed) = (amount::read(request), amount::read(&limit));
    let rule = if wanted != allowed && !overcommits {
        "equal to"
    } else if wanted > allowed {
        "less than or equal to"
    } else {
        return;
    };
    let why = format!("must be {rule} {name} limit of {}", limit.text());
    errors.push(request.clone().reported_at(requests).invalid(&why));
}

/// Validates that the amount is a multiple of the page size.
fn check_hugepages(name: &str, amount: &At<'_>, errors: &mut Errors) {
    let Some(size) = name.strip_prefix("hugepages-") else { return };
    let divides = Amount::parse(size).is_some_and(|size| amount::read(amount).is_multiple_of(size));
    if !divides {
        let why = format!("{} is not positive integer multiple of {name}", amount.text());
        errors.push(amount.invalid(&why));
    }
}

/// Validates pod-level `resources` (upstream: `validatePodResources`).
pub(super) fn check_pod(pod: &At<'_>, claims: &BTreeSet<&str>, errors: &mut Errors) {
    let Some(resources) = pod.find("resources") else { return };
    if pod.get("os").get("name").text() == "windows" {
        errors.push(resources.forbidden("may not be set for a windows pod"));
        return;
    }
    if let Some(own) = resources.find("claims") {
        errors.push(own.forbidden("claims may not be set for Resources at pod-level"));
    }
    check(&resources, check_pod_name, claims, errors);
    check_sums(pod, &resources, errors);
    check_container_limits(pod, &resources, errors);
}

/// Validates that the containers together do not request more than the pod.
fn check_sums(pod: &At<'_>, resources: &At<'_>, errors: &mut Errors) {
    for (kind, is_compared) in
        [("requests", (|_| true) as fn(&str) -> bool), ("limits", is_hugepages)]
    {
        let of_pod = resources.get(kind);
        for (name, sum) in sums(pod, kind) {
            let amount = of_pod.get(name).reported_at(format!("{}[{name}]", of_pod.path()));
            if is_compared(name) && amount.is_set() && sum > amount::read(&amount) {
                let why =
                    format!("must be greater than or equal to aggregate container {kind} of {sum}");
                errors.push(amount.invalid(&why));
            }
        }
    }
}

type Amounts<'a> = BTreeMap<&'a str, Amount>;

/// The maximum total of the containers at any time: all of them at once, or one init container plus
/// the sidecars that started before it (upstream: `AggregateContainerRequests`).
fn sums<'a>(pod: &At<'a>, kind: &str) -> Amounts<'a> {
    let mut running = Amounts::new();
    for container in pod.get("containers").items() {
        add(&mut running, &amounts(&container, kind));
    }
    let (mut sidecars, mut starting) = (Amounts::new(), Amounts::new());
    for container in pod.get("initContainers").items() {
        let own = amounts(&container, kind);
        if container.get("restartPolicy").text() == "Always" {
            add(&mut running, &own);
            add(&mut sidecars, &own);
            raise(&mut starting, &sidecars);
        } else {
            let mut beside_sidecars = own;
            add(&mut beside_sidecars, &sidecars);
            raise(&mut starting, &beside_sidecars);
        }
    }
    raise(&mut running, &starting);
    running
}

fn amounts<'a>(container: &At<'a>, kind: &str) -> Amounts<'a> {
    let amounts = container.get("resources").get(kind);
    amounts.entries().map(|(name, amount)| (name, amount::read(&amount))).collect()
}

fn add<'a>(to: &mut Amounts<'a>, more: &Amounts<'a>) {
    for (name, amount) in more {
        let sum = to.get(name).map_or_else(|| *amount, |before| before.plus(*amount));
        to.insert(name, sum);
    }
}

fn raise<'a>(to: &mut Amounts<'a>, others: &Amounts<'a>) {
    for (name, amount) in others {
        if to.get(name).is_none_or(|before| amount > before) {
            to.insert(name, *amount);
        }
    }
}

/// Validates container limits against the pod's; upstream reports a path that does not exist.
fn check_container_limits(pod: &At<'_>, resources: &At<'_>, errors: &mut Errors) {
    let of_pod = resources.get("limits");
    for (i, container) in pod.get("containers").items().enumerate() {
        for (name, limit) in container.get("resources").get("limits").entries() {
            let allowed = of_pod.get(name);
            if allowed.is_set() && amount::read(&limit) > amount::read(&allowed) {
                let path = format!("{}.containers[{i}][{name}].limits", resources.path());
                let why = format!("must be less than or equal to pod limits of {}", allowed.text());
                errors.push(limit.reported_at(path).invalid(&why));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::table;

    #[test]
    fn rules() {
        table::check(include_str!("resources.yaml"));
    }
}
