//! Pullers: short-lived pods that make a node pull the images of a DaemonSet's new pods before its
//! old pod is deleted (`prePull` of a policy).
//!
//! They run nothing of these images. They are found by their label, and never belong to the
//! DaemonSet: their controller is its Lease.

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use super::{DaemonSetKey, DaemonSetName, NodeName, Pod, PodName, Snapshot, Uid};

/// The label of all pullers; its value is that of the DaemonSet ([`puller_label`]).
pub const PRE_PULL_LABEL: &str = "ds-plan.dev/pre-pull";

/// The label with the digest of the images that a puller pulls.
pub const PRE_PULL_IMAGES_LABEL: &str = "ds-plan.dev/pre-pull-images";

/// The longest value of a label (upstream: `LabelValueMaxLength`).
const LONGEST_VALUE: usize = 63;

/// A puller as it was observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Puller {
    /// `metadata.name`.
    pub name: PodName,
    /// `metadata.uid`.
    pub uid: Uid,
    /// `spec.nodeName`; empty if it has none.
    pub node: NodeName,
    /// The digest of its images.
    pub images: Box<str>,
    /// `metadata.creationTimestamp`.
    pub created: Option<Timestamp>,
    /// Whether `metadata.deletionTimestamp` is set.
    pub terminating: bool,
    /// How far it is.
    pub state: PullState,
}

/// How far a puller is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PullState {
    /// Some of its images are not there yet; with the last complaint of the kubelet.
    Pulling(Option<PullProblem>),
    /// All of its images are on the node.
    Pulled,
    /// It has ended, and not all of its images are there.
    Ended(PullProblem),
}

/// Why an image is not on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullProblem {
    /// The image; empty if the pod itself failed.
    pub image: Box<str>,
    /// One word, such as `ErrImagePull`; empty if nothing was reported.
    pub reason: Box<str>,
    /// The message of the kubelet or the server.
    pub message: Box<str>,
}

impl Snapshot {
    /// The pods that pull images for a DaemonSet.
    pub fn pullers<'s>(&'s self, key: &DaemonSetKey) -> impl Iterator<Item = &'s Pod> {
        let label = puller_label(&key.name);
        let pods = self.pods_in(&key.namespace).iter();
        pods.filter(move |pod| pod.labels.get(PRE_PULL_LABEL) == Some(label.as_str()))
    }

    /// Whether there are any.
    pub fn has_pullers(&self, key: &DaemonSetKey) -> bool {
        self.pullers(key).next().is_some()
    }
}

/// The value of [`PRE_PULL_LABEL`] for a DaemonSet: its name, or a digest of one that is too long.
pub fn puller_label(daemon_set: &DaemonSetName) -> String {
    let name = daemon_set.as_str();
    if name.len() <= LONGEST_VALUE { name.to_owned() } else { short_digest(&[name]) }
}

/// The name of the puller of these images on a node. The same one is created only once, whatever
/// the answers to the requests.
pub fn puller_name(daemon_set: &DaemonSetName, node: &NodeName, images: &str) -> String {
    format!("ds-plan-pre-pull-{}", short_digest(&[daemon_set.as_str(), node.as_str(), images]))
}

/// A digest of 20 hexadecimal digits.
pub fn short_digest(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(part.as_bytes());
        // No name or image contains it.
        digest.update([0]);
    }
    digest.finalize().iter().take(10).fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_labels_fit_and_differ() {
        let short = DaemonSetName::from("agent");
        let long = DaemonSetName::from("a".repeat(64));
        let longer = DaemonSetName::from("a".repeat(65));
        assert_eq!(puller_label(&short), "agent");
        assert_ne!(puller_label(&long), puller_label(&longer));
        assert!(puller_label(&long).len() <= LONGEST_VALUE);
        let name = |daemon_set, node: &str, images| puller_name(daemon_set, &node.into(), images);
        let all = [
            name(&short, "a", "i"),
            name(&short, "b", "i"),
            name(&short, "a", "j"),
            name(&long, "a", "i"),
            // Parts are kept apart.
            name(&DaemonSetName::from("agen"), "ta", "i"),
        ];
        let different: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(different.len(), all.len());
        assert!(all.iter().all(|name| name.len() <= LONGEST_VALUE));
    }
}
