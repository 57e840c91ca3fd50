//! Which nodes a rollout may begin now, by its policy: steps, domains, soaks, approvals, windows.
//!
//! [`evaluate`] is a pure function of the nodes, the policy, what the rollout has noted before, and
//! the time; plan and rollout share it. A step is a set of nodes, derived from the cluster each
//! time (`members`), never a stored index: who runs the target is read from the pods. So a run that
//! was killed, a new commit, and nodes that join or vanish need no repair. Only two times cannot be
//! seen in the cluster, and are noted ([`StepsNote`]): since when a step is complete, and since when
//! it is done. A step that is done never reopens.
//!
//! Not here: the budget inside of a step (`rollout/next_deletes`), and whether pods have failed
//! (`rollout/new_pods`).

mod domains;
mod members;
mod sampled;
mod soak;
#[cfg(test)]
mod tests;
mod waits;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::approval::{ApprovalCheck, step_digest};
use crate::classification::NodeStanding;
use daemonset::model::{
    Approval, Calendar, Node, PolicySpec, PolicyStep, Soak, StepNodes, StepNote, StepsNote, Time,
    Uid,
};
pub(crate) use domains::{DomainProgress, with_unavailable};
pub(crate) use sampled::Sampled;
pub(crate) use soak::Progress;
pub(crate) use waits::is_soak_noted;
pub use waits::{WaitKind, WaitsFor};

/// Name of the implied last step.
pub const LAST_STEP: &str = "rest";

/// What one node is to all selected DaemonSets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeRank {
    /// Whether a sibling has updated it.
    pub is_open: bool,
    /// Number of siblings that are rolled out and should have a pod there.
    pub siblings: u32,
    /// Restarts of their pods.
    pub restarts: u32,
}

/// A node as the steps see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepNode<'a> {
    /// The node.
    pub node: &'a Node,
    /// Whether a pod of the target may start there.
    pub is_desired: bool,
    /// Whether it is Ready, or skipped.
    pub standing: NodeStanding,
    /// Whether it counts as unavailable, whatever the cause.
    pub is_unavailable: bool,
    /// The state of its pod.
    pub update: NodeUpdate,
    /// Restarts of its pod.
    pub restarts: u32,
    /// Creation of its updated pod, if that is available, or was Ready and is not any more, as after its
    /// node is lost; else the time at which this run deleted its pod, if the node was lost after that. None
    /// in a plan.
    pub pod_created: Option<Time>,
    /// What it is to the other DaemonSets of a shared budget.
    pub shared: NodeRank,
    /// Whether it cannot begin yet, because images of its new pod are missing, as far as this run knows.
    pub lacks_images: bool,
}

impl StepNode<'_> {
    /// Whether gates are about this node: its new pod is available, or was Ready in the rollout that
    /// began then, or the node was lost after this run had deleted its pod. One that is lost because of its
    /// update must not drop out of the gates.
    pub(crate) fn is_gated(&self, began: Option<Timestamp>) -> bool {
        match self.update {
            NodeUpdate::Updated { .. } => true,
            NodeUpdate::InProgress => self.pod_created.is_some_and(|created| {
                began.is_some_and(|began| Timestamp::from(created) >= began)
            }),
            NodeUpdate::Outdated { .. } => false,
        }
    }
}

/// How far the update of a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeUpdate {
    /// Its pod is of the target and available.
    Updated {
        /// The time since which the pod has stayed up, by the kubelet's clock.
        since: Option<Time>,
    },
    /// Its old pod goes, or its new one is not available yet.
    InProgress,
    /// Its pod is of another template.
    Outdated {
        /// Whether that is neither the last good one nor the target: an intermediate version.
        is_intermediate: bool,
    },
}

/// What an evaluation is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepsInput<'s, 'a> {
    /// The nodes, by name.
    pub nodes: &'s [StepNode<'a>],
    /// The policy.
    pub policy: &'a PolicySpec,
    /// Its windows and exclusions.
    pub calendar: &'s Calendar,
    /// Digest of the target template.
    pub template: &'s str,
    /// Whether it is live: until then, a node without a pod gets one of the last good template.
    pub is_target_live: bool,
    /// What was noted before.
    pub note: Option<&'s StepsNote>,
    /// Names of the steps with a valid approval.
    pub approved: &'s BTreeSet<String>,
    /// The last time at which all gates passed, by the step that was in progress.
    pub gates_passed: &'s BTreeMap<String, Timestamp>,
    /// The time, by the server's clock.
    pub now: Timestamp,
    /// Time that the update of one node takes, in seconds.
    pub node_seconds: u32,
}

/// The waves of a rollout, by step and then by domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WaveId {
    /// Position of the step.
    pub step: usize,
    /// Position of the domain.
    pub domain: usize,
}

