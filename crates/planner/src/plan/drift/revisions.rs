//! Drift of revisions: those that the controller would not have created.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use serde_json::Value;

use super::document::Deviation;
use daemonset::controller::Owner;
use daemonset::controller::claims::Claims;
use daemonset::controller::revision_data::{Matching, matches};
use daemonset::model::{DaemonSet, Revision, RevisionName, RevisionNumber, RevisionRef};

/// Maximum lifetime of an intermediate revision that counts as a side effect of one action.
const ONE_ACTION: SignedDuration = SignedDuration::from_secs(10);

/// Returns the deviations of the revisions in `namespace` that `owner` controls or could control.
pub(super) fn deviations(
    owner: &Owner<'_>,
    live: Option<&DaemonSet>,
    namespace: &[Revision],
) -> Vec<Deviation> {
    let own = own(owner, namespace);
    let mut found = Vec::new();
    // A controller that has not observed the template yet has not created its revision.
    if let Some(live) = live
        && live.status.observed_generation >= live.generation
        && !live.terminating
        && !own.iter().any(|it| matches(live.spec.template.raw(), &it.data, Matching::Tolerant))
    {
        found.push(Deviation::RevisionMissing);
    }
    found.extend(duplicates(&own));
    found.extend(numbers_twice(&own));
    found.extend(orphaned(owner, namespace));
    found.extend(own.windows(3).filter_map(mixed));
    found
}

/// The revisions that the DaemonSet controls, by number.
pub(super) fn own<'a>(owner: &Owner<'_>, namespace: &'a [Revision]) -> Vec<&'a Revision> {
    let mut own: Vec<&Revision> = Claims::of(owner, namespace).claimed;
    own.retain(|revision| revision.controller.is_some());
    own.sort_by(|a, b| (a.number, &a.name).cmp(&(b.number, &b.name)));
    own
}

/// Revisions of the same template; the controller keeps the highest (upstream:
/// `dedupCurHistories`).
fn duplicates(own: &[&Revision]) -> Vec<Deviation> {
    let mut found = Vec::new();
    for (at, &revision) in own.iter().enumerate() {
        let stays = own[at + 1..].iter().copied().rfind(|other| other.data == revision.data);
        found.extend(stays.map(|of| Deviation::RevisionDuplicate {
            revision: RevisionRef::from(revision),
            of: RevisionRef::from(of),
        }));
    }
    found
}

fn numbers_twice(own: &[&Revision]) -> Vec<Deviation> {
    let mut names: BTreeMap<RevisionNumber, Vec<RevisionName>> = BTreeMap::new();
    for revision in own {
        names.entry(revision.number).or_default().push(revision.name.clone());
    }
    let twice = names.into_iter().filter(|(_, names)| names.len() > 1);
    twice.map(|(number, names)| Deviation::RevisionNumberTwice { number, names }).collect()
}

/// Revisions that the selector matches and that have no controller, or a deleted DaemonSet of this
/// name.
fn orphaned<'a>(
    owner: &'a Owner<'_>,
    namespace: &'a [Revision],
) -> impl Iterator<Item = Deviation> + 'a {
    let is_orphan = |revision: &&Revision| match &revision.controller {
        None => true,
        Some(reference) => {
            *reference.kind == *owner.managed_by.owner_kind()
                && *reference.name == *owner.managed_by.owner_name(&owner.key.name)
                && Some(&reference.uid) != owner.uid
        }
    };
    let matching =
        namespace.iter().filter(|revision| owner.spec.selector.matches(&revision.labels));
    matching
        .filter(move |revision| is_orphan(revision))
        .map(|revision| Deviation::RevisionOrphaned { revision: RevisionRef::from(revision) })
}

/// The middle one of three revisions, if it mixes the other two and was replaced at once: the
/// result of `kubectl apply --server-side` on an object that was applied on the client side, which
/// first adds new fields and then removes old ones.
fn mixed(three: &[&Revision]) -> Option<Deviation> {
    let &[older, middle, newer] = three else { return None };
    let lived = newer.created?.duration_since(middle.created?);
    if lived.is_negative() || lived > ONE_ACTION {
        return None;
    }
    let [old, mid, new] = [older, middle, newer].map(|revision| leaves(&revision.data));
    let made_of_both = mid.iter().all(|leaf| old.contains(leaf) || new.contains(leaf));
    let only = |of: &BTreeSet<String>, other: &BTreeSet<String>| {
        mid.iter().any(|leaf| of.contains(leaf) && !other.contains(leaf))
    };
    (made_of_both && only(&old, &new) && only(&new, &old)).then(|| Deviation::RevisionMixed {
        revision: RevisionRef::from(middle),
        older: RevisionRef::from(older),
        newer: RevisionRef::from(newer),
    })
}

/// Every scalar value with its path; list elements by name if they have one.
fn leaves(value: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    collect(value, "", &mut found);
    found
}

fn collect(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                collect(value, &format!("{path}/{key}"), found);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                let name = item.get("name").and_then(Value::as_str);
                let step = name.map_or_else(|| at.to_string(), |name| format!("[{name}]"));
                collect(item, &format!("{path}/{step}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            found.insert(format!("{path}={value}"));
        }
    }
}
