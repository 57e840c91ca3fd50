//! What a rollout waits for.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::domains::domains_digest;
use super::soak::Progress;
use super::{Evaluation, NodeUpdate, StepNode, StepsInput};
use crate::approval::step_digest;
use crate::checks::CheckFinding;
use crate::classification::NodeStanding;
use daemonset::model::{DaemonSetKey, PolicySpec, PolicyStep, StepsNote};

/// Something that a rollout waits for before more nodes begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitsFor {
    /// What it is.
    pub kind: WaitKind,
    /// The other DaemonSet: the one that must be done first, or one of the shared budget that waits or
    /// has stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daemon_set: Option<String>,
    /// The step in progress; none before a rollout that waits for another DaemonSet.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub step: String,
    /// The domain that soaks, if it is not the whole step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// The time at which the wait ends, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The check that has not passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<Box<CheckFinding>>,
}

/// The kind of a wait.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum WaitKind {
    /// New pods must stay up for longer.
    Soak,
    /// A person must approve the step.
    Approval,
    /// No maintenance window is open for long enough.
    Window,
    /// No node of the step is Ready.
    ReadyNode,
    /// Another DaemonSet must be done first (`after` of the policy).
    Order,
    /// The nodes of the shared budget are disturbed, or another DaemonSet of it has stopped.
    SharedBudget,
    /// A precondition has failed.
    Precondition,
    /// The gates have not passed since the end of the soak.
    Gate,
    /// The answer of a check is unknown.
    Unknown,
}

impl WaitsFor {
    /// A step that waits for this.
    pub(crate) fn of(kind: WaitKind, step: &str) -> Self {
        let step = step.to_owned();
        Self { kind, daemon_set: None, step, domain: None, until: None, check: None }
    }

    /// A rollout that does not begin before this DaemonSet is done.
    pub fn another(daemon_set: &DaemonSetKey) -> Self {
        Self { daemon_set: Some(daemon_set.to_string()), ..Self::of(WaitKind::Order, "") }
    }

    /// A step that waits for a check.
    pub(crate) fn check(kind: WaitKind, step: &str, finding: Option<CheckFinding>) -> Self {
        Self { check: finding.map(Box::new), ..Self::of(kind, step) }
    }

    /// Whether it is the same wait, whatever its numbers are.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let name = |wait: &Self| wait.check.as_ref().map(|finding| finding.check.clone());
        let without = |wait: &Self| Self { check: None, ..wait.clone() };
        name(self) == name(other) && without(self) == without(other)
    }
}

impl WaitKind {
    /// Whether a person has to act: no later run continues by itself.
    pub fn needs_person(self) -> bool {
        match self {
            Self::Approval => true,
            Self::Soak
            | Self::Window
            | Self::ReadyNode
            | Self::Order
            | Self::SharedBudget
            | Self::Precondition
            | Self::Gate
            | Self::Unknown => false,
        }
    }
}

/// What keeps the nodes of the step in progress from beginning.
pub(super) fn waits_for(evaluation: &Evaluation<'_>, input: &StepsInput<'_, '_>) -> Vec<WaitsFor> {
    let seconds = u64::from(input.node_seconds);
    let is_closed = !input.calendar.fits(input.now, seconds);
    let begins = begins(evaluation, input);
    let last = evaluation.steps.len() - 1;
    // If all nodes that are left are skipped, the first write begins the rollout all the same.
    let is_to_begin = || (begins && is_closed).then_some(last);
    let Some(current) = evaluation.current.or_else(is_to_begin) else { return Vec::new() };
    let step = &evaluation.steps[current];
    let wait = |kind, domain: Option<&str>, until| WaitsFor {
        domain: domain.map(str::to_owned),
        until,
        ..WaitsFor::of(kind, step.name())
    };
    if let Progress::Soaked { .. } = &step.progress {
        return vec![wait(WaitKind::Gate, None, None)];
    }
    if let Progress::Complete { note: _, until } = &step.progress {
        return vec![wait(WaitKind::Soak, None, *until)];
    }
    // What an intermediate version has broken may be replaced in any step.
    let is_here = |at: &usize| {
        evaluation.waves[*at].is_some_and(|wave| wave.step == current || evaluation.is_broken[*at])
    };
    let reachable = |at: &usize| input.nodes[*at].standing == NodeStanding::Ready;
    let outdated = || (0..input.nodes.len()).filter(is_here);
    let mut waits = Vec::new();
    // Also if its nodes have no pod for now: they would get the new one as soon as it is live.
    if input.has_nodes_left() && step.policy.is_some_and(|policy| is_unapproved(policy, input)) {
        waits.push(wait(WaitKind::Approval, None, None));
    }
    let is_any_reachable = outdated().any(|at| reachable(&at));
    if (is_any_reachable || begins) && is_closed {
        let until = input.calendar.next_start(input.now, seconds);
        waits.push(wait(WaitKind::Window, None, until));
    }
    let is_stuck = !is_any_reachable && !is_under_way(evaluation, current, input);
    if waits.is_empty() && step.policy.is_some() && is_stuck {
        waits.push(wait(WaitKind::ReadyNode, None, None));
    }
    let domains = evaluation.domains.iter().enumerate();
    let soaking = domains.filter(|(_, domain)| domain.soaks_until.is_some());
    let has_open = || {
        outdated().any(|at| reachable(&at) && evaluation.domains[evaluation.domain_of[at]].is_open)
    };
    if waits.is_empty() && !has_open() {
        waits.extend(soaking.map(|(number, domain)| {
            let until = domain.soaks_until.filter(|until| *until < Timestamp::MAX);
            let mut here = (0..input.nodes.len()).filter(|at| evaluation.domain_of[*at] == number);
            let is_known = until.is_some() || here.any(|at| reachable(&at));
            let kind = if is_known { WaitKind::Soak } else { WaitKind::ReadyNode };
            wait(kind, domain.name.name(), until)
        }));
    }
    waits
}

