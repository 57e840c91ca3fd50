//! Warnings of the API server about accepted objects (upstream: `GetWarningsForPodTemplate`), and of
//! `ds-plan` about volumes that it does not validate.
//!
//! Not here: duplicate variables, which `validate` rejects, and overlapping files of one volume.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde_json::Value;

use super::amount;
use super::annotations::{APP_ARMOR_CONTAINER, SECCOMP_CONTAINER, SECCOMP_POD};
use super::at::{At, Reports};
use super::context::visit_containers;
use super::formats::label_value;
use super::go_text::quoted;
use super::scheduling::{PREFERRED_TERMS, REQUIRED, REQUIRED_TERMS};
use super::volumes::unchecked_sources;
use crate::warning::FieldWarning;

/// Resources whose amounts must be integers.
const IN_BYTES: [&str; 2] = ["memory", "ephemeral-storage"];

/// Deprecated labels of nodes, the version since when, and their replacements.
const DEPRECATED_LABELS: [(&str, &str, &str); 8] = [
    ("beta.kubernetes.io/arch", "v1.14", "\"kubernetes.io/arch\""),
    ("beta.kubernetes.io/os", "v1.14", "\"kubernetes.io/os\""),
    ("failure-domain.beta.kubernetes.io/region", "v1.17", "\"topology.kubernetes.io/region\""),
    ("failure-domain.beta.kubernetes.io/zone", "v1.17", "\"topology.kubernetes.io/zone\""),
    ("beta.kubernetes.io/instance-type", "v1.17", "\"node.kubernetes.io/instance-type\""),
    ("app.kubernetes.io/created-by", "v1.9", ""),
    ("scheduler.alpha.kubernetes.io/preferAvoidPods", "v1.22", "Taints and Tolerations"),
    ("node-role.kubernetes.io/master", "", "\"node-role.kubernetes.io/control-plane\""),
];

/// Annotations of pods without effect, the version since when, and the fields that replace them.
const DEAD_ANNOTATIONS: [(&str, &str, &str); 3] = [
    ("scheduler.alpha.kubernetes.io/critical-pod", "v1.16", "priorityClassName"),
    ("security.alpha.kubernetes.io/sysctls", "v1.11", "sysctls"),
    ("security.alpha.kubernetes.io/unsafe-sysctls", "v1.11", "sysctls"),
];

