//! Schedules the replacement of outdated pods: the candidates, the nodes that wait, and the
//! reasons.
//!
//! There is one wave for each domain of each step of the policy; one in all without them. A wave
//! slides: as soon as a node has an available pod again, the next candidate is replaced, and
//! unavailable nodes never exceed the budget. With a ramp, it starts with one node.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::coded::Coded;
use super::document::{Action, Fate, NodePlan, PodPlan, StepPlan, StepState, Strategy, Wave};
use super::reason::Reason;
use crate::classification::{NodeBudget, SkippedNodes, Templates};
use crate::shared::NodeRank;
use crate::steps::{
    Evaluation, NodeUpdate, Progress, StepNode, StepProgress, StepsInput, WaitsFor, WaveId,
    empty_steps, evaluate,
};
use daemonset::controller::node_pods::Fleet;
use daemonset::model::{
    Calendar, MinReady, NodeName, PolicySpec, Ramp, SkipUnreadyNodes, StepsNote,
};

/// State of one node that matters for the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BudgetView {
    /// Whether the node may start a pod and so counts for the budget.
    pub desired: bool,
    /// Readiness of the node.
    pub node: NodeBudgetState,
    /// State of its pod.
    pub pod: PodBudgetState,
    /// How far its update is.
    pub update: NodeUpdate,
    /// Whether it has an available pod, of any template.
    pub has_available_pod: bool,
    /// Restarts of its pod.
    pub restarts: u32,
}

/// Readiness of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeBudgetState {
    /// The kubelet reports the node as Ready.
    Ready,
    /// The node is NotReady or its state is unknown.
    NotReady {
        /// When it became NotReady, if known.
        since: Option<Timestamp>,
        /// Seconds since then.
        seconds: Option<i64>,
    },
}

/// State of a node's pod that matters for the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PodBudgetState {
    /// Outdated and Ready: replacing it needs budget.
    OutdatedReady,
    /// Outdated and not Ready: replacing it needs no budget.
    OutdatedUnready,
    /// Updated, and a rollout would not wait for it any longer.
    Failed,
    /// Anything else: running, starting, or handled by the controller.
    Other,
}

impl BudgetView {
    /// Whether its updated pod has failed although the node is Ready.
    fn has_failed(&self) -> bool {
        self.desired && self.node == NodeBudgetState::Ready && self.pod == PodBudgetState::Failed
    }
}

impl PodBudgetState {
    fn is_outdated(self) -> bool {
        matches!(self, Self::OutdatedReady | Self::OutdatedUnready)
    }
}

/// Result of scheduling: the waves, and the nodes that block them.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// The waves in order.
    pub waves: Vec<Wave>,
    /// The steps of the policy, with the implied last one; empty if it has none.
    pub steps: Vec<StepPlan>,
    /// Names of the steps that select no node.
    pub empty_steps: Vec<String>,
    /// What keeps the next wave from beginning.
    pub waits_for: Vec<WaitsFor>,
    /// Unavailable nodes that use up the budget, if other nodes have to wait for it.
    pub holders: Vec<NodeName>,
}

/// What waves are scheduled by, beside the nodes.
#[derive(Clone, Copy)]
pub(super) struct Rules<'a> {
    /// The strategy after the apply.
    pub strategy: Strategy,
    /// The policy.
    pub pace: &'a PolicySpec,
    /// The budget that it shares with other DaemonSets, in nodes.
    pub shared_budget: Option<u32>,
    /// How many of these DaemonSets are rolled out on each node, too.
    pub siblings: &'a BTreeMap<NodeName, u32>,
    /// Time that new pods must stay up.
    pub min_ready_seconds: MinReady,
    /// Templates of the pods.
    pub templates: &'a Templates,
    /// The nodes of the cluster.
    pub fleet: &'a Fleet<'a>,
    /// Digest of the target template.
    pub template: &'a str,
    /// What the rollout has noted about its steps.
    pub note: Option<&'a StepsNote>,
    /// Names of the steps with a valid approval.
    pub approved: &'a BTreeSet<String>,
    /// The windows and exclusions of the policy.
    pub calendar: &'a Calendar,
    /// Time that the update of one node takes, in seconds.
    pub node_seconds: u32,
    /// The time of the snapshot.
    pub now: Timestamp,
}

