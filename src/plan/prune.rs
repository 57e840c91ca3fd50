//! DaemonSets that a source applied before and does not contain any more: what deleting them does,
//! and which of them are not ours to delete.
//!
//! What a source applied carries its mark, the annotation [`SOURCE_ID_ANNOTATION`]. The mark counts
//! where `ds-apply` wrote it: one that came along in a copy of the object is nobody's. Not here:
//! writing the mark, and whether all of the source was read, which is the caller's word.

use std::collections::{BTreeMap, BTreeSet};

use super::applied::Applied;
use super::daemon_set::{Planned, held, strategy, totals};
use super::digest::{self, template_digest};
use super::document::{
    Action, Change, Counters, DaemonSetPlan, Fate, Guard, GuardCode, NodePlan, RevisionKind,
    RevisionPlan, SourceInfo, Warning,
};
use super::git_ops::{self, GitOps};
use super::hold::as_declared;
use super::nodes::pod_plan;
use super::reason::Reason;
use super::scene::Scene;
use crate::controller::Owner;
use crate::controller::node_pods::Fleet;
use crate::controller::status;
use crate::merge;
use crate::model::{
    Cascade, DaemonSet, DaemonSetKey, FIELD_MANAGER, NamespaceName, NodeName, Pod, Snapshot,
};

/// The mark of what a source applied: its `--source-id`.
pub const SOURCE_ID_ANNOTATION: &str = "ds-plan.dev/source-id";

/// Where that source was: its files and folders, with commas between them.
pub const SOURCE_PATHS_ANNOTATION: &str = "ds-plan.dev/source-paths";

/// Allows to delete more than half of what a source applied.
const ALLOW_MASS_DELETION: &str = "--allow-mass-deletion";
/// Allows to delete what was applied from another place.
const ALLOW_OTHER_SOURCE: &str = "--allow-other-source";

/// What is deleted, and what is not because the source has it.
#[derive(Clone, Copy, Debug)]
pub struct Prune<'a> {
    /// Which source it is.
    pub id: &'a str,
    /// What becomes of the pods.
    pub cascade: Cascade,
    /// Everything that the source contains, whatever else is planned.
    pub declared: &'a BTreeSet<DaemonSetKey>,
    /// Where its marks count, besides the namespaces of what it contains: those that it creates, and
    /// those that were named.
    pub namespaces: &'a BTreeSet<NamespaceName>,
}

impl Prune<'_> {
    /// Whether a mark counts there. In other namespaces anybody may have written it who may write
    /// DaemonSets there.
    fn counts_in(&self, namespace: &NamespaceName) -> bool {
        self.namespaces.contains(namespace)
            || self.declared.iter().any(|key| key.namespace == *namespace)
    }
}

/// Where a source is, as its mark says.
pub fn source_paths(source: &SourceInfo) -> String {
    source.paths.join(",")
}

/// The plans of what is deleted, in no order.
pub(super) fn removals(
    prune: Prune<'_>,
    snapshot: &Snapshot,
    fleet: &Fleet<'_>,
    source: &SourceInfo,
) -> Vec<Planned> {
    let gone = marked(snapshot, prune).filter(|live| !prune.declared.contains(&live.key));
    // One that is on its way out already is nobody's to delete.
    let gone = gone.filter(|live| !live.terminating);
    gone.map(|live| removal(live, prune.cascade, snapshot, fleet, source)).collect()
}

/// More than half of a source is more likely a wrong folder than a wish.
pub(super) fn mass_deletion(prune: Prune<'_>, snapshot: &Snapshot) -> Option<Guard> {
    let live: Vec<&DaemonSet> = marked(snapshot, prune).filter(|it| !it.terminating).collect();
    let gone = live.iter().filter(|live| !prune.declared.contains(&live.key)).count();
    (2 * gone > live.len()).then(|| Guard {
        code: GuardCode::MassDeletion,
        message: format!(
            "of {} DaemonSets that source `{}` applied, {gone} would be deleted because they are not \
             in it any more, as if another folder or revision were read",
            live.len(),
            prune.id,
        ),
        allow_flag: Some(ALLOW_MASS_DELETION.to_owned()),
        daemon_set: None,
        nodes: Vec::new(),
    })
}

