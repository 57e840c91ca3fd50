//! Rolling back: to which revision, what is applied then, and a rollback that was stopped.

use std::collections::BTreeSet;

use crate::annotations::COMMIT_ANNOTATION;
use crate::digest::template_digest;
use crate::live_object::{LiveObjectError, pause, with_template};
use crate::plan::{
    FieldOwner, NoSuchRevision, PauseState, PausedRollout, Plan, after_apply, noted_from,
};
use crate::rollout::{ObservedCluster, is_rolling_back};
use daemonset::controller::revision_data::{Matching, matches, template_of};
use daemonset::model::{
    CHANGE_CAUSE_ANNOTATION, DaemonSet, DaemonSetKey, DesiredDaemonSet, OnFailure, PodTemplate,
    Revision, RevisionName, RevisionNumber, RevisionRef, Snapshot, is_commit_id, short_commit,
};

/// A DaemonSet cannot be rolled back.
#[derive(Debug, thiserror::Error)]
pub enum RollbackError {
    /// The revision does not exist.
    #[error(transparent)]
    NoSuchRevision(#[from] NoSuchRevision),
    /// There is no revision before the live one.
    #[error("{0} has no earlier revision to roll back to")]
    NothingBefore(DaemonSetKey),
    /// No revision was applied from that commit.
    #[error("no revision of {daemon_set} was applied from commit {commit}")]
    NoRevisionOf {
        /// The DaemonSet.
        daemon_set: DaemonSetKey,
        /// The commit that was requested.
        commit: String,
    },
    /// Several versions match, and the latest revisions of them differ.
    #[error(
        "{commit} is short for several versions that {daemon_set} was applied from: {}",
        versions.join(", ")
    )]
    AmbiguousCommit {
        /// The DaemonSet.
        daemon_set: DaemonSetKey,
        /// The commit that was requested.
        commit: String,
        /// The versions that match.
        versions: Vec<String>,
    },
    /// The template in a revision cannot be read.
    #[error("the template of revision {revision} cannot be read")]
    Unreadable {
        /// The revision.
        revision: RevisionName,
        /// The parse error.
        source: serde_json::Error,
    },
    /// Rolling back would keep fields that other field managers own.
    #[error("{daemon_set} cannot be restored exactly: {}", stay(fields))]
    FieldsStay {
        /// The DaemonSet.
        daemon_set: DaemonSetKey,
        /// The fields that are kept, with their owners.
        fields: Vec<FieldOwner>,
    },
    /// The live object cannot be made into a manifest.
    #[error(transparent)]
    LiveObject(#[from] LiveObjectError),
}

fn stay(fields: &[FieldOwner]) -> String {
    let words = fields.iter().map(|FieldOwner { path, manager }| {
        format!("{path} is kept, owned by {}", manager.as_deref().unwrap_or("no field manager"))
    });
    words.collect::<Vec<_>>().join("; ")
}

/// What a rollback applies.
#[derive(Debug)]
pub struct Rollback {
    /// The live DaemonSet with the earlier template and its change-cause.
    pub desired: DesiredDaemonSet,
    /// The version of the files that the earlier revision was applied from last.
    pub version: Option<String>,
    /// The version that git still declares: the one that was applied last, even if it failed. `None`
    /// if that is not certain.
    pub undone: Option<String>,
}

/// Rolls a live DaemonSet back to the wanted revision.
pub fn rollback(
    snapshot: &Snapshot,
    live: &DaemonSet,
    wanted: &WantedRevision,
) -> Result<Rollback, RollbackError> {
    let pause = pause(live)?;
    let own = controlled(snapshot, live);
    let revision = match wanted {
        WantedRevision::Before => {
            let before = before(&own, live, pause.as_ref(), noted_from(live, snapshot));
            before.ok_or_else(|| RollbackError::NothingBefore(live.key.clone()))?
        }
        WantedRevision::Number(number) => numbered(&own, live, *number)?,
        WantedRevision::Commit(commit) => of_commit(&own, live, commit)?,
    };
    let template = template_of(&revision.data).unwrap_or_default();
    let template: PodTemplate = serde_json::from_value(template)
        .map_err(|source| RollbackError::Unreadable { revision: revision.name.clone(), source })?;
    let mut desired = with_template(live, pause.as_ref(), &template)?;
    set_change_cause(&mut desired, revision);
    let undone = undone(&own, live, pause.as_ref(), revision);
    Ok(Rollback { desired, version: last_commit(revision), undone })
}

