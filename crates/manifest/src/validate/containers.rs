//! Containers, init containers and ephemeral containers: required fields, and fields that only some
//! of them may have (upstream: `validateContainers`, `validateInitContainers`,
//! `validateEphemeralContainers`).

use std::collections::BTreeSet;

use super::at::At;
use super::context::{ContainerContext, PULL_POLICIES};
use super::formats::dns_label;
use super::rules::Rule::{
    Check, Empty, Fields, Forbidden, OneOf, OneOfIfSet, Required, RequiredFollows, RequiredOneOf,
};
use super::rules::Rules;
use super::{env, mounts, ports, probes, resources, security_context};

const MAX_RULES: usize = 20;
const MAX_EXIT_CODES: usize = 255;
const NEEDS_POLICY: &str = "must specify restartPolicy when restart rules are used";

const EXIT_CODES: Rules = &[
    ("operator", OneOf(&["In", "NotIn"])),
    ("values", Check(|values| values.too_many_if_over(MAX_EXIT_CODES))),
];

const NOT_EPHEMERAL: &str = "cannot be set for an Ephemeral Container";

/// Fields that an ephemeral container may not have.
const ONLY_FOR_DEBUGGING: Rules = &[
    ("ports", Empty(NOT_EPHEMERAL)),
    ("resources", Empty(NOT_EPHEMERAL)),
    ("resizePolicy", Empty(NOT_EPHEMERAL)),
    ("restartPolicy", Forbidden(NOT_EPHEMERAL)),
    ("restartPolicyRules", Forbidden(NOT_EPHEMERAL)),
    ("livenessProbe", Forbidden(NOT_EPHEMERAL)),
    ("readinessProbe", Forbidden(NOT_EPHEMERAL)),
    ("startupProbe", Forbidden(NOT_EPHEMERAL)),
    ("lifecycle", Forbidden(NOT_EPHEMERAL)),
    ("volumeMounts[*]", Fields(MOUNT_FOR_DEBUGGING)),
];

const MOUNT_FOR_DEBUGGING: Rules =
    &[("subPath", Empty(NOT_EPHEMERAL)), ("subPathExpr", Empty(NOT_EPHEMERAL))];

/// Validates `containers`, `initContainers` and `ephemeralContainers`, in this order.
pub(super) fn check(pod: &At<'_>, context: &ContainerContext<'_>) {
    check_regular(&pod.get("containers"), context);
    check_init(pod, context);
    check_ephemeral(pod, context);
}

fn check_regular(containers: &At<'_>, context: &ContainerContext<'_>) {
    containers.check(Required);
    let mut all_names = BTreeSet::new();
    for container in containers.items() {
        check_common(&container, context);
        container.get("name").unique_in(&mut all_names);
        probes::check(&container, context);
        check_restart_policy(&container);
    }
    ports::check_host_ports(containers.items());
}

fn check_init(pod: &At<'_>, context: &ContainerContext<'_>) {
    let mut all_names = names_of(&pod.get("containers"));
    let containers = pod.get("initContainers");
    for container in containers.items() {
        check_common(&container, context);
        let policy = container.get("restartPolicy");
        if policy.is_set() {
            check_restart_policy(&container);
        } else {
            policy.required_if(!container.get("restartPolicyRules").is_empty(), NEEDS_POLICY);
        }
        let name = container.get("name");
        if all_names.contains(name.text()) {
            name.duplicate();
        } else if !name.is_empty() {
            all_names.insert(name.text());
        }
        // Init containers run one after the other, so they do not share ports; upstream reports all
        // of them as the first container's.
        let first = container.clone().reported_at(format!("{}[0]", containers.path()));
        ports::check_host_ports(std::iter::once(first));
        if policy.text() == "Always" {
            probes::check(&container, context);
        } else {
            check_runs_once(&container);
        }
    }
}

