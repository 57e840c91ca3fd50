//! Schedules the replacement of outdated pods.
//!
//! There is one wave for each domain of each step of the policy; one in all without them. A wave
//! slides: as soon as a node has an available pod again, the next candidate is replaced, and
//! unavailable nodes never exceed the budget. With a ramp, it starts with one node.
//! Not here: the nodes that have to wait for the budget (`budget`), and steps that can never begin
//! because of it (`blocked`).

mod blocked;
mod budget;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::document::{Action, NodePlan, StepPlan, StepState, Strategy, Wave};
use crate::classification::{SkippedNodes, Templates};
use crate::steps::{
    Evaluation, NodeRank, Progress, StepNode, StepProgress, StepsInput, WaitsFor, WaveId,
    empty_steps, evaluate,
};
pub(super) use blocked::BlockedStep;
use budget::AlreadyUnavailable;
pub(super) use budget::{BudgetView, PodBudgetState};
use daemonset::controller::node_pods::Fleet;
use daemonset::model::{Calendar, MinReady, NodeName, NodeReadiness, PolicySpec, Ramp, StepsNote};

/// A plan asks no gates.
static NONE_PASSED: BTreeMap<String, Timestamp> = BTreeMap::new();

/// Result of scheduling: the waves, and what blocks them.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// The waves in order.
    pub waves: Vec<Wave>,
    /// The steps of the policy, with the implied last one; empty if it has none.
    pub steps: Vec<StepPlan>,
    /// Numbers of the waves that come next; empty if the policy has neither steps nor domains.
    pub next_waves: Vec<u32>,
    /// What keeps the next wave from beginning.
    pub waits_for: Vec<WaitsFor>,
    /// What blocks waves for ever.
    pub blockers: Blockers,
}

/// What a rollout cannot get past by itself.
#[derive(Debug, Default)]
pub(super) struct Blockers {
    /// Names of the steps that select no node.
    pub empty_steps: Vec<String>,
    /// Unavailable nodes that use up the budget, if other nodes have to wait for it.
    pub unavailable: Vec<NodeName>,
    /// The first step of which nodes wait for ever for its part of the budget.
    pub blocked_step: Option<BlockedStep>,
}

/// What waves are scheduled by, beside the nodes.
#[derive(Clone, Copy)]
pub(super) struct Rules<'a> {
    /// The strategy after the apply.
    pub strategy: Strategy,
    /// The policy.
    pub policy: &'a PolicySpec,
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
    /// Whether it is live, or there is no live object.
    pub is_target_live: bool,
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
    let Rules { strategy, policy, templates, .. } = *rules;
    let limits = match strategy {
        Strategy::OnDelete => return Schedule::default(),
        Strategy::RollingUpdate { max_unavailable, max_surge, desired } => {
            Limits { max_unavailable: policy.while_deleting(max_unavailable, desired), max_surge }
        }
    };
    let stepped = Stepped::of(nodes, budget_views, rules);
    let evaluation = evaluate(&stepped.input(rules));
    // In the last step of a surge, the built-in controller replaces the pods: it skips no nodes, and
    // none has to be unavailable.
    let deletes = limits.max_surge == 0 || !evaluation.is_last();
    let already = if deletes {
        let skips_nodes = limits.max_surge == 0;
        let (skip, allowed) = (policy.skip_unready_nodes, limits.max_unavailable);
        budget::defer_nodes(nodes, budget_views, templates, skips_nodes, skip, allowed, rules.now)
    } else {
        AlreadyUnavailable::default()
    };
    let last = evaluation.waves.iter().flatten().map(|wave| wave.step).max().unwrap_or_default();
    let mut by_wave: BTreeMap<WaveId, Vec<usize>> = BTreeMap::new();
    for at in budget::candidates(nodes, budget_views) {
        let wave = stepped.positions[at].and_then(|at| evaluation.waves[at]).unwrap_or_default();
        // A run deletes no pod on a node that is not Ready; the surge of the controller does.
        let is_left = limits.max_surge > 0 && budget_views[at].node != NodeReadiness::Ready;
        let wave = if is_left { WaveId { step: last, ..wave } } else { wave };
        by_wave.entry(wave).or_default().push(at);
    }
    let numbers = stepped.numbers(&evaluation, by_wave.keys());
    let has_several = policy.domains.is_some() || !policy.steps.is_empty();
    let (mut waves, mut next_waves) = (Vec::with_capacity(by_wave.len()), Vec::new());
    for (id, candidates) in by_wave {
        let limits = limits.of_wave(id.step == last);
        let mut wave = Wave { index: numbers[&id], ..wave(id, &evaluation, limits, rules) };
        if has_several && evaluation.is_next(id) {
            next_waves.push(wave.index);
        }
        wave.nodes = candidates.iter().map(|at| nodes[*at].name.clone()).collect();
        for at in candidates {
            nodes[at].wave = Some(wave.index);
            if nodes[at].action == Action::Surge && wave.max_surge == 0 {
                nodes[at].action = Action::Replace;
            }
        }
        waves.push(wave);
    }
    let waits_for = if waves.is_empty() && evaluation.current.is_none() {
        Vec::new()
    } else {
        evaluation.waits_for.clone()
    };
    let (unavailable, blocked_step) = if already.use_up_budget {
        let name = |at: &usize| nodes[*at].name.clone();
        (already.nodes.iter().map(name).collect(), None)
    } else {
        let already = &already.nodes;
        (Vec::new(), stepped.blocked_step(&evaluation, nodes, budget_views, &waves, already))
    };
    let empty_steps = empty_steps(&evaluation).iter().map(|step| step.name.clone()).collect();
    let steps = step_plans(&evaluation, policy);
    let blockers = Blockers { empty_steps, unavailable, blocked_step };
    Schedule { waves, steps, next_waves, waits_for, blockers }
}

