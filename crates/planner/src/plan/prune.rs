//! Prunes DaemonSets that were applied from a source and are no longer in it: the effect of
//! deleting them, and those that must not be deleted.
//!
//! An applied DaemonSet has the annotation [`SOURCE_ID_ANNOTATION`] with the id of its source. It
//! is valid only if `ds-apply` set it: one in a copy of the object is ignored. Not here: setting
//! the annotation, and whether the whole source was read, which is up to the caller.
//!
//! Pruning is the only operation that depends on what is *not* in the source, so it is guarded at
//! each step: the program rejects a source that was filtered or not read completely; this module
//! accepts only marks that `ds-apply` owns by `managedFields`; before a delete, each DaemonSet is
//! planned again under its lock, with the keys of the whole source, and is deleted by uid and
//! `resourceVersion`.

use std::collections::{BTreeMap, BTreeSet};

use super::applied::Applied;
use super::daemon_set::{Planned, pause_of, strategy, totals};
use super::daemon_set_view::DaemonSetView;
use super::digest;
use super::document::{
    Action, Change, Counters, DaemonSetPlan, Fate, Guard, GuardCode, NodePlan, RevisionKind,
    RevisionPlan, SourceInfo, Warning,
};
use super::git_ops::{self, GitOps};
use super::input::Prune;
use super::nodes::pod_plan;
use super::pause::as_declared;
use super::reason::Reason;
use crate::annotations::{
    SOURCE_ID_ANNOTATION, SOURCE_PATHS_ANNOTATION, SOURCE_REPOSITORY_ANNOTATION,
};
use crate::digest::template_digest;
use daemonset::controller::Owner;
use daemonset::controller::node_pods::Fleet;
use daemonset::controller::status;
use daemonset::model::{Cascade, DaemonSet, DaemonSetKey, FIELD_MANAGER, NodeName, Pod, Snapshot};

/// Flag that allows deleting more than half of the DaemonSets of a source.
const ALLOW_MASS_DELETION: &str = "--allow-mass-deletion";
/// Flag that allows deleting a DaemonSet that was applied from other paths or another repository.
const ALLOW_OTHER_SOURCE: &str = "--allow-other-source";

/// The value of [`SOURCE_PATHS_ANNOTATION`] for a source.
pub fn source_paths(source: &SourceInfo) -> String {
    source.paths.join(",")
}

/// The value of [`SOURCE_REPOSITORY_ANNOTATION`] for a source: host and path of its URL, which do not
/// depend on protocol, port and user. `None` for a folder, which may be another one on each machine.
pub fn source_repository(source: &SourceInfo) -> Option<String> {
    let url = source.repository.as_deref()?;
    let (host, path) = match url.split_once("://") {
        Some(("file", _)) => return None,
        Some((_, rest)) => rest.split_once('/')?,
        // `user@host:path`; a folder may contain a colon behind a slash.
        None => url.split_once(':').filter(|(host, _)| !host.contains('/'))?,
    };
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let host = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) | None => host,
    };
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    Some(format!("{}/{path}", host.to_ascii_lowercase()))
}

/// The plans of the DaemonSets that are deleted, in no order.
pub(super) fn removals(
    prune: Prune<'_>,
    snapshot: &Snapshot,
    fleet: &Fleet<'_>,
    source: &SourceInfo,
) -> Vec<Planned> {
    let gone = marked(snapshot, prune).filter(|live| !prune.declared.contains(&live.key));
    // A terminating DaemonSet is being deleted already.
    let gone = gone.filter(|live| !live.terminating);
    gone.map(|live| removal(live, prune.cascade, snapshot, fleet, source)).collect()
}

/// The guard of deleting more than half of a source, which is more likely a wrong folder.
pub(super) fn mass_deletion(prune: Prune<'_>, snapshot: &Snapshot) -> Option<Guard> {
    let live: Vec<&DaemonSet> = marked(snapshot, prune).filter(|it| !it.terminating).collect();
    let gone = live.iter().filter(|live| !prune.declared.contains(&live.key)).count();
    (2 * gone > live.len()).then(|| Guard {
        code: GuardCode::MassDeletion,
        message: format!(
            "{gone} of {} DaemonSets applied from source `{}` would be deleted because they are no \
             longer in it. Check that the right folder and revision were read",
            live.len(),
            prune.id,
        ),
        allow_flag: Some(ALLOW_MASS_DELETION.to_owned()),
        daemon_set: None,
        nodes: Vec::new(),
    })
}

/// Warnings about DaemonSets of another source, and about annotations that are ignored.
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
            "it was applied from source `{other}`; this plan moves it to `{id}`. Remove it from \
             `{other}`"
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
            "it has the annotation of source `{id}`, but {FIELD_MANAGER} did not set it (the \
             object may be a copy). It is not deleted"
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
            "it has the annotation of source `{id}`, but the source has nothing in namespace \
             {namespace}. It is not deleted unless you pass `--prune-namespace={namespace}`"
        );
        warning("markElsewhere", &live.key, message)
    });
    others.chain(copies).chain(elsewhere).collect()
}

