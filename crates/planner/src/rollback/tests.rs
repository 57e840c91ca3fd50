//! Which revision is rolled back to, and what is applied then.

use super::*;
use daemonset::controller::test_cluster::{Cluster, at, labels};
use daemonset::model::StepsNote;

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

/// Records the versions that each revision was applied from.
fn record(cluster: &mut Cluster, recorded: [&str; 3]) {
    for (revision, versions) in cluster.revisions.iter_mut().zip(recorded) {
        revision.annotations = labels([(COMMIT_ANNOTATION, versions)]);
    }
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
        (WantedRevision::Commit("a1".to_owned()), "\"v1\"", "a1"),
    ] {
        let done = rolled_back(&cluster, &wanted).unwrap();
        assert_eq!(image(&done), image_wanted, "{wanted:?}");
        assert_eq!(done.version.as_deref(), Some(commit), "{wanted:?}");
        let cause = done.desired.annotations.get(CHANGE_CAUSE_ANNOTATION);
        assert_eq!(cause, Some(commit), "the cause of the revision comes back, {wanted:?}");
    }
}

/// Cases: the versions of the three revisions, the commit that is wanted, and the image, or the versions
/// that it may be.
#[test]
fn a_commit_is_its_id_or_what_is_short_for_no_other() {
    let [one, two] = ["4f2c", "4fee"].map(|begin| begin.repeat(10));
    let [dirty, both] = [format!("{one}-dirty"), format!("{one},{two}")];
    let digest = format!("sha256:{}", "4f2c".repeat(16));
    let (one, two, dirty, both, digest) = (&*one, &*two, &*dirty, &*both, &*digest);
    for (case, recorded, wanted, want) in [
        ("its id, and not dirty", [one, dirty, two], one, Ok("v1")),
        ("its first characters, and not dirty", [one, dirty, two], "4f2c", Ok("v1")),
        ("dirty, written out", [one, dirty, two], dirty, Ok("v2")),
        ("dirty, as history shows it", [one, dirty, two], "4f2c4f2-dirty", Ok("v2")),
        ("dirty only", [dirty, dirty, two], one, Err(Vec::new())),
        ("a digest, as history shows it", [digest, one, two], "sha256:4f2c4f2c4f2c", Ok("v1")),
        ("the latest of one commit", [one, one, two], "4f2c", Ok("v2")),
        ("of two commits", [one, two, "c3"], "4f", Err(vec![one, two])),
        ("of two commits of one revision", [both, "b2", "c3"], "4f", Ok("v1")),
        ("exactly one, which is short for another", ["4f2c", one, two], "4f2c", Ok("v1")),
    ] {
        let mut cluster = applied(&["v1", "v2", "v3"]);
        record(&mut cluster, recorded);
        match (rolled_back(&cluster, &WantedRevision::Commit(wanted.to_owned())), want) {
            (Ok(done), Ok(wanted)) => assert_eq!(image(&done), format!("\"{wanted}\""), "{case}"),
            (Err(RollbackError::NoRevisionOf { .. }), Err(known)) => {
                assert!(known.is_empty(), "{case}");
            }
            (Err(RollbackError::AmbiguousCommit { versions, .. }), Err(known)) => {
                assert_eq!(versions, known, "{case}");
            }
            (done, want) => panic!("{case}: {done:?} instead of {want:?}"),
        }
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
        record(&mut cluster, recorded);
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
fn paused(cluster: &mut Cluster, state: PauseState, from: Option<RevisionRef>) -> PausedRollout {
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

/// Cases: what the note says, the revision that it came from, and the image. The previous revision is that
/// of a surge that was interrupted as well.
#[test]
fn an_interrupted_surge_goes_back_to_the_last_good_revision() {
    let cluster = applied(&["v1", "v2", "v3"]);
    let live = template_digest(cluster.daemon_set.spec.template.raw());
    let (now, other) = (Some(cluster.now), "sha256:other".to_owned());
    let begun = StepsNote { template: live.clone(), started_at: now, ..StepsNote::default() };
    let of_other = StepsNote { template: other, started_at: now, ..StepsNote::default() };
    let replaced = StepsNote { replaces: Some(live), ..of_other.clone() };
    let ended = StepsNote { started_at: None, ..begun.clone() };
    for (case, note, from, want) in [
        ("begun", begun.clone(), 0, "\"v1\""),
        ("another one replaces it", replaced, 0, "\"v1\""),
        ("of another template", of_other, 0, "\"v2\""),
        ("ended", ended, 0, "\"v2\""),
        ("the live one is completed", begun, 2, "\"v2\""),
    ] {
        let from = Some(RevisionRef::from(&cluster.revisions[from]));
        let mut snapshot = cluster.snapshot();
        snapshot.set_notes(&cluster.daemon_set.key, "", Some(StepsNote { from, ..note }));
        let live = &snapshot.daemon_sets[0];
        let done = rollback(&snapshot, live, &WantedRevision::Before).unwrap();
        assert_eq!(image(&done), want, "{case}");
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
