//! The metadata of the DaemonSet, and labels and annotations of other objects in it (upstream:
//! `ValidateObjectMeta`).
//!
//! Not here: `managedFields` and `generation`, which only the server writes.

use super::at::At;
use super::formats::{dns_label, dns_subdomain, dns_subdomain_prefix, label_key, label_value};
use super::go_text::{GoStruct, GoType, STRING, json_struct};
use super::rules::Rule::{Check, FollowsIfNotEmpty, RequiredFollows};

/// Limit of all annotations of an object, keys and values, in bytes.
const ANNOTATIONS_MAX: usize = 256 * 1024;

const OMITTED: GoType = GoType::Or("");
const OWNER_REFERENCE: GoStruct = &[
    ("apiVersion", "apiVersion", STRING),
    ("kind", "kind", STRING),
    ("name", "name", STRING),
    ("uid", "uid", STRING),
    ("controller", "controller", OMITTED),
    ("blockOwnerDeletion", "blockOwnerDeletion", OMITTED),
];

/// Validates `metadata` of a namespaced object whose name is a DNS subdomain. Upstream has
/// generated the name by now; here a prefix that generates valid names is sufficient.
pub(super) fn check(metadata: &At<'_>) {
    let (name, generate_name) = (metadata.get("name"), metadata.get("generateName"));
    generate_name.check(FollowsIfNotEmpty(dns_subdomain_prefix));
    let is_unnamed = name.is_empty() && generate_name.is_empty();
    name.required_if(is_unnamed, "name or generateName is required");
    metadata.check_fields(&[
        ("name", FollowsIfNotEmpty(dns_subdomain)),
        ("namespace", RequiredFollows(dns_label)),
        ("labels", Check(labels)),
        ("annotations", Check(annotations)),
        ("ownerReferences", Check(owner_references)),
        ("finalizers", Check(finalizers)),
    ]);
}

/// Validates a map of labels or a `nodeSelector`; errors are reported at the map, without the key
/// (upstream: `ValidateLabels`).
pub(super) fn labels(labels: &At<'_>) {
    for (key, value) in labels.entries() {
        labels.text_follows(key, label_key);
        labels.text_follows(value.text(), label_value);
    }
}

/// Validates a map of annotations; their keys may contain upper case (upstream:
/// `ValidateAnnotations`).
pub(super) fn annotations(annotations: &At<'_>) {
    for (key, _) in annotations.entries() {
        annotations.invalids_as(key, label_key(&key.to_lowercase()));
    }
    let size = annotations.entries().map(|(key, value)| key.len() + value.text().len()).sum();
    annotations.too_long_if_over(ANNOTATIONS_MAX, size);
}

/// Validates `ownerReferences`; errors are reported without an index (upstream:
/// `ValidateOwnerReferences`).
fn owner_references(references: &At<'_>) {
    let mut controller: Option<String> = None;
    for reference in references.items() {
        let reference = reference.reported_at(references.path());
        owner_reference(&reference);
        if reference.get("controller").is_true() {
            let this = format!("{}/{}", reference.get("kind").text(), reference.get("name").text());
            match &controller {
                None => controller = Some(this),
                Some(first) => second_controller(references, first, &this),
            }
        }
    }
}

fn second_controller(references: &At<'_>, first: &str, second: &str) {
    let all = references.items().map(|reference| json_struct(reference.json(), OWNER_REFERENCE));
    let why = format!(
        "Only one reference can have Controller set to true. Found \"true\" in references for \
         {first} and {second}"
    );
    references.invalid_as(format!("[{}]", all.collect::<Vec<_>>().join(",")), &why);
}

fn owner_reference(reference: &At<'_>) {
    let api_version = reference.get("apiVersion");
    let version = match api_version.text().split_once('/') {
        None => api_version.text(),
        Some((_group, version)) if !version.contains('/') => version,
        Some(_) => "",
    };
    api_version.invalid_if(version.is_empty(), "version must not be empty");
    for field in ["kind", "name", "uid"] {
        let field = reference.get(field);
        field.invalid_if(field.is_empty(), "must not be empty");
    }
    if api_version.text() == "v1" && reference.get("kind").text() == "Event" {
        let shown = json_struct(reference.json(), OWNER_REFERENCE);
        reference.invalid_as(shown, "/v1, Kind=Event is disallowed from being an owner");
    }
}

/// Validates finalizers as qualified names, without an index; then names without a prefix, with an
/// index.
fn finalizers(finalizers: &At<'_>) {
    finalizers.texts().iter().for_each(|name| finalizers.text_follows(name, label_key));
    let all = finalizers.texts();
    let orphans_and_waits = all.contains(&"orphan") && all.contains(&"foregroundDeletion");
    let why = "finalizer orphan and foregroundDeletion cannot be both set";
    finalizers.invalid_if(orphans_and_waits, why);
    for finalizer in finalizers.items() {
        let name = finalizer.text();
        let is_standard = ["kubernetes", "orphan", "foregroundDeletion"].contains(&name);
        let why = "name is neither a standard finalizer name nor is it fully qualified";
        finalizer.invalid_if(!name.contains('/') && !is_standard, why);
    }
}
