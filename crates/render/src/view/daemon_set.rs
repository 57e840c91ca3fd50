//! One DaemonSet of a plan: the object's change, the waves, and what happens outside of them.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::nodes::{NodeGroup, NodeRow, groups, runs_current};
use super::pace::{pace, rounds, stays_up};
use super::risk::Risk;
use super::steps::{StepView, Times, earliest_end, wait_words};
use super::timeline::TimelineView;
use daemonset::model::{Cascade, DaemonSetKey, ManagedBy};
use planner::plan::{
    Access, Action, ActionTotals, Age, BaseChange, Change, CheckPlan, CheckRole, Counters,
    DaemonSetForecast, DaemonSetPlan, FieldChange, FieldOwner, NewPods, NodePlan, PauseState,
    PausedRollout, PrePullForecast, PrePullPlan, RevisionKind, RevisionPlan, SharedBudget,
    Strategy, Wave, Zones,
};
use planner::words::{count, grouped};

/// One DaemonSet of a plan.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate fact")]
pub(crate) struct DaemonSetView<'a> {
    /// `NAMESPACE/NAME`.
    pub key: String,
    /// Whether the object or its pods change.
    pub changes: bool,
    /// The change of the object.
    pub change: Change,
    /// The most severe thing that happens to it.
    pub risk: Risk,
    /// Whether its pods are kept when it is deleted.
    pub keeps_pods: bool,
    /// A note about the controller, unless it is Kubernetes' own.
    pub managed_by: Option<&'static str>,
    /// Name of its `RolloutPolicy`.
    pub policy: Option<&'a str>,
    /// The DaemonSets that must be done before it begins, separated by commas.
    pub after: Option<String>,
    /// `at most 2 nodes disturbed at once, together with`, and the DaemonSets that share that
    /// budget, separated by commas.
    pub shared_budget: Option<(String, String)>,
    /// `gate errors: sum(rate(errors[5m])), at most 0.01`; from others.
    pub checks: Vec<String>,
    /// `3 images, 10 nodes at a time`; `None` if nothing is pulled before.
    pub pre_pull: Option<String>,
    /// `RollingUpdate, at most 42 of 412 unavailable`.
    pub strategy: String,
    /// Whether a run can replace the pods of a wave by its number (`ds-apply step --wave`).
    pub can_step: bool,
    /// Whether pods are replaced only by `ds-apply roll`, or after they are deleted.
    pub on_delete: bool,
    /// The paused or aborted rollout, and how it ends.
    pub pause: Option<String>,
    /// `revision 7 -> 8 (new)`.
    pub revision: String,
    /// `from agent-5f6d to agent-77c4`: the names of its ControllerRevisions.
    pub revision_names: Option<String>,
    /// The fields that change in the cluster.
    pub fields: &'a [FieldChange],
    /// What the pull request itself changes.
    pub base: Option<&'a BaseChange>,
    /// Images, privileges and host access of the pods of a new one.
    pub new_pods: Option<&'a NewPods>,
    /// Fields of other managers, those in conflict first.
    pub owned: Vec<OwnedField<'a>>,
    /// The steps of its policy; if it has only domains, one for all nodes. Empty for other policies.
    pub steps: Vec<StepView<'a>>,
    /// Key of the node label by which its waves are divided.
    pub domain_key: Option<&'a str>,
    /// What keeps the next wave from beginning, and what helps.
    pub waits_for: Vec<String>,
    /// `Earliest end Wed 04:40 CEST: work 1h 12m, soak 1h 15m, window opens Tue 02:00.`
    pub earliest_end: Option<String>,
    /// Its course over time, if a policy makes it wait.
    pub timeline: Option<TimelineView>,
    pub waves: Vec<WaveView<'a>>,
    /// Nodes in no wave: they change at once, wait, or stay as they are.
    pub at_once: Vec<NodeGroup<'a>>,
    /// Every node of the plan.
    pub nodes: Vec<NodeRow<'a>>,
    /// Its part of the forecast.
    pub course: Option<&'a DaemonSetForecast>,
    /// Number of nodes with each action.
    pub totals: ActionTotals,
    /// The counters of `kubectl get daemonsets` before any change.
    pub counters: Option<String>,
}

/// A field that another manager owns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnedField<'a> {
    pub path: &'a str,
    /// The words between path and manager.
    pub words: &'static str,
    /// `None` for a field without an owner.
    pub manager: Option<&'a str>,
    /// Whether applying the plan needs `--force-conflicts`.
    pub conflicts: bool,
}