/// The revisions of the DaemonSet, in the order of `history`.
fn controlled<'s>(snapshot: &'s Snapshot, live: &DaemonSet) -> Vec<&'s Revision> {
    let all = snapshot.revisions_in(&live.key.namespace).iter();
    let is_own = |it: &&Revision| it.controller.as_ref().is_some_and(|owner| owner.uid == live.uid);
    let mut own: Vec<&Revision> = all.filter(is_own).collect();
    own.sort_by(|a, b| (a.number, &a.name).cmp(&(b.number, &b.name)));
    own
}

/// The version that git still declares: that of the rollout, or of the live template, if it is certain
/// that no later one was applied from git.
///
/// An undo applies the commit of an earlier revision again, and adds no record. So only the newest
/// revision tells which commit was applied last; and only if no other one has this commit (from an
/// undo, or an edit by hand), or several commits, the last of which may be later. What is restored
/// was not undone.
fn undone(
    own: &[&Revision],
    live: &DaemonSet,
    pause: Option<&PausedRollout>,
    restored: &Revision,
) -> Option<String> {
    let version = match pause {
        Some(pause) => pause.commit.clone(),
        None => live.annotations.get(COMMIT_ANNOTATION).map(str::to_owned),
    }?;
    let newest = newest(own)?;
    let is_earlier = |it: &&Revision| {
        let mut recorded = commits(it);
        recorded.next().is_none_or(|one| one != version) && recorded.next().is_none()
    };
    let is_certain = own.iter().filter(|it| it.name != newest.name).all(is_earlier)
        && last_commit(newest).as_ref() == Some(&version)
        && newest.name != restored.name;
    is_certain.then_some(version)
}

/// The revision that was created last, if it is the only one of that time.
fn newest<'s>(own: &[&'s Revision]) -> Option<&'s Revision> {
    let newest = own.iter().max_by_key(|it| it.created)?;
    let mut others = own.iter().filter(|it| it.name != newest.name);
    others.all(|it| it.created < newest.created).then_some(*newest)
}

/// The revision to roll back to.
#[derive(Clone, Debug)]
pub enum WantedRevision {
    /// The previous one; for a paused rollout, the one before it, which is live again if the rollout
    /// was aborted or waits; for a surge that was interrupted, the one before it, too.
    Before,
    /// The one with this number.
    Number(RevisionNumber),
    /// The latest one of the commit with this id, or of the only one whose id begins with it. A version
    /// that is no commit is named in full, or as `history` shows it.
    Commit(String),
}

/// The last good revision, if a rollout of another one is unfinished; else the previous one.
///
/// `noted` is the last good one of an unfinished rollout of the live template, as its note has it. If that is
/// the live one itself, the rollout only completed an earlier one.
fn before<'s>(
    own: &[&'s Revision],
    live: &DaemonSet,
    pause: Option<&PausedRollout>,
    noted: Option<&RevisionRef>,
) -> Option<&'s Revision> {
    let is_live = |it: &Revision| matches(live.spec.template.raw(), &it.data, Matching::Tolerant);
    let named = |from: &RevisionRef| own.iter().find(|it| it.name == from.name).copied();
    let previous = || own.iter().rfind(|it| !is_live(it)).copied();
    let Some(pause) = pause else {
        let noted = noted.and_then(named).filter(|it| !is_live(it));
        return noted.or_else(previous);
    };
    // Never forward: to the template that failed, or to the one whose rollout waits.
    let from = pause.from.as_ref().and_then(named);
    match pause.state {
        PauseState::Aborted => from.or_else(|| own.iter().rfind(|it| is_live(it)).copied()),
        PauseState::Paused | PauseState::Waiting => from.or_else(previous),
    }
}

/// The revision with this number; of several, the last by name, as `history` shows it.
fn numbered<'s>(
    own: &[&'s Revision],
    live: &DaemonSet,
    number: RevisionNumber,
) -> Result<&'s Revision, NoSuchRevision> {
    own.iter().rfind(|it| it.number == number).copied().ok_or_else(|| {
        let known = own.iter().map(|it| it.number).collect();
        NoSuchRevision { daemon_set: live.key.clone(), number, known }
    })
}

