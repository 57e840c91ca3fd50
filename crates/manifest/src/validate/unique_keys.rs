//! Lists whose items server-side apply tells apart by a key (`x-kubernetes-list-type` `map` and
//! `set`), and of which the API server accepts duplicates on create: a rule of `ds-plan`.
//!
//! From then on every server-side apply of the object fails with 500. Of the other lists with keys,
//! the API server rejects duplicates itself. Not here: `metadata.ownerReferences` of the DaemonSet,
//! which is never sent.

use std::collections::BTreeSet;

use super::at::At;
use super::context::visit_containers;
use super::go_text::quoted;

const WHY: &str = "the API server accepts it on create but fails on every later server-side apply";

/// Fields that are the key of an item; none for a set of strings.
type Keys = &'static [&'static str];

/// The lists of the object.
const OF_OBJECT: [(&str, Keys); 5] = [
    ("metadata.finalizers", &[]),
    ("spec.template.metadata.finalizers", &[]),
    ("spec.template.metadata.ownerReferences", &["uid"]),
    ("spec.template.spec.hostAliases", &["ip"]),
    ("spec.template.spec.imagePullSecrets", &["name"]),
];

/// The lists of each container.
const OF_CONTAINER: [(&str, Keys); 3] = [
    ("env", &["name"]),
    ("ports", &["containerPort", "protocol"]),
    ("resources.claims", &["name"]),
];

/// Validates all of them.
pub(super) fn check(object: &At<'_>) {
    let known = object.duplicate_paths();
    for (path, keys) in OF_OBJECT {
        check_list(&object.nested(path), keys, &known);
    }
    for container in visit_containers(&object.nested("spec.template.spec")) {
        for (path, keys) in OF_CONTAINER {
            check_list(&container.nested(path), keys, &known);
        }
    }
}

/// Reports the duplicates in a list, except for those that the server rejects, which are `known`.
fn check_list(list: &At<'_>, keys: Keys, known: &BTreeSet<String>) {
    let mut seen = BTreeSet::new();
    for item in list.items() {
        let key: Vec<At<'_>> = keys.iter().map(|key| item.get(key)).collect();
        let of_item: Vec<String> = match &key[..] {
            [] => vec![item.text().to_owned()],
            key => key.iter().map(shown).collect(),
        };
        let shown = of_item.join("/");
        if seen.insert(of_item) || item.is_or_has_one_of(known) {
            continue;
        }
        let place = if let [name] = &key[..] { name } else { &item };
        place.duplicate_for_us(quoted(&shown), WHY);
    }
}

/// The value of a key: a number or a string; an absent one is an empty string.
fn shown(key: &At<'_>) -> String {
    if key.json().is_number() { key.int().to_string() } else { key.text().to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Lists of which the API server rejects duplicates, which a DaemonSet may not have, or which
    /// are not sent.
    const OTHERS: [&str; 16] = [
        ".metadata.ownerReferences",
        ".spec.template.spec.containers",
        ".spec.template.spec.containers.volumeDevices",
        ".spec.template.spec.containers.volumeMounts",
        ".spec.template.spec.ephemeralContainers",
        ".spec.template.spec.initContainers",
        ".spec.template.spec.initContainers.volumeDevices",
        ".spec.template.spec.initContainers.volumeMounts",
        ".spec.template.spec.resourceClaims",
        ".spec.template.spec.resources.claims",
        ".spec.template.spec.schedulingGates",
        ".spec.template.spec.topologySpreadConstraints",
        ".spec.template.spec.volumes",
        ".spec.template.spec.volumes.ephemeral.volumeClaimTemplate.metadata.finalizers",
        ".spec.template.spec.volumes.ephemeral.volumeClaimTemplate.metadata.ownerReferences",
        ".status.conditions",
    ];

    /// The lists with keys below a struct of the merge schema, and their keys.
    fn lists(table: &Value, of: &str, path: &str, found: &mut Vec<(String, Vec<String>)>) {
        for (name, shape) in table.get(of).and_then(Value::as_object).into_iter().flatten() {
            let path = format!("{path}.{name}");
            match shape {
                Value::String(text) if text == "set" => found.push((path, Vec::new())),
                Value::String(text) => lists(table, text, &path, found),
                list => {
                    let keys = list["keys"].as_object().unwrap().keys().cloned().collect();
                    found.push((path.clone(), keys));
                    lists(table, list["of"].as_str().unwrap(), &path, found);
                }
            }
        }
    }

    #[test]
    fn every_list_with_keys_is_checked_here_or_by_the_server() {
        let table = include_str!("../../../ssa/src/schema.json");
        let mut found = Vec::new();
        lists(&serde_json::from_str(table).unwrap(), "DaemonSet", "", &mut found);
        let pod = "spec.template.spec";
        let of_containers = ["containers", "initContainers"].into_iter().flat_map(|containers| {
            OF_CONTAINER.map(|(path, keys)| (format!("{pod}.{containers}.{path}"), keys))
        });
        let of_object = OF_OBJECT.map(|(path, keys)| (path.to_owned(), keys));
        let checked: Vec<_> = of_object.into_iter().chain(of_containers).collect();
        let is_checked = |path: &str, keys: &[String]| {
            checked.iter().any(|(own, of_own)| format!(".{own}") == path && of_own == &keys)
        };
        for (path, keys) in found {
            // None may have any.
            if !path.contains(".ephemeralContainers.") {
                assert!(OTHERS.contains(&&*path) != is_checked(&path, &keys), "{path} {keys:?}");
            }
        }
    }
}
