//! The output of `explain -o json`: one DaemonSet on one node, rule by rule.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::coded::Coded;
use super::daemon_set::{Rollout, RolloutRequest, rollout, strategy};
use super::daemon_set_view::DaemonSetView;
use super::document::{Action, ApiVersion, ClusterSummary, NodePlan, PodPlan, SourceInfo, Wave};
use super::health;
use super::input::{Detail, Input, NotFound, find_daemon_set};
use super::nodes::Described;
use super::pause::{PauseState, PausedRollout, as_declared, waits_since};
use super::policy_progress::{self, is_rolled, rolled_out};
use super::reason::Reason;
use super::waves::Schedule;
use super::{applied, object, plan};
use crate::checks::CheckFinding;
use crate::steps::WaitsFor;
use daemonset::controller::Owner;
use daemonset::controller::node_pods::Fleet;
use daemonset::controller::placement::{self, RuleOutcome, TaintVerdict};
use daemonset::model::{
    DaemonSet, DaemonSetKey, NodeName, PodName, PolicySpec, RolloutPolicy, Snapshot, Taint,
};

/// The placement rules in the order in which the controller evaluates them, and their result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// Version of this document's format.
    pub api_version: ApiVersion,
    /// Always `Explanation`.
    pub kind: ExplanationKind,
    /// The cluster, and the time of its snapshot.
    pub cluster: ClusterSummary,
    /// Origin of the manifest of which the plan is explained; none for the live DaemonSet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceInfo>,
    /// Namespace and name of the DaemonSet.
    pub daemon_set: DaemonSetKey,
    /// Name of the node.
    pub node: NodeName,
    /// The placement rules, in upstream's order.
    pub rules: Vec<RuleReport>,
    /// Whether a new pod may start here.
    pub may_start: bool,
    /// Whether a pod that runs here may stay.
    pub may_stay: bool,
    /// Plans of the pods of this DaemonSet on this node.
    pub pods: Vec<PodPlan>,
    /// Net effect on the node.
    pub action: Action,
    /// Index of the wave; none for actions that the controller takes at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wave: Option<u32>,
    /// Name of the wave, if it is of a step or a domain of a policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wave_name: Option<String>,
    /// Whether other waves come before it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_later: bool,
    /// What keeps the next wave from beginning, beside the budget.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<WaitsFor>,
    /// The rollout that `ds-apply` has paused or aborted, without its checks of other nodes; none for
    /// the plan of a source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<PausedRollout>,
    /// The time since which the rollout waits, if it does and that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_since: Option<Timestamp>,
    /// Reasons; the first one is the main one.
    pub reasons: Vec<Coded<Reason>>,
    /// The last log lines of its containers, if requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<ContainerLog>,
}

/// The last log lines of a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerLog {
    /// Name of the pod.
    pub pod: PodName,
    /// Name of the container; none when the pod has only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Whether it is the previous, terminated instance of the container (`kubectl logs
    /// --previous`).
    pub previous: bool,
    /// Log lines.
    pub lines: Vec<String>,
    /// The error that prevented reading the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl ContainerLog {
    /// Returns a heading, then the log lines. The caller must escape control characters.
    pub fn lines_shown(&self) -> Vec<String> {
        let Self { pod, container, previous, lines, error } = self;
        let who = match container {
            Some(name) => format!("container {name}"),
            None => format!("pod {pod}"),
        };
        let end = if *previous { " before it ended" } else { "" };
        match error {
            Some(error) => vec![format!("the log of {who} cannot be read: {error}")],
            None if lines.is_empty() => vec![format!("{who} printed nothing{end}")],
            None => {
                let head = format!("{who} printed{end}:");
                let lines = lines.iter().map(|line| format!("  | {line}"));
                [head].into_iter().chain(lines).collect()
            }
        }
    }
}

/// Kind of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ExplanationKind {
    /// An explanation.
    Explanation,
}

/// Result of one rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuleReport {
    /// The rule, such as `nodeSelector disk=ssd`.
    pub rule: String,
    /// Result of the rule.
    pub outcome: RuleResult,
    /// Reason for the result, such as `node has disk=hdd`.
    pub message: String,
}

/// Result of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RuleResult {
    /// The rule allows a pod on the node.
    Pass,
    /// A pod may stay but a new one may not start: a `NoSchedule` taint.
    StayOnly,
    /// No pod may run on the node.
    Fail,
    /// The rule does not apply to this template or node.
    NotApplicable,
}

