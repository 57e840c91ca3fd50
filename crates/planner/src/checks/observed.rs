//! What the observed cluster answers to a check: conditions of nodes, and other pods.
//!
//! A precondition is about the nodes that could begin: how they are now. A gate is about the updated
//! nodes: what has become bad after the new pod, and stays so for the check's `interval`. Before
//! that, it is not known yet. Pods on a node that is not Ready are no evidence for a gate: no
//! kubelet reports about them, and the node itself counts against `skipUnreadyNodes`.

#[cfg(test)]
mod tests;

use jiff::{SignedDuration, Timestamp};

use super::judge::CheckAnswer;
use super::reason::{CheckReason, ConditionFinding, PodFinding};
use daemonset::model::{
    Check, CheckKind, ExpectedPods, Neighbour, Neighbours, Node, NodeName, PodReadiness, PodsCheck,
    PodsOn, Time, Uid,
};

/// Number of nodes or pods that a reason names.
const NAMED: usize = 5;

/// A node that a check is about.
#[derive(Clone, Copy, Debug)]
pub struct CheckedNode<'a> {
    /// The node.
    pub node: &'a Node,
    /// The creation of the DaemonSet's new pod there; `None` if it has none.
    pub pod_created: Option<Time>,
}

/// The cluster as a check sees it.
#[derive(Clone, Copy, Debug)]
pub struct CheckedCluster<'a> {
    /// All nodes, by name.
    pub nodes: &'a [Node],
    /// The pods of each query of the policy.
    pub neighbours: &'a [Neighbours],
    /// The DaemonSet, whose own pods are no neighbours.
    pub owner: &'a Uid,
    /// The time, by the server's clock.
    pub now: Timestamp,
}

/// What was found, by the position of the node; without one, it is about the whole cluster.
#[derive(Clone, Debug, Default)]
pub struct Found {
    failed: Vec<(Option<usize>, Finding)>,
    unknown: Vec<(Option<usize>, Finding)>,
    /// The time at which something fails, unless it recovers.
    pub pending: Option<Timestamp>,
}

#[derive(Clone, Debug)]
enum Finding {
    Condition(ConditionFinding),
    NotReady(PodFinding),
    Present(PodFinding),
    NotObserved,
}

impl Found {
    /// The answer about all nodes together; something that is pending is not in it.
    pub fn answer(&self) -> CheckAnswer {
        let of = |all: &[(Option<usize>, Finding)]| reason(all.iter().map(|(_, finding)| finding));
        match (of(&self.failed), of(&self.unknown)) {
            (Some(reason), _) => CheckAnswer::Fail(reason),
            (None, Some(reason)) => CheckAnswer::Unknown(reason),
            (None, None) => CheckAnswer::Pass,
        }
    }

    /// The positions of the nodes that do not pass.
    pub fn nodes(&self) -> impl Iterator<Item = usize> {
        self.failed.iter().chain(&self.unknown).filter_map(|(at, _)| *at)
    }
}