/// Whether a step needs an approval that it does not have.
pub(super) fn is_unapproved(step: &PolicyStep, input: &StepsInput<'_, '_>) -> bool {
    step.approve && !input.approved.contains(&step.name)
}

/// Whether the rollout begins with the next write: pods that are missing get the target with it. Of
/// one that has begun, nodes that are not Ready may stay. A surge is noted before it begins.
fn begins(evaluation: &Evaluation<'_>, input: &StepsInput<'_, '_>) -> bool {
    let is_updated = |node: &StepNode<'_>| matches!(node.update, NodeUpdate::Updated { .. });
    let is_noted = evaluation.note.started_at.is_some() && input.is_target_live;
    let has_begun = is_noted || input.nodes.iter().any(is_updated);
    !has_begun && evaluation.waves.iter().any(Option::is_some)
}

/// Whether a node is being updated: then the run waits for that first. Before the target is live, a
/// node of a later step without a pod is not: it would get the new one too early.
fn is_under_way(evaluation: &Evaluation<'_>, current: usize, input: &StepsInput<'_, '_>) -> bool {
    input.nodes.iter().zip(&evaluation.step_of).any(|(node, step)| {
        node.is_desired
            && node.standing == NodeStanding::Ready
            && node.update == NodeUpdate::InProgress
            && (input.is_target_live || *step <= current)
    })
}

/// `step canary soaks until 2026-01-01T00:00:00Z`.
impl fmt::Display for WaitsFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, daemon_set, step, domain, until, check } = self;
        match (kind, daemon_set) {
            (WaitKind::Order, Some(first)) => return write!(f, "it comes after {first}"),
            (WaitKind::SharedBudget, Some(sibling)) => {
                return write!(f, "step {step} waits for {sibling}, which does not continue");
            }
            (_, Some(sibling)) => write!(f, "{sibling}: ")?,
            (_, None) => {}
        }
        write!(f, "step {step}")?;
        domain.iter().try_for_each(|domain| match domain.as_str() {
            "" => f.write_str(", nodes without a domain,"),
            name => write!(f, ", {name},"),
        })?;
        f.write_str(match kind {
            WaitKind::Soak => " soaks",
            WaitKind::Approval => " is not approved",
            WaitKind::Window => " waits for a maintenance window",
            WaitKind::ReadyNode => " has no Ready node",
            WaitKind::Order => " comes after another DaemonSet",
            WaitKind::SharedBudget => " waits for nodes of the shared budget",
            WaitKind::Precondition => " waits for a precondition",
            WaitKind::Gate => " waits for its gates",
            WaitKind::Unknown => " waits for a check that is unknown",
        })?;
        if let Some(finding) = check {
            write!(f, " since {}: {finding}", finding.since)?;
        }
        match (kind, until) {
            (_, None) => Ok(()),
            (WaitKind::Window, Some(until)) => write!(f, ", the next one opens at {until}"),
            (
                WaitKind::Soak
                | WaitKind::Approval
                | WaitKind::ReadyNode
                | WaitKind::Order
                | WaitKind::SharedBudget
                | WaitKind::Precondition
                | WaitKind::Gate
                | WaitKind::Unknown,
                Some(until),
            ) => write!(f, " until {until}"),
        }
    }
}

/// Whether a run has noted since when this soaks. Else it begins again each time it is judged.
pub(crate) fn is_soak_noted(wait: &WaitsFor, policy: &PolicySpec, note: &StepsNote) -> bool {
    let WaitsFor { step: name, domain, .. } = wait;
    let (key, digest) = if let (Some(domain), Some(domains)) = (domain, &policy.domains) {
        (format!("{name}/{domain}"), Some(domains_digest(domains, name)))
    } else {
        let step = policy.steps.iter().find(|step| step.name == *name);
        (name.clone(), step.map(step_digest))
    };
    let noted = note.steps.get(&key).filter(|noted| Some(&noted.digest) == digest.as_ref());
    noted.is_some_and(|noted| noted.complete_at.is_some())
}