/// Nodes that are replaced together under one budget.
#[derive(Debug)]
pub(crate) struct WaveView<'a> {
    /// Position in the order of waves, from 1.
    pub index: u32,
    /// Position in the order of waves, from 1, and name; `None` for the only wave.
    pub name: Option<(u32, &'a str)>,
    /// Number of its nodes.
    pub nodes: usize,
    /// `, first a-01 alone, then 2, at most 3 at a time; each new pod must stay up for 10s`.
    pub pace: String,
    /// `15 rounds of at most 42 nodes`; `None` without nodes.
    pub rounds_words: Option<String>,
    /// Its nodes by action and reason.
    pub groups: Vec<NodeGroup<'a>>,
    /// Whether all nodes have one reason: they run the current revision.
    pub is_plain: bool,
}

impl<'a> DaemonSetView<'a> {
    pub(super) fn of(
        plan: &'a DaemonSetPlan,
        zones: &Zones,
        course: Option<&'a DaemonSetForecast>,
        now: Timestamp,
    ) -> Self {
        let times = Times::of(course, now);
        let mut groups = groups_by_wave(&plan.nodes, zones);
        let at_once = groups.remove(&None).unwrap_or_default();
        let can_step = plan.strategy == Strategy::OnDelete && are_named(&plan.waves);
        let several = plan.waves.len() > 1 || can_step;
        let waves = plan.waves.iter().map(|wave| {
            let groups = groups.remove(&Some(wave.index)).unwrap_or_default();
            let name = several.then_some((wave.index, wave.name.as_str()));
            WaveView { name, ..WaveView::of(wave, groups, &plan.revision) }
        });
        let shared_budget = plan.shared_budget.as_ref();
        Self {
            key: plan.key().to_string(),
            changes: changes_anything(plan),
            change: plan.change,
            risk: Risk::of(plan),
            keeps_pods: plan.cascade == Some(Cascade::Orphan),
            managed_by: managed_words(plan.managed_by),
            policy: plan.policy.as_deref(),
            after: (!plan.after.is_empty()).then(|| plan.after.join(", ")),
            shared_budget: shared_budget.and_then(|it| shared_words(it, &plan.key())),
            checks: plan.checks.iter().map(check_words).collect(),
            pre_pull: plan.pre_pull.as_ref().map(|it| pre_pull_words(it, course)),
            strategy: strategy_words(plan.strategy, &plan.waves),
            can_step,
            on_delete: plan.strategy == Strategy::OnDelete && plan.waves.is_empty(),
            pause: plan.pause.as_ref().map(|pause| pause_words(pause, plan)),
            revision: revision_words(&plan.revision),
            revision_names: revision_names(&plan.revision),
            fields: &plan.changes,
            base: plan.base.as_ref(),
            new_pods: plan.new_pods.as_ref(),
            owned: owned(&plan.conflicts, &plan.leftovers),
            steps: StepView::all(plan, course, &times, zones),
            domain_key: plan.domain_key.as_deref(),
            waits_for: plan.waits_for.iter().map(|it| wait_words(it, plan, &times)).collect(),
            earliest_end: course.and_then(|course| earliest_end(plan, course, &times)),
            timeline: TimelineView::of(plan, course, &times),
            waves: waves.collect(),
            at_once,
            nodes: plan.nodes.iter().map(|node| NodeRow::of(node, several)).collect(),
            course,
            totals: plan.totals,
            counters: plan.status.map(counters_words),
        }
    }

    /// The change of the object, and of the pods of a deleted one.
    pub(crate) fn object(&self) -> &'static str {
        if self.keeps_pods { "deleted, its pods are kept" } else { change_words(self.change) }
    }

    /// The change of the object in a line that introduces its details: `2 fields`, `new`.
    pub(crate) fn title(&self) -> String {
        match self.change {
            Change::Update | Change::Recreate => count(self.fields.len(), "field"),
            Change::Create => "new".to_owned(),
            Change::Delete | Change::None => self.object().to_owned(),
        }
    }

    /// What the pods of a new one may do beyond other pods.
    pub(crate) fn access(&self) -> impl Iterator<Item = &'a Access> {
        self.new_pods.into_iter().flat_map(|pods| &pods.access)
    }
}