/// Divides the outdated pods of a rolling update into waves, and sets nodes that must wait to
/// [`Action::Wait`]. `nodes` and `budget_views` have the same order.
pub(super) fn schedule(
    nodes: &mut [NodePlan],
    budget_views: &[BudgetView],
    rules: &Rules<'_>,
) -> Schedule {
    let Rules { strategy, pace, templates, .. } = *rules;
    let (max_unavailable, max_surge) = match strategy {
        Strategy::OnDelete => return Schedule::default(),
        Strategy::RollingUpdate { max_unavailable, max_surge, desired } => {
            (pace.stricter(max_unavailable, desired), max_surge)
        }
    };
    // With a surge, the built-in controller replaces the pods, and it skips no nodes.
    let mut holders = Vec::new();
    if max_surge == 0 {
        holders = skip_unready_nodes(nodes, budget_views, templates, pace.skip_unready_nodes);
        holders.extend((0..nodes.len()).filter(|at| budget_views[*at].has_failed()));
        let unavailable = u32::try_from(holders.len()).unwrap_or(u32::MAX);
        if unavailable < max_unavailable
            || !defer_ready_pods(nodes, budget_views, templates, unavailable, max_unavailable)
        {
            holders.clear();
        }
    }
    holders.sort_unstable();
    let holders = holders.into_iter().map(|at| nodes[at].name.clone()).collect();
    let stepped = Stepped::of(nodes, budget_views, rules);
    let evaluation = evaluate(&stepped.input(rules));
    let mut by_wave: BTreeMap<WaveId, Vec<usize>> = BTreeMap::new();
    for at in candidates(nodes, budget_views) {
        let wave = stepped.positions[at].and_then(|at| evaluation.waves[at]);
        by_wave.entry(wave.unwrap_or_default()).or_default().push(at);
    }
    let limits = Limits { max_unavailable, max_surge };
    let mut waves: Vec<Wave> = Vec::with_capacity(by_wave.len());
    for (id, candidates) in by_wave {
        let mut wave = wave(id, &evaluation, limits, rules, waves.last());
        wave.nodes = candidates.iter().map(|at| nodes[*at].name.clone()).collect();
        for at in candidates {
            nodes[at].wave = Some(wave.index);
        }
        waves.push(wave);
    }
    let waits_for = if waves.is_empty() && evaluation.current.is_none() {
        Vec::new()
    } else {
        evaluation.waits_for.clone()
    };
    let empty_steps = empty_steps(&evaluation).iter().map(|step| step.name.clone()).collect();
    Schedule { waves, steps: step_plans(&evaluation, pace), empty_steps, waits_for, holders }
}

/// The limits of all waves.
#[derive(Clone, Copy)]
struct Limits {
    max_unavailable: u32,
    max_surge: u32,
}

/// A wave without its nodes; `before` is the one before it.
fn wave(
    id: WaveId,
    evaluation: &Evaluation<'_>,
    limits: Limits,
    rules: &Rules<'_>,
    before: Option<&Wave>,
) -> Wave {
    let Rules { strategy, pace, min_ready_seconds, .. } = *rules;
    let desired = match strategy {
        Strategy::OnDelete => 0,
        Strategy::RollingUpdate { desired, .. } => desired,
    };
    let Limits { max_unavailable, max_surge } = limits;
    let (step, domain) = (&evaluation.steps[id.step], &evaluation.domains[id.domain]);
    let of_step = step.policy.and_then(|step| step.max_unavailable);
    let of_step = of_step.map_or(max_unavailable, |limit| limit.scaled(desired).max(1));
    let step_name = (!pace.steps.is_empty()).then(|| step.name().to_owned());
    let domain_name = domain.name.name().map(str::to_owned);
    let domains = pace.domains.as_ref();
    Wave {
        index: before.map_or(1, |before| before.index + 1),
        name: wave_name(step_name.as_deref(), domain_name.as_deref()),
        step: step_name,
        domain: domain_name,
        max_unavailable: max_unavailable.min(of_step),
        max_surge,
        domain_max_unavailable: domain.max_unavailable,
        domains_at_once: domains.map(|domains| domains.at_once),
        // With a surge, a guard blocks the plan.
        shared_budget: rules.shared_budget,
        // The built-in controller, which does the surge, has no ramp.
        ramp: if max_surge > 0 { Ramp::None } else { pace.ramp },
        min_ready_seconds,
        soak_seconds: domains.map_or(0, |domains| domains.soak.0),
        nodes: Vec::new(),
    }
}

