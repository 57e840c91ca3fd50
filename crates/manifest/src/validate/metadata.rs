//! The metadata of the DaemonSet, and labels and annotations of other objects in it (upstream:
//! `ValidateObjectMeta`).
//!
//! Not here: `managedFields` and `generation`, which only the server writes.

use super::at::{At, Errors};
use super::go_text::{json_struct, quoted};
use super::names;

/// Limit of all annotations of an object, keys and values, in bytes.
const ANNOTATIONS_MAX: usize = 256 * 1024;

/// Validates `metadata` of a namespaced object whose name is a DNS subdomain.
pub(super) fn check(metadata: &At<'_>, errors: &mut Errors) {
    name(metadata, errors);
    metadata.get("namespace").required_and_follows(names::dns_label, errors);
    labels(&metadata.get("labels"), errors);
    annotations(&metadata.get("annotations"), errors);
    owner_references(&metadata.get("ownerReferences"), errors);
    finalizers(&metadata.get("finalizers"), errors);
}

/// Validates the name. Upstream has generated it by now; here a prefix that generates valid names
/// is sufficient.
fn name(metadata: &At<'_>, errors: &mut Errors) {
    let (name, generate_name) = (metadata.get("name"), metadata.get("generateName"));
    generate_name.follows_if_set(names::dns_subdomain_prefix, errors);
    if name.is_empty() && generate_name.is_empty() {
        errors.push(name.required("name or generateName is required"));
    }
    name.follows_if_set(names::dns_subdomain, errors);
}

/// Validates a map of labels or a `nodeSelector`; errors are reported at the map, without the key
/// (upstream: `ValidateLabels`).
pub(super) fn labels(labels: &At<'_>, errors: &mut Errors) {
    for (key, value) in labels.entries() {
        let complaints = names::label_key(key).into_iter();
        errors.extend(complaints.map(|why| labels.invalid_as(quoted(key), &why)));
        value.reported_at(labels.path()).follows(names::label_value, errors);
    }
}

/// Validates a map of annotations; their keys may contain upper case (upstream:
/// `ValidateAnnotations`).
pub(super) fn annotations(annotations: &At<'_>, errors: &mut Errors) {
    let mut size = 0;
    for (key, value) in annotations.entries() {
        size += key.len() + value.text().len();
        let complaints = names::label_key(&key.to_lowercase()).into_iter();
        errors.extend(complaints.map(|why| annotations.invalid_as(quoted(key), &why)));
    }
    if size > ANNOTATIONS_MAX {
        errors.push(annotations.too_long(ANNOTATIONS_MAX));
    }
}

/// Validates `ownerReferences`; errors are reported without an index (upstream:
/// `ValidateOwnerReferences`).
fn owner_references(references: &At<'_>, errors: &mut Errors) {
    let mut controller: Option<String> = None;
    for reference in references.items() {
        let reference = reference.reported_at(references.path());
        owner_reference(&reference, errors);
        if reference.get("controller").is_true() {
            let this = format!("{}/{}", reference.get("kind").text(), reference.get("name").text());
            match &controller {
                None => controller = Some(this),
                Some(first) => errors.push(second_controller(references, first, &this)),
            }
        }
    }
}

fn second_controller(references: &At<'_>, first: &str, second: &str) -> super::FieldError {
    let all: Vec<String> = references.items().map(|reference| owner_json(&reference)).collect();
    let why = format!(
        "Only one reference can have Controller set to true. Found \"true\" in references for \
         {first} and {second}"
    );
    references.invalid_as(format!("[{}]", all.join(",")), &why)
}

fn owner_reference(reference: &At<'_>, errors: &mut Errors) {
    let api_version = reference.get("apiVersion");
    let version = match api_version.text().split_once('/') {
        None => api_version.text(),
        Some((_group, version)) if !version.contains('/') => version,
        Some(_) => "",
    };
    if version.is_empty() {
        errors.push(api_version.invalid("version must not be empty"));
    }
    for field in ["kind", "name", "uid"] {
        let field = reference.get(field);
        if field.is_empty() {
            errors.push(field.invalid("must not be empty"));
        }
    }
    if api_version.text() == "v1" && reference.get("kind").text() == "Event" {
        let why = "/v1, Kind=Event is disallowed from being an owner";
        errors.push(reference.invalid_as(owner_json(reference), why));
    }
}

/// The owner reference as JSON in the order of the Go type; pointers only when they are set.
fn owner_json(reference: &At<'_>) -> String {
    let texts = ["apiVersion", "kind", "name", "uid"];
    let mut fields: Vec<(&str, String)> =
        texts.iter().map(|field| (*field, reference.get(field).marshalled())).collect();
    for field in ["controller", "blockOwnerDeletion"] {
        fields.extend(reference.find(field).map(|value| (field, value.marshalled())));
    }
    json_struct(&fields)
}

/// Validates finalizers as qualified names, without an index; then names without a prefix, with an
/// index.
fn finalizers(finalizers: &At<'_>, errors: &mut Errors) {
    for finalizer in finalizers.items() {
        finalizer.reported_at(finalizers.path()).follows(names::label_key, errors);
    }
    let all = finalizers.texts();
    if all.contains(&"orphan") && all.contains(&"foregroundDeletion") {
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(finalizers.invalid(why));
    }
    for finalizer in finalizers.items() {
        let name = finalizer.text();
        if !name.contains('/') && !["kubernetes", "orphan", "foregroundDeletion"].contains(&name) {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(finalizer.invalid(why));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::table;

    /// The API server compares the namespace with that of the request before it validates, so this
    /// is not a row of the table.
    #[test]
    fn a_namespace_is_a_label() {
        for (namespace, want) in [
            ("", "metadata.namespace: Required value"),
            ("a.b", "metadata.namespace: Invalid value: \"a.b\": must not contain dots"),
        ] {
            let mut object = table::valid();
            object["metadata"]["namespace"] = namespace.into();
            let errors = crate::validate(&object);
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), [want]);
        }
    }

    #[test]
    fn rules() {
        table::check(include_str!("metadata.yaml"));
    }
}
