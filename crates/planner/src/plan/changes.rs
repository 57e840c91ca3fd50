//! Compares two objects, both with defaults: paths with list elements named by their merge key, and
//! values with sensitive ones masked.
//!
//! Not here: the result of server-side apply (`ssa`).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::document::FieldChange;
use ssa::{PathStep, extend_path};

/// One version of a subtree: the true value is compared, the masked one is shown.
#[derive(Clone, Copy)]
pub(super) struct Side<'a> {
    /// The true value.
    pub truth: &'a Value,
    /// The same value with sensitive values masked.
    pub shown: &'a Value,
}

impl Side<'_> {
    fn field(self, key: &str) -> Option<Self> {
        Some(Self { truth: self.truth.get(key)?, shown: self.shown.get(key)? })
    }

    fn element(self, at: usize) -> Option<Self> {
        Some(Self { truth: self.truth.get(at)?, shown: self.shown.get(at)? })
    }
}

/// Adds every field that differs between `before` and `after` to `changes`.
///
/// A field that only one side has is a single change with its whole subtree; so is a field whose
/// type differs, or a list of scalars.
pub(super) fn compare(
    path: &str,
    before: Option<Side<'_>>,
    after: Option<Side<'_>>,
    changes: &mut Vec<FieldChange>,
) {
    if before.map(|side| side.truth) == after.map(|side| side.truth) {
        return;
    }
    if let (Some(before), Some(after)) = (before, after) {
        match (before.truth, after.truth) {
            (Value::Object(old), Value::Object(new)) => {
                for key in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
                    let path = extend_path(path, &PathStep::field(key));
                    compare(&path, before.field(key), after.field(key), changes);
                }
                return;
            }
            (Value::Array(old), Value::Array(new)) => {
                if let Some(elements) = pair_up(path, old, new) {
                    for (name, was, will) in elements {
                        let was = was.and_then(|at| before.element(at));
                        let will = will.and_then(|at| after.element(at));
                        compare(&format!("{path}[{name}]"), was, will, changes);
                    }
                    return;
                }
            }
            (_, _) => {}
        }
    }
    changes.push(FieldChange {
        path: path.to_owned(),
        before: before.map(|side| side.shown.clone()),
        after: after.map(|side| side.shown.clone()),
        masked: before.into_iter().chain(after).any(|side| side.truth != side.shown),
    });
}

/// A list element in both versions: its name, and its positions before and after.
type Pair = (String, Option<usize>, Option<usize>);

/// Pairs the elements of two lists, in the order of the new list, removed ones last. `None` when
/// the list is shown as a whole: scalars, or a new order.
fn pair_up(path: &str, old: &[Value], new: &[Value]) -> Option<Vec<Pair>> {
    if let (Some(was), Some(will)) = (names(path, old), names(path, new)) {
        let known: BTreeMap<&String, usize> = was.iter().zip(0..).collect();
        let kept: BTreeSet<&String> = will.iter().collect();
        let gone = was.iter().enumerate().filter(|(_, name)| !kept.contains(name));
        let stays = will.iter().enumerate();
        let pairs = stays
            .map(|(at, name)| (name.clone(), known.get(name).copied(), Some(at)))
            .chain(gone.map(|(at, name)| (name.clone(), Some(at), None)))
            .collect();
        let common = |names: &[String]| -> Vec<String> {
            names.iter().filter(|n| known.contains_key(n) && kept.contains(n)).cloned().collect()
        };
        return (common(&was) == common(&will)).then_some(pairs);
    }
    let structured = old.iter().chain(new).all(Value::is_object);
    (structured && old.len() == new.len())
        .then(|| (0..old.len()).map(|at| (at.to_string(), Some(at), Some(at))).collect())
}

/// The elements' merge keys; `None` when an element does not have one or two have the same.
fn names(path: &str, elements: &[Value]) -> Option<Vec<String>> {
    let keys = merge_keys(path);
    let names: Option<Vec<String>> =
        elements.iter().map(|e| name_of(e.as_object()?, keys)).collect();
    names.filter(|names| names.iter().collect::<BTreeSet<_>>().len() == names.len())
}

