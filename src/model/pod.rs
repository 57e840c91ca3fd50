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
    /// When one of its containers was started last, or ended, by the kubelet's clock.
    pub containers_changed: Option<Timestamp>,
    /// Why it does not run, in the kubelet's or scheduler's words.
    pub trouble: Option<Box<ContainerTrouble>>,
    /// What else there is to say of one that is not Ready. For people: nothing is decided by it.
    pub unready: Option<Box<Unready>>,
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
    NotReady {
        /// Since when, of one that was Ready before (`lastTransitionTime`); `None` when it never was.
        since: Option<Timestamp>,
    },
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

/// What the kubelet says of a pod that is not Ready and that nothing is wrong with as yet, and what
/// was last warned of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unready {
    /// What it waits for.
    pub waits_for: Option<ContainerTrouble>,
    /// The last warning event about it, such as `FailedMount: …`; known where events were read.
    pub warning: Option<Box<str>>,
}

impl ContainerTrouble {
    /// Whether the container is started again and again, and ends.
    pub fn is_crash_loop(&self) -> bool {
        &*self.reason == "CrashLoopBackOff"
    }
}

impl Pod {
    /// Why it is not Ready, in the kubelet's or scheduler's words; `None` also where they say
    /// nothing.
    pub fn why_unready(&self) -> Option<&ContainerTrouble> {
        let waits_for = || self.unready.as_ref().and_then(|it| it.waits_for.as_ref());
        self.trouble.as_deref().or_else(waits_for)
    }

    /// The last warning event about it, if it is not Ready.
    pub fn last_warning(&self) -> Option<&str> {
        self.unready.as_ref().and_then(|it| it.warning.as_deref())
    }

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
            PodReadiness::NotReady { since: _ } => false,
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

    /// Since when it has stayed up: Ready, and none of its containers started or ended meanwhile.
    /// `None` when it is not Ready, or is so since nobody knows when.
    pub fn up_since(&self) -> Option<Timestamp> {
        match self.readiness {
            PodReadiness::NotReady { since: _ } => None,
            PodReadiness::Ready { since } => since
                .map(|since| self.containers_changed.map_or(since, |changed| changed.max(since))),
        }
    }

    /// Whether it has stayed up for `seconds`, boundary included, and is not terminating: how a new
    /// pod is judged. Stricter than [`Pod::serves`]: a container that restarts, or ends, begins the
    /// time again, though the condition `Ready` may never have changed.
    pub fn has_stayed_up(&self, seconds: u32, now: Timestamp) -> bool {
        let wanted = SignedDuration::from_secs(seconds.into());
        let up = self.up_since().is_some_and(|since| now.duration_since(since) >= wanted);
        !self.terminating && self.is_ready() && (wanted.is_zero() || up)
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

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn pod(readiness: PodReadiness, containers_changed: Option<i64>) -> Pod {
        Pod {
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
            containers_changed: containers_changed.map(at),
            trouble: None,
            unready: None,
        }
    }

    fn ready(since: i64) -> PodReadiness {
        PodReadiness::Ready { since: Some(at(since)) }
    }

    #[test]
    fn availability_includes_its_boundary() {
        for (readiness, min_ready, now, want) in [
            (PodReadiness::NotReady { since: None }, 0, 100, false),
            (PodReadiness::Ready { since: None }, 0, 100, true),
            (PodReadiness::Ready { since: None }, 1, 100, false),
            (ready(90), 10, 100, true),
            (ready(91), 10, 100, false),
        ] {
            let pod = pod(readiness, None);
            assert_eq!(pod.is_available(min_ready, at(now)), want, "{readiness:?} {min_ready}");
            assert_eq!(pod.has_stayed_up(min_ready, at(now)), want, "{readiness:?} {min_ready}");
        }
    }

    #[test]
    fn a_container_that_starts_or_ends_begins_the_time_again() {
        for (changed, seconds, want) in
            [(None, 10, true), (Some(80), 10, true), (Some(91), 10, false), (Some(91), 0, true)]
        {
            let pod = pod(ready(90), changed);
            assert!(pod.is_available(seconds, at(100)), "upstream goes by the condition alone");
            assert_eq!(pod.has_stayed_up(seconds, at(100)), want, "{changed:?} {seconds}");
        }
        assert_eq!(pod(ready(90), Some(95)).up_since(), Some(at(95)));
        assert_eq!(pod(PodReadiness::NotReady { since: None }, Some(95)).up_since(), None);
        let gone = Pod { terminating: true, ..pod(ready(0), None) };
        assert!(!gone.has_stayed_up(0, at(100)));
    }
}