/// What of two sources meets in one DaemonSet, and marks that do not count.
pub(super) fn warnings(
    source: &SourceInfo,
    prune: Option<Prune<'_>>,
    applied: &[Applied],
    snapshot: &Snapshot,
) -> Vec<Warning> {
    let Some(id) = &source.id else { return Vec::new() };
    let warning = |code: &str, key: &DaemonSetKey, message| Warning {
        code: code.to_owned(),
        message,
        daemon_set: Some(key.to_string()),
        nodes: Vec::new(),
    };
    let others = applied.iter().filter_map(|applied| {
        let live = snapshot.daemon_set(&applied.desired.key)?;
        let other = mark(live, snapshot).filter(|other| other != id)?;
        let message = format!(
            "source `{other}` applied it; it becomes `{id}`'s, and `{other}` must not contain it any \
             more"
        );
        Some(warning("otherSource", &live.key, message))
    });
    let copies = snapshot.daemon_sets.iter().filter(|live| {
        prune.is_some_and(|prune| !prune.declared.contains(&live.key))
            && live.annotations.get(SOURCE_ID_ANNOTATION) == Some(id)
            && mark(live, snapshot).is_none()
    });
    let copies = copies.map(|live| {
        let message = format!(
            "it carries the mark of source `{id}`, but {FIELD_MANAGER} did not write that: a copy, \
             say. It is left alone"
        );
        warning("copiedMark", &live.key, message)
    });
    let elsewhere = snapshot.daemon_sets.iter().filter(|live| {
        let is_gone = |prune: Prune<'_>| {
            !prune.declared.contains(&live.key) && !prune.counts_in(&live.key.namespace)
        };
        prune.is_some_and(is_gone) && mark(live, snapshot).is_some_and(|mark| mark == id)
    });
    let elsewhere = elsewhere.map(|live| {
        let namespace = &live.key.namespace;
        let message = format!(
            "it carries the mark of source `{id}`, and the source has nothing in namespace \
             {namespace}. It is left alone, unless you say `--prune-namespace={namespace}`"
        );
        warning("markElsewhere", &live.key, message)
    });
    others.chain(copies).chain(elsewhere).collect()
}

/// What this source applied, whether or not it still contains it.
fn marked<'s>(snapshot: &'s Snapshot, prune: Prune<'_>) -> impl Iterator<Item = &'s DaemonSet> {
    let is_of = move |live: &&DaemonSet| {
        prune.counts_in(&live.key.namespace)
            && mark(live, snapshot).is_some_and(|mark| mark == prune.id)
    };
    snapshot.daemon_sets.iter().filter(is_of)
}

/// The source that applied a DaemonSet. Where the snapshot does not say who wrote what, the mark is
/// believed: such a snapshot is for looking only.
fn mark<'s>(live: &'s DaemonSet, snapshot: &Snapshot) -> Option<&'s str> {
    let mark = live.annotations.get(SOURCE_ID_ANNOTATION)?;
    let owns = || {
        let owned = merge::owned_by(&live.raw, FIELD_MANAGER).ok().flatten();
        owned.is_some_and(|it| it["metadata"]["annotations"][SOURCE_ID_ANNOTATION].is_string())
    };
    (!snapshot.coverage.managed_fields || owns()).then_some(mark)
}

