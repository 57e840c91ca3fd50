//! `ds-plan`'s own client, unchanged, on the embedded cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{daemon_set, now, pod, server, store};
use crate::{DeleteOptions, Kind, Server, Target};
use cluster::{
    Access, Apply, Clock, Holder, Kind as ClusterKind, LiveCluster, Lock, LockError, LockOptions,
    Observer, Resource, Scope, Verb, WatchedDaemonSet, WritableCluster, WriteError,
};
use daemonset::model::{Cascade, DaemonSetKey, ManagedBy, Uid};

fn agent() -> DaemonSetKey {
    DaemonSetKey::new("team", "agent")
}

fn live(server: &Server) -> LiveCluster {
    LiveCluster::embedded(server.client(), Some("test".to_owned()), "team".into())
}

async fn lock(cluster: &WritableCluster, id: &str) -> Result<Lock, LockError> {
    let holder =
        Holder { host: "h".to_owned(), pid: 1, user: String::new(), run: None, id: id.to_owned() };
    let began = Instant::now();
    let options = LockOptions {
        wait: Duration::ZERO,
        ..LockOptions::new(Clock::new(move || began.elapsed()))
    };
    cluster.lock(&agent(), &holder, &options).await
}

fn apply(object: &Value) -> Apply<'_> {
    Apply { object, force: false, uid: None, resource_version: None }
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_is_read_page_by_page() {
    let server = server(store());
    {
        let mut store = server.store();
        let mut verbs = store.verbs(now(), "test");
        for number in 0..7 {
            let node = json!({"metadata": {"name": format!("n{number}")}});
            verbs.create(Kind::Node, "", node).unwrap();
            verbs.create(Kind::Pod, "team", pod(&format!("p{number}"))).unwrap();
        }
        verbs.create(Kind::DaemonSet, "team", daemon_set("agent:1")).unwrap();
    }
    let cluster = live(&server).with_page_size(3);
    let snapshot = cluster.snapshot(&Scope::All, now()).await.unwrap();
    let counts = (snapshot.nodes.len(), snapshot.pods.len(), snapshot.daemon_sets.len());
    assert_eq!(counts, (7, 7, 1));
    assert_eq!(snapshot.cluster.version.as_deref(), Some("v1.36.3"));
    assert!(snapshot.cluster.uid.is_some() && snapshot.coverage.managed_fields);
    assert_eq!(cluster.request_counts().of(Verb::List, Resource::Of(ClusterKind::Pod)), 3);
    assert_eq!(snapshot.observed_at, now());
}