/// `all nodes`, `canary`, `zone-a`, or `canary, zone-a`.
fn wave_name(step: Option<&str>, domain: Option<&str>) -> String {
    let domain = domain.map(|name| if name.is_empty() { "no domain" } else { name });
    match (step, domain) {
        (None, None) => "all nodes".to_owned(),
        (Some(name), None) | (None, Some(name)) => name.to_owned(),
        (Some(step), Some(domain)) => format!("{step}, {domain}"),
    }
}

/// The steps for the document; empty if the policy has none.
fn step_plans(evaluation: &Evaluation<'_>, pace: &PolicySpec) -> Vec<StepPlan> {
    if pace.steps.is_empty() {
        return Vec::new();
    }
    let plan = |(at, step): (usize, &StepProgress<'_>)| StepPlan {
        name: step.name().to_owned(),
        nodes: step.nodes,
        updated: step.updated,
        state: match &step.progress {
            Progress::Done { .. } => StepState::Done,
            Progress::Complete { .. } => StepState::Soaking,
            Progress::Running if evaluation.current == Some(at) => StepState::InProgress,
            Progress::Running => StepState::Pending,
        },
        approve: step.policy.is_some_and(|step| step.approve),
        approved: None,
        soak_seconds: step.policy.map_or(0, |step| step.soak.0),
    };
    evaluation.steps.iter().enumerate().map(plan).collect()
}

/// The nodes of the plan as the steps see them.
struct Stepped<'a> {
    nodes: Vec<StepNode<'a>>,
    /// The position of each node of the plan among them; none if it does not exist any more.
    positions: Vec<Option<usize>>,
}

impl<'a> Stepped<'a> {
    fn of(plans: &[NodePlan], budget_views: &[BudgetView], rules: &Rules<'a>) -> Self {
        let desired = budget_views.iter().filter(|view| view.desired).count();
        let desired = u32::try_from(desired).unwrap_or(u32::MAX);
        let mut skipped = SkippedNodes::of(rules.pace.skip_unready_nodes, desired);
        let mut stepped = Self { nodes: Vec::new(), positions: Vec::with_capacity(plans.len()) };
        for (plan, view) in plans.iter().zip(budget_views) {
            let at = rules.fleet.position(&plan.name);
            let Some(node) = at.map(|at| &rules.fleet.nodes()[at]) else {
                stepped.positions.push(None);
                continue;
            };
            let budget = skipped.classify(view.node == NodeBudgetState::Ready, view.desired);
            let is_unavailable = view.desired
                && match budget {
                    NodeBudget::Excluded => false,
                    NodeBudget::Unavailable => true,
                    NodeBudget::Ready => !view.has_available_pod,
                };
            stepped.positions.push(Some(stepped.nodes.len()));
            stepped.nodes.push(StepNode {
                node,
                is_desired: view.desired,
                budget,
                is_unavailable,
                update: view.update,
                restarts: view.restarts,
                shared: NodeRank {
                    siblings: rules.siblings.get(&plan.name).copied().unwrap_or_default(),
                    ..NodeRank::default()
                },
            });
        }
        stepped
    }

    fn input<'s>(&'s self, rules: &Rules<'a>) -> StepsInput<'s, 'a> {
        StepsInput {
            nodes: &self.nodes,
            policy: rules.pace,
            calendar: rules.calendar,
            template: rules.template,
            note: rules.note,
            approved: rules.approved,
            now: rules.now,
            node_seconds: rules.node_seconds,
        }
    }
}

/// Lets outdated pods on NotReady nodes wait. Returns the positions of the nodes that count as
/// unavailable because more nodes are NotReady than may be skipped.
fn skip_unready_nodes(
    nodes: &mut [NodePlan],
    budget_views: &[BudgetView],
    templates: &Templates,
    skip: SkipUnreadyNodes,
) -> Vec<usize> {
    let count = |wanted: &dyn Fn(&BudgetView) -> bool| {
        u32::try_from(budget_views.iter().filter(|s| s.desired && wanted(s)).count())
            .unwrap_or(u32::MAX)
    };
    let desired = count(&|_| true);
    let unready = count(&|s| s.node != NodeBudgetState::Ready);
    let mut skipped = SkippedNodes::of(skip, desired);
    let mut counting = Vec::new();
    for (at, (node, budget_view)) in nodes.iter_mut().zip(budget_views).enumerate() {
        let NodeBudgetState::NotReady { since, seconds } = budget_view.node else { continue };
        let reason = match skipped.classify(false, budget_view.desired) {
            NodeBudget::Ready | NodeBudget::Excluded => {
                Reason::SkippedUnreadyNode { since, seconds }
            }
            NodeBudget::Unavailable => {
                counting.push(at);
                Reason::UnreadyNodeCounts { unready, skippable: skipped.skippable }
            }
        };
        if budget_view.pod.is_outdated() && is_rolled(node) {
            wait(node, templates, reason);
        }
    }
    counting
}

