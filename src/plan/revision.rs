//! Which revision the DaemonSet has, and which it will have.

use std::collections::{BTreeMap, BTreeSet};

use super::document::{RevisionKind, RevisionPlan, RevisionRef, TargetRevision};
use super::nodes::Templates;
use crate::controller::Owner;
use crate::controller::claims::Claims;
use crate::controller::history::{self, Current, construct, hash_of};
use crate::controller::revision_data::{Matching, matches};
use crate::model::{DaemonSet, Pod, Revision, RevisionHash};

/// The revision to come.
pub(super) struct Target {
    /// For the document.
    pub plan: RevisionPlan,
    /// What its pods will be labelled with. Of a new revision this is our own hash, which no pod
    /// carries; the controller will choose another.
    pub hash: RevisionHash,
    /// Which pods come from which template.
    pub templates: Templates,
}

/// Finds or makes up the revision of the owner's template, and the one that is current now.
///
/// Templates match whatever their spelling ([`Matching::Tolerant`]), so that an old server's
/// revisions are found again.
pub(super) fn target(
    owner: &Owner<'_>,
    live: Option<&DaemonSet>,
    revisions: &Claims<'_, Revision>,
    pods: &[&Pod],
    namespace: &[Revision],
) -> Target {
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
    Target {
        plan: RevisionPlan {
            current: live.and_then(|live| revision_of(live, revisions)),
            target: TargetRevision { name, number: current.number() },
            kind,
        },
        hash: current.hash(),
        templates: Templates { target: same, numbers },
    }
}

/// The revision of the owner's template. A name that is taken by another template makes the
/// controller count on and try again, and so does this.
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

/// The highest revision that holds the live template.
fn revision_of(live: &DaemonSet, revisions: &Claims<'_, Revision>) -> Option<RevisionRef> {
    let template = live.spec.template.raw();
    let same = revisions.claimed.iter();
    same.filter(|revision| matches(template, &revision.data, Matching::Tolerant))
        .max_by_key(|revision| revision.number)
        .map(|revision| RevisionRef { name: revision.name.clone(), number: revision.number })
}
