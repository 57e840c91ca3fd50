//! Warnings of the API server about accepted objects (upstream: `GetWarningsForPodTemplate`).
//!
//! Not here: duplicate variables, which [`validate`] rejects, and overlapping files of one volume.
//!
//! [`validate`]: super::validate

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

use serde_json::Value;

use super::amount;
use super::annotations::{APP_ARMOR_CONTAINER, SECCOMP_CONTAINER, SECCOMP_POD};
use super::at::At;
use super::containers::visit_all;
use super::go_text::quoted;
use super::names;

/// A field that the API server accepts with a warning. Its `Display` is upstream's text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldWarning {
    /// Path of the field.
    pub path: String,
    /// Text of the warning.
    pub message: String,
}

impl fmt::Display for FieldWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

type Warnings = Vec<FieldWarning>;

/// Resources whose amounts must be integers.
const IN_BYTES: [&str; 2] = ["memory", "ephemeral-storage"];

/// Deprecated labels of nodes, and their replacements.
const DEPRECATED_LABELS: [(&str, &str); 8] = [
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
];

/// Annotations of pods without effect.
const DEAD_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];

/// Volume sources without effect, and upstream's spelling of them in warnings.
const DEAD_VOLUMES: [(&str, &str, &str); 9] = [
    (
        "photonPersistentDisk",
        "photonPersistentDisk",
        "deprecated in v1.11, non-functional in v1.16+",
    ),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// The warnings of the API server on creating this DaemonSet, which must be valid and defaulted.
pub fn warnings(daemon_set: &Value) -> Vec<FieldWarning> {
    let template = At::root(daemon_set).get("spec").get("template");
    let (pod, annotations) = (template.get("spec"), template.get("metadata").get("annotations"));
    let mut warnings = Warnings::new();
    node_labels(&pod, &mut warnings);
    spread(&pod.get("topologySpreadConstraints"), &mut warnings);
    for (key, why) in DEAD_ANNOTATIONS {
        if annotations.get(key).is_set() {
            warn(format!("{}[{key}]", annotations.path()), why, &mut warnings);
        }
    }
    volumes(&pod.get("volumes"), &mut warnings);
    lists(&pod, &mut warnings);
    for name in IN_BYTES {
        whole(&pod.get("overhead"), name, &mut warnings);
    }
    profiles_and_bytes(&pod, &annotations, &mut warnings);
    ports(&pod, &mut warnings);
    let grace = pod.get("terminationGracePeriodSeconds");
    if grace.int() < 0 {
        let why = "must be >= 0; negative values are invalid and will be treated as 1";
        warn(grace.path(), why, &mut warnings);
    }
    pod_affinity(&pod.get("affinity"), &mut warnings);
    addresses(&pod, &mut warnings);
    warnings
}

fn warn(path: impl Into<String>, message: impl Into<String>, warnings: &mut Warnings) {
    warnings.push(FieldWarning { path: path.into(), message: message.into() });
}

fn deprecated_label(key: &str) -> Option<&'static str> {
    DEPRECATED_LABELS.iter().find(|(label, _)| *label == key).map(|(_, why)| *why)
}

fn node_labels(pod: &At<'_>, warnings: &mut Warnings) {
    for (key, value) in pod.get("nodeSelector").entries() {
        if let Some(why) = deprecated_label(key) {
            warn(value.path(), why, warnings);
        }
    }
    let affinity = pod.get("affinity").get("nodeAffinity");
    let required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution");
    for term in required.get("nodeSelectorTerms").items() {
        node_term(&term, warnings);
    }
    for preferred in affinity.get("preferredDuringSchedulingIgnoredDuringExecution").items() {
        let term = preferred.get("preference");
        node_term(&term, warnings);
        for requirement in term.get("matchExpressions").items() {
            for value in requirement.get("values").items() {
                for why in names::label_value(value.text()) {
                    let message = format!("{} is invalid, {why}", value.text());
                    warn(value.path(), message, warnings);
                }
            }
        }
    }
}