fn name_of(element: &Map<String, Value>, keys: &[&str]) -> Option<String> {
    let parts: Option<Vec<String>> = keys
        .iter()
        .filter_map(|key| element.get(*key))
        .map(|value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        })
        .collect();
    parts.filter(|parts| !parts.is_empty()).map(|parts| parts.join("/"))
}

/// The fields that identify an element of the list at `path` (upstream:
/// `x-kubernetes-list-map-keys` and `patchMergeKey` of the pod's lists).
fn merge_keys(path: &str) -> &'static [&'static str] {
    let field = path.rsplit('.').next().unwrap_or(path);
    match field {
        "ports" => &["containerPort", "protocol"],
        "volumeMounts" => &["mountPath"],
        "volumeDevices" => &["devicePath"],
        "topologySpreadConstraints" => &["topologyKey", "whenUnsatisfiable"],
        "hostAliases" => &["ip"],
        "ownerReferences" => &["uid"],
        "tolerations" | "matchExpressions" | "matchFields" | "nodeSelectorTerms" | "items"
        | "sources" => &[],
        _named => &["name"],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paths(before: &Value, after: &Value) -> Vec<String> {
        let mut changes = Vec::new();
        let side = |value| Some(Side { truth: value, shown: value });
        compare("spec", side(before), side(after), &mut changes);
        changes.into_iter().map(|change| change.path).collect()
    }

    #[test]
    fn each_kind_of_difference_has_its_path() {
        let containers = |list: Value| json!({ "containers": list });
        for (rule, before, after, want) in [
            ("equal", json!({"a": 1}), json!({"a": 1}), vec![]),
            ("a value", json!({"a": 1}), json!({"a": 2}), vec!["spec.a"]),
            ("added and removed", json!({"a": 1}), json!({"b": 1}), vec!["spec.a", "spec.b"]),
            ("a dotted key", json!({"a.b/c": 1}), json!({"a.b/c": 2}), vec!["spec[a.b/c]"]),
            (
                "an element by its name",
                containers(json!([{"name": "x", "image": "1"}, {"name": "y"}])),
                containers(json!([{"name": "x", "image": "2"}, {"name": "z"}])),
                vec!["spec.containers[x].image", "spec.containers[z]", "spec.containers[y]"],
            ),
            (
                "a new order is a change of the list",
                containers(json!([{"name": "x"}, {"name": "y"}])),
                containers(json!([{"name": "y"}, {"name": "x"}])),
                vec!["spec.containers"],
            ),
            (
                "two with one name: by position",
                json!({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}),
                json!({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "3"}]}),
                vec!["spec.env[1].value"],
            ),
            (
                "ports by number and protocol",
                json!({"ports": [{"containerPort": 53, "protocol": "TCP"}]}),
                json!({"ports": [{"containerPort": 53, "protocol": "UDP"}]}),
                vec!["spec.ports[53/UDP]", "spec.ports[53/TCP]"],
            ),
            (
                "tolerations have no key",
                json!({"tolerations": [{"key": "a"}]}),
                json!({"tolerations": [{"key": "b"}]}),
                vec!["spec.tolerations[0].key"],
            ),
            (
                "lists of scalars as a whole",
                json!({"args": ["a"]}),
                json!({"args": ["b"]}),
                vec!["spec.args"],
            ),
            ("another type", json!({"a": [1]}), json!({"a": {"b": 1}}), vec!["spec.a"]),
        ] {
            assert_eq!(paths(&before, &after), want, "{rule}");
        }
    }

    #[test]
    fn a_masked_value_is_shown_masked_and_still_counts() {
        let (old, new) = (json!({"value": "s3cret"}), json!({"value": "other"}));
        let mask = json!({"value": "(masked)"});
        let mut changes = Vec::new();
        let side = |truth| Some(Side { truth, shown: &mask });
        compare("env[A]", side(&old), side(&new), &mut changes);
        assert_eq!(changes.len(), 1);
        assert!(changes[0].masked);
        assert_eq!(changes[0].before, Some(json!("(masked)")));
    }
}
