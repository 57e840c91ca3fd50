//! DaemonSets that were applied from a source and are no longer in it.

use super::*;
use crate::annotations::{
    ROLLOUT_ANNOTATION, SOURCE_ID_ANNOTATION, SOURCE_PATHS_ANNOTATION, SOURCE_REPOSITORY_ANNOTATION,
};
use daemonset::model::{Cascade, DaemonSetKey, NamespaceName, Pod, Uid};

/// `default/NAME` with a pod on each of two nodes, applied by `manager` from `paths` of this
/// source.
fn applied(name: &str, mark: Option<(&str, &str)>, manager: &str) -> (DaemonSet, Vec<Pod>) {
    let cluster = settled(2);
    let mut live = cluster.daemon_set.clone();
    let uid = Uid::from(format!("uid-{name}").as_str());
    live.key = DaemonSetKey::new("default", name);
    let before = std::mem::replace(&mut live.uid, uid.clone());
    let mut object = raw(&live);
    if let Some((id, paths)) = mark {
        let marks = [(SOURCE_ID_ANNOTATION, id), (SOURCE_PATHS_ANNOTATION, paths)];
        live.annotations = marks.into_iter().collect();
        object["metadata"]["annotations"] = json!(live.annotations);
    }
    let manifest = ssa::Manifest { applied: &object, defaulted: &object };
    let merged = ssa::apply(&ssa::DAEMON_SET, None, manifest, manager, at(0)).unwrap();
    object["metadata"]["managedFields"] = merged.managed_fields.to_value();
    live.raw = Arc::new(object);
    let pods = cluster.pods.into_iter().map(|mut pod| {
        pod.name = format!("{name}-{}", pod.name).as_str().into();
        pod.uid = Uid::from(format!("{name}-{}", pod.uid).as_str());
        let owner = pod.controller.as_mut().filter(|owner| owner.uid == before).unwrap();
        let owner = Arc::make_mut(owner);
        (owner.uid, owner.name) = (uid.clone(), name.into());
        pod
    });
    (live, pods.collect())
}

const OURS: Option<(&str, &str)> = Some(("prod", "deploy"));

fn cluster(daemon_sets: Vec<(DaemonSet, Vec<Pod>)>) -> Snapshot {
    let mut snapshot = snapshot(&settled(2));
    let (daemon_sets, pods): (Vec<_>, Vec<_>) = daemon_sets.into_iter().unzip();
    snapshot.daemon_sets = daemon_sets;
    snapshot.pods = pods.into_iter().flatten().collect();
    snapshot.sort();
    snapshot
}

/// The plan of a source at `deploy` that contains these DaemonSets unchanged.
fn pruned(snapshot: &Snapshot, declared: &[&str], cascade: Cascade) -> Plan {
    let declared = declared.iter().map(|name| DaemonSetKey::new("default", *name)).collect();
    let source = SourceInfo {
        paths: vec!["deploy".to_owned()],
        id: Some("prod".to_owned()),
        prune: Some(cascade),
        ..SourceInfo::default()
    };
    let namespaces = [NamespaceName::from("default")].into();
    let prune = Some(Prune { id: "prod", cascade, declared: &declared, namespaces: &namespaces });
    plan(Input { prune, source, ..Input::of(snapshot, &[]) })
}

/// The deleted DaemonSets as `NAME: GUARD,GUARD`.
fn gone(plan: &Plan) -> Vec<String> {
    let guards_of = |name: &str| {
        let of = |guard: &&Guard| guard.daemon_set.as_deref() == Some(&*format!("default/{name}"));
        let codes = plan.guards.iter().filter(of).map(|guard| format!(" {:?}", guard.code));
        codes.collect::<String>()
    };
    let gone = plan.daemon_sets.iter().filter(|one| one.change == Change::Delete);
    gone.map(|one| format!("{}:{}", one.name, guards_of(one.name.as_str()))).collect()
}

#[test]
fn only_daemon_sets_of_this_source_are_deleted() {
    let terminating = |(mut live, pods): (DaemonSet, _)| {
        live.terminating = true;
        (live, pods)
    };
    for (rule, one, want) in [
        ("no longer in the source", applied("x", OURS, "ds-apply"), vec!["x:"]),
        ("another source's", applied("x", Some(("stage", "deploy")), "ds-apply"), vec![]),
        ("without a source", applied("x", None, "ds-apply"), vec![]),
        ("a copy by another client", applied("x", OURS, "kubectl"), vec![]),
        ("terminating", terminating(applied("x", OURS, "ds-apply")), vec![]),
        (
            "from another folder",
            applied("x", Some(("prod", "deploy/logging")), "ds-apply"),
            vec!["x: OtherSource"],
        ),
    ] {
        let snapshot = cluster(vec![applied("kept", OURS, "ds-apply"), one]);
        let plan = pruned(&snapshot, &["kept"], Cascade::Background);
        assert_eq!(gone(&plan), want, "{rule}");
        let copied = plan.warnings.iter().any(|warning| warning.code == "copiedMark");
        assert_eq!(copied, rule.starts_with("a copy"), "{rule}");
        let unpruned = planned(&snapshot, &[]);
        assert_eq!(gone(&unpruned), Vec::<String>::new(), "{rule}");
    }
}