fn node_term(term: &At<'_>, warnings: &mut Warnings) {
    for requirement in term.get("matchExpressions").items() {
        old_label(&requirement.get("key"), warnings);
    }
}

fn old_label(key: &At<'_>, warnings: &mut Warnings) {
    if let Some(why) = deprecated_label(key.text()) {
        warn(key.path(), format!("{} is {why}", key.text()), warnings);
    }
}

fn spread(constraints: &At<'_>, warnings: &mut Warnings) {
    for constraint in constraints.items() {
        old_label(&constraint.get("topologyKey"), warnings);
        selects_nothing(&constraint, warnings);
    }
}

fn pod_affinity(affinity: &At<'_>, warnings: &mut Warnings) {
    for kind in ["podAffinity", "podAntiAffinity"] {
        let kind = affinity.get(kind);
        for term in kind.get("requiredDuringSchedulingIgnoredDuringExecution").items() {
            selects_nothing(&term, warnings);
        }
        for preferred in kind.get("preferredDuringSchedulingIgnoredDuringExecution").items() {
            selects_nothing(&preferred.get("podAffinityTerm"), warnings);
        }
    }
}

fn selects_nothing(term: &At<'_>, warnings: &mut Warnings) {
    let selector = term.get("labelSelector");
    if !selector.is_set() {
        warn(selector.path(), "a null labelSelector results in matching no pod", warnings);
    }
}

fn volumes(volumes: &At<'_>, warnings: &mut Warnings) {
    for volume in volumes.items() {
        for (field, spelled, why) in DEAD_VOLUMES {
            if volume.get(field).is_set() {
                warn(volume.path_of(spelled), why, warnings);
            }
        }
        let claim = volume.get("ephemeral").get("volumeClaimTemplate").get("spec");
        for kind in ["requests", "limits"] {
            let storage = claim.get("resources").get(kind);
            whole(&storage, "storage", warnings);
        }
    }
}

/// Lists whose keys should be unique but are not validated.
fn lists(pod: &At<'_>, warnings: &mut Warnings) {
    for (list, key) in [("hostAliases", "ip"), ("imagePullSecrets", "name")] {
        let mut taken = BTreeSet::new();
        for key_of_item in pod.get(list).items().map(|item| item.get(key)) {
            let text = key_of_item.text();
            if !taken.insert(text) {
                let message = format!("duplicate {key} {}", quoted(text));
                warn(key_of_item.path(), message, warnings);
            }
        }
    }
    for name in pod.get("imagePullSecrets").items().map(|secret| secret.get("name")) {
        if name.is_empty() {
            warn(name.path(), "invalid empty name \"\"", warnings);
        }
    }
}

fn whole(amounts: &At<'_>, name: &str, warnings: &mut Warnings) {
    let value = amounts.get(name);
    if !amount::read(&value).is_whole() {
        let value = quoted(value.text());
        let message = format!("fractional byte value {value} is invalid, must be an integer");
        warn(format!("{}[{name}]", amounts.path()), message, warnings);
    }
}

/// Deprecated annotations, and fractional bytes, for each container.
fn profiles_and_bytes(pod: &At<'_>, annotations: &At<'_>, warnings: &mut Warnings) {
    let old = |key: &str, why: &str, warnings: &mut Warnings| {
        if annotations.get(key).is_set() {
            warn(format!("{}[{key}]", annotations.path()), why, warnings);
        }
    };
    let why_seccomp = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
    let context = pod.get("securityContext");
    if !context.get("seccompProfile").is_set() {
        old(SECCOMP_POD, why_seccomp, warnings);
    }
    for container in visit_all(pod) {
        let (name, own) = (container.get("name"), container.get("securityContext"));
        if !own.get("seccompProfile").is_set() {
            old(&format!("{SECCOMP_CONTAINER}{}", name.text()), why_seccomp, warnings);
        }
        let key = format!("{APP_ARMOR_CONTAINER}{}", name.text());
        let same = says_same(annotations.get(&key).text(), &context.get("appArmorProfile"));
        if !own.get("appArmorProfile").is_set() && !same {
            let why = "deprecated since v1.30; use the \"appArmorProfile\" field instead";
            old(&key, why, warnings);
        }
        for name in IN_BYTES {
            for kind in ["limits", "requests"] {
                whole(&container.get("resources").get(kind), name, warnings);
            }
        }
    }
}

