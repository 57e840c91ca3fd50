//! Which pods count as updated (upstream: `IsPodUpdated`).

use crate::model::{Pod, REVISION_HASH_LABEL, RevisionHash, TEMPLATE_GENERATION_LABEL};

/// The current template, as its pods are labelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurrentTemplate {
    hash: RevisionHash,
    generation: Option<Box<str>>,
}

impl CurrentTemplate {
    /// The template of the current revision's `hash`. With `template_generation: None` only the
    /// hash counts, which is the stricter meaning of "updated".
    pub fn new(hash: RevisionHash, template_generation: Option<i64>) -> Self {
        Self { hash, generation: template_generation.map(|number| number.to_string().into()) }
    }

    /// The hash label of its pods.
    pub fn hash(&self) -> &RevisionHash {
        &self.hash
    }

    /// The generation label of its pods, if any.
    pub fn generation(&self) -> Option<&str> {
        self.generation.as_deref()
    }

    /// Whether `pod` carries its hash **or** its template generation. The generation outlives
    /// the revision: after orphaning and recreating a DaemonSet, an old pod may count as updated.
    pub fn is_updated(&self, pod: &Pod) -> bool {
        let by_hash = !self.hash.is_empty() && self.has_hash(pod);
        let by_generation = self.generation.is_some()
            && pod.labels.get(TEMPLATE_GENERATION_LABEL) == self.generation.as_deref();
        by_hash || by_generation
    }

    /// Whether `pod` carries its hash; deciding between two pods under surge goes by this alone.
    pub fn has_hash(&self, pod: &Pod) -> bool {
        // An absent label reads as the empty text, as in a Go map.
        pod.labels.get(REVISION_HASH_LABEL).unwrap_or_default() == self.hash.as_str()
    }
}