fn removal(
    live: &DaemonSet,
    cascade: Cascade,
    snapshot: &Snapshot,
    fleet: &Fleet<'_>,
    source: &SourceInfo,
) -> Planned {
    let (hold, unreadable) = held(Some(live));
    let declared = as_declared(live, hold.as_ref());
    let scene = Scene::of(Owner::from(&*declared), Some(live), snapshot, fleet);
    let template = template_digest(live.spec.template.raw());
    let nodes = nodes(&scene.pods.claimed, cascade);
    let idle = fleet.nodes().iter().filter(|node| !nodes.iter().any(|it| it.name == node.name));
    let idle = u32::try_from(idle.count()).unwrap_or(u32::MAX);
    let mut plan = DaemonSetPlan {
        namespace: live.key.namespace.clone(),
        name: live.key.name.clone(),
        uid: Some(live.uid.clone()),
        generation: Some(live.generation),
        change: Change::Delete,
        cascade: Some(cascade),
        managed_by: live.managed_by,
        policy: None,
        strategy: strategy(&scene.view()),
        hold,
        live_template: Some(template.clone()),
        target_template: template,
        revision: RevisionPlan { kind: RevisionKind::Unchanged, ..scene.target.plan.clone() },
        changes: Vec::new(),
        leftovers: Vec::new(),
        conflicts: Vec::new(),
        taken_over: Vec::new(),
        base: None,
        waves: Vec::new(),
        totals: totals(&nodes, idle),
        nodes,
        status: Some(Counters::from(status::counters(&scene.view()))),
    };
    let guards = [git_ops(&plan, live), other_source(&plan, live, source)];
    let decided = digest::decided(&plan);
    plan.nodes.retain(|node| node.action != Action::Keep);
    let guards = guards.into_iter().flatten().collect();
    Planned { plan, guards, warnings: unreadable.into_iter().collect(), decided }
}

/// What becomes of the pods, by node. Pods are not waited for, whatever state they are in.
fn nodes(pods: &[&Pod], cascade: Cascade) -> Vec<NodePlan> {
    let (action, fate, reason) = match cascade {
        Cascade::Background => (Action::Delete, Fate::Delete, Reason::GoesWithOwner),
        Cascade::Orphan => (Action::Keep, Fate::Keep, Reason::Orphaned),
    };
    let mut by_node: BTreeMap<&NodeName, Vec<&Pod>> = BTreeMap::new();
    for pod in pods {
        if let Some(node) = pod.node() {
            by_node.entry(node).or_default().push(pod);
        }
    }
    let node = |(name, pods): (&NodeName, Vec<&Pod>)| NodePlan {
        name: name.clone(),
        action,
        wave: None,
        pods: pods.into_iter().map(|pod| pod_plan(pod, fate, reason.clone())).collect(),
        reasons: vec![reason.clone().into()],
    };
    by_node.into_iter().map(node).collect()
}

/// Whoever applies it again and again would make it anew.
fn git_ops(plan: &DaemonSetPlan, live: &DaemonSet) -> Option<Guard> {
    let GitOps { product, evidence } = git_ops::found(live)?;
    let message = format!(
        "{product} applies this DaemonSet ({evidence}) and would make it again. Take it out there"
    );
    Some(Guard {
        code: GuardCode::GitOps,
        message,
        allow_flag: None,
        daemon_set: Some(plan.key().to_string()),
        nodes: Vec::new(),
    })
}

/// The source was in another place when it applied this: what is read now may be a part of it, or
/// another source of the same id.
fn other_source(plan: &DaemonSetPlan, live: &DaemonSet, source: &SourceInfo) -> Option<Guard> {
    let before = live.annotations.get(SOURCE_PATHS_ANNOTATION)?;
    let now = source_paths(source);
    if before == now {
        return None;
    }
    let place = |paths: &str| {
        if paths.is_empty() { "all of the repository".to_owned() } else { format!("`{paths}`") }
    };
    let message = format!(
        "it was applied from {}, and this is {}: a part of that source, or another one of the same \
         id. Deleting is for the whole source",
        place(before),
        place(&now),
    );
    Some(Guard {
        code: GuardCode::OtherSource,
        message,
        allow_flag: Some(ALLOW_OTHER_SOURCE.to_owned()),
        daemon_set: Some(plan.key().to_string()),
        nodes: Vec::new(),
    })
}
