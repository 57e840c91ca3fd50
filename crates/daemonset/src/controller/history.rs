//! The current revision, and the pruning of old ones (upstream: `constructHistory`, `snapshot`,
//! `dedupCurHistories`, `cleanupHistory`).
//!
//! Claiming is in `claims`, the data of revisions in `revision_data`.

use std::collections::HashSet;
use std::fmt;

use serde_json::{Value, json};

use super::Owner;
use super::hash::hash;
use super::node_pods::NodePods;
use super::revision_data::{self, Matching};
use crate::model::{
    Labels, Pod, REVISION_HASH_LABEL, Revision, RevisionHash, RevisionName, RevisionNumber,
};

/// The revisions of a DaemonSet, and the necessary changes to them.
#[derive(Clone, Debug, PartialEq)]
pub struct History<'a> {
    /// The revision of the template as it is now.
    pub current: Current<'a>,
    /// Revisions of earlier templates.
    pub old: Vec<&'a Revision>,
    /// Revisions without a hash label; the controller labels them with their own name.
    pub label: Vec<&'a Revision>,
    /// Further revisions of the current template, which are deleted.
    pub duplicates: Vec<&'a Revision>,
    /// If there are duplicates: the claimed pods without the current hash, which is added to them.
    /// As upstream, this includes pods of older templates, which then count as updated.
    pub relabel: Vec<&'a Pod>,
}

/// The revision of the current template.
#[derive(Clone, Debug, PartialEq)]
pub enum Current<'a> {
    /// No revision exists yet.
    New(NewRevision),
    /// The template equals an earlier one: its revision gets the next number.
    Reused {
        /// The existing revision.
        revision: &'a Revision,
        /// Its new number.
        to: RevisionNumber,
    },
    /// A revision with this name and template exists, but is not the owner's. It is used as it is.
    Found {
        /// The revision.
        revision: &'a Revision,
    },
    /// It exists and has the highest number.
    Unchanged {
        /// The revision.
        revision: &'a Revision,
    },
}

/// A revision to create.
#[derive(Clone, PartialEq)]
pub struct NewRevision {
    /// `<DaemonSet>-<hash>`.
    pub name: RevisionName,
    /// Its hash.
    pub hash: RevisionHash,
    /// Its number: the highest old number, plus one.
    pub number: RevisionNumber,
    /// The template's labels and the hash.
    pub labels: Labels,
    /// All annotations of the DaemonSet at this time.
    pub annotations: Labels,
    /// `data`.
    pub data: Value,
}

/// Without annotations and `data`: the template may hold secrets, and this text is logged.
impl fmt::Debug for NewRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, hash, number, labels: _, annotations: _, data: _ } = self;
        let mut shown = f.debug_struct("NewRevision");
        shown.field("name", name).field("hash", hash).field("number", number);
        shown.finish_non_exhaustive()
    }
}

impl NewRevision {
    /// The whole object, owned by `reference`.
    pub fn object(&self, namespace: &str, reference: &Value) -> Value {
        let Self { name, hash: _, number, labels, annotations, data } = self;
        json!({
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": labels,
                "annotations": annotations,
                "ownerReferences": [reference],
            },
            "data": data,
            "revision": number,
        })
    }
}

/// The history cannot be built in this sync.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A revision with the same name has another template. The controller writes the collision
    /// count into the status, fails, and uses it in the hash of the next sync.
    #[error("revision {name} exists with another template")]
    NameTaken {
        /// The name.
        name: RevisionName,
        /// The next collision count.
        collision_count: u32,
    },
}

impl Current<'_> {
    /// Its hash, which new pods carry.
    pub fn hash(&self) -> RevisionHash {
        match self {
            Self::New(new) => new.hash.clone(),
            Self::Reused { revision, .. } | Self::Unchanged { revision } => hash_of(revision),
            // It is not labelled; without a label, its pods get none.
            Self::Found { revision } => revision.hash().unwrap_or_else(|| RevisionHash::from("")),
        }
    }

    /// Its number after the changes.
    pub fn number(&self) -> RevisionNumber {
        match self {
            Self::New(new) => new.number,
            Self::Reused { to, .. } => *to,
            Self::Found { revision } | Self::Unchanged { revision } => revision.number,
        }
    }
}

/// The hash of a revision: its label, or its own name without a label.
pub fn hash_of(revision: &Revision) -> RevisionHash {
    revision.hash().unwrap_or_else(|| RevisionHash::from(revision.name.as_str()))
}