/// The live DaemonSets that were applied from this source, whether or not it still has them.
fn marked<'s>(snapshot: &'s Snapshot, prune: Prune<'_>) -> impl Iterator<Item = &'s DaemonSet> {
    let is_of = move |live: &&DaemonSet| {
        prune.counts_in(&live.key.namespace)
            && mark(live, snapshot).is_some_and(|mark| mark == prune.id)
    };
    snapshot.daemon_sets.iter().filter(is_of)
}

/// The id of the source from which a DaemonSet was applied. In a snapshot without managed fields
/// the annotation is trusted: nothing is applied with such a snapshot.
fn mark<'s>(live: &'s DaemonSet, snapshot: &Snapshot) -> Option<&'s str> {
    let mark = live.annotations.get(SOURCE_ID_ANNOTATION)?;
    let owns = || {
        let owned = ssa::owned_by(&ssa::DAEMON_SET, &live.raw, FIELD_MANAGER).ok().flatten();
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
    let (pause, unreadable) = pause_of(Some(live));
    let declared = as_declared(live, pause.as_ref());
    let daemon_set_view = DaemonSetView::of(Owner::from(&*declared), Some(live), snapshot, fleet);
    let template = template_digest(live.spec.template.raw());
    let nodes = nodes(&daemon_set_view.pods.claimed, cascade);
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
        after: Vec::new(),
        shared_budget: None,
        checks: Vec::new(),
        pre_pull: None,
        strategy: strategy(&daemon_set_view.view()),
        pause,
        live_template: Some(template.clone()),
        target_template: template,
        revision: RevisionPlan {
            kind: RevisionKind::Unchanged,
            ..daemon_set_view.target.plan.clone()
        },
        changes: Vec::new(),
        leftovers: Vec::new(),
        conflicts: Vec::new(),
        forced_conflicts: Vec::new(),
        base: None,
        new_pods: None,
        steps: Vec::new(),
        domain_key: None,
        next_waves: Vec::new(),
        waits_for: Vec::new(),
        waves: Vec::new(),
        totals: totals(&nodes, idle),
        nodes,
        status: Some(Counters::from(status::counters(&daemon_set_view.view()))),
    };
    let guards = [git_ops(&plan, live), other_source(&plan, live, source)];
    let decided = digest::decided(&plan);
    plan.nodes.retain(|node| node.action != Action::Keep);
    let guards = guards.into_iter().flatten().collect();
    Planned { plan, guards, warnings: unreadable.into_iter().collect(), decided }
}

/// The plans of the nodes with pods. The state of the pods does not matter.
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
        reasons: vec![reason.clone().into()].into(),
    };
    by_node.into_iter().map(node).collect()
}

/// The guard of a DaemonSet that a GitOps controller would recreate.
fn git_ops(plan: &DaemonSetPlan, live: &DaemonSet) -> Option<Guard> {
    let GitOps { product, evidence, .. } = git_ops::found(live, &BTreeSet::new())?;
    let message = format!(
        "{product} manages this DaemonSet ({evidence}) and would recreate it. Remove it there first"
    );
    Some(Guard {
        code: GuardCode::GitOps,
        message,
        allow_flag: None,
        daemon_set: Some(plan.key().to_string()),
        nodes: Vec::new(),
    })
}

/// The guard of a DaemonSet that was applied from other paths or another repository: the current source
/// may be a part of the earlier one, or another source with the same id. Earlier versions recorded no
/// repository, so one that is not recorded is not compared.
fn other_source(plan: &DaemonSetPlan, live: &DaemonSet, source: &SourceInfo) -> Option<Guard> {
    let before = live.annotations.get(SOURCE_PATHS_ANNOTATION)?;
    let now = source_paths(source);
    let (was_in, is_in) =
        (live.annotations.get(SOURCE_REPOSITORY_ANNOTATION), source_repository(source));
    let moved = was_in.is_some() && was_in != is_in.as_deref();
    if before == now && !moved {
        return None;
    }
    let place = |paths: &str, repository: Option<&str>| {
        let what = match paths {
            "" if moved => "all".to_owned(),
            "" => "all of the repository".to_owned(),
            _ => format!("`{paths}`"),
        };
        match repository {
            _ if !moved => what,
            Some(repository) => format!("{what} of repository `{repository}`"),
            None => format!("{what} of no known repository"),
        }
    };
    let message = format!(
        "it was applied from {}, but this plan reads {}: a part of that source, or another source \
         with the same id. Prune only with the whole source",
        place(before, was_in),
        place(&now, is_in.as_deref()),
    );
    Some(Guard {
        code: GuardCode::OtherSource,
        message,
        allow_flag: Some(ALLOW_OTHER_SOURCE.to_owned()),
        daemon_set: Some(plan.key().to_string()),
        nodes: Vec::new(),
    })
}
