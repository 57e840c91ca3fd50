//! Merges the applied object into the live one (upstream: `typed/merge.go`).
//!
//! Scalar and atomic values are the applied ones; maps and lists with granular ownership are
//! united. Nothing is removed here (`prune`).

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::items::Items;
use super::schema::Shape;

static NULL: Value = Value::Null;

/// `applied` over `live`.
pub(super) fn combine(shape: Shape<'_>, live: &Value, applied: &Value) -> Value {
    match shape {
        Shape::Scalar | Shape::Atomic => applied.clone(),
        Shape::Map | Shape::Struct(_) => combine_maps(shape, live, applied),
        Shape::Set | Shape::Keyed(..) => combine_lists(shape, live, applied),
    }
}

fn combine_maps(shape: Shape<'_>, live: &Value, applied: &Value) -> Value {
    // Two empty values are equal: the applied one decides between `{}` and `null`.
    if fields(live).next().is_none() && fields(applied).next().is_none() {
        return applied.clone();
    }
    let kept = fields(live).filter(|(name, _)| applied.get(name).is_none());
    let mut all: Map<String, Value> = kept.map(|(name, old)| (name.clone(), old.clone())).collect();
    all.extend(fields(applied).map(|(name, new)| {
        let value = match live.get(name) {
            Some(old) => combine(shape.field(name), old, new),
            None => new.clone(),
        };
        (name.clone(), value)
    }));
    Value::Object(all)
}

/// The fields of an object; none of other values.
fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn combine_lists(shape: Shape<'_>, live: &Value, applied: &Value) -> Value {
    let (left, right) = (Items::of(shape, Some(live)), Items::of(shape, Some(applied)));
    if left.len() == 0 && right.len() == 0 {
        return applied.clone();
    }
    let element = |one: &Items<'_>, other: &Value, step| match one.all(step) {
        [] => other.clone(),
        [single] => combine(shape.element(), single, other),
        // Duplicates are ambiguous: the new element replaces them.
        [_, _, ..] => combine(shape.element(), &NULL, other),
    };
    let taken = order(&left, &right);
    let values = taken.into_iter().filter_map(|source| match source {
        Source::Live(at) => left.at(at).map(|(_, value)| value.clone()),
        Source::Applied(at) => right.at(at).map(|(step, value)| element(&left, value, step)),
    });
    Value::Array(values.collect())
}

/// The source of an element of the united list, by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// Only in the live list.
    Live(usize),
    /// In the applied list, and possibly in the live one.
    Applied(usize),
}

/// The order of the united list (upstream: `visitListItems`): applied elements keep their order;
/// elements that are only live come as early as the shared elements before them allow.
fn order(left: &Items<'_>, right: &Items<'_>) -> Vec<Source> {
    let mut out = Vec::with_capacity(left.len().max(right.len()));
    let mut shared = right.iter().map(|(step, _)| step).filter(|step| left.has(step));
    let mut next_shared = shared.next();
    let mut done = BTreeSet::new();
    let (mut l, mut r) = (0, 0);
    while l < left.len() || r < right.len() {
        let (here, there) = (left.at(l).map(|(step, _)| step), right.at(r).map(|(step, _)| step));
        if let (Some(live), Some(applied)) = (here, there) {
            if live == applied {
                out.push(Source::Applied(r));
                done.insert(live);
                (l, r, next_shared) = (l + 1, r + 1, shared.next());
                continue;
            }
            if right.has(live) && next_shared.is_some_and(|next| next != live) {
                // A shared element, but not the next one.
                l += 1;
                continue;
            }
        }
        if let Some(live) = here {
            if !right.has(live) {
                out.push(Source::Live(l));
                l += 1;
                continue;
            }
            if done.contains(live) {
                l += 1;
            }
        }
        if let Some(applied) = there {
            out.push(Source::Applied(r));
            done.insert(applied);
            r += 1;
            if next_shared == Some(applied) {
                next_shared = shared.next();
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::DAEMON_SET;
    use super::*;

    #[test]
    fn lists_are_united_in_the_applied_order() {
        let of = |text: &str| -> Value {
            text.chars().map(|c| json!({"name": c.to_string()})).collect()
        };
        let pod = DAEMON_SET.shape().field("spec").field("template").field("spec");
        for (rule, live, applied, want) in [
            ("the same", "abc", "abc", "abc"),
            ("nothing live", "", "ba", "ba"),
            ("nothing applied", "ab", "", "ab"),
            ("a new order", "abc", "cba", "cba"),
            ("one more at the end", "ab", "abc", "abc"),
            ("one more in front", "ab", "cab", "cab"),
            ("a foreign one stays where it was", "axb", "ab", "axb"),
            ("a foreign one in front", "xab", "ab", "xab"),
            ("a foreign one at the end", "abx", "ab", "abx"),
            ("a foreign one and a new order", "axb", "ba", "xba"),
            ("new ones come after foreign ones", "ax", "ab", "axb"),
            ("nothing in common", "xy", "ab", "xyab"),
            ("several of each", "xaybz", "cbda", "xycbzda"),
        ] {
            let got = combine(pod.field("containers"), &of(live), &of(applied));
            let got: String = Items::of(pod.field("containers"), Some(&got))
                .iter()
                .map(|(_, element)| element["name"].as_str().unwrap_or_default())
                .collect();
            assert_eq!(got, want, "{rule}");
        }
    }
}
