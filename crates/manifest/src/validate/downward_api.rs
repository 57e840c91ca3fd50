//! The downward API: fields of its own pod in variables and files of a container (upstream:
//! `validateObjectFieldSelector`, `validateContainerResourceFieldSelector`).

use super::at::{At, Errors};
use super::go_text::quoted;
use super::{amount, names};

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

/// Fields that upstream can convert; only some of them may be used.
const CONVERTIBLE_FIELDS: [&str; 14] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

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

pub(super) fn field_of_env(reference: &At<'_>, errors: &mut Errors) {
    check_field(reference, &ENV_FIELDS, errors);
}

pub(super) fn field_of_volume(reference: &At<'_>, errors: &mut Errors) {
    check_field(reference, &VOLUME_FIELDS, errors);
}

pub(super) fn resource_of_env(reference: &At<'_>, errors: &mut Errors) {
    check_resource(reference, errors);
}

/// Validates the reference of a file, which must name a container.
pub(super) fn resource_of_volume(reference: &At<'_>, errors: &mut Errors) {
    if reference.get("containerName").is_empty() {
        errors.push(reference.get("containerName").required(""));
        check_divisor(reference, errors);
    } else {
        check_resource(reference, errors);
    }
}

fn check_field(reference: &At<'_>, usable: &[&str], errors: &mut Errors) {
    let (version, field) = (reference.get("apiVersion"), reference.get("fieldPath"));
    if field.is_empty() {
        errors.push(field.required(""));
        return;
    }
    if let Err(why) = convertible(version.text(), field.text()) {
        errors.push(field.invalid(&format!("error converting fieldPath: {why}")));
        return;
    }
    match subscripted(field.text()) {
        Some(("metadata.annotations", key)) => key_of(reference, &key.to_lowercase(), errors),
        Some((_labels, key)) => key_of(reference, key, errors),
        None => {
            // The name that old clients use.
            let path = if field.text() == "spec.host" { "spec.nodeName" } else { field.text() };
            if !usable.contains(&path) {
                errors.push(field.not_supported_as(quoted(path), usable));
            }
        }
    }
}

/// Validates the key; the error is reported at the reference.
fn key_of(reference: &At<'_>, key: &str, errors: &mut Errors) {
    let complaints = names::label_key(key).into_iter();
    errors.extend(complaints.map(|why| reference.invalid_as(quoted(key), &why)));
}

/// Checks that this version of a pod has the field (upstream: `ConvertDownwardAPIFieldLabel`).
fn convertible(version: &str, field: &str) -> Result<(), String> {
    if version != "v1" {
        return Err(format!("unsupported pod version: {version}"));
    }
    match subscripted(field) {
        Some(("metadata.annotations" | "metadata.labels", _)) => Ok(()),
        Some(_) => Err(format!("field label does not support subscript: {field}")),
        None if CONVERTIBLE_FIELDS.contains(&field) || field == "spec.host" => Ok(()),
        None => Err(format!("field label not supported: {field}")),
    }
}

/// Splits `path['key']` (upstream: `SplitMaybeSubscriptedPath`).
fn subscripted(field: &str) -> Option<(&str, &str)> {
    field.strip_suffix("']")?.split_once("['").filter(|(path, _)| !path.is_empty())
}

fn check_resource(reference: &At<'_>, errors: &mut Errors) {
    let resource = reference.get("resource");
    if resource.is_empty() {
        errors.push(resource.required(""));
    } else if !RESOURCES.contains(&resource.text()) && !is_hugepages(resource.text()) {
        errors.push(resource.not_supported_as(quoted(resource.text()), &RESOURCES));
    }
    check_divisor(reference, errors);
}

fn is_hugepages(resource: &str) -> bool {
    resource.starts_with("limits.hugepages-") || resource.starts_with("requests.hugepages-")
}

/// Validates `divisor`; absent and 0 mean 1 (upstream: `validateContainerResourceDivisor`).
fn check_divisor(reference: &At<'_>, errors: &mut Errors) {
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
        errors.push(divisor.invalid_as(quoted(resource), &why));
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::table;

    #[test]
    fn rules() {
        table::check(include_str!("downward_api.yaml"));
    }
}
