//! Which outdated pods are replaced when: who is a candidate, who is left for later, and why.
//!
//! There is one wave. It slides: as soon as a node is well again, the next candidate goes, and never
//! more than the budget are without an available pod. With a ramp, the first node goes alone.

use super::coded::Coded;
use super::document::{Action, NodePlan, Strategy, Wave};
use super::reason::Reason;
use crate::model::{MinReady, NodeName, PolicySpec, Ramp, SkipUnreadyNodes};

/// What the budget has to know of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    /// The node may start a pod, so the budget counts it.
    pub desired: bool,
    /// The node's kubelet reports that pods can run, or the time since it does not.
    pub node: NodeStanding,
    /// What becomes of its pod.
    pub pod: PodStanding,
}

/// Whether the node itself is well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeStanding {
    /// Its kubelet reports.
    Ready,
    /// It does not, since so many seconds if that is known.
    NotReady {
        /// When it stopped.
        since: Option<jiff::Timestamp>,
        /// How long ago that was, in seconds.
        seconds: Option<i64>,
    },
}

/// What becomes of a node's pod, as far as the budget goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PodStanding {
    /// Outdated and Ready: replacing it takes one from the budget.
    OutdatedReady,
    /// Outdated and not Ready: replacing it costs nothing.
    OutdatedUnready,
    /// Of the target revision, and in trouble that it may not get out of by itself.
    Stuck,
    /// Anything else: well, on its way, or the controller's affair.
    Other,
}

impl Standing {
    /// Whether its pod is stuck, and the node is not to blame for it.
    fn is_stuck(&self) -> bool {
        self.desired && self.node == NodeStanding::Ready && self.pod == PodStanding::Stuck
    }
}

impl PodStanding {
    fn is_outdated(self) -> bool {
        matches!(self, Self::OutdatedReady | Self::OutdatedUnready)
    }
}

/// Who is replaced when.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// The waves in order.
    pub waves: Vec<Wave>,
    /// Nodes that use up the budget, if that holds others back.
    pub holders: Vec<NodeName>,
}

/// Puts the outdated pods of a rolling update into waves, and turns those that must wait into
/// [`Action::Wait`]. `nodes` and `standings` belong together by position.
pub(super) fn schedule(
    nodes: &mut [NodePlan],
    standings: &[Standing],
    strategy: Strategy,
    pace: &PolicySpec,
    min_ready_seconds: MinReady,
) -> Schedule {
    let (max_unavailable, max_surge) = match strategy {
        Strategy::OnDelete => return Schedule::default(),
        Strategy::RollingUpdate { max_unavailable, max_surge, desired } => {
            (pace.stricter(max_unavailable, desired), max_surge)
        }
    };
    // With a surge the built-in controller does the rolling, and it skips nothing.
    let mut holders = Vec::new();
    if max_surge == 0 {
        holders = hold_back_unready_nodes(nodes, standings, pace.skip_unready_nodes);
        holders.extend((0..nodes.len()).filter(|at| standings[*at].is_stuck()));
        let unavailable = u32::try_from(holders.len()).unwrap_or(u32::MAX);
        if unavailable < max_unavailable
            || !hold_back_ready_pods(nodes, standings, unavailable, max_unavailable)
        {
            holders.clear();
        }
    }
    holders.sort_unstable();
    let holders = holders.into_iter().map(|at| nodes[at].name.clone()).collect();
    let candidates = candidates(nodes, standings);
    if candidates.is_empty() {
        return Schedule { waves: Vec::new(), holders };
    }
    let names: Vec<NodeName> = candidates.iter().map(|at| nodes[*at].name.clone()).collect();
    for at in candidates {
        nodes[at].wave = Some(1);
    }
    let name = "all nodes".to_owned();
    // A surge is the controller's own, and knows no ramp.
    let ramp = if max_surge > 0 { Ramp::None } else { pace.ramp };
    let wave =
        Wave { index: 1, name, max_unavailable, max_surge, ramp, min_ready_seconds, nodes: names };
    Schedule { waves: vec![wave], holders }
}