#[tokio::test(start_paused = true)]
async fn an_apply_meets_a_conflict_and_a_stale_version() {
    let server = server(store());
    let cluster = live(&server).writable();
    let lock = lock(&cluster, "me").await.unwrap();
    let writer = lock.writer();
    let (first, second) = (daemon_set("agent:1"), daemon_set("agent:2"));
    let made = writer.apply(&agent(), &apply(&first)).await.unwrap();
    assert_eq!((made.generation, made.template_generation()), (1, Some(1)));
    let tried = cluster.try_apply(&agent(), &apply(&second)).await.unwrap();
    assert_eq!(tried.generation, 2);
    assert_eq!(cluster.live().daemon_set(&agent()).await.unwrap().unwrap(), made, "a dry run");
    let set = Target::new(Kind::DaemonSet, "team", "agent");
    server
        .store()
        .verbs(now(), "kubectl")
        .edit(set, |set| {
            set["spec"]["template"]["spec"]["containers"][0]["image"] = "agent:other".into();
        })
        .unwrap();
    match writer.apply(&agent(), &apply(&second)).await.unwrap_err() {
        WriteError::Conflict { fields, .. } => {
            let [field] = fields.as_slice() else { panic!("{fields:?}") };
            assert_eq!(field.manager, "kubectl");
            assert_eq!(field.path, ".spec.template.spec.containers[name=\"agent\"].image");
        }
        other => panic!("{other:?}"),
    }
    let old = Apply { resource_version: made.resource_version(), force: true, ..apply(&second) };
    assert!(matches!(writer.apply(&agent(), &old).await, Err(WriteError::Stale { .. })));
    let other = Uid::from("other");
    let other = Apply { uid: Some(&other), force: true, ..apply(&second) };
    assert!(matches!(writer.apply(&agent(), &other).await, Err(WriteError::Stale { .. })));
    let forced = writer.apply(&agent(), &Apply { force: true, ..apply(&second) }).await.unwrap();
    let owned = ssa::ManagedFields::of(&forced.raw).unwrap().to_value();
    let same = writer.replace_managed_fields(&forced, &owned).await.unwrap();
    assert_eq!(same, forced, "nothing changes, so it stays the same version");
    let stale = writer.replace_managed_fields(&made, &owned).await;
    assert!(matches!(stale, Err(WriteError::Stale { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_delete_affects_one_pod_only() {
    let server = server(store());
    let uid = {
        let mut store = server.store();
        let made = store.verbs(now(), "test").create(Kind::Pod, "team", pod("p")).unwrap();
        made.meta().uid.clone()
    };
    let cluster = live(&server).writable();
    let lock = lock(&cluster, "me").await.unwrap();
    let (writer, namespace, name) = (lock.writer(), "team".into(), "p".into());
    let error = writer.delete_pod(&namespace, &name, &"other".into()).await.unwrap_err();
    assert!(matches!(error, WriteError::Stale { .. }), "{error:?}");
    writer.delete_pod(&namespace, &name, &uid).await.unwrap();
    writer.delete_pod(&namespace, &name, &uid).await.unwrap();
    assert!(server.store().get(Kind::Pod, "team", "p").unwrap().meta().deleted.is_some());
    let target = Target::new(Kind::Pod, "team", "p");
    server.store().verbs(now(), "kubelet").delete(target, &DeleteOptions::now()).unwrap();
    let error = writer.delete_pod(&namespace, &name, &uid).await.unwrap_err();
    assert!(error.is_gone(), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lock_is_acquired_renewed_lost_and_released() {
    let server = server(store());
    let (cluster, other) = (live(&server).writable(), live(&server).writable());
    let first = lock(&cluster, "first").await.unwrap();
    assert!(matches!(lock(&other, "second").await, Err(LockError::Held { .. })));
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert!(first.is_fresh(), "it was renewed all the time");
    first.set_note("example.com/note", Some("x")).await.unwrap();
    let robbed = other.unlock(&agent()).await.unwrap();
    assert!(robbed.is_some_and(|record| record.is_held()));
    tokio::time::timeout(Duration::from_mins(1), first.lost()).await.unwrap();
    let set = daemon_set("agent:1");
    let refused = first.writer().apply(&agent(), &apply(&set)).await;
    assert!(matches!(refused, Err(WriteError::Unlocked { .. })));
    let second = lock(&other, "second").await.unwrap();
    assert_eq!(second.note("example.com/note").await.as_deref(), Some("x"));
    second.release().await.unwrap();
    lock(&cluster, "third").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_observer_sees_events_and_survives_cut_watches_and_expired_versions() {
    let server = server(store());
    let cluster = live(&server);
    server.store().verbs(now(), "test").create(Kind::DaemonSet, "team", daemon_set("a:1")).unwrap();
    let selector = serde_json::from_value(json!({"matchLabels": {"app": "agent"}})).unwrap();
    let managed_by = ManagedBy::DaemonSetController;
    let target = WatchedDaemonSet {
        key: agent(),
        managed_by,
        selector,
        events: true,
        pullers: false,
        neighbours: Vec::new(),
    };
    let began = Instant::now();
    let clock = Clock::new(move || began.elapsed());
    let mut observer = cluster.observe(&target, clock, now()).await.unwrap();
    let mut expected = Vec::new();
    for (round, name) in ["a", "b", "c"].into_iter().enumerate() {
        server.store().verbs(now(), "test").create(Kind::Pod, "team", pod(name)).unwrap();
        expected.push(name.to_owned());
        let names = |observer: &Observer| {
            observer.look(|view| {
                view.snapshot.pods.iter().map(|pod| pod.name.to_string()).collect::<Vec<_>>()
            })
        };
        let wait = async {
            while names(&observer) != expected {
                observer.changed().await;
            }
        };
        tokio::time::timeout(Duration::from_mins(5), wait).await.unwrap();
        // The following changes are not reported: the watches start again, or everything is listed.
        if round == 1 {
            server.store().forget_events();
        }
        server.cut_watches();
    }
}

#[tokio::test(start_paused = true)]
async fn permissions_are_reviewed_pods_dry_run_and_revisions_annotated() {
    let server = server(store());
    server.deny(vec![crate::Denial {
        verbs: vec!["delete".to_owned()],
        resources: vec!["pods".to_owned()],
        ..crate::Denial::default()
    }]);
    let cluster = live(&server).writable();
    for (verb, want) in [(Verb::Delete, false), (Verb::Create, true)] {
        let resource = Resource::Of(ClusterKind::Pod);
        let access = Access { verb, resource, namespace: Some("team".into()), name: None };
        assert_eq!(cluster.may(&access).await.unwrap(), want, "{verb}");
    }
    let tried = cluster.try_pod(&"team".into(), &pod("p")).await.unwrap();
    assert_eq!(tried["status"]["phase"], "Pending");
    let mut classy = pod("p");
    classy["spec"]["priorityClassName"] = "none".into();
    let denied = cluster.try_pod(&"team".into(), &classy).await.unwrap_err();
    assert!(matches!(denied, WriteError::Denied { status: 403, .. }), "{denied:?}");
    let revision = json!({"metadata": {"name": "agent-1"}, "revision": 1, "data": {}});
    server.store().verbs(now(), "test").create(Kind::ControllerRevision, "team", revision).unwrap();
    let lock = lock(&cluster, "me").await.unwrap();
    let read = cluster.live().revision(&"team".into(), &"agent-1".into()).await.unwrap().unwrap();
    let annotations = BTreeMap::from([("kubernetes.io/change-cause", Some("because"))]);
    let writer = lock.writer();
    let written = writer.annotate_revision(&read, None, &annotations).await.unwrap();
    assert_eq!(written.change_cause(), Some("because"));
    let created = daemon_set("a:1");
    server.store().verbs(now(), "test").create(Kind::DaemonSet, "team", created).unwrap();
    let live = cluster.live().daemon_set(&agent()).await.unwrap().unwrap();
    writer.delete_daemon_set(&live, Cascade::Orphan).await.unwrap();
    assert!(cluster.live().daemon_set(&agent()).await.unwrap().unwrap().terminating);
}