/// Lets Ready outdated pods wait, because nothing in the plan frees the budget. Returns whether
/// there are any.
fn defer_ready_pods(
    nodes: &mut [NodePlan],
    budget_views: &[BudgetView],
    templates: &Templates,
    unavailable: u32,
    allowed: u32,
) -> bool {
    let mut any = false;
    for (node, budget_view) in nodes.iter_mut().zip(budget_views) {
        if budget_view.pod == PodBudgetState::OutdatedReady && is_rolled(node) {
            wait(node, templates, Reason::MaxUnavailableReached { unavailable, allowed });
            any = true;
        }
    }
    any
}

/// The positions of the nodes to be replaced: first those whose pod is not Ready, as they need no
/// budget, then the others; each by name.
fn candidates(nodes: &[NodePlan], budget_views: &[BudgetView]) -> Vec<usize> {
    let outdated = |pod: PodBudgetState| {
        (0..nodes.len()).filter(move |at| budget_views[*at].pod == pod && is_rolled(&nodes[*at]))
    };
    outdated(PodBudgetState::OutdatedUnready)
        .chain(outdated(PodBudgetState::OutdatedReady))
        .collect()
}

/// Whether the plan deletes an outdated pod of the node.
fn is_rolled(node: &NodePlan) -> bool {
    node.deleted().any(is_outdated)
}

fn is_outdated(pod: &PodPlan) -> bool {
    matches!(pod.reason.reason, Reason::Outdated { .. } | Reason::DeletedNotRecreated { .. })
}