/// One step.
#[derive(Clone, Debug)]
pub(crate) struct StepProgress<'a> {
    /// The step of the policy; `None` for the implied last one.
    pub policy: Option<&'a PolicyStep>,
    /// Number of its nodes, with those of earlier steps.
    pub nodes: u32,
    /// The part of them with an available new pod.
    pub updated: u32,
    /// Whether a selector matches no node at all, and the step is not done.
    pub is_empty: bool,
    /// Whether it is complete, and done.
    pub progress: Progress,
}

/// The result: the waves, what may begin, and what is waited for.
#[derive(Clone, Debug)]
pub(crate) struct Evaluation<'a> {
    /// The steps in order; the implied last one is among them.
    pub steps: Vec<StepProgress<'a>>,
    /// The domains in order; one for all nodes if the policy has none.
    pub domains: Vec<DomainProgress<'a>>,
    /// The wave of each node with an outdated pod.
    pub waves: Vec<Option<WaveId>>,
    /// The step that has added each node.
    pub step_of: Vec<usize>,
    /// The domain of each node.
    pub domain_of: Vec<usize>,
    /// Whether each node has an unavailable pod of an intermediate version: it may be replaced
    /// in any step, else it could use up the budget of a step that does not select it.
    pub is_broken: Vec<bool>,
    /// The step in progress; none if all are done.
    pub current: Option<usize>,
    /// What keeps the nodes of the step in progress from beginning, beside the budget; empty if
    /// nothing does.
    pub waits_for: Vec<WaitsFor>,
    /// The nodes that a precondition keeps from beginning, by position.
    pub held_back: BTreeSet<usize>,
    /// What these wait for, by check.
    pub held_back_by: Vec<WaitsFor>,
    /// Since when the gates are sampled; none if there are no gates, or no updated nodes.
    pub sampled: Option<Sampled>,
    /// The note after this evaluation.
    pub note: StepsNote,
}

impl StepsInput<'_, '_> {
    /// Whether nodes are left that need a step: with an outdated pod, or about to get one.
    fn has_nodes_left(&self) -> bool {
        self.nodes.iter().any(|node| match node.update {
            NodeUpdate::Outdated { .. } => true,
            NodeUpdate::InProgress => !self.is_target_live && node.is_desired,
            NodeUpdate::Updated { .. } => false,
        })
    }
}

impl Evaluation<'_> {
    /// Whether a wave comes next: its step is in progress, and its domain may be updated. What is
    /// waited for may still keep it from beginning.
    pub(crate) fn is_next(&self, wave: WaveId) -> bool {
        Some(wave.step) == self.current && self.domains[wave.domain].is_open
    }

    /// Whether the outdated pod of the node at this position may be replaced now, as far as steps
    /// and domains are concerned.
    pub(crate) fn may_begin(&self, at: usize) -> bool {
        self.may_begin_after(at, &self.waits_for)
    }

    /// The same if only this is waited for.
    pub(crate) fn may_begin_after(&self, at: usize, waits_for: &[WaitsFor]) -> bool {
        waits_for.is_empty() && self.is_its_turn(at)
    }

    /// Whether that may be finished which was begun on the node for another DaemonSet of a shared
    /// budget: as [`may_begin`](Self::may_begin), but a window may have closed.
    pub(crate) fn may_finish(&self, at: usize) -> bool {
        self.may_finish_after(at, &self.waits_for)
    }

    /// The same if only this is waited for.
    pub(crate) fn may_finish_after(&self, at: usize, waits_for: &[WaitsFor]) -> bool {
        waits_for.iter().all(|wait| wait.kind == WaitKind::Window) && self.is_its_turn(at)
    }

    fn is_its_turn(&self, at: usize) -> bool {
        self.waves[at].is_some_and(|wave| {
            let is_its_turn = Some(wave.step) == self.current || self.is_broken[at];
            is_its_turn && self.domains[wave.domain].is_open && !self.held_back.contains(&at)
        })
    }

    /// The name of the step in progress.
    pub(crate) fn current_step(&self) -> &str {
        self.current.map_or(LAST_STEP, |at| self.steps[at].name())
    }

    /// Whether all nodes that are still outdated belong to the step in progress: it is the last one.
    pub(crate) fn is_last(&self) -> bool {
        let mut outdated = self.waves.iter().flatten();
        outdated.all(|wave| self.current.is_none_or(|current| wave.step == current))
    }
}

impl StepProgress<'_> {
    /// Its name.
    pub(crate) fn name(&self) -> &str {
        self.policy.map_or(LAST_STEP, |step| &step.name)
    }
}

