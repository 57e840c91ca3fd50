//! Rolling back: to which revision, what is applied then, and a rollback that was stopped.

use std::collections::BTreeSet;

use crate::annotations::COMMIT_ANNOTATION;
use crate::digest::template_digest;
use crate::live_object::{LiveObjectError, pause, with_template};
use crate::plan::{FieldOwner, NoSuchRevision, PauseState, PausedRollout, Plan, after_apply};
use crate::rollout::{ObservedCluster, is_rolling_back};
use daemonset::controller::revision_data::{Matching, matches, template_of};
use daemonset::model::{
    CHANGE_CAUSE_ANNOTATION, DaemonSet, DaemonSetKey, DesiredDaemonSet, OnFailure, PodTemplate,
    Revision, RevisionName, RevisionNumber, Snapshot,
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
    let (template, revision) = target(&own, live, pause.as_ref(), wanted)?;
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
    /// was aborted or waits.
    Before,
    /// The one with this number.
    Number(RevisionNumber),
    /// The latest one of a commit whose id begins with this text.
    Commit(String),
}

/// The template to roll back to, and its revision.
fn target<'s>(
    own: &[&'s Revision],
    live: &DaemonSet,
    pause: Option<&PausedRollout>,
    wanted: &WantedRevision,
) -> Result<(PodTemplate, &'s Revision), RollbackError> {
    let is_live = |it: &Revision| matches(live.spec.template.raw(), &it.data, Matching::Tolerant);
    let aborted = pause.is_some_and(|pause| pause.state == PauseState::Aborted);
    // Never forward: to the template that failed, or to the one whose rollout waits.
    let came_from = pause.and_then(|pause| pause.from.as_ref());
    let came_from = came_from.and_then(|from| own.iter().find(|it| it.name == from.name));
    let found = match wanted {
        WantedRevision::Before if came_from.is_some() => came_from,
        WantedRevision::Before if aborted => own.iter().rfind(|it| is_live(it)),
        WantedRevision::Before => own.iter().rfind(|it| !is_live(it)),
        // Of several, the last by name, as `history` shows it.
        WantedRevision::Number(number) => own.iter().rfind(|it| it.number == *number),
        WantedRevision::Commit(commit) => own.iter().rfind(|it| is_of(it, commit)),
    };
    let Some(&revision) = found else {
        let known = own.iter().map(|it| it.number).collect();
        return Err(match wanted {
            WantedRevision::Number(number) => {
                NoSuchRevision { daemon_set: live.key.clone(), number: *number, known }.into()
            }
            WantedRevision::Before => RollbackError::NothingBefore(live.key.clone()),
            WantedRevision::Commit(commit) => {
                let (daemon_set, commit) = (live.key.clone(), commit.clone());
                RollbackError::NoRevisionOf { daemon_set, commit }
            }
        });
    };
    let template = template_of(&revision.data).unwrap_or_default();
    let template = serde_json::from_value(template)
        .map_err(|source| RollbackError::Unreadable { revision: revision.name.clone(), source })?;
    Ok((template, revision))
}