/// The plan shows the deletion itself.
#[test]
fn a_pull_request_that_removes_what_is_deleted_needs_no_warning() {
    for (one, warned) in
        [(applied("x", OURS, "ds-apply"), false), (applied("x", None, "ds-apply"), true)]
    {
        let snapshot = cluster(vec![applied("kept", OURS, "ds-apply"), one]);
        let declared = [DaemonSetKey::new("default", "kept")].into();
        let namespaces = [NamespaceName::from("default")].into();
        let cascade = Cascade::Background;
        let prune = Prune { id: "prod", cascade, declared: &declared, namespaces: &namespaces };
        let removed = [DaemonSetKey::new("default", "x")].into();
        let input = Input::of(&snapshot, &[]);
        let plan = plan(Input { prune: Some(prune), removed: &removed, ..input });
        assert_eq!(gone(&plan).is_empty(), warned);
        let is_warned = plan.warnings.iter().any(|it| it.code == "removedFromSource");
        assert_eq!(is_warned, warned, "{:#?}", plan.warnings);
    }
}

#[test]
fn pods_are_deleted_at_once_or_kept() {
    let snapshot = cluster(vec![applied("kept", OURS, "ds-apply"), applied("x", OURS, "ds-apply")]);
    for (cascade, want, deleted) in [
        (Cascade::Background, vec!["node-0 - goesWithOwner", "node-1 - goesWithOwner"], 2),
        (Cascade::Orphan, vec![], 0),
    ] {
        let plan = pruned(&snapshot, &["kept"], cascade);
        assert_eq!(lines(&plan), want);
        assert_eq!(plan.totals.actions.delete, deleted);
        assert!(plan.has_changes() && plan.daemon_sets[0].cascade == Some(cascade));
        let again = pruned(&snapshot, &["kept"], cascade);
        assert_eq!(plan.digest, again.digest);
    }
    let [one, other] =
        [Cascade::Background, Cascade::Orphan].map(|it| pruned(&snapshot, &["kept"], it).digest);
    assert_ne!(one, other);
}

#[test]
fn more_than_half_is_more_likely_a_wrong_folder() {
    for (live, declared, guarded) in [
        (vec!["a"], vec!["a"], false),
        (vec!["a"], vec![], true),
        (vec!["a", "b"], vec!["a"], false),
        (vec!["a", "b", "c"], vec!["a"], true),
        (vec!["a", "b", "c"], vec!["a", "new"], true),
        (vec!["a", "b", "c", "d"], vec!["a", "b"], false),
    ] {
        let of = |name: &&str| applied(name, OURS, "ds-apply");
        let snapshot = cluster(live.iter().map(of).collect());
        let plan = pruned(&snapshot, &declared, Cascade::Background);
        let found = plan.guards.iter().find(|guard| guard.code == GuardCode::MassDeletion);
        assert_eq!(found.is_some(), guarded, "{live:?} {declared:?}");
        assert!(found.is_none_or(|it| it.allow_flag.as_deref() == Some("--allow-mass-deletion")));
    }
}

#[test]
fn a_pause_is_shown_and_a_daemon_set_of_argo_cd_is_guarded() {
    let pause = json!({
        "state": "paused", "declared": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
        "planDigest": "sha256:1", "since": "2026-08-01T12:00:00Z",
    });
    let (mut live, pods) = applied("x", OURS, "ds-apply");
    live.spec.update_strategy = daemonset::model::UpdateStrategy::OnDelete;
    let pause_text = pause.to_string();
    let marks = live.annotations.iter().chain([(ROLLOUT_ANNOTATION, &*pause_text)]);
    live.annotations = marks.collect();
    let (mut argo, argos) = applied("y", OURS, "ds-apply");
    argo.labels = labels([("argocd.argoproj.io/instance", "fleet")]);
    let snapshot = cluster(vec![
        applied("kept", OURS, "ds-apply"),
        applied("too", OURS, "ds-apply"),
        (live, pods),
        (argo, argos),
    ]);
    let plan = pruned(&snapshot, &["kept", "too"], Cascade::Background);
    assert_eq!(gone(&plan), ["x:", "y: GitOps"]);
    assert_eq!(
        plan.daemon_sets[0].pause.as_ref().map(|pause| pause.state),
        Some(PauseState::Paused)
    );
}

