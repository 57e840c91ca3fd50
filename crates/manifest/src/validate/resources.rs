//! Requests and limits of containers and of the pod as a whole (upstream:
//! `validateResourceRequirements`, `validatePodResourceConsistency`).

use std::collections::{BTreeMap, BTreeSet};

use super::amount::{self, Amount};
use super::at::At;
use super::formats::label_key;
use super::go_text::quoted;
use super::resource_claims;

/// Unprefixed resources of the API with any amounts; most of them are for quotas only.
const MEASURED: [&str; 11] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "storage",
    "requests.storage",
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

/// Validates `requests`, `limits` and `claims` of a container.
pub(super) fn check_container(resources: &At<'_>, claims_of_pod: &BTreeSet<&str>) {
    check(resources, check_container_name, claims_of_pod);
}

/// Validates `requests`, `limits` and `claims`; `check_name` validates the names of resources.
fn check(resources: &At<'_>, check_name: fn(&str, &At<'_>), claims_of_pod: &BTreeSet<&str>) {
    let (limits, requests) = (resources.get("limits"), resources.get("requests"));
    for (name, limit) in limits.entries() {
        check_name(name, &limit);
        check_amount(name, &limit);
        check_hugepages(name, &limit);
    }
    for (name, request) in requests.entries() {
        check_name(name, &request);
        check_amount(name, &request);
        // Reported without the key.
        check_against_limit(name, &request.clone().reported_at(requests.path()), &limits);
        check_hugepages(name, &request);
    }
    let mut all = limits.entries().chain(requests.entries()).map(|(name, _)| name);
    let has_hugepages = all.clone().any(is_hugepages);
    let is_alone = !all.any(|name| ["cpu", "memory"].contains(&name));
    resources.forbidden_if(has_hugepages && is_alone, "HugePages require cpu or memory");
    resource_claims::check_references(&resources.get("claims"), claims_of_pod);
}

/// Validates the name of a container's resource (upstream: `validateContainerResourceName`).
fn check_container_name(name: &str, amount: &At<'_>) {
    check_standard_name(name, amount);
    let is_known = ["cpu", "memory", "ephemeral-storage"].contains(&name) || is_hugepages(name);
    if name.contains('/') && !is_native(name) && !is_extended(name) {
        amount.invalid_as(quoted(name), "doesn't follow extended resource name standard");
    } else if !name.contains('/') && !is_known {
        amount.invalid_as(quoted(name), "must be a standard resource for containers");
    }
}

/// Validates the name of a pod-level resource (upstream: `validatePodResourceName`).
fn check_pod_name(name: &str, amount: &At<'_>) {
    let before = amount.error_count();
    check_standard_name(name, amount);
    let is_known = ["cpu", "memory"].contains(&name) || is_hugepages(name);
    if amount.error_count() == before && !is_known {
        amount.not_supported_as(quoted(name), &["cpu", "hugepages-", "memory"]);
    }
}

fn check_standard_name(name: &str, amount: &At<'_>) {
    let before = amount.error_count();
    amount.text_follows(name, label_key);
    let is_quota = is_hugepages(name) || name.starts_with("requests.hugepages-");
    let is_standard = is_quota || MEASURED.contains(&name) || COUNTED.contains(&name);
    if amount.error_count() == before && !name.contains('/') && !is_standard {
        amount.invalid_as(quoted(name), "must be a standard resource type or fully qualified");
    }
}

fn is_hugepages(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// `true` for resources of Kubernetes itself, by name or by prefix.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// `true` for extended resources, such as a GPU; a quota must be able to name it.
fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && label_key(&format!("requests.{name}")).is_empty()
}

/// Validates that the amount is not negative, and an integer where required (upstream:
/// `ValidateResourceQuantityValue`).
fn check_amount(name: &str, amount: &At<'_>) {
    let value = amount::read(amount);
    amount.invalid_if(value.is_negative(), "must be greater than or equal to 0");
    let is_counted = COUNTED.contains(&name) || is_extended(name);
    amount.invalid_if(is_counted && !value.is_whole(), "must be an integer");
}

/// Validates a request against its limit.
fn check_against_limit(name: &str, request: &At<'_>, limits: &At<'_>) {
    let limit = limits.get(name);
    // A node may promise more of the resource than it has.
    let can_be_overcommitted = is_native(name) && !is_hugepages(name);
    if !limit.is_set() {
        let why = "Limit must be set for non overcommitable resources";
        return limits.required_if(!can_be_overcommitted, why);
    }
    let (wanted, allowed) = (amount::read(request), amount::read(&limit));
    let rule = if wanted != allowed && !can_be_overcommitted {
        "equal to"
    } else if wanted > allowed {
        "less than or equal to"
    } else {
        return;
    };
    request.invalid(&format!("must be {rule} {name} limit of {}", limit.text()));
}

/// Validates that the amount is a multiple of the page size.
fn check_hugepages(name: &str, amount: &At<'_>) {
    let Some(size) = name.strip_prefix("hugepages-") else { return };
    let divides = Amount::parse(size).is_some_and(|size| amount::read(amount).is_multiple_of(size));
    let why = format!("{} is not positive integer multiple of {name}", amount.text());
    amount.invalid_if(!divides, &why);
}

/// Validates pod-level `resources` (upstream: `validatePodResources`).
pub(super) fn check_pod(pod: &At<'_>, claims: &BTreeSet<&str>) {
    let Some(resources) = pod.find("resources") else { return };
    if pod.nested("os.name").text() == "windows" {
        return resources.forbidden("may not be set for a windows pod");
    }
    let own = resources.get("claims");
    own.forbidden_if(own.is_set(), "claims may not be set for Resources at pod-level");
    check(&resources, check_pod_name, claims);
    check_sums(pod, &resources, "requests", |_any| true);
    check_sums(pod, &resources, "limits", is_hugepages);
    check_container_limits(pod, &resources);
}

/// Validates that the containers together do not request more of a resource than the pod.
fn check_sums(pod: &At<'_>, resources: &At<'_>, kind: &str, is_compared: fn(&str) -> bool) {
    for (name, sum) in sums(pod, kind) {
        let of_pod = resources.get(kind).entry(name);
        let is_less = of_pod.is_set() && sum > amount::read(&of_pod);
        let why = format!("must be greater than or equal to aggregate container {kind} of {sum}");
        of_pod.invalid_if(is_less && is_compared(name), &why);
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
fn check_container_limits(pod: &At<'_>, resources: &At<'_>) {
    let of_pod = resources.get("limits");
    for (i, container) in pod.get("containers").items().enumerate() {
        for (name, limit) in container.nested("resources.limits").entries() {
            let allowed = of_pod.get(name);
            let is_more = allowed.is_set() && amount::read(&limit) > amount::read(&allowed);
            let path = format!("{}.containers[{i}][{name}].limits", resources.path());
            let why = format!("must be less than or equal to pod limits of {}", allowed.text());
            limit.reported_at(path).invalid_if(is_more, &why);
        }
    }
}
