//! The current and the target revision of a DaemonSet.

use std::collections::{BTreeMap, BTreeSet};

use super::document::{RevisionKind, RevisionPlan, TargetRevision};
use crate::classification::Templates;
use daemonset::controller::Owner;
use daemonset::controller::claims::Claims;
use daemonset::controller::history::{self, Current, construct, hash_of};
use daemonset::controller::revision_data::{Matching, matches};
use daemonset::model::{DaemonSet, Pod, Revision, RevisionHash, RevisionRef};

/// The target revision.
pub(super) struct RevisionTarget {
    /// Current and target revision for the document.
    pub plan: RevisionPlan,
    /// The hash label of its pods. For a new revision it is a hash computed here that no pod has;
    /// the controller chooses another one.
    pub hash: RevisionHash,
    /// Maps pods to the template that they were created from.
    pub templates: Templates,
}

/// Finds the revision of the owner's template or makes up a new one, and finds the current
/// revision.
///
/// Templates match regardless of their serialization ([`Matching::Tolerant`]), so that revisions of
/// an old server are found.
pub(super) fn target(
    owner: &Owner<'_>,
    live: Option<&DaemonSet>,
    revisions: &Claims<'_, Revision>,
    pods: &[&Pod],
    namespace: &[Revision],
) -> RevisionTarget {
    let current = current(owner, revisions, pods, namespace);
    let template = owner.spec.template.raw();
    let claimed = || revisions.claimed.iter().copied();
    let same: BTreeSet<RevisionHash> = claimed()
        .filter(|revision| matches(template, &revision.data, Matching::Tolerant))
        .map(hash_of)
        .chain([current.hash()])
        .collect();
    let numbers: BTreeMap<_, _> =
        claimed().map(|revision| (hash_of(revision), revision.number)).collect();
    let kind = match &current {
        Current::New(_) => RevisionKind::New,
        Current::Reused { .. } => RevisionKind::Reused,
        Current::Found { .. } | Current::Unchanged { .. } => RevisionKind::Unchanged,
    };
    let name = match &current {
        Current::New(_) => None,
        Current::Reused { revision, .. }
        | Current::Found { revision }
        | Current::Unchanged { revision } => Some(revision.name.clone()),
    };
    RevisionTarget {
        plan: RevisionPlan {
            current: live.and_then(|live| revision_of(live, revisions)),
            target: TargetRevision { name, number: current.number() },
            kind,
        },
        hash: current.hash(),
        templates: Templates { target: same, numbers },
    }
}

/// The revision of the owner's template. Like the controller, it increases the collision count and
/// tries again when another template has the name.
fn current<'a>(
    owner: &Owner<'_>,
    revisions: &Claims<'a, Revision>,
    pods: &[&'a Pod],
    namespace: &'a [Revision],
) -> Current<'a> {
    let mut owner = *owner;
    loop {
        let claimed = &revisions.claimed;
        match construct(&owner, claimed, namespace, pods, Matching::Tolerant) {
            Ok(history) => return history.current,
            Err(history::Error::NameTaken { collision_count, .. }) => {
                owner.status.collision_count = Some(collision_count);
            }
        }
    }
}

/// The highest revision with the live template.
fn revision_of(live: &DaemonSet, revisions: &Claims<'_, Revision>) -> Option<RevisionRef> {
    let template = live.spec.template.raw();
    let same = revisions.claimed.iter();
    same.filter(|revision| matches(template, &revision.data, Matching::Tolerant))
        .max_by_key(|revision| revision.number)
        .map(|&revision| revision.into())
}