/// Explains a live DaemonSet on one node: each placement rule, the pods, and the action. While its
/// rollout is paused, outdated pods stay.
///
/// # Errors
/// The snapshot has no such DaemonSet, or no such node.
pub fn explain(
    snapshot: &Snapshot,
    key: &DaemonSetKey,
    node: &NodeName,
) -> Result<Explanation, NotFound> {
    let live = find_daemon_set(snapshot, key)?;
    // An unreadable annotation is reported by `status`.
    let pause = PausedRollout::readable(live);
    let live = &*as_declared(live, pause.as_ref());
    let policy = PolicySpec::default();
    // While a rollout waits, the live template may be the last good one.
    let waits = pause.as_ref().is_some_and(|pause| pause.state == PauseState::Waiting);
    let target = if waits { rolled_out(live, &policy, snapshot) } else { Cow::Borrowed(live) };
    let target = &*target;
    let fleet = Fleet::new(&snapshot.nodes);
    let daemon_set_view = DaemonSetView::of(Owner::from(target), Some(target), snapshot, &fleet)
        .while_paused(pause.is_some());
    let untouched = live.terminating.then_some(Reason::DaemonSetTerminating);
    let strategy = strategy(&daemon_set_view.view());
    let request = RolloutRequest {
        strategy,
        policy: &policy,
        shared_budget: None,
        siblings: &BTreeMap::new(),
        untouched,
        node_seconds: 0,
        described: Described::All,
        live: Some(live),
        snapshot,
        now: snapshot.observed_at,
    };
    let Rollout { nodes, .. } = rollout(&daemon_set_view, request);
    let explanation = explained(&daemon_set_view, nodes, snapshot, node, None)?;
    Ok(with_pause(explanation, live, pause))
}

/// The same under a policy: in which wave the node is, and what that waits for.
///
/// # Errors
/// The snapshot has no such DaemonSet, or no such node.
pub fn explain_under(
    snapshot: &Snapshot,
    key: &DaemonSetKey,
    node: &NodeName,
    policy: &RolloutPolicy,
) -> Result<Explanation, NotFound> {
    let live = find_daemon_set(snapshot, key)?;
    let pause = PausedRollout::readable(live);
    // No wave begins after an abort.
    if pause.as_ref().is_some_and(|pause| pause.state == PauseState::Aborted) {
        return explain(snapshot, key, node);
    }
    let live = &*as_declared(live, pause.as_ref());
    let target = &*rolled_out(live, &policy.spec, snapshot);
    let fleet = Fleet::new(&snapshot.nodes);
    let (view, rollout, _) =
        policy_progress::progress(live, target, policy, snapshot, &fleet, Described::All);
    let Rollout { nodes, schedule, .. } = rollout;
    let explanation = explained(&view, nodes, snapshot, node, None)?;
    let Schedule { waves, next_waves, waits_for, .. } = schedule;
    let mut explanation = in_wave(explanation, &waves, &next_waves, &waits_for);
    if is_rolled(live) && is_to_be_replaced(&explanation) {
        explanation.reasons.push(Reason::OnDelete.into());
    }
    Ok(with_pause(explanation, live, pause))
}

/// Whether a run has to replace its pod, now or later.
fn is_to_be_replaced(explanation: &Explanation) -> bool {
    let is_outdated = |it: &Coded<Reason>| matches!(it.reason, Reason::Outdated { .. });
    explanation.wave.is_some() || explanation.reasons.iter().any(is_outdated)
}

/// The explanation with the name of the node's wave, and what it waits for.
fn in_wave(
    explanation: Explanation,
    waves: &[Wave],
    next_waves: &[u32],
    waits_for: &[WaitsFor],
) -> Explanation {
    let wave = waves.iter().find(|wave| Some(wave.index) == explanation.wave);
    let Some(wave) = wave.filter(|wave| wave.step.is_some() || wave.domain.is_some()) else {
        return explanation;
    };
    Explanation {
        wave_name: Some(wave.name.clone()),
        is_later: !next_waves.is_empty() && !next_waves.contains(&wave.index),
        waits_for: waits_for.to_vec(),
        ..explanation
    }
}

/// The explanation with the pause, and with the checks that the last run waited for, if they are about
/// this node or about no node at all.
fn with_pause(
    mut explanation: Explanation,
    live: &DaemonSet,
    pause: Option<PausedRollout>,
) -> Explanation {
    let is_about = |finding: &CheckFinding| finding.reason.is_about(&explanation.node);
    let pause = pause.map(|mut pause| {
        // A check of other nodes says nothing about this one.
        pause.waits_for.retain(|wait| wait.check.as_deref().is_none_or(is_about));
        pause
    });
    let checked = pause.iter().flat_map(|pause| &pause.waits_for).filter(|it| it.check.is_some());
    let checked: Vec<WaitsFor> = checked.cloned().collect();
    explanation.waits_for.extend(checked);
    explanation.waits_since = pause.as_ref().and_then(|pause| waits_since(live, pause));
    explanation.pause = pause;
    explanation
}

