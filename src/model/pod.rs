//! A pod, as slim as planning needs it.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::{
    Labels, NamespaceName, NodeName, PodName, REVISION_HASH_LABEL, RevisionHash,
    TEMPLATE_GENERATION_LABEL, Uid,
};

/// One pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// `metadata.namespace`.
    pub namespace: NamespaceName,
    /// `metadata.name`.
    pub name: PodName,
    /// `metadata.uid`.
    pub uid: Uid,
    /// All labels.
    pub labels: Labels,
    /// The owner reference with `controller: true`; `None` is an orphan.
    pub controller: Option<ControllerRef>,
    /// Where it runs or is meant to run.
    pub target: PodTarget,
    /// `status.phase`.
    pub phase: PodPhase,
    /// Condition `Ready`.
    pub readiness: PodReadiness,
    /// `metadata.creationTimestamp`.
    pub created: Option<Timestamp>,
    /// Whether `metadata.deletionTimestamp` is set.
    pub terminating: bool,
    /// Restarts of all containers together.
    pub restarts: u32,
    /// Why it does not run, in the kubelet's or scheduler's words.
    pub trouble: Option<Box<ContainerTrouble>>,
}

/// The controller owner reference of a pod or revision (upstream: `metav1.GetControllerOf`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerRef {
    /// Kind of the owner, such as `DaemonSet`.
    pub kind: Arc<str>,
    /// Name of the owner.
    pub name: Arc<str>,
    /// Identity of the owner; this decides, the name does not.
    pub uid: Uid,
}

/// The node that a pod belongs to (upstream: `GetTargetNodeName`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodTarget {
    /// `spec.nodeName` is set.
    Bound(NodeName),
    /// Not bound yet; its affinity names exactly one node.
    Aimed(NodeName),
    /// Not bound, and its affinity names no node, or several: the controller ignores it.
    Nowhere,
}

/// `status.phase`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodPhase {
    /// Accepted; not all containers have started.
    Pending,
    /// At least one container runs.
    Running,
    /// All containers ended well.
    Succeeded,
    /// All containers ended, one of them badly.
    Failed,
    /// The node cannot be asked; also any word we do not know.
    Unknown,
}

/// What the pod's `Ready` condition says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodReadiness {
    /// Not `True`, or no such condition.
    NotReady,
    /// `True` since this moment (`lastTransitionTime`).
    Ready {
        /// `None` when the condition carries no transition time.
        since: Option<Timestamp>,
    },
}

/// The first container that waits or ended badly, or the scheduler's refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerTrouble {
    /// Name of the container; empty when the pod itself is in trouble.
    pub container: Box<str>,
    /// One word, such as `ImagePullBackOff` or `Unschedulable`.
    pub reason: Box<str>,
    /// What the kubelet or scheduler says.
    pub message: Box<str>,
}

impl Pod {
    /// The node this pod belongs to, bound or aimed.
    pub fn node(&self) -> Option<&NodeName> {
        match &self.target {
            PodTarget::Bound(node) | PodTarget::Aimed(node) => Some(node),
            PodTarget::Nowhere => None,
        }
    }

    /// Whether `spec.nodeName` is set.
    pub fn is_bound(&self) -> bool {
        matches!(self.target, PodTarget::Bound(_))
    }

    /// Failed or Succeeded: it will never run again (upstream: `IsPodTerminal`).
    pub fn is_terminal(&self) -> bool {
        matches!(self.phase, PodPhase::Failed | PodPhase::Succeeded)
    }

    /// Condition `Ready` is `True`; neither phase nor deletion is asked (upstream: `IsPodReady`).
    pub fn is_ready(&self) -> bool {
        matches!(self.readiness, PodReadiness::Ready { .. })
    }

    /// Upstream's `IsPodAvailable`: Ready for `min_ready_seconds`, boundary included. It also
    /// holds for terminating pods; planning wants [`Pod::serves`].
    pub fn is_available(&self, min_ready_seconds: u32, now: Timestamp) -> bool {
        match self.readiness {
            PodReadiness::NotReady => false,
            PodReadiness::Ready { since } => {
                let wanted = SignedDuration::from_secs(min_ready_seconds.into());
                wanted.is_zero() || since.is_some_and(|since| now.duration_since(since) >= wanted)
            }
        }
    }

    /// Available *and* not terminating: the stricter meaning that budgets go by here.
    pub fn serves(&self, min_ready_seconds: u32, now: Timestamp) -> bool {
        !self.terminating && self.is_available(min_ready_seconds, now)
    }

    /// The label `controller-revision-hash`.
    pub fn revision_hash(&self) -> Option<RevisionHash> {
        self.labels.shared(REVISION_HASH_LABEL).cloned().map(RevisionHash::from)
    }

    /// Whether the label `controller-revision-hash` is `hash`.
    pub fn has_hash(&self, hash: &RevisionHash) -> bool {
        self.labels.get(REVISION_HASH_LABEL) == Some(hash.as_str())
    }

    /// The label `pod-template-generation`, when it is a number.
    pub fn template_generation(&self) -> Option<i64> {
        self.labels.get(TEMPLATE_GENERATION_LABEL)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn availability_includes_its_boundary() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let ready = |since| PodReadiness::Ready { since };
        for (readiness, min_ready, now, want) in [
            (PodReadiness::NotReady, 0, 100, false),
            (ready(None), 0, 100, true),
            (ready(None), 1, 100, false),
            (ready(Some(at(90))), 10, 100, true),
            (ready(Some(at(91))), 10, 100, false),
        ] {
            let pod = Pod {
                namespace: "ns".into(),
                name: "pod".into(),
                uid: "uid".into(),
                labels: Labels::default(),
                controller: None,
                target: PodTarget::Nowhere,
                phase: PodPhase::Running,
                readiness,
                created: None,
                terminating: false,
                restarts: 0,
                trouble: None,
            };
            assert_eq!(pod.is_available(min_ready, at(now)), want, "{readiness:?} {min_ready}");
        }
    }
}