/// Rejects fields that are valid only for containers that keep running, such as probes.
fn check_runs_once(container: &At<'_>) {
    let why = "may not be set for init containers without restartPolicy=Always";
    container.check_fields(&[
        ("lifecycle", Forbidden(why)),
        ("livenessProbe", Forbidden(why)),
        ("readinessProbe", Forbidden(why)),
        ("startupProbe", Forbidden(why)),
    ]);
    for restart in container.each("resizePolicy[*].restartPolicy") {
        let why = "must not be set to 'RestartContainer' for non-sidecar initContainers";
        restart.invalid_json_if(restart.text() == "RestartContainer", why);
    }
}

/// Validates ephemeral containers; a template may not have any, but upstream reports their errors
/// too.
fn check_ephemeral(pod: &At<'_>, context: &ContainerContext<'_>) {
    let mut others = names_of(&pod.get("containers"));
    others.extend(names_of(&pod.get("initContainers")));
    let mut all_names = others.clone();
    for container in pod.get("ephemeralContainers").items() {
        check_common(&container, context);
        let (image, target) = (container.get("image"), container.get("targetContainerName"));
        let is_padded = image.text().trim() != image.text();
        image.invalid_if(is_padded, "must not have leading or trailing whitespace");
        container.get("name").unique_in(&mut all_names);
        if !target.is_empty() && !others.contains(target.text()) {
            target.not_found();
        }
        container.check_fields(ONLY_FOR_DEBUGGING);
    }
}

fn names_of<'a>(containers: &At<'a>) -> BTreeSet<&'a str> {
    containers.items().map(|container| container.get("name").text()).collect()
}

/// Validates fields of all types of containers (upstream: `validateContainerCommon`).
fn check_common(container: &At<'_>, context: &ContainerContext<'_>) {
    container.check_fields(&[
        ("name", RequiredFollows(dns_label)),
        ("image", Required),
        ("terminationMessagePolicy", RequiredOneOf(&["File", "FallbackToLogsOnError"])),
        ("ports", Check(ports::check)),
        ("env", Check(env::check)),
        ("envFrom", Check(env::check_from)),
    ]);
    mounts::check(container, &context.volumes);
    mounts::check_devices(container, &context.volumes);
    container.get("imagePullPolicy").check(RequiredOneOf(PULL_POLICIES));
    resources::check_container(&container.get("resources"), &context.claims);
    check_resize_policy(&container.get("resizePolicy"), context.restart_policy);
    security_context::check(&container.get("securityContext"), context.host_users);
}

/// Validates `resizePolicy`; only duplicates are reported with an index.
fn check_resize_policy(policies: &At<'_>, pod_restart_policy: &str) {
    let mut all_resources = BTreeSet::new();
    for policy in policies.items() {
        policy.get("resourceName").reported_at(policy.path()).unique_in(&mut all_resources);
        let [resource, restart] = ["resourceName", "restartPolicy"]
            .map(|field| policy.get(field).reported_at(policies.path()));
        resource.check(RequiredOneOf(&["cpu", "memory"]));
        restart.check(RequiredOneOf(&["NotRequired", "RestartContainer"]));
        let restarts = pod_restart_policy == "Never" && restart.text() != "NotRequired";
        let why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
        restart.invalid_json_if(restarts, why);
    }
}

/// Validates `restartPolicy` and `restartPolicyRules` (upstream:
/// `validateContainerRestartPolicy`).
fn check_restart_policy(container: &At<'_>) {
    let (policy, rules) = (container.get("restartPolicy"), container.get("restartPolicyRules"));
    policy.check(OneOfIfSet(&["Always", "Never", "OnFailure"]));
    policy.required_if(!rules.is_empty() && !policy.is_set(), NEEDS_POLICY);
    rules.too_many_if_over(MAX_RULES);
    for rule in rules.items() {
        rule.get("action").check(OneOf(&["Restart", "RestartAllContainers"]));
        let codes = rule.get("exitCodes");
        codes.required_if(!codes.is_set(), "must be specified");
        codes.check(Fields(EXIT_CODES));
    }
}