/// Evaluates steps and domains.
pub(crate) fn evaluate<'a>(input: &StepsInput<'_, 'a>) -> Evaluation<'a> {
    let StepsInput { nodes, policy, template, note, .. } = *input;
    let before = note.filter(|note| note.template == template);
    let mut after = StepsNote {
        template: template.to_owned(),
        from: before.and_then(|note| note.from.clone()),
        started_at: before.and_then(|note| note.started_at),
        replaces: before.and_then(|note| note.replaces.clone()),
        approvals_void_before: note.and_then(|note| note.approvals_void_before),
        sampled_since: before.map(|note| note.sampled_since.clone()).unwrap_or_default(),
        unknown_since: before.map(|note| note.unknown_since.clone()).unwrap_or_default(),
        ..StepsNote::default()
    };
    let before = before.filter(|note| note.steps_count(template, input.is_target_live));
    let InOrder { steps, step_of, current } = in_order(input, before, &mut after);
    let last = steps.len() - 1;
    let (names, domain_of) = domains::of_nodes(nodes, policy.domains.as_ref());
    let waves: Vec<Option<WaveId>> = (0..nodes.len())
        .map(|at| match nodes[at].update {
            NodeUpdate::Outdated { .. } => {
                Some(WaveId { step: step_of[at], domain: domain_of[at] })
            }
            NodeUpdate::Updated { .. } | NodeUpdate::InProgress => None,
        })
        .collect();
    let in_progress = current.unwrap_or(last);
    let is_member = |at: usize| step_of[at] == in_progress;
    let domains = domains::progress(
        input,
        before,
        &mut after,
        domains::Layout { names, domain_of: &domain_of, is_member: &is_member, waves: &waves },
        steps[in_progress].name(),
    );
    let is_last_done = matches!(steps[last].progress, Progress::Done { .. })
        && domains.iter().all(|domain| domain.soaks_until.is_none());
    let current = current.or_else(|| (!is_last_done).then_some(last));
    let mut evaluation = Evaluation {
        steps,
        domains,
        waves,
        step_of,
        domain_of,
        is_broken: nodes.iter().map(is_broken).collect(),
        current,
        waits_for: Vec::new(),
        held_back: BTreeSet::new(),
        held_back_by: Vec::new(),
        sampled: None,
        note: after,
    };
    evaluation.sampled = sampled::since(&mut evaluation, input);
    evaluation.waits_for = waits::waits_for(&evaluation, input);
    evaluation
}

/// The steps with their nodes.
struct InOrder<'a> {
    /// The steps; the implied last one is among them.
    steps: Vec<StepProgress<'a>>,
    /// The step that has added each node.
    step_of: Vec<usize>,
    /// The first step of the policy that is not done.
    current: Option<usize>,
}

/// Evaluates the steps in their order. What is noted about them is added to `after`.
fn in_order<'a>(
    input: &StepsInput<'_, 'a>,
    before: Option<&StepsNote>,
    after: &mut StepsNote,
) -> InOrder<'a> {
    let StepsInput { nodes, policy, now, .. } = *input;
    let mut members = members::Members::of(nodes);
    let mut steps = Vec::with_capacity(policy.steps.len() + 1);
    // The implied step has those that no other one adds.
    let mut step_of = vec![policy.steps.len(); nodes.len()];
    let mut current = None;
    let has_nodes_left = input.has_nodes_left();
    let passed = |step: &str| match input.gates_passed.get(step) {
        _ if policy.gates.is_empty() => Timestamp::MAX,
        Some(passed) => *passed,
        None => Timestamp::MIN,
    };
    for (at, step) in policy.steps.iter().enumerate() {
        let digest = step_digest(step);
        let noted = before.and_then(|note| note.steps.get(&step.name));
        let noted = noted.filter(|noted| noted.digest == digest);
        let is_done = noted.is_some_and(|noted| noted.done_at.is_some());
        let added = members.add(step, is_done);
        for member in added.nodes {
            step_of[member] = at;
        }
        let (total, updated) = members.counts();
        let (is_complete, up_since) = (members.is_complete(), members.up_since());
        let is_unapproved = waits::is_unapproved(step, input) && noted.is_none();
        // Without an approval, nothing is noted about a step that has nothing left to begin: it would
        // count as approved if an outdated pod turns up later. Its soak is judged by the pods alone.
        let complete_at = up_since.unwrap_or(Timestamp::MIN);
        let unnoted = StepNote { complete_at: Some(complete_at), ..StepNote::default() };
        let known = if is_unapproved { Some(&unnoted) } else { noted };
        // Nothing of it lasts between runs, so no gates are waited for: those of the next step have the same
        // pods.
        let passed = if is_unapproved { Timestamp::MAX } else { passed(&step.name) };
        let mut progress =
            soak::judge(known, digest, is_complete, up_since, step.soak, now, passed);
        // Steps are done in their order; and a node without a pod, which gets the new one by itself,
        // does not stand for an approval.
        // One whose nodes have left proves nothing while others wait.
        let is_empty = added.is_empty && !is_done;
        let is_unproven = is_empty && !members.is_last_step_complete();
        if current.is_some() || (is_unapproved && has_nodes_left) || is_unproven {
            progress = Progress::Running;
        }
        if let Progress::Complete { note, .. }
        | Progress::Soaked { note, .. }
        | Progress::Done { note } = &progress
            && !is_unapproved
        {
            after.steps.insert(step.name.clone(), note.clone());
        }
        // A node that was skipped for its images pulls them again in each run: until it has them, the soak
        // of the others continues.
        let is_kept = current.is_none() && !is_complete && progress == Progress::Running;
        if let Some(note) = noted.filter(|_| is_kept && members.only_lack_images()) {
            after.steps.insert(step.name.clone(), note.clone());
        }
        if current.is_none() && !matches!(progress, Progress::Done { .. }) {
            current = Some(at);
        }
        steps.push(StepProgress { policy: Some(step), nodes: total, updated, is_empty, progress });
    }
    let is_last = current.is_none();
    steps.push(last_step(input, &members, is_last.then(|| passed(LAST_STEP)), before, after));
    InOrder { steps, step_of, current }
}

