//! Construction, de-duplication, collisions and pruning: a row or a test for each rule of upstream.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::controller::claims::Claims;
use crate::controller::node_pods::{EndedPods, Fleet};
use crate::controller::test_cluster::{Cluster, OTHERS, OURS, labels, pod};
use crate::model::PodPhase;

/// A revision of a template with this image, owned by the cluster's DaemonSet.
fn revision(cluster: &Cluster, name: &str, number: i64, image: &str) -> Revision {
    let mut template = cluster.daemon_set.spec.template.raw().clone();
    template["spec"]["containers"][0]["image"] = json!(image);
    Revision {
        namespace: "default".into(),
        name: name.into(),
        uid: format!("uid-{name}").into(),
        labels: labels(OURS).iter().chain([(REVISION_HASH_LABEL, name)]).collect(),
        annotations: Labels::default(),
        controller: Some(cluster.reference()),
        number: RevisionNumber(number),
        data: Arc::new(revision_data::data_for(&template)),
        created: None,
        terminating: false,
    }
}

/// A cluster that has these revisions: name, number, image. The current image is `foo/bar`.
fn cluster(revisions: &[(&str, i64, &str)]) -> Cluster {
    let mut cluster = Cluster::of(1);
    let shapes = revisions.iter();
    let made = shapes.map(|&(name, number, image)| revision(&cluster, name, number, image));
    cluster.revisions = made.collect();
    cluster
}

/// Kind, name and number of the current revision, and the names of the old ones.
fn constructed(cluster: &Cluster) -> (String, Vec<String>) {
    with_history(cluster, |history| {
        let history = history.unwrap();
        let current = match &history.current {
            Current::New(new) => format!("new {}", new.number),
            Current::Reused { revision, to } => {
                format!("{} {} -> {to}", revision.name, revision.number)
            }
            Current::Found { revision } => format!("found {}", revision.name),
            Current::Unchanged { revision } => format!("{} {}", revision.name, revision.number),
        };
        (current, history.old.iter().map(|old| old.name.to_string()).collect())
    })
}