/// The limits of all waves.
#[derive(Clone, Copy)]
struct Limits {
    /// Number of nodes that may be without an available pod while `ds-apply` deletes pods.
    max_unavailable: u32,
    /// Number of nodes that may have two pods in a surge of the controller.
    max_surge: u32,
}

impl Limits {
    /// Those of a wave. The controller only surges in the last step.
    fn of_wave(self, is_last: bool) -> Self {
        match (self.max_surge, is_last) {
            (0, _) | (_, false) => Self { max_surge: 0, ..self },
            (_, true) => Self { max_unavailable: 0, ..self },
        }
    }
}

/// A wave without its number and nodes.
fn wave(id: WaveId, evaluation: &Evaluation<'_>, limits: Limits, rules: &Rules<'_>) -> Wave {
    let Rules { strategy, policy, min_ready_seconds, .. } = *rules;
    let desired = match strategy {
        Strategy::OnDelete => 0,
        Strategy::RollingUpdate { desired, .. } => desired,
    };
    let Limits { max_unavailable, max_surge } = limits;
    let (step, domain) = (&evaluation.steps[id.step], &evaluation.domains[id.domain]);
    let of_step = step.policy.and_then(|step| step.max_unavailable);
    let of_step = of_step.map_or(max_unavailable, |limit| limit.scaled(desired).max(1));
    let step_name = (!policy.steps.is_empty()).then(|| step.name().to_owned());
    let domain_name = domain.name.name().map(str::to_owned);
    let domains = policy.domains.as_ref();
    Wave {
        index: 0,
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
        ramp: if max_surge > 0 { Ramp::None } else { policy.ramp },
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
fn step_plans(evaluation: &Evaluation<'_>, policy: &PolicySpec) -> Vec<StepPlan> {
    if policy.steps.is_empty() {
        return Vec::new();
    }
    let plan = |(at, step): (usize, &StepProgress<'_>)| StepPlan {
        name: step.name().to_owned(),
        nodes: step.nodes,
        updated: step.updated,
        state: match &step.progress {
            Progress::Done { .. } => StepState::Done,
            Progress::Complete { .. } | Progress::Soaked { .. } => StepState::Soaking,
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
        let desired = budget_views.iter().filter(|view| view.is_desired()).count();
        let desired = u32::try_from(desired).unwrap_or(u32::MAX);
        let mut skipped = SkippedNodes::of(rules.policy.skip_unready_nodes, desired);
        // A Vec that grows is in memory twice.
        let mut stepped = Self {
            nodes: Vec::with_capacity(plans.len()),
            positions: Vec::with_capacity(plans.len()),
        };
        for (plan, view) in plans.iter().zip(budget_views) {
            let at = rules.fleet.position(&plan.name);
            let Some(node) = at.map(|at| &rules.fleet.nodes()[at]) else {
                stepped.positions.push(None);
                continue;
            };
            let standing = skipped.classify(view.node == NodeReadiness::Ready, view.role);
            stepped.positions.push(Some(stepped.nodes.len()));
            stepped.nodes.push(StepNode {
                node,
                is_desired: view.is_desired(),
                standing,
                is_unavailable: view.role.counts()
                    && standing.is_unavailable(view.has_available_pod),
                update: view.update,
                restarts: view.restarts,
                pod_created: None,
                lacks_images: false,
                shared: NodeRank {
                    siblings: rules.siblings.get(&plan.name).copied().unwrap_or_default(),
                    ..NodeRank::default()
                },
            });
        }
        stepped
    }

    /// The numbers of the waves, in their order. Those that are finished are counted as well, so a
    /// wave keeps its number while the rollout proceeds. `planned` are those that are left.
    fn numbers<'w>(
        &self,
        evaluation: &Evaluation<'_>,
        planned: impl Iterator<Item = &'w WaveId>,
    ) -> BTreeMap<WaveId, u32> {
        let has_part = |at: &usize| self.nodes[*at].is_desired;
        let of_nodes = (0..self.nodes.len())
            .filter(has_part)
            .map(|at| WaveId { step: evaluation.step_of[at], domain: evaluation.domain_of[at] });
        let all: BTreeSet<WaveId> = of_nodes.chain(planned.copied()).collect();
        all.into_iter().zip(1..).collect()
    }

    fn input<'s>(&'s self, rules: &Rules<'a>) -> StepsInput<'s, 'a> {
        StepsInput {
            nodes: &self.nodes,
            policy: rules.policy,
            calendar: rules.calendar,
            template: rules.template,
            is_target_live: rules.is_target_live,
            note: rules.note,
            approved: rules.approved,
            gates_passed: &NONE_PASSED,
            now: rules.now,
            node_seconds: rules.node_seconds,
        }
    }
}
