//! Rollouts that wait or are aborted, while the last good template is live.

use super::*;
use crate::digest::template_digest;

/// In git: `git`. Live: the last good template. `:2` waits or has failed: `recorded` notes its digest in
/// the pause. The pods are of `:2` if its rollout `began`.
fn held_at_last_good(
    state: PauseState,
    git: &str,
    began: bool,
    recorded: impl Fn(PausedRollout, String) -> PausedRollout,
) -> Drift {
    let mut cluster = settled(2);
    let pause = serde_json::from_str(&annotation(&cluster, state)).unwrap();
    cluster.set_image("foo:2");
    let new = template_digest(cluster.daemon_set.spec.template.raw());
    if began {
        cluster.sync_once();
        settle(&mut cluster);
    }
    cluster.set_image(git);
    let wanted = desired(&cluster);
    cluster.set_image("foo/bar");
    cluster.set_on_delete();
    let text = serde_json::to_string(&recorded(pause, new)).unwrap();
    cluster.daemon_set.annotations = labels([(ROLLOUT_ANNOTATION, text.as_str())]);
    cluster.sync_once();
    found(&snapshot(&cluster), &wanted)
}

#[test]
fn only_the_template_of_git_waits_without_drift() {
    let image = "spec spec.template.spec.containers[c].image differs from the source";
    for began in [false, true] {
        for (git, superseded, differs) in
            [("foo:2", false, false), ("foo:99", true, true), ("foo/bar", true, false)]
        {
            let drift = held_at_last_good(PauseState::Waiting, git, began, |pause, target| {
                PausedRollout { target: Some(target), ..pause }
            });
            let lines = lines(&drift);
            let case = format!("{git} {began}: {lines:#?}");
            assert_eq!(lines.iter().any(|line| line == image), differs, "{case}");
            let end = "; superseded: the source declares another template";
            assert_eq!(lines.iter().any(|line| line.ends_with(end)), superseded, "{case}");
            assert_eq!(drift.is_found(), superseded, "{case}");
        }
        // A rollout that an earlier version has paused.
        let drift = held_at_last_good(PauseState::Waiting, "foo:99", began, |pause, _| pause);
        assert!(!drift.is_found());
    }
}

#[test]
fn another_template_than_the_one_that_failed_is_a_difference() {
    let image = "spec spec.template.spec.containers[c].image differs from the source";
    for began in [false, true] {
        for (git, differs) in [("foo:2", false), ("foo:99", true), ("foo/bar", false)] {
            let drift = held_at_last_good(PauseState::Aborted, git, began, |pause, failed| {
                PausedRollout { failed: Some(failed), ..pause }
            });
            let lines = lines(&drift);
            assert_eq!(
                lines.iter().any(|line| line == image),
                differs,
                "{git} {began}: {lines:#?}"
            );
        }
    }
}