/// Explains one DaemonSet of a source on one node, with the action and the reasons of its plan.
///
/// # Errors
/// The source has no such DaemonSet, or the snapshot no such node.
pub fn explain_planned(
    input: Input<'_>,
    key: &DaemonSetKey,
    node: &NodeName,
) -> Result<Explanation, NotFound> {
    let Input { snapshot, desired, force_conflicts, intent, .. } = input;
    let source = input.source.clone();
    let applied = applied::applied(snapshot, desired, force_conflicts, intent);
    let planned = plan(Input { detail: Detail { all_nodes: true, ..input.detail }, ..input });
    let of_key = planned.daemon_sets.into_iter().find(|it| it.key() == *key);
    let target = applied.iter().map(|it| &it.desired).find(|it| it.key == *key);
    let (planned, target) = of_key.zip(target).ok_or_else(|| NotFound::DaemonSet(key.clone()))?;
    let live = snapshot.daemon_set(key);
    let fleet = Fleet::new(&snapshot.nodes);
    let owner = object::owner_after(live, target, planned.change);
    let daemon_set_view = DaemonSetView::of(owner, live, snapshot, &fleet);
    let explanation = explained(&daemon_set_view, planned.nodes, snapshot, node, Some(source))?;
    Ok(in_wave(explanation, &planned.waves, &planned.next_waves, &planned.waits_for))
}

/// Explains a node by its entry in `nodes`, the plan of this DaemonSet.
fn explained(
    daemon_set_view: &DaemonSetView<'_>,
    nodes: Vec<NodePlan>,
    snapshot: &Snapshot,
    node: &NodeName,
    source: Option<SourceInfo>,
) -> Result<Explanation, NotFound> {
    let missing = || NotFound::Node(node.clone());
    let place = snapshot.node(node).ok_or_else(missing)?;
    let mut plan = nodes.into_iter().find(|plan| plan.name == *node).ok_or_else(missing)?;
    health::add_ailments(daemon_set_view, &mut plan);
    let template = &daemon_set_view.owner.spec.template.placement;
    let judged = placement::judge(template, place);
    Ok(Explanation {
        api_version: ApiVersion::V1Alpha1,
        kind: ExplanationKind::Explanation,
        cluster: ClusterSummary::from(snapshot),
        source,
        daemon_set: daemon_set_view.owner.key.clone(),
        node: node.clone(),
        rules: placement::explain(template, place).iter().map(RuleReport::from).collect(),
        may_start: judged.may_start,
        may_stay: judged.may_stay,
        pods: plan.pods.into(),
        action: plan.action,
        wave: plan.wave,
        wave_name: None,
        is_later: false,
        waits_for: Vec::new(),
        pause: None,
        waits_since: None,
        reasons: plan.reasons.to_vec(),
        logs: Vec::new(),
    })
}

impl From<&RuleOutcome> for RuleReport {
    fn from(outcome: &RuleOutcome) -> Self {
        Self {
            rule: rule(outcome),
            outcome: RuleResult::from(outcome),
            message: outcome.to_string(),
        }
    }
}

fn rule(outcome: &RuleOutcome) -> String {
    match outcome {
        RuleOutcome::NodeName { .. } => "nodeName".to_owned(),
        RuleOutcome::NoNodeSelector => "nodeSelector".to_owned(),
        RuleOutcome::NodeSelector { key, want, .. } => format!("nodeSelector {key}={want}"),
        RuleOutcome::NoNodeAffinity | RuleOutcome::NodeAffinity { .. } => {
            "required node affinity".to_owned()
        }
        RuleOutcome::NoTaints => "taints".to_owned(),
        RuleOutcome::Taint { taint: Taint { key, value, effect }, .. } => {
            let equals = if value.is_empty() { "" } else { "=" };
            format!("taint {key}{equals}{value}:{}", effect.as_str())
        }
    }
}

impl From<&RuleOutcome> for RuleResult {
    fn from(outcome: &RuleOutcome) -> Self {
        match outcome {
            RuleOutcome::NodeName { want: None, .. }
            | RuleOutcome::NoNodeSelector
            | RuleOutcome::NoNodeAffinity
            | RuleOutcome::NoTaints
            | RuleOutcome::Taint { verdict: TaintVerdict::Ignored, .. } => Self::NotApplicable,
            RuleOutcome::NodeName { passes, .. }
            | RuleOutcome::NodeSelector { passes, .. }
            | RuleOutcome::NodeAffinity { passes, .. } => {
                if *passes {
                    Self::Pass
                } else {
                    Self::Fail
                }
            }
            RuleOutcome::Taint { verdict, .. } => match verdict {
                TaintVerdict::Tolerated
                | TaintVerdict::ToleratedAutomatically
                | TaintVerdict::Ignored => Self::Pass,
                TaintVerdict::KeepsFromStarting => Self::StayOnly,
                TaintVerdict::Removes => Self::Fail,
            },
        }
    }
}