/// How the nodes are that could begin.
pub fn precondition(
    check: &Check,
    nodes: &[CheckedNode<'_>],
    cluster: CheckedCluster<'_>,
) -> Found {
    let mut found = Found::default();
    match &check.kind {
        CheckKind::NodeConditions(_) => conditions(check, nodes, None, &mut found),
        CheckKind::Pods(pods) => {
            let Some(others) = Others::of(pods, cluster, &mut found) else { return found };
            let mut look = |at: Option<usize>, here: &[Neighbour]| {
                for pod in others.wanted(here) {
                    match pods.expect {
                        ExpectedPods::Absent => {
                            let finding = Finding::Present(named(pod, pod.created));
                            found.failed.push((at, finding));
                        }
                        ExpectedPods::Ready => {
                            if let (false, PodReadiness::NotReady { since }) =
                                (pod.terminating, pod.readiness)
                            {
                                found.failed.push((at, Finding::NotReady(named(pod, since))));
                            }
                        }
                    }
                }
            };
            match pods.on {
                PodsOn::Node => {
                    for (at, checked) in nodes.iter().enumerate() {
                        look(Some(at), others.all.on(&checked.node.name));
                    }
                }
                PodsOn::Cluster => look(None, others.all.all()),
            }
        }
        CheckKind::Prometheus(_) | CheckKind::Http(_) | CheckKind::Command(_) => {}
    }
    found
}

/// What has become of the updated nodes.
pub fn gate(check: &Check, nodes: &[CheckedNode<'_>], cluster: CheckedCluster<'_>) -> Found {
    let mut found = Found::default();
    match &check.kind {
        CheckKind::NodeConditions(_) => {
            conditions(check, nodes, Some(cluster.now), &mut found);
        }
        CheckKind::Pods(pods) => {
            let Some(others) = Others::of(pods, cluster, &mut found) else { return found };
            match pods.on {
                PodsOn::Node => {
                    for (at, CheckedNode { node, pod_created }) in nodes.iter().enumerate() {
                        let here = others.all.on(&node.name);
                        others.became_unready(here, *pod_created, check, Some(at), &mut found);
                    }
                }
                PodsOn::Cluster => {
                    let first = nodes.iter().filter_map(|it| it.pod_created).min();
                    others.became_unready(others.all.all(), first, check, None, &mut found);
                }
            }
        }
        CheckKind::Prometheus(_) | CheckKind::Http(_) | CheckKind::Command(_) => {}
    }
    found
}

/// Compares the conditions of nodes. With a time, one that is not as expected fails only after the
/// check's interval.
fn conditions(
    check: &Check,
    nodes: &[CheckedNode<'_>],
    stays_until: Option<Timestamp>,
    found: &mut Found,
) {
    let CheckKind::NodeConditions(wanted) = &check.kind else { return };
    for (at, checked) in nodes.iter().enumerate() {
        for (name, expected) in wanted {
            let condition = checked.node.condition(name);
            let finding = || {
                Finding::Condition(ConditionFinding {
                    node: checked.node.name.clone(),
                    condition: name.clone(),
                    status: condition.map(|it| it.status.as_str().to_owned()),
                    expected: expected.clone(),
                    since: condition.and_then(|it| it.since).map(Timestamp::from),
                })
            };
            match condition {
                None => found.unknown.push((Some(at), finding())),
                Some(condition) if condition.status.as_str() == *expected => {}
                Some(condition) => {
                    let since = stays_until.and_then(|now| Some((now, condition.since?)));
                    match since.and_then(|(now, since)| fails_at(check, since, now)) {
                        Some(later) => found.wait(later),
                        None => found.failed.push((Some(at), finding())),
                    }
                }
            }
        }
    }
}

/// The time at which something bad fails a gate; `None` if it does already.
fn fails_at(check: &Check, since: Time, now: Timestamp) -> Option<Timestamp> {
    let seconds = SignedDuration::from_secs(check.interval.0.into());
    let at = Timestamp::from(since).saturating_add(seconds).unwrap_or(Timestamp::MAX);
    (at > now).then_some(at)
}

impl Found {
    fn wait(&mut self, until: Timestamp) {
        self.pending = self.pending.into_iter().chain([until]).min();
    }
}

/// The pods that a check looks at.
struct Others<'a> {
    check: &'a PodsCheck,
    all: &'a Neighbours,
    cluster: CheckedCluster<'a>,
}

impl<'a> Others<'a> {
    /// The pods of the check's query; unknown if they are not observed.
    fn of(check: &'a PodsCheck, cluster: CheckedCluster<'a>, found: &mut Found) -> Option<Self> {
        let all = cluster.neighbours.iter().find(|it| it.query.selector == check.selector);
        if all.is_none() {
            found.unknown.push((None, Finding::NotObserved));
        }
        all.map(|all| Self { check, all, cluster })
    }

    /// The part of these pods that the check is about.
    fn wanted(&self, pods: &'a [Neighbour]) -> impl Iterator<Item = &'a Neighbour> {
        let (owner, resource) = (self.cluster.owner, self.check.resource.as_deref());
        pods.iter().filter(move |pod| {
            let requests =
                |wanted: &str| pod.resources.iter().any(|resource| **resource == *wanted);
            pod.controller.as_ref() != Some(owner) && resource.is_none_or(requests)
        })
    }

    /// Finds pods that are older than the new pod, and became unready after it.
    fn became_unready(
        &self,
        pods: &'a [Neighbour],
        new_pod: Option<Time>,
        check: &Check,
        at: Option<usize>,
        found: &mut Found,
    ) {
        let Some(new_pod) = new_pod else { return };
        for pod in self.wanted(pods) {
            let PodReadiness::NotReady { since: Some(since) } = pod.readiness else { continue };
            let is_older = pod.created.is_some_and(|created| created < new_pod);
            if !is_older || since < new_pod || pod.terminating || !self.is_on_ready_node(pod) {
                continue;
            }
            match fails_at(check, since, self.cluster.now) {
                Some(later) => found.wait(later),
                None => found.failed.push((at, Finding::NotReady(named(pod, Some(since))))),
            }
        }
    }

    fn is_on_ready_node(&self, pod: &Neighbour) -> bool {
        let nodes = self.cluster.nodes;
        let place = |name: &NodeName| nodes.binary_search_by(|node| node.name.cmp(name)).ok();
        pod.node.as_ref().and_then(place).is_some_and(|at| nodes[at].readiness.is_ready())
    }
}

fn named(pod: &Neighbour, since: Option<Time>) -> PodFinding {
    let since = since.map(Timestamp::from);
    PodFinding { pod: pod.to_string(), node: pod.node.clone(), since }
}

/// The reason that names the first of these; `None` if there are none. All are of one kind.
fn reason<'a>(findings: impl Iterator<Item = &'a Finding>) -> Option<CheckReason> {
    let mut findings = findings.peekable();
    let first = findings.peek().copied()?;
    let (mut conditions, mut pods, mut others) = (Vec::new(), Vec::new(), 0);
    for (at, finding) in findings.enumerate() {
        match finding {
            _ if at >= NAMED => others += 1,
            Finding::Condition(it) => conditions.push(it.clone()),
            Finding::NotReady(it) | Finding::Present(it) => pods.push(it.clone()),
            Finding::NotObserved => {}
        }
    }
    Some(match first {
        Finding::Condition(_) => CheckReason::NodeConditions { nodes: conditions, others },
        Finding::NotReady(_) => CheckReason::PodsNotReady { pods, others },
        Finding::Present(_) => CheckReason::PodsPresent { pods, others },
        Finding::NotObserved => CheckReason::unanswered("the pods are not observed"),
    })
}