/// Leaves outdated pods on NotReady nodes for later. Returns the positions of those that count
/// against the budget, because more of them are there than may be skipped.
fn hold_back_unready_nodes(
    nodes: &mut [NodePlan],
    standings: &[Standing],
    skip: SkipUnreadyNodes,
) -> Vec<usize> {
    let count = |wanted: &dyn Fn(&Standing) -> bool| {
        u32::try_from(standings.iter().filter(|s| s.desired && wanted(s)).count())
            .unwrap_or(u32::MAX)
    };
    let desired = count(&|_| true);
    let unready = count(&|s| s.node != NodeStanding::Ready);
    let skippable = skip.of(desired);
    let (mut seen, mut counting) = (0, Vec::new());
    for (at, (node, standing)) in nodes.iter_mut().zip(standings).enumerate() {
        let NodeStanding::NotReady { since, seconds } = standing.node else { continue };
        seen += u32::from(standing.desired);
        if standing.desired && seen > skippable {
            counting.push(at);
        }
        if standing.pod.is_outdated() && is_rolled(node.action) {
            let reason = if seen <= skippable {
                Reason::SkippedUnreadyNode { since, seconds }
            } else {
                Reason::UnreadyNodeCounts { unready, skippable }
            };
            wait(node, reason);
        }
    }
    counting
}

/// Nothing that the plan does gives the budget back, so Ready outdated pods have to stay. Whether
/// there are any.
fn hold_back_ready_pods(
    nodes: &mut [NodePlan],
    standings: &[Standing],
    unavailable: u32,
    allowed: u32,
) -> bool {
    let mut any = false;
    for (node, standing) in nodes.iter_mut().zip(standings) {
        if standing.pod == PodStanding::OutdatedReady && is_rolled(node.action) {
            wait(node, Reason::BudgetTaken { unavailable, allowed });
            any = true;
        }
    }
    any
}

/// The positions of the nodes to be rolled: those whose pod is not Ready first, as they cost
/// nothing, then the others; each by name.
fn candidates(nodes: &[NodePlan], standings: &[Standing]) -> Vec<usize> {
    let outdated = |pod: PodStanding| {
        (0..nodes.len()).filter(move |at| standings[*at].pod == pod && is_rolled(nodes[*at].action))
    };
    outdated(PodStanding::OutdatedUnready).chain(outdated(PodStanding::OutdatedReady)).collect()
}

/// Whether `action` takes an outdated pod away.
fn is_rolled(action: Action) -> bool {
    match action {
        Action::Replace | Action::Surge | Action::Delete => true,
        Action::Create | Action::Wait | Action::Keep => false,
    }
}