/// Whether waves are those of steps or domains.
fn are_named(waves: &[Wave]) -> bool {
    waves.iter().any(|wave| wave.step.is_some() || wave.domain.is_some())
}

/// `3 images, 10 nodes at a time; a node is without a Ready pod for about 4s, 20s without pre-pull`.
fn pre_pull_words(pre_pull: &PrePullPlan, course: Option<&DaemonSetForecast>) -> String {
    let PrePullPlan { images, nodes: _, parallel, timeout_seconds: _ } = pre_pull;
    let age = |seconds: u64| Age(i64::try_from(seconds).unwrap_or(i64::MAX));
    let words = format!("{}, {} at a time", count(images.len(), "image"), count(*parallel, "node"));
    match course.and_then(|course| course.pre_pull) {
        Some(PrePullForecast { node_seconds, without_seconds })
            if node_seconds < without_seconds =>
        {
            format!(
                "{words}; a node is without a Ready pod for about {}, {} without pre-pull",
                age(node_seconds),
                age(without_seconds)
            )
        }
        Some(_) | None => words,
    }
}

/// The shared budget in words; none if no other DaemonSet shares it.
fn shared_words(shared: &SharedBudget, own: &DaemonSetKey) -> Option<(String, String)> {
    let SharedBudget { nodes, daemon_sets } = shared;
    let own = own.to_string();
    let others: Vec<&str> =
        daemon_sets.iter().map(String::as_str).filter(|other| *other != own).collect();
    let words = format!("at most {} disturbed at once, together with", count(*nodes, "node"));
    (!others.is_empty()).then(|| (words, others.join(", ")))
}

/// A check in words.
fn check_words(check: &CheckPlan) -> String {
    let CheckPlan { name, role, asks, interval_seconds: _, only_during_runs } = check;
    let role = match role {
        CheckRole::Precondition => "precondition",
        CheckRole::Gate => "gate",
    };
    let when = if *only_during_runs { "; sampled only during a run" } else { "" };
    format!("{role} {name}: {asks}{when}")
}

/// Fields in conflict, then those that are kept.
fn owned<'a>(conflicts: &'a [FieldOwner], leftovers: &'a [FieldOwner]) -> Vec<OwnedField<'a>> {
    let conflicts = conflicts.iter().map(|it| OwnedField::of(it, "conflicts with", true));
    let leftovers = leftovers.iter();
    let leftovers = leftovers.map(|it| OwnedField::of(it, "kept; not in git; owned by", false));
    conflicts.chain(leftovers).collect()
}

/// Whether the object or its pods change, or wait to be changed.
fn changes_anything(plan: &DaemonSetPlan) -> bool {
    plan.change != Change::None
        || plan.pause.is_some()
        || plan.revision.kind != RevisionKind::Unchanged
        || plan.nodes.iter().any(|node| node.action != Action::Keep)
}

/// The groups of each wave; those of `None` are in no wave.
fn groups_by_wave<'a>(
    nodes: &'a [NodePlan],
    zones: &Zones,
) -> BTreeMap<Option<u32>, Vec<NodeGroup<'a>>> {
    let mut waves: BTreeMap<Option<u32>, Vec<&NodePlan>> = BTreeMap::new();
    for node in nodes {
        waves.entry(node.wave).or_default().push(node);
    }
    let grouped = waves.into_iter().map(|(wave, nodes)| {
        let nodes = nodes.into_iter();
        let nodes = nodes.map(|it| (it.action, it.name.as_ref(), it.reasons.as_slice()));
        (wave, groups(nodes, zones))
    });
    grouped.collect()
}

impl<'a> OwnedField<'a> {
    fn of(owner: &'a FieldOwner, words: &'static str, conflicts: bool) -> Self {
        let FieldOwner { path, manager } = owner;
        Self { path, words, manager: manager.as_deref(), conflicts }
    }

    /// The field in a sentence.
    pub(crate) fn sentence(self) -> String {
        let Self { path, words, manager, conflicts: _ } = self;
        format!("{path} {words} {}", manager.unwrap_or("no manager"))
    }
}

impl<'a> WaveView<'a> {
    fn of(wave: &'a Wave, groups: Vec<NodeGroup<'a>>, revision: &RevisionPlan) -> Self {
        let only_deletes =
            !groups.is_empty() && groups.iter().all(|group| group.key == Action::Delete);
        let stays_up = if only_deletes { String::new() } else { stays_up(wave) };
        Self {
            index: wave.index,
            name: None,
            nodes: wave.nodes.len(),
            pace: format!("{}{stays_up}", pace(wave)),
            rounds_words: rounds(wave),
            is_plain: runs_current(&groups, revision),
            groups,
        }
    }
}

