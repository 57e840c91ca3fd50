//! Checks a finished plan for contradictions and actions that it must not contain.
//!
//! It reads only the document, and shares no code with the planner. It runs on every plan of a
//! debug build, and so on every plan of a test.

mod steps;

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use super::document::{
    Action, ActionTotals, Change, DaemonSetPlan, Fate, GuardCode, NodePlan, Plan, RevisionKind,
    Strategy,
};
use super::reason::Reason;
use daemonset::model::{NodeName, Uid};

/// A flaw of a plan, and the DaemonSet that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// `NAMESPACE/NAME`; none for the plan as a whole.
    pub daemon_set: Option<String>,
    /// Kind of the flaw.
    pub flaw: Flaw,
}

/// Kind of a flaw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The counts do not add up.
    Totals,
    /// DaemonSets, or nodes of a DaemonSet, are out of order or duplicated.
    Order,
    /// A pod is listed twice.
    PodTwice(Uid),
    /// A node or pod has no reason, or one whose sentence does not match its data.
    Unreasoned(NodeName),
    /// A pod is deleted for a reason that does not justify it.
    DeletedWithoutCause(NodeName),
    /// The action on a node does not match the fates of its pods.
    ActionAgainstFates(NodeName),
    /// A node is not in its wave, or a wave has a node that does not belong there.
    Wave(NodeName),
    /// A node with an outdated pod is replaced outside of any wave.
    RolledOutsideWaves(NodeName),
    /// A wave allows more than the strategy does.
    Budget(u32),
    /// A wave is of a step that is done, or of none that the plan has.
    WaveStep(u32),
    /// A wave is before one of an earlier step, or two are of the same step and domain.
    StepOrder(u32),
    /// The limits of a wave's domain differ from those of another wave.
    Domains(u32),
    /// So many domains come next, which are more than may be at once and than are disturbed.
    NextDomains(usize),
    /// The shared budget of a wave, or of a DaemonSet, differs from that of those who share it.
    SharedBudget(u32),
    /// The nodes of a step do not add up.
    StepNodes(String),
    /// The numbers of the waves do not grow from 1 or later, or one of them is empty.
    WaveNumbers,
    /// The change of the object does not match its fields, its revision, or its guards.
    Change,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { daemon_set, flaw } = self;
        match daemon_set {
            Some(daemon_set) => write!(f, "{daemon_set}: {flaw:?}"),
            None => write!(f, "{flaw:?}"),
        }
    }
}

/// Returns all flaws of `plan`; empty for a correct plan.
pub fn lint(plan: &Plan) -> Vec<Note> {
    let mut notes = Vec::new();
    let whole = [(!sums_add_up(plan), Flaw::Totals), (!in_order(plan), Flaw::Order)];
    notes.extend(
        whole
            .into_iter()
            .filter(|(wrong, _)| *wrong)
            .map(|(_, flaw)| Note { daemon_set: None, flaw }),
    );
    let mut pods = HashSet::new();
    for daemon_set in &plan.daemon_sets {
        let mut flaws = Vec::new();
        counts(daemon_set, &mut flaws);
        change(plan, daemon_set, &mut flaws);
        waves(daemon_set, &mut flaws);
        steps::steps(daemon_set, &mut flaws);
        shared_budget(plan, daemon_set, &mut flaws);
        for node in &daemon_set.nodes {
            node_and_pods(node, &mut flaws);
            let uids = node.pods.iter().map(|pod| &pod.uid);
            flaws.extend(uids.filter(|uid| !pods.insert(*uid)).cloned().map(Flaw::PodTwice));
        }
        let name = format!("{}/{}", daemon_set.namespace, daemon_set.name);
        notes.extend(flaws.into_iter().map(|flaw| Note { daemon_set: Some(name.clone()), flaw }));
    }
    notes
}

fn sums_add_up(plan: &Plan) -> bool {
    let mut actions = ActionTotals::default();
    let mut kinds = [0; 3];
    for daemon_set in &plan.daemon_sets {
        actions += daemon_set.totals;
        kinds[match daemon_set.revision.kind {
            RevisionKind::New => 0,
            RevisionKind::Reused => 1,
            RevisionKind::Unchanged => 2,
        }] += 1;
    }
    let revisions = plan.totals.revisions;
    let nodes = plan.daemon_sets.iter().flat_map(|daemon_set| &daemon_set.nodes);
    let deleted: usize = nodes.map(|node| node.deleted().count()).sum();
    actions == plan.totals.actions
        && u32::try_from(deleted) == Ok(plan.totals.deleted_pods)
        && kinds == [revisions.new, revisions.reused, revisions.unchanged]
}