fn wait(node: &mut NodePlan, reason: Reason) {
    node.action = Action::Wait;
    for pod in &mut node.pods {
        if matches!(pod.reason.reason, Reason::Outdated { .. } | Reason::NothingComesBack { .. }) {
            pod.fate = super::document::Fate::Keep;
        }
    }
    node.reasons.insert(0, Coded::from(reason));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Fate, PodPlan};

    const NOT_READY: NodeStanding = NodeStanding::NotReady { since: None, seconds: Some(60) };

    /// `count` nodes of one kind, named after `prefix`, each with one pod to be replaced unless
    /// it is none of the outdated ones.
    fn nodes(
        prefix: &str,
        count: usize,
        node: NodeStanding,
        pod: PodStanding,
    ) -> Vec<(NodePlan, Standing)> {
        let reason =
            if pod.is_outdated() { Reason::Outdated { revision: None } } else { Reason::UpToDate };
        let action = if pod.is_outdated() { Action::Replace } else { Action::Keep };
        let fate = if pod.is_outdated() { Fate::Delete } else { Fate::Keep };
        let plan = |at: usize| NodePlan {
            name: format!("{prefix}{at}").into(),
            action,
            wave: None,
            pods: vec![PodPlan {
                name: format!("pod-{prefix}{at}").into(),
                uid: format!("uid-{prefix}{at}").into(),
                revision_hash: None,
                fate,
                reason: reason.clone().into(),
            }],
            reasons: vec![reason.clone().into()],
        };
        (0..count).map(|at| (plan(at), Standing { desired: true, node, pod })).collect()
    }

    /// Actions by node name with the code of the first reason, and the wave's nodes.
    fn scheduled(
        fleet: Vec<(NodePlan, Standing)>,
        max_unavailable: u32,
        max_surge: u32,
    ) -> (Vec<NodePlan>, Vec<String>) {
        let (mut plans, standings): (Vec<_>, Vec<_>) = fleet.into_iter().unzip();
        let desired = u32::try_from(plans.len()).unwrap();
        let strategy = Strategy::RollingUpdate { max_unavailable, max_surge, desired };
        let Schedule { waves, holders: _ } =
            schedule(&mut plans, &standings, strategy, &PolicySpec::default(), MinReady::default());
        let names = waves.iter().flat_map(|wave| wave.nodes.iter().map(ToString::to_string));
        (plans, names.collect())
    }

    fn codes(plans: &[NodePlan], action: Action) -> Vec<&'static str> {
        plans.iter().filter(|p| p.action == action).map(|p| p.reasons[0].reason.code()).collect()
    }

    #[test]
    fn unready_pods_come_first_because_they_cost_nothing() {
        let mut fleet = nodes("a", 2, NodeStanding::Ready, PodStanding::OutdatedReady);
        fleet.extend(nodes("b", 1, NodeStanding::Ready, PodStanding::OutdatedUnready));
        let (plans, order) = scheduled(fleet, 1, 0);
        assert_eq!(order, ["b0", "a0", "a1"]);
        assert!(plans.iter().all(|plan| plan.wave == Some(1)));
    }

    #[test]
    fn unready_nodes_are_skipped_up_to_a_share_of_the_fleet() {
        // 5% of 60 is 3, rounded up.
        let mut fleet = nodes("a", 56, NodeStanding::Ready, PodStanding::OutdatedReady);
        fleet.extend(nodes("b", 4, NOT_READY, PodStanding::OutdatedUnready));
        let (plans, order) = scheduled(fleet.clone(), 2, 0);
        assert_eq!(order.len(), 56);
        let waiting = codes(&plans, Action::Wait);
        assert_eq!(waiting, [&["skippedUnreadyNode"; 3][..], &["unreadyNodeCounts"]].concat());
        // The fourth counts, and with a budget of one nothing else may go.
        let (plans, order) = scheduled(fleet, 1, 0);
        assert_eq!(order, Vec::<String>::new());
        assert_eq!(codes(&plans, Action::Wait).iter().filter(|c| **c == "budgetTaken").count(), 56);
        assert!(plans.iter().all(|plan| plan.pods[0].fate == Fate::Keep));
    }

    #[test]
    fn at_least_one_unready_node_is_skipped() {
        let mut fleet = nodes("a", 2, NodeStanding::Ready, PodStanding::OutdatedReady);
        fleet.extend(nodes("b", 1, NOT_READY, PodStanding::OutdatedReady));
        let (plans, order) = scheduled(fleet, 1, 0);
        assert_eq!(order, ["a0", "a1"]);
        assert_eq!(codes(&plans, Action::Wait), ["skippedUnreadyNode"]);
    }

    #[test]
    fn stuck_pods_take_the_budget_but_not_from_what_costs_nothing() {
        let mut fleet = nodes("a", 2, NodeStanding::Ready, PodStanding::OutdatedReady);
        fleet.extend(nodes("b", 1, NodeStanding::Ready, PodStanding::OutdatedUnready));
        fleet.extend(nodes("c", 1, NodeStanding::Ready, PodStanding::Stuck));
        let (plans, order) = scheduled(fleet.clone(), 1, 0);
        assert_eq!(order, ["b0"]);
        assert_eq!(codes(&plans, Action::Wait), ["budgetTaken"; 2]);
        let (_, order) = scheduled(fleet, 2, 0);
        assert_eq!(order, ["b0", "a0", "a1"]);
    }

    #[test]
    fn with_a_surge_the_controller_skips_nothing() {
        let fleet = nodes("b", 4, NOT_READY, PodStanding::OutdatedUnready);
        let (_, order) = scheduled(fleet, 0, 1);
        assert_eq!(order.len(), 4);
    }
}