/// The change of objects.
pub(crate) fn change_words(change: Change) -> &'static str {
    match change {
        Change::Create => "created",
        Change::Update => "updated",
        Change::Recreate => "must be deleted and recreated",
        Change::Delete => "deleted",
        Change::None => "unchanged",
    }
}

/// A paused or aborted rollout, and what `ds-apply` does with it.
fn pause_words(pause: &PausedRollout, plan: &DaemonSetPlan) -> String {
    // What it waits for now is shown on its own.
    let pause = &PausedRollout { waits_for: Vec::new(), ..pause.clone() };
    if plan.only_ends_pause() {
        format!("{pause}; all pods are up to date: `ds-apply` only restores the update strategy")
    } else if pause.state == PauseState::Paused && plan.is_under_way() {
        format!("{pause}: `ds-apply` resumes it")
    } else {
        pause.to_string()
    }
}

/// What the pull request itself changes, after `by this pull request: `.
pub(crate) fn asked_words(base: &BaseChange) -> String {
    match base.change {
        Change::None => "nothing (existing drift)".to_owned(),
        Change::Create => "all of it".to_owned(),
        Change::Update | Change::Recreate | Change::Delete => count(base.changes.len(), "field"),
    }
}

/// A note for a DaemonSet that no DaemonSet controller reconciles.
fn managed_words(managed_by: ManagedBy) -> Option<&'static str> {
    match managed_by {
        ManagedBy::DaemonSetController => None,
        ManagedBy::DsApply => Some(
            "managed by ds-apply: a ConfigMap records the object; nodes that join or lose their \
             pod get one at the next run",
        ),
    }
}

fn revision_words(revision: &RevisionPlan) -> String {
    let RevisionPlan { current, target, kind } = revision;
    let target = target.number;
    match (kind, current) {
        (RevisionKind::Unchanged, _) => format!("revision {target}"),
        (RevisionKind::New | RevisionKind::Reused, Some(current)) => {
            format!("revision {} -> {target} ({kind})", current.number)
        }
        (RevisionKind::New | RevisionKind::Reused, None) => format!("revision {target} ({kind})"),
    }
}

fn revision_names(revision: &RevisionPlan) -> Option<String> {
    let RevisionPlan { current, target, kind: _ } = revision;
    let from = current.as_ref().map(|it| format!("from {}", it.name));
    let to = target.name.as_ref().map(|name| format!("to {name}"));
    let names: Vec<String> = from.into_iter().chain(to).collect();
    (!names.is_empty()).then(|| names.join(" "))
}

/// The strategy; with `OnDelete`, only a run that replaces the pods itself (`roll`, `step`) has waves.
fn strategy_words(strategy: Strategy, waves: &[Wave]) -> String {
    match strategy {
        Strategy::OnDelete if let Some(wave) = waves.first() => {
            format!(
                "OnDelete, this run replaces pods, at most {} unavailable",
                grouped(wave.max_unavailable)
            )
        }
        Strategy::OnDelete => {
            "OnDelete, a pod is replaced by `ds-apply roll`, or after it is deleted".to_owned()
        }
        Strategy::RollingUpdate { max_unavailable, max_surge, desired } => {
            let [unavailable, surge, desired] = [max_unavailable, max_surge, desired].map(grouped);
            let surges = format!("new pod before old on at most {surge} of {desired} at a time");
            match (max_unavailable, max_surge) {
                (_, 0) => format!("RollingUpdate, at most {unavailable} of {desired} unavailable"),
                (0, _) => format!("RollingUpdate, {surges}"),
                _ => format!("RollingUpdate, {surges}, at most {unavailable} unavailable"),
            }
        }
    }
}

fn counters_words(counters: Counters) -> String {
    let Counters { desired, current, ready, updated, available, unavailable, misscheduled } =
        counters;
    let [desired, current, ready, updated, available, unavailable, misscheduled] =
        [desired, current, ready, updated, available, unavailable, misscheduled].map(grouped);
    format!(
        "now {desired} desired, {current} current, {ready} ready, {updated} up to date, \
         {available} available, {unavailable} unavailable, {misscheduled} misscheduled"
    )
}
