//! Decides whether a pod counts as updated (upstream: `IsPodUpdated`).

use crate::model::{Pod, REVISION_HASH_LABEL, RevisionHash, TEMPLATE_GENERATION_LABEL};

/// The labels that identify pods of the current template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurrentTemplate {
    hash: RevisionHash,
    generation: Option<Box<str>>,
}

impl CurrentTemplate {
    /// The template with the current revision's `hash`. With `template_generation: None` only the
    /// hash counts, which is the stricter definition of "updated".
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

    /// Whether `pod` has the hash **or** the template generation. Generations are reused: after
    /// orphaning and recreating a DaemonSet, an old pod may count as updated.
    pub fn is_updated(&self, pod: &Pod) -> bool {
        let by_hash = !self.hash.is_empty() && self.has_hash(pod);
        let by_generation = self.generation.is_some()
            && pod.labels.get(TEMPLATE_GENERATION_LABEL) == self.generation.as_deref();
        by_hash || by_generation
    }

    /// Whether `pod` has the hash, which alone distinguishes the two pods of a node during a surge.
    pub fn has_hash(&self, pod: &Pod) -> bool {
        // A missing label is read as the empty string, as in a Go map.
        pod.labels.get(REVISION_HASH_LABEL).unwrap_or_default() == self.hash.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::test_cluster::pod;

    #[test]
    fn is_pod_updated() {
        let generation = (TEMPLATE_GENERATION_LABEL, "12345");
        let both = &[generation, (REVISION_HASH_LABEL, "55555")][..];
        for (name, template_generation, labels, hash, want) in [
            ("templateGeneration and hash both match", Some(12345), both, "55555", true),
            ("templateGeneration matches, hash doesn't", Some(12345), both, "55555123", true),
            (
                "templateGeneration matches, no hash label, has hash",
                Some(12345),
                &[generation],
                "55555",
                true,
            ),
            (
                "templateGeneration matches, no hash label, no hash",
                Some(12345),
                &[generation],
                "",
                true,
            ),
            ("templateGeneration matches, has hash label, no hash", Some(12345), both, "", true),
            ("templateGeneration doesn't match, hash does", Some(12350), both, "55555", true),
            ("templateGeneration and hash don't match", Some(12350), both, "55555123", false),
            ("empty labels, no hash", Some(12345), &[], "", false),
            ("empty labels", Some(12345), &[], "55555", false),
            ("no generation to compare with", None, &[generation], "55555", false),
            (
                "the label is compared as text",
                Some(7),
                &[(TEMPLATE_GENERATION_LABEL, "007")],
                "55555",
                false,
            ),
        ] {
            let pod = Pod { labels: labels.iter().copied().collect(), ..pod("p", "n") };
            let current = CurrentTemplate::new(hash.into(), template_generation);
            assert_eq!(current.is_updated(&pod), want, "{name}");
        }
    }
}