fn in_order(plan: &Plan) -> bool {
    let keys = |at: &DaemonSetPlan| (at.namespace.clone(), at.name.clone());
    plan.daemon_sets.is_sorted_by(|a, b| keys(a) < keys(b))
        && plan.daemon_sets.iter().all(|it| it.nodes.is_sorted_by(|a, b| a.name < b.name))
}

/// Checks the totals. Only nodes with [`Action::Keep`] may be left out of the list.
fn counts(daemon_set: &DaemonSetPlan, flaws: &mut Vec<Flaw>) {
    let mut listed = ActionTotals::default();
    for node in &daemon_set.nodes {
        listed.add(node.action);
    }
    let totals = daemon_set.totals;
    let fits = Action::ALL.into_iter().all(|action| match action {
        Action::Keep => listed.keep == 0 || listed.keep == totals.keep,
        Action::Create | Action::Delete | Action::Replace | Action::Surge | Action::Wait => {
            listed.of(action) == totals.of(action)
        }
    });
    if !fits {
        flaws.push(Flaw::Totals);
    }
}

fn change(plan: &Plan, daemon_set: &DaemonSetPlan, flaws: &mut Vec<Flaw>) {
    let name = format!("{}/{}", daemon_set.namespace, daemon_set.name);
    let guarded = plan.guards.iter().any(|guard| {
        guard.code == GuardCode::SelectorChange && guard.daemon_set.as_ref() == Some(&name)
    });
    let fits = match daemon_set.change {
        Change::Create => daemon_set.uid.is_none() && daemon_set.status.is_none(),
        Change::Update => daemon_set.uid.is_some() && !daemon_set.changes.is_empty(),
        Change::Recreate => guarded && daemon_set.nodes.iter().all(|it| it.action == Action::Keep),
        Change::Delete => {
            let untouched = daemon_set.changes.is_empty() && daemon_set.waves.is_empty();
            untouched && daemon_set.uid.is_some() && daemon_set.cascade.is_some()
        }
        Change::None => daemon_set.uid.is_some() && daemon_set.changes.is_empty(),
    };
    let revision = &daemon_set.revision;
    let number = revision.target.number;
    let is_changed = daemon_set.live_template.as_ref() != Some(&daemon_set.target_template);
    let revision_fits = match revision.kind {
        RevisionKind::New => revision.target.name.is_none(),
        RevisionKind::Reused => revision.target.name.is_some(),
        // Without a current revision, it is adopted from a deleted DaemonSet. Another template can
        // be current with a lower number, when it was restored and not yet renumbered.
        RevisionKind::Unchanged => {
            revision.target.name.is_some()
                && revision.current.as_ref().is_none_or(|current| {
                    current.number == number || (is_changed && current.number < number)
                })
        }
    } && (revision.kind == RevisionKind::Unchanged
        || revision.current.as_ref().is_none_or(|current| current.number < number));
    // A deleted DaemonSet keeps its revision, which may be none.
    let revision_fits = revision_fits || daemon_set.change == Change::Delete;
    if !fits || !revision_fits || (guarded && daemon_set.change != Change::Recreate) {
        flaws.push(Flaw::Change);
    }
}

fn waves(daemon_set: &DaemonSetPlan, flaws: &mut Vec<Flaw>) {
    let (unavailable, surge) = match daemon_set.strategy {
        Strategy::OnDelete => (0, 0),
        // Where no node is desired, a percentage allows none, but pods that only go have a wave.
        Strategy::RollingUpdate { max_unavailable: 0, max_surge: 0, desired: 0 } => (1, 0),
        Strategy::RollingUpdate { max_unavailable, max_surge, desired: _ } => {
            (max_unavailable, max_surge)
        }
    };
    let mut members: BTreeMap<&NodeName, u32> = BTreeMap::new();
    let mut before = 0;
    for wave in &daemon_set.waves {
        if wave.index <= before || wave.nodes.is_empty() {
            flaws.push(Flaw::WaveNumbers);
        }
        before = wave.index;
        // Steps before the last of a surge, which allows no unavailable node, are deletes.
        let is_before_surge = surge > 0
            && wave.step.is_some()
            && daemon_set.waves.last().is_some_and(|last| last.step != wave.step);
        let fits = if is_before_surge {
            wave.max_surge == 0
        } else {
            wave.max_unavailable <= unavailable && wave.max_surge <= surge
        };
        if !fits || wave.max_unavailable + wave.max_surge == 0 {
            flaws.push(Flaw::Budget(wave.index));
        }
        for node in &wave.nodes {
            if members.insert(node, wave.index).is_some() {
                flaws.push(Flaw::Wave(node.clone()));
            }
        }
    }
    for node in &daemon_set.nodes {
        if members.remove(&node.name) != node.wave {
            flaws.push(Flaw::Wave(node.name.clone()));
        }
    }
    flaws.extend(members.into_keys().cloned().map(Flaw::Wave));
}

