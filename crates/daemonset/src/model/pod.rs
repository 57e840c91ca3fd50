//! A pod, with the fields that planning needs.

use std::sync::Arc;

use arcstr::ArcStr;
use jiff::{SignedDuration, Timestamp};

use super::{
    Labels, NamespaceName, NodeName, PodName, REVISION_HASH_LABEL, RevisionHash,
    TEMPLATE_GENERATION_LABEL, Time, Uid,
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
    pub controller: Option<Arc<ControllerRef>>,
    /// The node that it is bound to or aimed at.
    pub target: PodTarget,
    /// `status.phase`.
    pub phase: PodPhase,
    /// Condition `Ready`.
    pub readiness: PodReadiness,
    /// `metadata.creationTimestamp`.
    pub created: Option<Time>,
    /// Whether `metadata.deletionTimestamp` is set.
    pub terminating: bool,
    /// Restarts of all containers together.
    pub restarts: u32,
    /// The last time that one of its containers started or terminated, by the kubelet's clock.
    pub containers_changed: Option<Time>,
    /// The reason why it does not run, from the kubelet or the scheduler.
    pub container_failure: Option<Box<ContainerFailure>>,
    /// Further information about a pod that is not Ready, for display only.
    pub unready: Option<Box<Unready>>,
}

/// The controller owner reference of a pod or revision (upstream: `metav1.GetControllerOf`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerRef {
    /// Kind of the owner, such as `DaemonSet`.
    pub kind: ArcStr,
    /// Name of the owner.
    pub name: ArcStr,
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
    /// Not bound, and its affinity names no node or several: the controller ignores it.
    Nowhere,
}

/// `status.phase`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodPhase {
    /// Accepted; not all containers have started.
    Pending,
    /// At least one container runs.
    Running,
    /// All containers terminated successfully.
    Succeeded,
    /// All containers terminated, at least one of them with an error.
    Failed,
    /// The node cannot be reached; also any unknown phase.
    Unknown,
}

/// The pod's `Ready` condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodReadiness {
    /// Not `True`, or no such condition.
    NotReady {
        /// Time of the transition from Ready (`lastTransitionTime`); `None` if it never was Ready, as
        /// far as its status shows.
        since: Option<Time>,
    },
    /// `True` since this moment (`lastTransitionTime`).
    Ready {
        /// `None` when the condition carries no transition time.
        since: Option<Time>,
    },
}

/// The first container that waits or terminated with an error, or the scheduler's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerFailure {
    /// Name of the container; empty if the failure is of the pod itself.
    pub container: Box<str>,
    /// One word, such as `ImagePullBackOff` or `Unschedulable`.
    pub reason: Box<str>,
    /// Message of the kubelet or the scheduler.
    pub message: Box<str>,
}

/// The kubelet's message about a pod that is not Ready, and its last warning event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unready {
    /// The reason for waiting.
    pub waits_for: Option<ContainerFailure>,
    /// The last warning event about it, such as `FailedMount: …`; known where events were read.
    pub warning: Option<Box<str>>,
}

impl ContainerFailure {
    /// Whether the container is in a crash loop.
    pub fn is_crash_loop(&self) -> bool {
        &*self.reason == "CrashLoopBackOff"
    }
}

impl Pod {
    /// The reason why it is not Ready, from the kubelet or the scheduler; `None` also if they
    /// report nothing.
    pub fn why_unready(&self) -> Option<&ContainerFailure> {
        let waits_for = || self.unready.as_ref().and_then(|it| it.waits_for.as_ref());
        self.container_failure.as_deref().or_else(waits_for)
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

    /// Whether the condition `Ready` is `True`, whatever the phase (upstream: `IsPodReady`).
    pub fn is_ready(&self) -> bool {
        matches!(self.readiness, PodReadiness::Ready { .. })
    }

    /// Upstream's `IsPodAvailable`: Ready for `min_ready_seconds`, boundary included. It also
    /// holds for terminating pods; budgets use [`Pod::serves`], and for new pods
    /// [`Pod::has_stayed_up`].
    pub fn is_available(&self, min_ready_seconds: u32, now: Timestamp) -> bool {
        match self.readiness {
            PodReadiness::NotReady { since: _ } => false,
            PodReadiness::Ready { since } => {
                let wanted = SignedDuration::from_secs(min_ready_seconds.into());
                wanted.is_zero() || since.is_some_and(|since| since.duration_until(now) >= wanted)
            }
        }
    }

    /// Available *and* not terminating: the stricter rule that budgets use.
    pub fn serves(&self, min_ready_seconds: u32, now: Timestamp) -> bool {
        !self.terminating && self.is_available(min_ready_seconds, now)
    }

    /// The time since which it has been up: Ready, and no container started or terminated since.
    /// `None` if it is not Ready, or Ready since an unknown time.
    pub fn up_since(&self) -> Option<Time> {
        match self.readiness {
            PodReadiness::NotReady { since: _ } => None,
            PodReadiness::Ready { since } => {
                let since = since?;
                Some(self.containers_changed.map_or(since, |changed| changed.max(since)))
            }
        }
    }

    /// Whether it has been up for `seconds`, boundary included, and is not terminating: the rule
    /// for new pods. Stricter than [`Pod::serves`]: a container that restarts or terminates
    /// restarts the time, even if the condition `Ready` does not change.
    pub fn has_stayed_up(&self, seconds: u32, now: Timestamp) -> bool {
        let wanted = SignedDuration::from_secs(seconds.into());
        let up = self.up_since().is_some_and(|since| since.duration_until(now) >= wanted);
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
            containers_changed: containers_changed.map(|second| at(second).into()),
            container_failure: None,
            unready: None,
        }
    }

    fn ready(since: i64) -> PodReadiness {
        PodReadiness::Ready { since: Some(at(since).into()) }
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
    fn a_container_that_starts_or_terminates_restarts_the_time() {
        for (changed, seconds, want) in
            [(None, 10, true), (Some(80), 10, true), (Some(91), 10, false), (Some(91), 0, true)]
        {
            let pod = pod(ready(90), changed);
            assert!(pod.is_available(seconds, at(100)), "upstream uses the condition only");
            assert_eq!(pod.has_stayed_up(seconds, at(100)), want, "{changed:?} {seconds}");
        }
        assert_eq!(pod(ready(90), Some(95)).up_since(), Some(at(95).into()));
        assert_eq!(pod(PodReadiness::NotReady { since: None }, Some(95)).up_since(), None);
        let gone = Pod { terminating: true, ..pod(ready(0), None) };
        assert!(!gone.has_stayed_up(0, at(100)));
    }
}
