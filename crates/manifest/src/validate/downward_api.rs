//! The downward API: fields of its own pod in variables and files of a container (upstream:
//! `validateObjectFieldSelector`, `validateContainerResourceFieldSelector`).

use super::amount;
use super::at::At;
use super::formats::label_key;
use super::go_text::quoted;
use super::rules::Rule::Required;

const ENV_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

const VOLUME_FIELDS: [&str; 5] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];

/// Fields that upstream can convert, but that may not be used. The last is the name of
/// `spec.nodeName` that old clients use.
const OTHER_FIELDS: [&str; 4] =
    ["spec.restartPolicy", "spec.schedulerName", "status.phase", "spec.host"];

const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// Divisors of resources that are counted in bytes.
const BYTE_DIVISORS: [&str; 13] =
    ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

pub(super) fn field_of_env(reference: &At<'_>) {
    check_field(reference, &ENV_FIELDS);
}

pub(super) fn field_of_volume(reference: &At<'_>) {
    check_field(reference, &VOLUME_FIELDS);
}

pub(super) fn resource_of_env(reference: &At<'_>) {
    check_resource(&reference.get("resource"));
    check_divisor(reference);
}

/// Validates the reference of a file, which must name a container.
pub(super) fn resource_of_volume(reference: &At<'_>) {
    let container = reference.get("containerName");
    container.check(Required);
    if !container.is_empty() {
        check_resource(&reference.get("resource"));
    }
    check_divisor(reference);
}

fn check_field(reference: &At<'_>, usable: &[&str]) {
    let (version, field) = (reference.get("apiVersion"), reference.get("fieldPath"));
    if field.is_empty() {
        return field.required("");
    }
    if let Err(why) = convertible(version.text(), field.text()) {
        return field.invalid(&format!("error converting fieldPath: {why}"));
    }
    match subscripted(field.text()) {
        // Errors of a key are reported at the reference.
        Some(("metadata.annotations", key)) => {
            reference.text_follows(&key.to_lowercase(), label_key);
        }
        Some((_labels, key)) => reference.text_follows(key, label_key),
        None => {
            let path = if field.text() == "spec.host" { "spec.nodeName" } else { field.text() };
            if !usable.contains(&path) {
                field.not_supported_as(quoted(path), usable);
            }
        }
    }
}

/// Checks that this version of a pod has the field (upstream: `ConvertDownwardAPIFieldLabel`).
fn convertible(version: &str, field: &str) -> Result<(), String> {
    let known = [&ENV_FIELDS[..], &VOLUME_FIELDS, &OTHER_FIELDS];
    match subscripted(field) {
        _ if version != "v1" => Err(format!("unsupported pod version: {version}")),
        Some(("metadata.annotations" | "metadata.labels", _)) => Ok(()),
        Some(_) => Err(format!("field label does not support subscript: {field}")),
        None if known.iter().any(|fields| fields.contains(&field)) => Ok(()),
        None => Err(format!("field label not supported: {field}")),
    }
}

/// Splits `path['key']` (upstream: `SplitMaybeSubscriptedPath`).
fn subscripted(field: &str) -> Option<(&str, &str)> {
    field.strip_suffix("']")?.split_once("['").filter(|(path, _)| !path.is_empty())
}

fn check_resource(resource: &At<'_>) {
    resource.check(Required);
    let is_known = RESOURCES.contains(&resource.text()) || is_hugepages(resource.text());
    if !resource.is_empty() && !is_known {
        resource.not_supported_as(quoted(resource.text()), &RESOURCES);
    }
}

fn is_hugepages(resource: &str) -> bool {
    resource.starts_with("limits.hugepages-") || resource.starts_with("requests.hugepages-")
}

/// Validates `divisor`; absent and 0 mean 1 (upstream: `validateContainerResourceDivisor`).
fn check_divisor(reference: &At<'_>) {
    let (resource, divisor) = (reference.get("resource").text(), reference.get("divisor"));
    let (usable, what) = match resource {
        "limits.cpu" | "requests.cpu" => (&["1m", "1"][..], "cpu"),
        "limits.memory" | "requests.memory" => (&BYTE_DIVISORS[..], "memory"),
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => {
            (&BYTE_DIVISORS[..], "local ephemeral storage")
        }
        _other if is_hugepages(resource) => (&BYTE_DIVISORS[..], "hugepages"),
        _reported_already => return,
    };
    if !amount::read(&divisor).is_zero() && !usable.contains(&divisor.text()) {
        let listed = if what == "cpu" { "1m and 1".to_owned() } else { usable.join(", ") };
        let why = format!("only divisor's values {listed} are supported with the {what} resource");
        divisor.invalid_as(quoted(resource), &why);
    }
}