#[test]
fn a_daemon_set_to_delete_must_not_have_changed() {
    let with = |one: (DaemonSet, Vec<Pod>)| cluster(vec![applied("kept", OURS, "ds-apply"), one]);
    let pruned = |snapshot: &Snapshot| pruned(snapshot, &["kept"], Cascade::Background);
    let agreed = pruned(&with(applied("x", OURS, "ds-apply")));
    let (live, pods) = applied("x", OURS, "ds-apply");
    let anew = DaemonSet { uid: "another".into(), ..live.clone() };
    let mut changed = live.clone();
    let mut template = live.spec.template.raw().clone();
    template["spec"]["containers"][0]["image"] = "foo/bar:2".into();
    changed.spec.template = serde_json::from_value(template).unwrap();
    let fewer = pods[..1].to_vec();
    for (rule, now, want) in [
        ("the same", (live.clone(), pods.clone()), vec![]),
        ("a pod was deleted meanwhile", (live, fewer), vec![]),
        ("recreated", (anew, pods.clone()), vec![Difference::Object]),
        ("another template", (changed, pods), vec![Difference::LiveTemplate, Difference::Target]),
    ] {
        let found = stale(&agreed, &pruned(&with(now)), Binding::Reasons);
        let found: Vec<Difference> = found.into_iter().map(|it| it.what).collect();
        assert_eq!(found, want, "{rule}");
    }
}

#[test]
fn the_source_annotation_is_a_change_and_a_move_between_sources_is_warned_about() {
    let mut cluster = settled(2);
    let before = snapshot(&cluster);
    let marked = |id: &str| {
        let mut wanted = desired(&settled(2));
        let mut object = wanted.raw.as_ref().clone();
        object["metadata"]["annotations"] = json!({SOURCE_ID_ANNOTATION: id});
        wanted.raw = Arc::new(object.clone());
        wanted.written = Arc::new(object);
        wanted
    };
    let planned_for = |snapshot: &Snapshot, id: &str| {
        let source = SourceInfo { id: Some(id.to_owned()), ..SourceInfo::default() };
        plan(Input { source, ..Input::of(snapshot, &[marked(id)]) })
    };
    let plan = planned_for(&before, "prod");
    let paths: Vec<&str> = plan.daemon_sets[0].changes.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(paths, ["metadata.annotations[ds-plan.dev/source-id]"]);
    assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);

    let (mut live, _) = applied("foo", Some(("stage", "deploy")), "ds-apply");
    live.uid = cluster.daemon_set.uid.clone();
    cluster.daemon_set.annotations = live.annotations.clone();
    let mut after = snapshot(&cluster);
    after.daemon_sets = vec![live];
    let plan = planned_for(&after, "prod");
    let codes: Vec<&str> = plan.warnings.iter().map(|warning| warning.code.as_str()).collect();
    assert_eq!(codes, ["otherSource"]);
}

/// Two repositories with the same folder, and the same id by mistake. The mark of an earlier version has
/// no repository.
#[test]
fn what_was_applied_from_another_repository_is_guarded() {
    let ours = "git.example/team/fleet";
    let other = "it was applied from `deploy` of repository `git.example/team/fleet`, but this plan reads \
                 `deploy` of repository `git.example/team/net`: a part of that source, or another source \
                 with the same id. Prune only with the whole source";
    let unknown = other.replace("repository `git.example/team/net`", "no known repository");
    for (before, now, want) in [
        (Some(ours), Some("https://git.example/team/fleet.git"), None),
        (Some(ours), Some("https://***@git.example:8443/team/fleet/"), None),
        (Some(ours), Some("ssh://git@GIT.example:22/team/fleet.git"), None),
        (Some(ours), Some("git@git.example:team/fleet.git"), None),
        (Some(ours), Some("git@git.example:team/net.git"), Some(other)),
        (Some(ours), Some("/home/ci/fleet"), Some(&*unknown)),
        (Some(ours), None, Some(&*unknown)),
        (None, Some("git@git.example:team/net.git"), None),
        (None, None, None),
    ] {
        let (mut live, pods) = applied("gone", OURS, "ds-apply");
        let marks = before.map(|repository| (SOURCE_REPOSITORY_ANNOTATION, repository));
        live.annotations = live.annotations.iter().chain(marks).collect();
        let snapshot = cluster(vec![(live, pods), applied("kept", OURS, "ds-apply")]);
        let declared = [DaemonSetKey::new("default", "kept")].into();
        let source = SourceInfo {
            repository: now.map(str::to_owned),
            paths: vec!["deploy".to_owned()],
            id: Some("prod".to_owned()),
            ..SourceInfo::default()
        };
        let namespaces = [NamespaceName::from("default")].into();
        let cascade = Cascade::Background;
        let prune =
            Some(Prune { id: "prod", cascade, declared: &declared, namespaces: &namespaces });
        let plan = plan(Input { prune, source, ..Input::of(&snapshot, &[]) });
        let guards: Vec<_> = plan.guards.iter().map(|it| (it.code, it.message.as_str())).collect();
        let want = want.map(|message| (GuardCode::OtherSource, message));
        assert_eq!(guards, Vec::from_iter(want), "{before:?} {now:?}");
    }
}