/// The implied last step. With gates, it waits for them once all steps of the policy are done: then
/// `passed` is the last time at which all of them passed.
fn last_step(
    input: &StepsInput<'_, '_>,
    members: &members::Members<'_, '_>,
    passed: Option<Timestamp>,
    before: Option<&StepsNote>,
    after: &mut StepsNote,
) -> StepProgress<'static> {
    let mut rest = members.last_step();
    // It is never noted as done: it may reopen. Pods that are only created make no rollout.
    let is_rollout = before.is_some_and(|note| note.started_at.is_some());
    let has_gates = !input.policy.gates.is_empty();
    let Some(passed) = passed.filter(|_| has_gates && is_rollout && rest.updated > 0) else {
        return rest;
    };
    let noted = before.and_then(|note| note.steps.get(LAST_STEP));
    let (is_complete, up_since) = (members.is_last_step_complete(), members.up_since());
    let (digest, soak) = (LAST_STEP.to_owned(), Soak::default());
    let progress = soak::judge(noted, digest, is_complete, up_since, soak, input.now, passed);
    if let Progress::Soaked { note, .. } | Progress::Done { note } = &progress {
        let note = StepNote { done_at: None, ..note.clone() };
        after.steps.insert(LAST_STEP.to_owned(), note);
    }
    // Nodes that are not Ready may keep it from being done, but not its gates from being asked.
    if rest.progress == Progress::done() || matches!(progress, Progress::Soaked { .. }) {
        rest.progress = progress;
    }
    rest
}

fn is_broken(node: &StepNode<'_>) -> bool {
    node.is_unavailable && node.update == NodeUpdate::Outdated { is_intermediate: true }
}

/// What the approvals of a rollout are judged by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ApprovalRules<'a> {
    /// Digest of the target template.
    pub template: &'a str,
    /// What was noted before.
    pub note: Option<&'a StepsNote>,
    /// Whether that is lost ([`ApprovalCheck::is_note_lost`]).
    pub is_note_lost: bool,
    /// The time, by the server's clock.
    pub now: Timestamp,
}

/// Names of the steps whose approval counts.
pub(crate) fn approved_steps(
    policy: &PolicySpec,
    uid: Option<&Uid>,
    given: Option<&BTreeMap<String, Approval>>,
    rules: ApprovalRules<'_>,
) -> BTreeSet<String> {
    let (Some(uid), Some(given)) = (uid, given) else { return BTreeSet::new() };
    let ApprovalRules { template, note, is_note_lost, now } = rules;
    let is_given = |step: &&PolicyStep| {
        let check = ApprovalCheck { uid, template, step, note, is_note_lost, now };
        check.status(given.get(&step.name)).is_given()
    };
    policy.steps.iter().filter(is_given).map(|step| step.name.clone()).collect()
}

/// Whether a rollout under this policy has to note anything.
pub(crate) fn needs_note(policy: &PolicySpec) -> bool {
    !policy.steps.is_empty()
        || policy.max_duration.is_some()
        || !policy.preconditions.is_empty()
        || !policy.gates.is_empty()
        || !policy.windows.is_empty()
        || !policy.exclusions.is_empty()
        || policy.domains.as_ref().is_some_and(|domains| !domains.soak.is_zero())
}

/// The steps that select nodes of which the cluster has none.
pub(crate) fn empty_steps<'a>(evaluation: &Evaluation<'a>) -> Vec<&'a PolicyStep> {
    let empty = evaluation.steps.iter().filter(|step| step.is_empty);
    let selects = |step: &&PolicyStep| matches!(step.nodes, StepNodes::Selected(_));
    empty.filter_map(|step| step.policy).filter(selects).collect()
}