/// The latest revision of a commit. A version that is exactly this text comes before those that it is
/// short for.
fn of_commit<'s>(
    own: &[&'s Revision],
    live: &DaemonSet,
    commit: &str,
) -> Result<&'s Revision, RollbackError> {
    let recorded: BTreeSet<&str> = own.iter().flat_map(|it| commits(it)).collect();
    let is_exact = recorded.contains(commit);
    let is_meant =
        |version: &str| if is_exact { version == commit } else { is_short(commit, version) };
    let versions: Vec<&str> = recorded.into_iter().filter(|version| is_meant(version)).collect();
    let latest = |version: &&str| own.iter().rfind(|it| commits(it).any(|one| one == *version));
    let mut found: Vec<&'s Revision> = versions.iter().filter_map(latest).copied().collect();
    found.dedup_by(|a, b| a.name == b.name);
    let (daemon_set, commit) = (live.key.clone(), commit.to_owned());
    match found[..] {
        [] => Err(RollbackError::NoRevisionOf { daemon_set, commit }),
        [revision] => Ok(revision),
        [_, _, ..] => {
            let versions = versions.into_iter().map(str::to_owned).collect();
            Err(RollbackError::AmbiguousCommit { daemon_set, commit, versions })
        }
    }
}

/// Whether the text is short for this version: the first characters of the id of a commit, or what
/// `history` shows. `ID-dirty` is not of the commit `ID`.
fn is_short(text: &str, version: &str) -> bool {
    (is_commit_id(version) && version.starts_with(text)) || short_commit(version) == text
}

fn last_commit(revision: &Revision) -> Option<String> {
    commits(revision).last().map(str::to_owned)
}

/// The commits that a revision was applied from, oldest first.
fn commits(revision: &Revision) -> impl Iterator<Item = &str> {
    revision.annotations.get(COMMIT_ANNOTATION).into_iter().flat_map(|all| all.split(','))
}

/// Restores the change-cause together with the template, as `kubectl rollout undo` does.
fn set_change_cause(desired: &mut DesiredDaemonSet, revision: &Revision) {
    let cause = revision.annotations.get(CHANGE_CAUSE_ANNOTATION);
    let others = desired.annotations.iter().filter(|(key, _)| *key != CHANGE_CAUSE_ANNOTATION);
    desired.annotations =
        others.chain(cause.map(|cause| (CHANGE_CAUSE_ANNOTATION, cause))).collect();
}

/// Checks that the plan restores the template exactly. Fields of other field managers would be
/// kept, and give a different revision.
pub fn check_exact(plan: &Plan, desired: &DesiredDaemonSet) -> Result<(), RollbackError> {
    let wanted = template_digest(desired.spec.template.raw());
    match plan.daemon_sets.iter().find(|one| one.target_template != wanted) {
        None => Ok(()),
        Some(one) => {
            let (daemon_set, fields) = (desired.key.clone(), one.leftovers.clone());
            Err(RollbackError::FieldsStay { daemon_set, fields })
        }
    }
}

/// The target of a rollback whose run was stopped: applying the manifest that failed again resumes
/// it, if the policy says so. The failed template stays refused.
pub fn unfinished(
    snapshot: &Snapshot,
    desired: &DesiredDaemonSet,
    force_conflicts: &BTreeSet<String>,
) -> Option<DesiredDaemonSet> {
    let policy = desired.policy.as_ref()?;
    if policy.spec.on_failure != OnFailure::Rollback {
        return None;
    }
    let target = after_apply(snapshot, desired, force_conflicts).spec.template;
    let observed = ObservedCluster::of(snapshot, &desired.key, true);
    if !is_rolling_back(&observed, &template_digest(target.raw())) {
        return None;
    }
    let live = observed.daemon_set?;
    // The run that aborted it could read managedFields, so an error is not expected here.
    let good = with_template(live, pause(live).ok()?.as_ref(), &live.spec.template).ok()?;
    Some(DesiredDaemonSet { policy: Some(policy.clone()), place: desired.place.clone(), ..good })
}

#[cfg(test)]
mod tests;