/// `true` if a deprecated annotation names the pod's `AppArmor` profile.
fn says_same(annotation: &str, profile: &At<'_>) -> bool {
    let (kind, name) = (profile.get("type").text(), profile.get("localhostProfile").text());
    match annotation {
        "unconfined" => kind == "Unconfined",
        "runtime/default" => kind == "RuntimeDefault",
        other => other
            .strip_prefix("localhost/")
            .is_some_and(|named| kind == "Localhost" && !named.is_empty() && named == name),
    }
}

/// Number of definitions of the same port that a later one is compared with. Upstream has no limit,
/// and warns about each pair.
const MOST_COMPARED: usize = 3;

fn ports(pod: &At<'_>, warnings: &mut Warnings) {
    let ports: Vec<At<'_>> =
        visit_all(pod).iter().flat_map(|container| container.get("ports").items()).collect();
    let mut earlier: BTreeMap<(i64, &str), Vec<&At<'_>>> = BTreeMap::new();
    for port in &ports {
        if !port.get("hostIP").is_empty() && port.get("hostPort").int() == 0 {
            let message = format!("hostIP set without hostPort: {}", go_struct(port));
            warn(port.path(), message, warnings);
        }
        let key = (port.get("containerPort").int(), port.get("protocol").text());
        let same = earlier.entry(key).or_default();
        for other in same.iter() {
            if let Some(kind) = collision(port, other) {
                let message = format!("{kind} port definition with {}", other.path());
                warn(port.path(), message, warnings);
            }
        }
        if same.len() < MOST_COMPARED {
            same.push(port);
        }
    }
    let mut named: BTreeMap<&str, &At<'_>> = BTreeMap::new();
    for port in ports.iter().filter(|port| !port.get("name").is_empty()) {
        let name = port.get("name").text();
        if let Some(first) = named.get(name) {
            let (name, first) = (quoted(name), first.path());
            let message = format!(
                "duplicate port name {name} with {first}, services and probes that select ports by \
                 name will use {first}"
            );
            warn(port.path(), message, warnings);
        } else {
            named.insert(name, port);
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
    format!(
        "{{Name:{} HostPort:{} ContainerPort:{} Protocol:{} HostIP:{}}}",
        port.get("name").text(),
        port.get("hostPort").int(),
        port.get("containerPort").int(),
        port.get("protocol").text(),
        port.get("hostIP").text(),
    )
}

/// IPv6 addresses that are not in canonical form. Invalid ones are rejected by `validate`.
fn addresses(pod: &At<'_>, warnings: &mut Warnings) {
    let servers = pod.get("dnsConfig").get("nameservers");
    let aliases = pod.get("hostAliases");
    for address in servers.items().chain(aliases.items().map(|alias| alias.get("ip"))) {
        let text = address.text();
        if let Ok(IpAddr::V6(parsed)) = text.parse()
            && parsed.to_string() != text
        {
            let message = format!(
                "IPv6 address {} should be in RFC 5952 canonical format ({})",
                quoted(text),
                quoted(&parsed.to_string())
            );
            warn(address.path(), message, warnings);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::invalid;

    #[test]
    fn each_row_has_its_warnings() {
        for row in invalid::rows(include_str!("warnings.yaml")) {
            let object = row.object();
            assert_eq!(crate::validate(&object), [], "{}", row.name);
            let texts: Vec<String> = warnings(&object).iter().map(ToString::to_string).collect();
            assert_eq!(texts, row.warnings, "{}", row.name);
        }
    }

    #[test]
    fn the_valid_example_has_no_warnings() {
        assert_eq!(warnings(&invalid::valid()), []);
    }
}
