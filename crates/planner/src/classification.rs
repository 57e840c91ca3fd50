//! What nodes and pods are: the one classification that the plan, the rollout and the status use.
//!
//! - A pod is *updated* if it was created from the target template, else *outdated*
//!   ([`Templates`]).
//! - It is *available* when it has been Ready for long enough ([`Availability`]).
//! - It has *failed permanently* if it will not become Ready without a change
//!   ([`has_failed_permanently`]); it *stays unready* if waiting longer will probably not help
//!   ([`stays_unready`]).
//! - A node is Ready, or NotReady and skipped, or NotReady and counted against the budget
//!   ([`NodeStanding`], [`SkippedNodes`]).
//!
//! *Available* and *updated* are stricter than upstream (`daemonset::controller` says how). Not here: any
//! decision.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::plan::reason::Reason;
use daemonset::controller::placement::{Obstacle, Placement};
use daemonset::model::{
    Node, NodeReadiness, Pod, PodReadiness, PolicySpec, REVISION_HASH_LABEL, RevisionHash,
    RevisionNumber, SkipUnreadyNodes, TaintEffect, Time,
};

/// Maps pods to the template that they were created from.
#[derive(Debug, Default)]
pub(crate) struct Templates {
    /// Hashes of the target template. There may be several: two revisions may have templates that
    /// differ only in the serialization of an old server.
    pub target: BTreeSet<RevisionHash>,
    /// Number of each existing revision.
    pub numbers: BTreeMap<RevisionHash, RevisionNumber>,
}

impl Templates {
    /// Whether the pod's hash label is the target's.
    pub(crate) fn is_updated(&self, pod: &Pod) -> bool {
        pod.labels.get(REVISION_HASH_LABEL).is_some_and(|hash| self.target.contains(hash))
    }

    /// The reason for replacing a pod of another template, with its revision.
    pub(crate) fn outdated(&self, pod: &Pod) -> Reason {
        self.outdated_with(pod.revision_hash().as_ref())
    }

    /// The same reason for a pod with this hash label.
    pub(crate) fn outdated_with(&self, hash: Option<&RevisionHash>) -> Reason {
        Reason::Outdated { revision: hash.and_then(|hash| self.numbers.get(hash).copied()) }
    }
}

/// The time that a pod must have been Ready to be available, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Availability {
    /// Of an outdated pod: the declared `minReadySeconds`, by upstream's rule.
    pub outdated: u32,
    /// Of an updated pod, in which no container may start or end meanwhile.
    pub updated: u32,
}

impl Availability {
    /// The seconds that apply to a pod.
    pub(crate) fn seconds(self, is_updated: bool) -> u32 {
        if is_updated { self.updated } else { self.outdated }
    }

    /// Whether a pod is available. A terminating one never is.
    pub(crate) fn is_available(self, pod: &Pod, is_updated: bool, now: Timestamp) -> bool {
        if is_updated {
            pod.has_stayed_up(self.updated, now)
        } else {
            pod.serves(self.outdated, now)
        }
    }

    /// The time when a Ready pod becomes available, if it stays Ready.
    pub(crate) fn available_at(
        self,
        pod: &Pod,
        is_updated: bool,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let since = match pod.readiness {
            PodReadiness::NotReady { since: _ } => return None,
            PodReadiness::Ready { since: _ } if is_updated => pod.up_since(),
            PodReadiness::Ready { since } => since,
        };
        let wanted = SignedDuration::from_secs(self.seconds(is_updated).into());
        Some(since.map_or(now, Timestamp::from) + wanted)
    }
}

/// Waiting reasons of the kubelet for containers that will not start without a change.
const PERMANENT: [&str; 5] = [
    "ImagePullBackOff",
    "ErrImagePull",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CrashLoopBackOff",
];

/// Whether a container of the pod will not start without a change. A container that has ended once
/// may start again.
pub(crate) fn has_failed_permanently(pod: &Pod) -> bool {
    pod.container_failure.as_ref().is_some_and(|failure| PERMANENT.contains(&&*failure.reason))
}

/// Whether the containers of a pod restart more often than the policy allows. A pod that is older than
/// the deadline, and than the start of the rollout, does not count: its restarts may be months apart.
pub(crate) fn restarts_too_often(
    pod: &Pod,
    now: Timestamp,
    policy: &PolicySpec,
    started_at: Option<Timestamp>,
) -> bool {
    let is_young = |created: Time| {
        created.duration_until(now) <= progress_deadline(policy)
            || started_at.is_some_and(|started| created >= started)
    };
    pod.restarts > policy.max_restarts && pod.created.is_none_or(is_young)
}

