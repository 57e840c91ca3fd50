//! Intermediate versions: neither the last good one nor the target of a rollout.

use std::collections::BTreeSet;

use daemonset::controller::history::hash_of;
use daemonset::model::{Pod, Revision, RevisionHash};

/// The versions of outdated pods that are intermediate.
#[derive(Debug)]
pub(crate) enum Intermediate {
    /// All but the last good one.
    AllBut(RevisionHash),
    /// Those that are recorded as failed: the last good one is not known, as for `roll`, which finds its
    /// target live.
    Failed(BTreeSet<RevisionHash>),
}

impl Intermediate {
    /// No version.
    pub(crate) fn none() -> Self {
        Self::Failed(BTreeSet::new())
    }

    /// These revisions, whose templates are recorded as failed.
    pub(crate) fn failed<'r>(revisions: impl Iterator<Item = &'r Revision>) -> Self {
        Self::Failed(revisions.map(hash_of).collect())
    }

    /// Whether an outdated pod is of one.
    pub(crate) fn has(&self, pod: &Pod) -> bool {
        match self {
            Self::AllBut(last_good) => !pod.has_hash(last_good),
            Self::Failed(failed) => failed.iter().any(|hash| pod.has_hash(hash)),
        }
    }
}