/// Volume sources without effect.
const DEAD_VOLUMES: [(&str, &str); 9] = [
    ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// The warnings of the API server on creating this DaemonSet, which must be valid and defaulted.
pub fn warnings(daemon_set: &Value) -> Vec<FieldWarning> {
    let reports = Reports::default();
    let template = At::root(daemon_set, &reports).nested("spec.template");
    let (pod, annotations) = (template.get("spec"), template.nested("metadata.annotations"));
    node_labels(&pod);
    for constraint in pod.get("topologySpreadConstraints").items() {
        old_label(&constraint.get("topologyKey"));
        selects_nothing(&constraint);
    }
    for (key, version, field) in DEAD_ANNOTATIONS {
        dead_annotation(&annotations.entry(key), version, field);
    }
    volumes(&pod.get("volumes"));
    unique_lists(&pod);
    for name in IN_BYTES {
        whole(&pod.get("overhead").entry(name));
    }
    profiles_and_bytes(&pod, &annotations);
    let ports: Vec<At<'_>> = visit_containers(&pod)
        .iter()
        .flat_map(|container| container.get("ports").items())
        .collect();
    host_ports(&ports);
    port_names(&ports);
    let grace = pod.get("terminationGracePeriodSeconds");
    if grace.int() < 0 {
        grace.warn("must be >= 0; negative values are invalid and will be treated as 1");
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let kind = pod.get("affinity").get(kind);
        kind.each(REQUIRED_TERMS).iter().for_each(selects_nothing);
        for preferred in kind.each(PREFERRED_TERMS) {
            selects_nothing(&preferred.get("podAffinityTerm"));
        }
    }
    addresses(&pod);
    reports.warnings.into_inner()
}

/// The warnings of `ds-plan`: volumes whose fields `validate` leaves to the API server.
pub fn unchecked_volumes(daemon_set: &Value) -> Vec<FieldWarning> {
    let reports = Reports::default();
    let volumes = At::root(daemon_set, &reports).nested("spec.template.spec.volumes");
    for source in volumes.items().flat_map(|volume| unchecked_sources(&volume)) {
        source.warn("ds-plan does not check the fields of this volume; the API server does");
    }
    reports.warnings.into_inner()
}

fn deprecated_label(key: &str) -> Option<String> {
    let known = DEPRECATED_LABELS.iter().find(|(label, ..)| *label == key)?;
    Some(match known {
        (_, since, "") => format!("deprecated since {since}"),
        (_, "", replacement) => format!("use {replacement} instead"),
        (_, since, replacement) => format!("deprecated since {since}; use {replacement} instead"),
    })
}

fn dead_annotation(annotation: &At<'_>, version: &str, field: &str) {
    if annotation.is_set() {
        let why = format!("non-functional in {version}+; use the \"{field}\" field instead");
        annotation.warn(why);
    }
}

fn node_labels(pod: &At<'_>) {
    for (key, value) in pod.get("nodeSelector").entries() {
        if let Some(why) = deprecated_label(key) {
            value.warn(why);
        }
    }
    let affinity = pod.nested("affinity.nodeAffinity");
    let required = affinity.get(REQUIRED);
    required.each("nodeSelectorTerms[*].matchExpressions[*].key").iter().for_each(old_label);
    for preferred in affinity.each(PREFERRED_TERMS) {
        preferred.each("preference.matchExpressions[*].key").iter().for_each(old_label);
        for value in preferred.each("preference.matchExpressions[*].values[*]") {
            for why in label_value(value.text()) {
                value.warn(format!("{} is invalid, {why}", value.text()));
            }
        }
    }
}

fn old_label(key: &At<'_>) {
    if let Some(why) = deprecated_label(key.text()) {
        key.warn(format!("{} is {why}", key.text()));
    }
}

fn selects_nothing(term: &At<'_>) {
    let selector = term.get("labelSelector");
    if !selector.is_set() {
        selector.warn("a null labelSelector results in matching no pod");
    }
}

fn volumes(volumes: &At<'_>) {
    for volume in volumes.items() {
        for (field, why) in DEAD_VOLUMES {
            if volume.get(field).is_set() {
                // Upstream misspells one of them.
                volume.get(if field == "storageos" { "storageOS" } else { field }).warn(why);
            }
        }
        let resources = volume.nested("ephemeral.volumeClaimTemplate.spec.resources");
        for kind in ["requests", "limits"] {
            whole(&resources.get(kind).entry("storage"));
        }
    }
}

/// Lists whose keys should be unique but are not validated.
fn unique_lists(pod: &At<'_>) {
    for (list, key) in [("hostAliases", "ip"), ("imagePullSecrets", "name")] {
        let mut all_keys = BTreeSet::new();
        for value in pod.each(&format!("{list}[*].{key}")) {
            if !all_keys.insert(value.text()) {
                value.warn(format!("duplicate {key} {}", quoted(value.text())));
            }
        }
    }
    for name in pod.each("imagePullSecrets[*].name") {
        if name.is_empty() {
            name.warn("invalid empty name \"\"");
        }
    }
}

fn whole(amount: &At<'_>) {
    if !amount::read(amount).is_whole() {
        let value = quoted(amount.text());
        amount.warn(format!("fractional byte value {value} is invalid, must be an integer"));
    }
}

/// Deprecated annotations, and fractional bytes, for each container.
fn profiles_and_bytes(pod: &At<'_>, annotations: &At<'_>) {
    let seccomp = |holder: &At<'_>, annotation: &At<'_>| {
        if !holder.nested("securityContext.seccompProfile").is_set() {
            dead_annotation(annotation, "v1.27", "seccompProfile");
        }
    };
    seccomp(pod, &annotations.entry(SECCOMP_POD));
    for container in visit_containers(pod) {
        let name = container.get("name").text();
        seccomp(&container, &annotations.entry(&format!("{SECCOMP_CONTAINER}{name}")));
        let field = "securityContext.appArmorProfile";
        let app_armor = annotations.entry(&format!("{APP_ARMOR_CONTAINER}{name}"));
        let is_in_field =
            container.nested(field).is_set() || says_same(app_armor.text(), &pod.nested(field));
        if app_armor.is_set() && !is_in_field {
            app_armor.warn("deprecated since v1.30; use the \"appArmorProfile\" field instead");
        }
        for name in IN_BYTES {
            for kind in ["limits", "requests"] {
                whole(&container.get("resources").get(kind).entry(name));
            }
        }
    }
}

/// `true` if a deprecated annotation names the pod's `AppArmor` profile.
fn says_same(annotation: &str, profile: &At<'_>) -> bool {
    let (kind, name) = (profile.get("type").text(), profile.get("localhostProfile").text());
    match (annotation, annotation.strip_prefix("localhost/")) {
        ("unconfined", _) => kind == "Unconfined",
        ("runtime/default", _) => kind == "RuntimeDefault",
        (_, named) => kind == "Localhost" && !name.is_empty() && named == Some(name),
    }
}

/// Number of definitions of the same port that a later one is compared with. Upstream has no limit,
/// and warns about each pair.
const MOST_COMPARED: usize = 3;

fn host_ports(ports: &[At<'_>]) {
    let mut earlier: BTreeMap<(i64, &str), Vec<&At<'_>>> = BTreeMap::new();
    for port in ports {
        if !port.get("hostIP").is_empty() && port.get("hostPort").int() == 0 {
            port.warn(format!("hostIP set without hostPort: {}", go_struct(port)));
        }
        let key = (port.get("containerPort").int(), port.get("protocol").text());
        let same = earlier.entry(key).or_default();
        for other in same.iter() {
            if let Some(kind) = collision(port, other) {
                port.warn(format!("{kind} port definition with {}", other.path()));
            }
        }
        if same.len() < MOST_COMPARED {
            same.push(port);
        }
    }
}

fn port_names(ports: &[At<'_>]) {
    let mut first: BTreeMap<&str, &str> = BTreeMap::new();
    for port in ports.iter().filter(|port| !port.get("name").is_empty()) {
        let name = port.get("name").text();
        let first = *first.entry(name).or_insert(port.path());
        if first != port.path() {
            port.warn(format!(
                "duplicate port name {} with {first}, services and probes that select ports by name \
                 will use {first}",
                quoted(name)
            ));
        }
    }
}

/// The conflict between two definitions of one container port and protocol.
fn collision(port: &At<'_>, other: &At<'_>) -> Option<&'static str> {
    let [ip, other_ip] = [port, other].map(|port| port.get("hostIP").text());
    let [host, other_host] = [port, other].map(|port| port.get("hostPort").int());
    if ip == other_ip && host == other_host {
        Some("duplicate")
    } else if host == 0 || other_host == 0 {
        Some("overlapping")
    } else if host == other_host && ip.is_empty() != other_ip.is_empty() {
        Some("dangerously ambiguous")
    } else {
        None
    }
}

/// The port as Go prints a struct with `%+v`.
fn go_struct(port: &At<'_>) -> String {
    let [name, protocol, ip] = ["name", "protocol", "hostIP"].map(|field| port.get(field).text());
    let [host, number] = ["hostPort", "containerPort"].map(|field| port.get(field).int());
    format!(
        "{{Name:{name} HostPort:{host} ContainerPort:{number} Protocol:{protocol} HostIP:{ip}}}"
    )
}

/// IPv6 addresses that are not in canonical form. Invalid ones are rejected by `validate`.
fn addresses(pod: &At<'_>) {
    let paths = ["dnsConfig.nameservers[*]", "hostAliases[*].ip"];
    for address in paths.iter().flat_map(|path| pod.each(path)) {
        let text = address.text();
        if let Ok(IpAddr::V6(parsed)) = text.parse()
            && parsed.to_string() != text
        {
            let (text, parsed) = (quoted(text), quoted(&parsed.to_string()));
            address.warn(format!(
                "IPv6 address {text} should be in RFC 5952 canonical format ({parsed})"
            ));
        }
    }
}
