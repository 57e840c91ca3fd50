//! One DaemonSet on one node, rule by rule: what `explain -o json` prints.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::coded::Coded;
use super::daemon_set::{Rollout, rollout, strategy};
use super::document::{Action, ApiVersion, ClusterSummary, PodPlan};
use super::hold::{Hold, as_declared};
use super::nodes::Described;
use super::reason::Reason;
use super::scene::Scene;
use super::{NotFound, find_daemon_set, health};
use crate::controller::Owner;
use crate::controller::node_pods::Fleet;
use crate::controller::placement::{self, RuleOutcome, TaintVerdict};
use crate::model::{DaemonSetKey, NodeName, PodName, PolicySpec, Snapshot, Taint};

/// Every rule in the order in which the controller evaluates it, and what follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// Version of this document's form.
    pub api_version: ApiVersion,
    /// Always `Explanation`.
    pub kind: ExplanationKind,
    /// Which cluster was looked at, and when.
    pub cluster: ClusterSummary,
    /// Which DaemonSet.
    pub daemon_set: DaemonSetKey,
    /// Which node.
    pub node: NodeName,
    /// The rules of placement, in upstream's order.
    pub rules: Vec<RuleReport>,
    /// Whether a new pod may start here.
    pub may_start: bool,
    /// Whether a pod that runs here may stay.
    pub may_stay: bool,
    /// Pods of this DaemonSet on this node, and what becomes of each.
    pub pods: Vec<PodPlan>,
    /// The net effect.
    pub action: Action,
    /// Index of the wave; none for what the controller does at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wave: Option<u32>,
    /// Why; the first one is the main one.
    pub reasons: Vec<Coded<Reason>>,
    /// The last lines of what its containers have printed, where they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<ContainerLog>,
}

/// The last lines that a container has printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerLog {
    /// Of which pod.
    pub pod: PodName,
    /// Of which container; none where the pod has one only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Whether it is the one before, which has ended.
    pub previous: bool,
    /// The lines.
    pub lines: Vec<String>,
    /// Why there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl ContainerLog {
    /// A line that says what it is, then the lines. Whoever shows them makes them harmless.
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

/// How one rule came out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuleReport {
    /// The rule, such as `nodeSelector disk=ssd`.
    pub rule: String,
    /// How it came out.
    pub outcome: Outcome,
    /// Why, such as `node has disk=hdd`.
    pub message: String,
}

/// How a rule came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It has nothing against a pod here.
    Pass,
    /// A pod may stay but none may start: a `NoSchedule` taint.
    StayOnly,
    /// No pod may be here.
    Fail,
    /// The template or the node has nothing for this rule to look at.
    NotApplicable,
}

/// Explains a live DaemonSet on one node: each rule of placement, the pods, and what happens.
///
/// # Errors
/// The snapshot has no such DaemonSet, or no such node.
pub fn explain(
    snapshot: &Snapshot,
    key: &DaemonSetKey,
    node: &NodeName,
) -> Result<Explanation, NotFound> {
    let live = find_daemon_set(snapshot, key)?;
    // What cannot be read is told by a status.
    let hold = Hold::of(live).ok().flatten();
    let live = &*as_declared(live, hold.as_ref());
    let place = snapshot.node(node).ok_or_else(|| NotFound::Node(node.clone()))?;
    let fleet = Fleet::new(&snapshot.nodes);
    let scene = Scene::of(Owner::from(live), Some(live), snapshot, &fleet);
    let untouched = live.terminating.then_some(Reason::DaemonSetTerminating);
    let strategy = strategy(&scene.view());
    let policy = PolicySpec::default();
    let Rollout { nodes, .. } = rollout(&scene, strategy, &policy, untouched, Described::All);
    let plan = nodes.into_iter().find(|plan| plan.name == *node);
    let mut plan = plan.ok_or_else(|| NotFound::Node(node.clone()))?;
    health::add_ailments(&scene, &mut plan);
    let template = &live.spec.template.placement;
    let judged = placement::judge(template, place);
    Ok(Explanation {
        api_version: ApiVersion::V1Alpha1,
        kind: ExplanationKind::Explanation,
        cluster: ClusterSummary::from(snapshot),
        daemon_set: key.clone(),
        node: node.clone(),
        rules: placement::explain(template, place).iter().map(RuleReport::from).collect(),
        may_start: judged.may_start,
        may_stay: judged.may_stay,
        pods: plan.pods,
        action: plan.action,
        wave: plan.wave,
        reasons: plan.reasons,
        logs: Vec::new(),
    })
}

impl From<&RuleOutcome> for RuleReport {
    fn from(outcome: &RuleOutcome) -> Self {
        Self { rule: rule(outcome), outcome: Outcome::from(outcome), message: outcome.to_string() }
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

impl From<&RuleOutcome> for Outcome {
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