/// Whether a revision was applied from this commit.
fn is_of(revision: &Revision, commit: &str) -> bool {
    commits(revision).any(|one| one.starts_with(commit))
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
mod tests {
    use super::*;
    use daemonset::controller::test_cluster::{Cluster, at, labels};
    use daemonset::model::RevisionRef;

    /// A DaemonSet with a revision of each image, the last one live, applied from commits `a1`,
    /// `b2`, ….
    fn applied(images: &[&str]) -> Cluster {
        let mut cluster = Cluster::of(1);
        for image in images {
            cluster.set_image(image);
            cluster.sync();
        }
        cluster.revisions.sort_by_key(|revision| revision.number);
        for (revision, commit) in cluster.revisions.iter_mut().zip(["a1", "b2", "c3"]) {
            revision.annotations =
                labels([(COMMIT_ANNOTATION, commit), (CHANGE_CAUSE_ANNOTATION, commit)]);
            revision.created = Some(at(1000 + revision.number.0));
        }
        cluster
    }

    fn image(rollback: &Rollback) -> String {
        rollback.desired.spec.template.raw()["spec"]["containers"][0]["image"].to_string()
    }

    fn rolled_back(cluster: &Cluster, wanted: &WantedRevision) -> Result<Rollback, RollbackError> {
        let snapshot = cluster.snapshot();
        rollback(&snapshot, &snapshot.daemon_sets[0], wanted)
    }

    #[test]
    fn a_revision_is_chosen_by_place_number_or_commit() {
        let cluster = applied(&["v1", "v2", "v3"]);
        for (wanted, image_wanted, commit) in [
            (WantedRevision::Before, "\"v2\"", "b2"),
            (WantedRevision::Number(RevisionNumber(1)), "\"v1\"", "a1"),
            (WantedRevision::Commit("a".to_owned()), "\"v1\"", "a1"),
        ] {
            let done = rolled_back(&cluster, &wanted).unwrap();
            assert_eq!(image(&done), image_wanted, "{wanted:?}");
            assert_eq!(done.version.as_deref(), Some(commit), "{wanted:?}");
            let cause = done.desired.annotations.get(CHANGE_CAUSE_ANNOTATION);
            assert_eq!(cause, Some(commit), "the cause of the revision comes back, {wanted:?}");
        }
    }

    #[test]
    fn of_two_revisions_with_one_number_it_is_that_of_history() {
        let mut cluster = applied(&["v1", "v2", "v3"]);
        cluster.revisions[0].number = RevisionNumber(2);
        let last = cluster.revisions[..2].iter().max_by(|a, b| a.name.cmp(&b.name)).unwrap();
        let commit = last_commit(last);
        let done = rolled_back(&cluster, &WantedRevision::Number(RevisionNumber(2))).unwrap();
        assert_eq!(done.version, commit);
    }

    /// Cases: the commits of the three revisions, the live one with the commit of the object, and the
    /// commit that git certainly declares.
    #[test]
    fn a_commit_is_named_only_if_git_certainly_declares_it() {
        let number = |number| WantedRevision::Number(RevisionNumber(number));
        for (case, recorded, (live, commit), wanted, certain) in [
            ("applied", ["a1", "b2", "c3"], ("v3", "c3"), WantedRevision::Before, true),
            ("two commits", ["a1", "b2", "c3,d4"], ("v3", "d4"), WantedRevision::Before, true),
            ("without a commit", ["", "b2", "c3"], ("v3", "c3"), number(1), true),
            ("an undo before", ["a1", "b2", "c3"], ("v2", "b2"), number(1), false),
            ("reverted in git", ["a1,d4", "b2", "c3"], ("v3", "c3"), number(1), false),
            ("edited after an undo", ["a1", "b2", "b2"], ("v3", "b2"), number(1), false),
            ("edited and back", ["a1", "c3", "c3"], ("v3", "c3"), WantedRevision::Before, false),
            ("undone by kubectl", ["a1", "b2", "c3"], ("v2", "c3"), number(3), false),
        ] {
            let mut cluster = applied(&["v1", "v2", "v3"]);
            for (revision, commits) in cluster.revisions.iter_mut().zip(recorded) {
                revision.annotations = labels([(COMMIT_ANNOTATION, commits)]);
            }
            cluster.set_image(live);
            cluster.daemon_set.annotations = labels([(COMMIT_ANNOTATION, commit)]);
            let done = rolled_back(&cluster, &wanted).unwrap();
            assert_eq!(done.undone.as_deref(), certain.then_some(commit), "{case}");
        }
        let mut cluster = applied(&["v1", "v2"]);
        cluster.daemon_set.annotations = labels([(COMMIT_ANNOTATION, "b2")]);
        cluster.revisions[0].created = cluster.revisions[1].created;
        let done = rolled_back(&cluster, &WantedRevision::Before).unwrap();
        assert_eq!(done.undone, None, "either may be the newer one");
    }

    #[test]
    fn a_revision_that_does_not_exist_is_an_error() {
        let cluster = applied(&["v1", "v2"]);
        let error = |wanted| rolled_back(&cluster, &wanted).unwrap_err();
        let unknown = error(WantedRevision::Number(RevisionNumber(9)));
        assert!(matches!(unknown, RollbackError::NoSuchRevision(_)), "{unknown}");
        let unknown = error(WantedRevision::Commit("ff".to_owned()));
        assert!(matches!(unknown, RollbackError::NoRevisionOf { .. }), "{unknown}");
        let first = rolled_back(&applied(&["v1"]), &WantedRevision::Before).unwrap_err();
        assert!(matches!(first, RollbackError::NothingBefore(_)), "{first}");
    }

    /// Pauses a rollout of commit `b2`.
    fn paused(
        cluster: &mut Cluster,
        state: PauseState,
        from: Option<RevisionRef>,
    ) -> PausedRollout {
        let pause = PausedRollout {
            state,
            declared: serde_json::json!({"type": "RollingUpdate"}),
            plan_digest: "digest".to_owned(),
            from,
            since: cluster.now,
            commit: Some("b2".to_owned()),
            by: None,
            failed: None,
            target: None,
            waits_for: Vec::new(),
            failed_gate: None,
        };
        cluster.set_on_delete();
        let text = serde_json::to_string(&pause).unwrap();
        cluster.daemon_set.annotations = labels([(crate::annotations::ROLLOUT_ANNOTATION, &text)]);
        pause
    }

    /// A waiting rollout has two versions besides the live one: that of its canaries, and that of
    /// the rollout before it, which was abandoned.
    #[test]
    fn a_paused_rollout_goes_back_to_where_it_came_from() {
        for (state, live) in [
            (PauseState::Waiting, "v1"),
            (PauseState::Waiting, "v3"),
            (PauseState::Paused, "v3"),
            (PauseState::Aborted, "v1"),
        ] {
            let mut cluster = applied(&["v1", "v2", "v3"]);
            let from = RevisionRef::from(&cluster.revisions[0]);
            cluster.set_image(live);
            paused(&mut cluster, state, Some(from));
            let done = rolled_back(&cluster, &WantedRevision::Before).unwrap();
            assert_eq!(image(&done), "\"v1\"", "{state:?}, live {live}");
        }
    }

    #[test]
    fn after_an_abort_the_revision_before_is_the_live_one() {
        let mut cluster = applied(&["v1", "v2"]);
        cluster.set_image("v1");
        let pause = paused(&mut cluster, PauseState::Aborted, None);
        let done = rolled_back(&cluster, &WantedRevision::Before).unwrap();
        assert_eq!(image(&done), "\"v1\"", "never forward to the template that failed");
        assert_eq!(done.undone.as_deref(), Some("b2"), "git still declares it");
        assert_eq!(done.desired.raw["spec"]["updateStrategy"], pause.declared);
    }

    #[test]
    fn fields_of_others_that_stay_are_refused() {
        let cluster = applied(&["v1", "v2"]);
        let snapshot = cluster.snapshot();
        let live = &snapshot.daemon_sets[0];
        let mut desired = with_template(live, None, &live.spec.template).unwrap();
        let same = [desired.clone()];
        let plan = crate::plan::plan(crate::plan::Input::of(&snapshot, &same));
        check_exact(&plan, &desired).unwrap();
        let mut other = live.spec.template.raw().clone();
        other["spec"]["hostNetwork"] = true.into();
        desired.spec.template = serde_json::from_value(other).unwrap();
        let error = check_exact(&plan, &desired).unwrap_err();
        assert!(matches!(error, RollbackError::FieldsStay { .. }), "{error}");
    }
}