/// Builds the history from the `claimed` revisions and pods of the owner. `namespace` are all
/// revisions of its namespace: a revision that is not claimed may have the same name.
///
/// # Errors
/// [`Error::NameTaken`] when the new revision cannot get its name.
pub fn construct<'a>(
    owner: &Owner<'_>,
    claimed: &[&'a Revision],
    namespace: &'a [Revision],
    pods: &[&'a Pod],
    matching: Matching,
) -> Result<History<'a>, Error> {
    let template = owner.spec.template.raw();
    let is_current =
        |revision: &&Revision| revision_data::matches(template, &revision.data, matching);
    let (mut same, old): (Vec<_>, Vec<_>) = claimed.iter().copied().partition(is_current);
    let highest = old.iter().map(|revision| revision.number.0).fold(0, i64::max);
    let next = RevisionNumber(highest.saturating_add(1));
    let survivor = survivor(&same);
    let current = match survivor {
        None => snapshot(owner, namespace, next, matching)?,
        Some(revision) if revision.number < next => Current::Reused { revision, to: next },
        Some(revision) => Current::Unchanged { revision },
    };
    let has_duplicates = same.len() > 1;
    same.retain(|revision| survivor.is_none_or(|survivor| survivor.name != revision.name));
    let label = claimed.iter().copied().filter(|revision| revision.hash().is_none());
    let relabel = if has_duplicates { relabelled(&current, pods) } else { Vec::new() };
    Ok(History { old, label: label.collect(), duplicates: same, relabel, current })
}

/// The revision to keep of several with one template: the highest number, then the later one.
fn survivor<'a>(same: &[&'a Revision]) -> Option<&'a Revision> {
    same.iter().copied().max_by_key(|revision| revision.number)
}

fn relabelled<'a>(current: &Current<'_>, pods: &[&'a Pod]) -> Vec<&'a Pod> {
    let hash = current.hash();
    let lacks = |pod: &&Pod| pod.labels.get(REVISION_HASH_LABEL) != Some(hash.as_str());
    pods.iter().copied().filter(lacks).collect()
}

/// A new revision, or an existing one with its name and template, whatever its owner (upstream:
/// `snapshot`).
fn snapshot<'a>(
    owner: &Owner<'_>,
    namespace: &'a [Revision],
    number: RevisionNumber,
    matching: Matching,
) -> Result<Current<'a>, Error> {
    let template = &owner.spec.template;
    let collisions = owner.status.collision_count;
    let hash = hash(template.raw(), collisions);
    let name = RevisionName::from(format!("{}-{hash}", owner.key.name));
    match namespace.iter().find(|revision| revision.name == name) {
        Some(revision) if revision_data::matches(template.raw(), &revision.data, matching) => {
            Ok(Current::Found { revision })
        }
        Some(_) => Err(Error::NameTaken {
            name,
            collision_count: collisions.unwrap_or_default().saturating_add(1),
        }),
        None => {
            let labels = template.labels.iter().chain([(REVISION_HASH_LABEL, hash.as_str())]);
            Ok(Current::New(NewRevision {
                labels: labels.collect(),
                annotations: owner.annotations.clone(),
                data: revision_data::data_for(template.raw()),
                name,
                hash,
                number,
            }))
        }
    }
}

/// Old revisions to delete, lowest number first (upstream: `cleanupHistory`): as many as exceed the
/// limit, skipping those of existing pods. `pods` must include ended ones
/// ([`super::node_pods::EndedPods::Counted`]). The current revision is neither counted nor deleted.
pub fn prune<'a>(
    owner: &Owner<'_>,
    old: &[&'a Revision],
    pods: &NodePods<'_>,
) -> Vec<&'a Revision> {
    let limit = usize::try_from(owner.spec.revision_history_limit).unwrap_or(usize::MAX);
    let surplus = old.len().saturating_sub(limit);
    if surplus == 0 {
        return Vec::new();
    }
    let live: HashSet<&str> =
        pods.iter().filter_map(|pod| pod.labels.get(REVISION_HASH_LABEL)).collect();
    let mut dead: Vec<_> =
        old.iter().copied().filter(|revision| !live.contains(hash_of(revision).as_str())).collect();
    dead.sort_by_key(|revision| revision.number);
    dead.truncate(surplus);
    dead
}

#[cfg(test)]
mod tests;