/// Whether a pod that is not Ready will probably stay so: it has failed permanently, restarts too
/// often, or has not been Ready for longer than the progress deadline.
///
/// This is all that one observation shows, so a plan uses it, and a run for the pods that it finds
/// (`rollout::failing_before`). Whether a pod aborts a rollout (`rollout::new_pods`) depends on more:
/// since when the run waits for it and observes its failure.
pub(crate) fn stays_unready(pod: &Pod, now: Timestamp, policy: &PolicySpec) -> bool {
    let PodReadiness::NotReady { since } = pod.readiness else { return false };
    let is_late = |at: Time| at.duration_until(now) > progress_deadline(policy);
    has_failed_permanently(pod)
        || restarts_too_often(pod, now, policy, None)
        || since.or(pod.created).is_some_and(is_late)
}

/// The policy's `progressDeadline`.
pub(crate) fn progress_deadline(policy: &PolicySpec) -> SignedDuration {
    SignedDuration::from_secs(policy.progress_deadline.0.into())
}

/// The taints that the node lifecycle controller adds to nodes that are not Ready.
const OUTAGE_TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// The readiness of a node that counts. One that comes back is Ready some seconds before its taint is
/// removed and its pods are Ready again. If the pods do not tolerate the taint, it is not Ready until that
/// is gone: else its pods would be deleted like those of nodes where no pod may start, which take up no
/// budget. Its time is that at which the condition `Ready` became true.
pub(crate) fn node_readiness(node: &Node, placement: &Placement) -> NodeReadiness {
    let is_of_outage = |obstacle: &Obstacle| {
        matches!(obstacle, Obstacle::Taint { taint }
            if taint.effect == TaintEffect::NoSchedule && OUTAGE_TAINTS.contains(&&*taint.key))
    };
    let comes_back = || placement.obstacle.as_deref().is_some_and(is_of_outage);
    if node.readiness.is_ready() && comes_back() {
        let since = node.condition("Ready").and_then(|condition| condition.since);
        return NodeReadiness::NotReady { since };
    }
    node.readiness
}

/// Whether a node is Ready, and whether it counts against the budget if it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeStanding {
    /// The kubelet reports the node as Ready; it counts if it has no available pod.
    Ready,
    /// Not Ready: skipped, and not counted.
    Skipped,
    /// Not Ready, and counted as unavailable: more such nodes than may be skipped, or the run has
    /// just deleted its pod.
    Counted,
}

impl NodeStanding {
    /// Whether a node counts as unavailable that should run a pod.
    pub(crate) fn is_unavailable(self, has_available_pod: bool) -> bool {
        match self {
            Self::Skipped => false,
            Self::Counted => true,
            Self::Ready => !has_available_pod,
        }
    }
}

/// Classifies the nodes of a DaemonSet in the order of their names: the first NotReady ones are
/// skipped, as many as the policy allows. A node on which no pod may start is not a desired one: it
/// counts, and uses up one of them, only if it is lost after its update ([`NodeRole`]).
#[derive(Debug)]
pub(crate) struct SkippedNodes {
    /// Number of NotReady nodes that may be skipped.
    pub skippable: u32,
    /// Number of NotReady nodes that count, so far.
    pub unready: u32,
}

/// What a node is to a DaemonSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeRole {
    /// It should run a pod (upstream: `shouldRun`).
    Desired,
    /// It is not Ready and has an updated pod. No other one may start there: the pods do not tolerate the
    /// taint that such a node gets. It counts as other NotReady nodes do; else a version that breaks its
    /// nodes never stops.
    Lost,
    /// Neither: it counts for nothing.
    Other,
}

impl NodeRole {
    /// The role of a node with this placement. Most nodes may start a pod, whatever theirs are.
    pub(crate) fn of(
        is_ready: bool,
        placement: &Placement,
        has_updated_pod: impl FnOnce() -> bool,
    ) -> Self {
        if placement.may_start {
            Self::Desired
        } else if !is_ready && placement.may_stay && has_updated_pod() {
            Self::Lost
        } else {
            Self::Other
        }
    }

    /// Whether it counts against the budget while it is not Ready.
    pub(crate) fn counts(self) -> bool {
        match self {
            Self::Desired | Self::Lost => true,
            Self::Other => false,
        }
    }
}

impl SkippedNodes {
    pub(crate) fn of(policy: SkipUnreadyNodes, desired: u32) -> Self {
        Self { skippable: policy.of(desired), unready: 0 }
    }