/// All waves have the shared budget of their DaemonSet, and all DaemonSets that share it the same one.
/// A flaw of wave 0 is one of the DaemonSet.
fn shared_budget(plan: &Plan, daemon_set: &DaemonSetPlan, flaws: &mut Vec<Flaw>) {
    let of_it = daemon_set.shared_budget.as_ref();
    let nodes = of_it.map(|shared| shared.nodes);
    let other = daemon_set.waves.iter().filter(|wave| wave.shared_budget != nodes);
    flaws.extend(other.map(|wave| Flaw::SharedBudget(wave.index)));
    let Some(shared) = of_it else { return };
    let key = daemon_set.key().to_string();
    let own = shared.daemon_sets.iter().filter(|name| **name == key).count();
    let sharing = plan.daemon_sets.iter().filter(|other| {
        let other = other.key().to_string();
        shared.daemon_sets.contains(&other)
    });
    let mut sharing = sharing.filter_map(|other| other.shared_budget.as_ref());
    if own != 1 || shared.nodes == 0 || sharing.any(|other| other != shared) {
        flaws.push(Flaw::SharedBudget(0));
    }
}

fn node_and_pods(node: &NodePlan, flaws: &mut Vec<Flaw>) {
    let pods = || node.pods.iter();
    if node.reasons.is_empty() {
        flaws.push(Flaw::Unreasoned(node.name.clone()));
    }
    let deleted = || pods().filter(|pod| pod.fate == Fate::Delete);
    if !deleted().all(|pod| deletes(&pod.reason.reason)) {
        flaws.push(Flaw::DeletedWithoutCause(node.name.clone()));
    }
    let leaving = |reason: &Reason| matches!(reason, Reason::Terminating);
    let goes = deleted().any(|pod| !leaving(&pod.reason.reason));
    let fits = match node.action {
        Action::Create => !goes && deleted().count() == own_pods(node),
        Action::Delete | Action::Replace | Action::Surge => goes,
        Action::Wait | Action::Keep => !goes,
    };
    if !fits {
        flaws.push(Flaw::ActionAgainstFates(node.name.clone()));
    }
    let outdated = deleted().any(|pod| {
        matches!(pod.reason.reason, Reason::Outdated { .. } | Reason::DeletedNotRecreated { .. })
    });
    if outdated && node.wave.is_none() {
        flaws.push(Flaw::RolledOutsideWaves(node.name.clone()));
    }
}

/// Pods that the DaemonSet still owns.
fn own_pods(node: &NodePlan) -> usize {
    node.pods.iter().filter(|pod| !matches!(pod.reason.reason, Reason::Released)).count()
}

/// Whether a pod may be deleted for this reason.
fn deletes(reason: &Reason) -> bool {
    match reason {
        Reason::Outdated { .. }
        | Reason::Failed
        | Reason::Succeeded
        | Reason::Surplus { .. }
        | Reason::Superseded { .. }
        | Reason::NotEligible { .. }
        | Reason::DeletedNotRecreated { .. }
        | Reason::NodeVanished
        | Reason::GoesWithOwner
        | Reason::Terminating => true,
        Reason::NoPod
        | Reason::NoLivePod
        | Reason::UpToDate
        | Reason::MayBeDelayed
        | Reason::LeftToGarbageCollector
        | Reason::OnDelete
        | Reason::SkippedUnreadyNode(_)
        | Reason::UnreadyNodeCounts { .. }
        | Reason::MaxUnavailableReached { .. }
        | Reason::NodeNotReady(_)
        | Reason::PodNotReady(_)
        | Reason::NotAvailableYet { .. }
        | Reason::Misscheduled { .. }
        | Reason::Adopted
        | Reason::Released
        | Reason::DaemonSetTerminating
        | Reason::MustBeRecreated
        | Reason::Orphaned => false,
    }
}

#[cfg(test)]
mod tests;