/// Keeps the outdated pod of a node. The node waits, unless the controller deletes another of its
/// pods at once.
fn wait(node: &mut NodePlan, templates: &Templates, reason: Reason) {
    for pod in node.pods.iter_mut().filter(|pod| is_outdated(pod)) {
        pod.fate = Fate::Keep;
        // A pod that is not deleted needs no successor: it is only outdated.
        if let Reason::DeletedNotRecreated { .. } = pod.reason.reason {
            let outdated = Coded::from(templates.outdated_with(pod.revision_hash.as_ref()));
            for of_node in node.reasons.iter_mut().filter(|it| **it == pod.reason) {
                *of_node = outdated.clone();
            }
            pod.reason = outdated;
        }
    }
    if node.deleted().next().is_some() {
        // The first reason is the main one: now that of the delete, no longer that of the update.
        node.reasons.rotate_left(1);
        node.reasons.push(Coded::from(reason));
        node.action = Action::Delete;
    } else {
        node.reasons.insert(0, Coded::from(reason));
        node.action = Action::Wait;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOT_READY: NodeBudgetState = NodeBudgetState::NotReady { since: None, seconds: Some(60) };

    /// `count` nodes in one state, named after `prefix`, each with one pod that is replaced if it
    /// is outdated.
    fn nodes(
        prefix: &str,
        count: usize,
        node: NodeBudgetState,
        pod: PodBudgetState,
    ) -> Vec<(NodePlan, BudgetView)> {
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
        let view = BudgetView {
            desired: true,
            node,
            pod,
            update: NodeUpdate::Outdated { is_intermediate: false },
            has_available_pod: true,
            restarts: 0,
        };
        (0..count).map(|at| (plan(at), view)).collect()
    }

    /// The first reason codes of the waiting nodes, and the nodes of the wave.
    fn scheduled(
        fleet: Vec<(NodePlan, BudgetView)>,
        max_unavailable: u32,
        max_surge: u32,
    ) -> (Vec<NodePlan>, Vec<String>) {
        let (mut plans, budget_views): (Vec<_>, Vec<_>) = fleet.into_iter().unzip();
        let desired = u32::try_from(plans.len()).unwrap();
        let strategy = Strategy::RollingUpdate { max_unavailable, max_surge, desired };
        let rules = Rules {
            strategy,
            pace: &PolicySpec::default(),
            shared_budget: None,
            siblings: &BTreeMap::new(),
            min_ready_seconds: MinReady::default(),
            templates: &Templates::default(),
            fleet: &Fleet::new(&[]),
            template: "",
            note: None,
            approved: &BTreeSet::new(),
            calendar: &Calendar::of(&[], &[]),
            node_seconds: 60,
            now: Timestamp::UNIX_EPOCH,
        };
        let Schedule { waves, .. } = schedule(&mut plans, &budget_views, &rules);
        let names = waves.iter().flat_map(|wave| wave.nodes.iter().map(ToString::to_string));
        (plans, names.collect())
    }

    fn codes(plans: &[NodePlan], action: Action) -> Vec<&'static str> {
        plans.iter().filter(|p| p.action == action).map(|p| p.reasons[0].reason.code()).collect()
    }

    #[test]
    fn unready_pods_come_first_because_they_need_no_budget() {
        let mut fleet = nodes("a", 2, NodeBudgetState::Ready, PodBudgetState::OutdatedReady);
        fleet.extend(nodes("b", 1, NodeBudgetState::Ready, PodBudgetState::OutdatedUnready));
        let (plans, order) = scheduled(fleet, 1, 0);
        assert_eq!(order, ["b0", "a0", "a1"]);
        assert!(plans.iter().all(|plan| plan.wave == Some(1)));
    }

    #[test]
    fn unready_nodes_are_skipped_up_to_a_share_of_the_fleet() {
        // 5% of 60 is 3, rounded up.
        let mut fleet = nodes("a", 56, NodeBudgetState::Ready, PodBudgetState::OutdatedReady);
        fleet.extend(nodes("b", 4, NOT_READY, PodBudgetState::OutdatedUnready));
        let (plans, order) = scheduled(fleet.clone(), 2, 0);
        assert_eq!(order.len(), 56);
        let waiting = codes(&plans, Action::Wait);
        assert_eq!(waiting, [&["skippedUnreadyNode"; 3][..], &["unreadyNodeCounts"]].concat());
        // The fourth counts as unavailable, and with a budget of one no other node is replaced.
        let (plans, order) = scheduled(fleet, 1, 0);
        assert_eq!(order, Vec::<String>::new());
        assert_eq!(
            codes(&plans, Action::Wait).iter().filter(|c| **c == "maxUnavailableReached").count(),
            56
        );
        assert!(plans.iter().all(|plan| plan.pods[0].fate == Fate::Keep));
    }

    #[test]
    fn at_least_one_unready_node_is_skipped() {
        let mut fleet = nodes("a", 2, NodeBudgetState::Ready, PodBudgetState::OutdatedReady);
        fleet.extend(nodes("b", 1, NOT_READY, PodBudgetState::OutdatedReady));
        let (plans, order) = scheduled(fleet, 1, 0);
        assert_eq!(order, ["a0", "a1"]);
        assert_eq!(codes(&plans, Action::Wait), ["skippedUnreadyNode"]);
    }

    /// The rollout does not count them either.
    #[test]
    fn nodes_that_are_not_eligible_never_count() {
        let mut fleet = nodes("a", 40, NodeBudgetState::Ready, PodBudgetState::OutdatedReady);
        fleet.extend(nodes("b", 5, NOT_READY, PodBudgetState::OutdatedReady));
        let (_, ineligible) = fleet.last_mut().unwrap();
        ineligible.desired = false;
        let (plans, _) = scheduled(fleet, 9, 0);
        let waiting = codes(&plans, Action::Wait);
        let (skipped, counts) = ("skippedUnreadyNode", "unreadyNodeCounts");
        assert_eq!(waiting, [skipped, skipped, skipped, counts, skipped]);
    }

    #[test]
    fn failed_pods_use_up_the_budget_except_for_unready_pods() {
        let mut fleet = nodes("a", 2, NodeBudgetState::Ready, PodBudgetState::OutdatedReady);
        fleet.extend(nodes("b", 1, NodeBudgetState::Ready, PodBudgetState::OutdatedUnready));
        fleet.extend(nodes("c", 1, NodeBudgetState::Ready, PodBudgetState::Failed));
        let (plans, order) = scheduled(fleet.clone(), 1, 0);
        assert_eq!(order, ["b0"]);
        assert_eq!(codes(&plans, Action::Wait), ["maxUnavailableReached"; 2]);
        let (_, order) = scheduled(fleet, 2, 0);
        assert_eq!(order, ["b0", "a0", "a1"]);
    }

    #[test]
    fn with_a_surge_the_controller_skips_no_nodes() {
        let fleet = nodes("b", 4, NOT_READY, PodBudgetState::OutdatedUnready);
        let (_, order) = scheduled(fleet, 0, 1);
        assert_eq!(order.len(), 4);
    }
}