    /// Classifies the next node.
    pub(crate) fn classify(&mut self, is_ready: bool, role: NodeRole) -> NodeStanding {
        if is_ready {
            return NodeStanding::Ready;
        }
        self.unready += u32::from(role.counts());
        if role.counts() && self.unready > self.skippable {
            NodeStanding::Counted
        } else {
            NodeStanding::Skipped
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use daemonset::controller::test_cluster::{Cluster, at};
    use daemonset::model::{ContainerFailure, PodPhase};

    /// A pod that is not Ready, created at second 1000.
    fn unready() -> Pod {
        let mut cluster = Cluster::of(1);
        cluster.sync();
        let mut pod = cluster.pods.remove(0);
        pod.phase = PodPhase::Running;
        pod.created = Some(at(1_000).into());
        pod.readiness = PodReadiness::NotReady { since: Some(at(1_000).into()) };
        pod
    }

    fn failure(reason: &str) -> ContainerFailure {
        ContainerFailure { container: "agent".into(), reason: reason.into(), message: "".into() }
    }

    #[test]
    fn a_pod_stays_unready_by_cause_restarts_or_age() {
        let policy = PolicySpec::default();
        let deadline = i64::from(policy.progress_deadline.0);
        for (reason, restarts, seconds, want) in [
            ("", 0, 10, false),
            ("Error", 1, 10, false),
            ("OOMKilled", 1, 10, false),
            ("RunContainerError", 0, 10, false),
            ("CrashLoopBackOff", 1, 10, true),
            ("ImagePullBackOff", 0, 10, true),
            ("ErrImagePull", 0, 10, true),
            ("", policy.max_restarts, 10, false),
            ("", policy.max_restarts + 1, 10, true),
            ("", 0, deadline, false),
            ("Error", 1, deadline + 1, true),
        ] {
            let mut pod = unready();
            pod.restarts = restarts;
            pod.container_failure = (!reason.is_empty()).then(|| Box::new(failure(reason)));
            let now = at(1_000 + seconds);
            assert_eq!(stays_unready(&pod, now, &policy), want, "{reason} {restarts} {seconds}");
            pod.readiness = PodReadiness::Ready { since: None };
            assert!(!stays_unready(&pod, now, &policy), "{reason}: it is Ready");
        }
    }

    /// The deadline runs from the time when it was last Ready, not from its creation; its restarts may
    /// be old.
    #[test]
    fn an_old_pod_that_was_ready_until_now_may_recover() {
        let policy = PolicySpec::default();
        let deadline = i64::from(policy.progress_deadline.0);
        let mut pod = unready();
        pod.restarts = policy.max_restarts + 1;
        pod.readiness = PodReadiness::NotReady { since: Some(at(5_000).into()) };
        for (seconds, want) in [(5_010, false), (5_000 + deadline, false), (5_001 + deadline, true)]
        {
            assert_eq!(stays_unready(&pod, at(seconds), &policy), want, "{seconds}");
        }
    }

    #[test]
    fn an_updated_pod_must_not_restart_meanwhile() {
        let times = Availability { outdated: 5, updated: 20 };
        let mut pod = unready();
        assert_eq!(times.available_at(&pod, true, at(1_100)), None);
        pod.readiness = PodReadiness::Ready { since: Some(at(1_050).into()) };
        pod.containers_changed = Some(at(1_060).into());
        for (is_updated, want) in [(false, 1_055), (true, 1_080)] {
            assert_eq!(times.available_at(&pod, is_updated, at(1_050)), Some(at(want)));
            assert!(!times.is_available(&pod, is_updated, at(want - 1)), "{is_updated}");
            assert!(times.is_available(&pod, is_updated, at(want)), "{is_updated}");
        }
        pod.terminating = true;
        assert!(!times.is_available(&pod, true, at(9_999)));
    }

    #[test]
    fn desired_nodes_are_skipped_by_name_and_others_never_count() {
        use NodeRole::{Desired, Lost, Other};
        use NodeStanding::{Counted, Ready, Skipped};
        let mut nodes = SkippedNodes { skippable: 1, unready: 0 };
        for (is_ready, role, want) in [
            (true, Desired, Ready),
            (false, Other, Skipped),
            (false, Desired, Skipped),
            (true, Other, Ready),
            (false, Desired, Counted),
            (false, Other, Skipped),
            (false, Lost, Counted),
            (true, Lost, Ready),
            (false, Desired, Counted),
        ] {
            assert_eq!(nodes.classify(is_ready, role), want, "{is_ready} {role:?}");
        }
    }
}