fn with_history<R>(cluster: &Cluster, read: impl FnOnce(Result<History<'_>, Error>) -> R) -> R {
    let owner = Owner::from(&cluster.daemon_set);
    let claimed = Claims::of(&owner, &cluster.revisions).claimed;
    let pods = Claims::of(&owner, &cluster.pods).claimed;
    read(construct(&owner, &claimed, &cluster.revisions, &pods, Matching::Tolerant))
}

#[test]
fn the_current_revision() {
    for (name, revisions, current, old) in [
        ("the first", &[][..], "new 1", &[][..]),
        ("a new template", &[("a", 1, "x"), ("b", 4, "y")], "new 5", &["a", "b"]),
        ("as it is", &[("a", 1, "x"), ("b", 2, "foo/bar")], "b 2", &["a"]),
        ("on a rollback", &[("a", 1, "foo/bar"), ("b", 2, "x")], "a 1 -> 3", &["b"]),
        ("an equal number is too low", &[("a", 2, "foo/bar"), ("b", 2, "x")], "a 2 -> 3", &["b"]),
        ("a gap stays a gap", &[("a", 1, "x"), ("b", 9, "foo/bar")], "b 9", &["a"]),
        ("no negative number counts", &[("a", -5, "x")], "new 1", &["a"]),
        ("the highest duplicate", &[("a", 3, "foo/bar"), ("b", 1, "foo/bar")], "a 3", &[]),
        ("the later one of a tie", &[("a", 3, "foo/bar"), ("b", 3, "foo/bar")], "b 3", &[]),
        (
            "a duplicate, and a rollback",
            &[("a", 1, "foo/bar"), ("b", 2, "foo/bar"), ("c", 5, "x")],
            "b 2 -> 6",
            &["c"],
        ),
    ] {
        let got = constructed(&cluster(revisions));
        assert_eq!(
            (got.0.as_str(), got.1.as_slice()),
            (current, strings(old).as_slice()),
            "{name}"
        );
    }
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn a_new_revision_has_all_fields_that_the_controller_writes() {
    let mut cluster = cluster(&[]);
    cluster.daemon_set.annotations = labels([("kubernetes.io/change-cause", "because")]);
    with_history(&cluster, |history| {
        let Current::New(new) = history.unwrap().current else { panic!("not new") };
        let hash = cluster.hash();
        assert_eq!(new.name.as_str(), format!("foo-{hash}"));
        assert_eq!(new.labels.get(REVISION_HASH_LABEL), Some(hash.as_str()));
        assert_eq!(new.labels.get("name"), Some("simple-daemon"));
        assert_eq!(new.annotations, cluster.daemon_set.annotations);
        assert_eq!(new.data, revision_data::data_for(cluster.daemon_set.spec.template.raw()));
    });
}

#[test]
fn controlled_histories() {
    // TestControlledHistories and the claiming rules: orphans that match are adopted, foreign ones
    // and those that do not match are not.
    let mut cluster = cluster(&[
        ("adopted", 1, "x"),
        ("foreign", 8, "x"),
        ("mismatched", 9, "x"),
        ("terminating", 7, "x"),
    ]);
    cluster.revisions[0].controller = None;
    Arc::make_mut(cluster.revisions[1].controller.as_mut().unwrap()).uid = "another".into();
    cluster.revisions[2].controller = None;
    cluster.revisions[2].labels = labels(OTHERS);
    cluster.revisions[3].controller = None;
    cluster.revisions[3].terminating = true;
    assert_eq!(constructed(&cluster), ("new 2".to_owned(), strings(&["adopted"])));
}

#[test]
fn a_revision_without_hash_label_gets_its_name() {
    let mut cluster = cluster(&[("a", 1, "foo/bar"), ("b", 2, "x")]);
    for revision in &mut cluster.revisions {
        revision.labels = labels(OURS);
    }
    with_history(&cluster, |history| {
        let history = history.unwrap();
        assert_eq!(history.label.len(), 2);
        assert_eq!(history.current.hash().as_str(), "a");
    });
}

#[test]
fn dsc_updates_pod_label_after_dedup_cur_histories() {
    let mut cluster = cluster(&[("a", 1, "foo/bar"), ("b", 2, "foo/bar"), ("old", 1, "x")]);
    for (name, hash) in [("one", "a"), ("two", "b"), ("three", "old")] {
        let labels = labels(OURS).iter().chain([(REVISION_HASH_LABEL, hash)]).collect();
        cluster.pods.push(Pod { labels, ..pod(name, "node-0") });
    }
    cluster.pods.push(pod("four", "node-0"));
    with_history(&cluster, |history| {
        let history = history.unwrap();
        let relabel: Vec<_> = history.relabel.iter().map(|pod| pod.name.as_str()).collect();
        assert_eq!(relabel, ["one", "three", "four"], "even the one that is truly older");
        let duplicates: Vec<_> = history.duplicates.iter().map(|r| r.name.as_str()).collect();
        assert_eq!(duplicates, ["a"]);
    });
    cluster.revisions.remove(0);
    with_history(&cluster, |history| {
        let history = history.unwrap();
        assert!(history.relabel.is_empty() && history.duplicates.is_empty(), "no duplicates");
    });
}

#[test]
fn launch_with_hash_collision() {
    let mut cluster = cluster(&[]);
    let name = format!("foo-{}", cluster.hash());
    let taken = revision(&cluster, &name, 1, "x");
    cluster.revisions = vec![taken];
    let collision = |cluster: &Cluster| with_history(cluster, |history| history.map(|_| ()));
    let taken =
        |count| Err(Error::NameTaken { name: name.as_str().into(), collision_count: count });
    assert_eq!(collision(&cluster), taken(1));
    // Whatever its owner.
    Arc::make_mut(cluster.revisions[0].controller.as_mut().unwrap()).uid = "another".into();
    assert_eq!(collision(&cluster), taken(1));
    cluster.daemon_set.status.collision_count = Some(1);
    assert_eq!(collision(&cluster), Ok(()), "the next sync hashes with the count");
}

#[test]
fn an_existing_name_with_the_same_template_is_used() {
    let mut cluster = cluster(&[("old", 4, "x")]);
    let name = format!("foo-{}", cluster.hash());
    let mut same = revision(&cluster, &name, 1, "foo/bar");
    Arc::make_mut(same.controller.as_mut().unwrap()).uid = "another".into();
    cluster.revisions.push(same);
    let hash = |cluster: &Cluster| with_history(cluster, |it| it.unwrap().current.hash());
    assert_eq!(constructed(&cluster), (format!("found {name}"), strings(&["old"])));
    assert_eq!(hash(&cluster).as_str(), name);
    // A revision of another owner is not labelled, so its pods are not either.
    cluster.revisions.last_mut().unwrap().labels = Labels::default();
    assert_eq!(hash(&cluster).as_str(), "");
}

#[test]
fn the_error_contains_the_name() {
    let error = Error::NameTaken { name: "foo-4".into(), collision_count: 1 };
    assert_eq!(error.to_string(), "revision foo-4 exists with another template");
}

/// Names of pruned revisions with this limit.
fn pruned(cluster: &mut Cluster, limit: u32) -> Vec<String> {
    cluster.edit(|spec| spec["revisionHistoryLimit"] = json!(limit));
    let owner = Owner::from(&cluster.daemon_set);
    let fleet = Fleet::new(&cluster.nodes);
    let claimed: Vec<_> = cluster.pods.iter().collect();
    let pods = NodePods::group(&fleet, &claimed, EndedPods::Counted);
    with_history(cluster, |history| {
        let old = history.unwrap().old;
        prune(&owner, &old, &pods).iter().map(|revision| revision.name.to_string()).collect()
    })
}

#[test]
fn pruning_keeps_the_current_the_newest_and_those_in_use() {
    let revisions = &[
        ("e", 5, "v5"),
        ("a", 1, "v1"),
        ("current", 6, "foo/bar"),
        ("c", 3, "v3"),
        ("b", 2, "v2"),
        ("d", 4, "v4"),
    ];
    for (name, limit, live, want) in [
        ("within the limit", 5, &[][..], &[][..]),
        ("one too many", 4, &[], &["a"]),
        ("none kept", 0, &[], &["a", "b", "c", "d", "e"]),
        ("those in use are skipped", 3, &["a", "c"], &["b", "d"]),
        ("and count", 0, &["a", "b", "c", "d"], &["e"]),
    ] {
        let mut cluster = cluster(revisions);
        for hash in live {
            let labels = labels([(REVISION_HASH_LABEL, *hash)]);
            // Even one that has ended and is being deleted keeps its revision.
            let phase = PodPhase::Failed;
            cluster.pods.push(Pod { labels, phase, terminating: true, ..pod(hash, "node-0") });
        }
        assert_eq!(pruned(&mut cluster, limit), strings(want), "{name}");
    }
}

proptest! {
    /// One sync makes all changes to the history: the next one changes nothing.
    #[test]
    fn constructing_twice_changes_nothing(
        shapes in prop::collection::vec((0..4_i64, 0..3_usize, any::<bool>()), 0..5),
        limit in 0..3_u32,
    ) {
        let mut cluster = cluster(&[]);
        cluster.edit(|spec| spec["revisionHistoryLimit"] = json!(limit));
        for (at, (number, image, labelled)) in shapes.into_iter().enumerate() {
            let image = ["foo/bar", "x", "y"][image];
            let mut revision = revision(&cluster, &format!("r{at}"), number, image);
            if !labelled {
                revision.labels = labels(OURS);
            }
            cluster.revisions.push(revision);
        }
        cluster.sync();
        let once = cluster.revisions.clone();
        let current: Vec<_> = once.iter().filter(|revision| {
            let template = cluster.daemon_set.spec.template.raw();
            revision_data::matches(template, &revision.data, Matching::Exact)
        }).collect();
        prop_assert_eq!(current.len(), 1);
        prop_assert!(once.iter().all(|r| r.number < current[0].number || r == current[0]));
        cluster.sync();
        prop_assert_eq!(cluster.revisions, once);
    }
}
