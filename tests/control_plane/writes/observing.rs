//! The observer's view of a rollout matches the cluster, whatever happens to its watches.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use cluster::{
    Clock, Kind, Observer, Resource, Scope, Verb, View, WatchedDaemonSet, WritableCluster,
};
use daemonset::model::{ManagedBy, Node, NodeName, Pod, Revision, Snapshot};
use jiff::Timestamp;
use serde_json::Value;

use super::{admin, agent, connected, manifest};
use crate::harness::{Component, ControlPlane, FakeNode, Fault, Proxy, wait_until_async};

const SOON: Duration = Duration::from_mins(1);

/// A rolled-out DaemonSet on ten nodes, and another one that is not observed.
fn running() -> ControlPlane {
    let plane = ControlPlane::start();
    plane.create_nodes(FakeNode::many("node", 10));
    plane.apply_yaml(&manifest("agent:v1").to_string());
    let other = manifest("other:v1").to_string().replace("\"agent\"", "\"other\"");
    plane.apply_yaml(&other);
    for name in ["agent", "other"] {
        plane.wait_until_rolled_out(name, 10);
    }
    plane
}

async fn observe(cluster: &WritableCluster) -> Observer {
    let target = WatchedDaemonSet {
        key: agent(),
        managed_by: ManagedBy::DaemonSetController,
        selector: serde_json::from_value(manifest("x")["spec"]["selector"].clone()).unwrap(),
        events: true,
        pullers: false,
        neighbours: Vec::new(),
    };
    cluster.live().observe(&target, Clock::of_machine(), Timestamp::UNIX_EPOCH).await.unwrap()
}

type Seen = (Vec<Node>, Vec<Pod>, Vec<Revision>, Option<Value>);

/// The part of a snapshot that an observer also has.
fn seen(snapshot: &Snapshot) -> Seen {
    let ours = |name: &str| name.starts_with("agent");
    (
        snapshot.nodes.clone(),
        snapshot.pods.iter().filter(|pod| ours(pod.name.as_str())).cloned().collect(),
        snapshot.revisions.iter().filter(|it| ours(it.name.as_str())).cloned().collect(),
        snapshot.daemon_set(&agent()).map(|it| Value::clone(&it.raw)),
    )
}

/// Waits until the observer's view matches the cluster.
async fn agrees(observer: &Observer, cluster: &WritableCluster) {
    let scope = Scope::Namespaces(["default".into()].into());
    wait_until_async("the observer's view to match the cluster", SOON, async || {
        let snapshot = cluster.live().snapshot(&scope, Timestamp::UNIX_EPOCH).await;
        let Ok(snapshot) = snapshot else { return false };
        observer.is_current() && observer.look(|view| seen(&view.snapshot)) == seen(&snapshot)
    })
    .await;
}

fn roll(plane: &ControlPlane, image: &str) {
    let image = format!("agent={image}");
    plane.kubectl(&["set", "image", "ds/agent", &image]);
}

async fn through(kubeconfig: &Path) -> WritableCluster {
    connected(kubeconfig.to_owned()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_is_observed_with_one_watch_per_resource() {
    let plane = running();
    let (cluster, eyes) = (admin(&plane).await, admin(&plane).await);
    let mut observer = observe(&eyes).await;
    agrees(&observer, &cluster).await;
    observer.look(|view| {
        assert_eq!((view.snapshot.nodes.len(), view.snapshot.pods.len()), (10, 10));
        assert_eq!((view.snapshot.daemon_sets.len(), view.snapshot.revisions.len()), (1, 1));
        assert!(view.snapshot.observed_at > Timestamp::UNIX_EPOCH, "the server's clock");
    });
    roll(&plane, "agent:v2");
    plane.kubectl(&["rollout", "status", "ds/agent"]);
    plane.kubectl(&["label", "node", "node-003", "disk=ssd"]);
    plane.kubectl(&["delete", "node", "node-007"]);
    plane.create_nodes([FakeNode::new("node-010")]);
    // The pod of the removed node stays until it is garbage-collected; the other node gets one.
    wait_until_async("an updated pod on each node", SOON, async || {
        observer.look(|View { snapshot, .. }| {
            let newest = snapshot.revisions.iter().max_by_key(|it| it.number);
            let newest = newest.and_then(Revision::hash).unwrap();
            let updated = snapshot.pods.iter().filter(|pod| pod.has_hash(&newest));
            let served: BTreeSet<&NodeName> = updated.filter_map(Pod::node).collect();
            let nodes: BTreeSet<&NodeName> = snapshot.nodes.iter().map(|node| &node.name).collect();
            nodes.len() == 10 && nodes.is_subset(&served)
        })
    })
    .await;
    agrees(&observer, &cluster).await;
    observer.changed().await;

    let counts = eyes.live().request_counts();
    for kind in [Kind::Node, Kind::Pod, Kind::DaemonSet, Kind::ControllerRevision] {
        let resource = Resource::Of(kind);
        assert_eq!(counts.of(Verb::List, resource), 1, "{resource}");
        assert_eq!(counts.of(Verb::Watch, resource), 1, "{resource}");
    }
    assert_eq!((counts.of(Verb::Watch, Resource::Of(Kind::Event)), counts.total()), (1, 9));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_set_is_observed_when_created_and_deleted() {
    let plane = ControlPlane::start();
    plane.create_nodes(FakeNode::many("node", 3));
    let cluster = admin(&plane).await;
    let observer = observe(&cluster).await;
    plane.apply_yaml(&manifest("agent:v1").to_string());
    plane.wait_until_rolled_out("agent", 3);
    agrees(&observer, &cluster).await;
    assert_eq!(observer.look(|view| view.snapshot.pods.len()), 3);
    plane.kubectl(&["delete", "ds", "agent"]);
    wait_until_async("the DaemonSet and its pods to be deleted", SOON, async || {
        observer.look(|view| view.snapshot.pods.is_empty() && view.snapshot.daemon_sets.is_empty())
    })
    .await;
    agrees(&observer, &cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_creates_are_reported() {
    let plane = ControlPlane::start();
    plane.create_nodes(FakeNode::many("node", 2));
    plane.kubectl(&["label", "ns", "default", "pod-security.kubernetes.io/enforce=restricted"]);
    let cluster = admin(&plane).await;
    let observer = observe(&cluster).await;
    plane.apply_yaml(&manifest("agent:v1").to_string());
    wait_until_async("a failed create", SOON, async || {
        observer.look(|view| !view.failed_creates.is_empty())
    })
    .await;
    observer.look(|view| {
        let failed_create = &view.failed_creates[0];
        assert_eq!(failed_create.reason, "FailedCreate");
        assert!(failed_create.message.contains("violates PodSecurity"), "{failed_create:?}");
        assert_eq!(Some(&failed_create.about), view.snapshot.daemon_sets.first().map(|it| &it.uid));
        assert!(failed_create.last.is_some());
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn watch_errors_are_reported_and_recovered() {
    let plane = running();
    let cluster = admin(&plane).await;
    let proxy = Proxy::start(&plane, "admin");
    let eyes = through(proxy.kubeconfig_path()).await;
    let observer = observe(&eyes).await;
    agrees(&observer, &cluster).await;
    let is_watch = |uri: &str| uri.contains("watch=true");
    let troubled = async || {
        wait_until_async("a watch error to be reported", SOON, async || {
            observer.failure().is_some() && !observer.is_current()
        })
        .await;
    };

    // The watches are cut, and resumed at their last version.
    let before = eyes.live().request_counts();
    proxy.cut();
    roll(&plane, "agent:v2");
    plane.kubectl(&["rollout", "status", "ds/agent"]);
    agrees(&observer, &cluster).await;
    let sent = eyes.live().request_counts().since(&before);
    assert_eq!(sent.of(Verb::List, Resource::Of(Kind::Pod)), 0, "{sent:?}");
    assert!(sent.of(Verb::Watch, Resource::Of(Kind::Pod)) > 0, "{sent:?}");

    for (case, fault) in [
        ("too many", Fault::Status(429, Some(1))),
        ("broken", Fault::Status(500, None)),
        ("lost", Fault::Lost),
    ] {
        let fault_of = fault.clone();
        proxy.fault(move |_, uri| is_watch(uri).then(|| fault_of.clone()));
        proxy.cut();
        troubled().await;
        roll(&plane, &format!("agent:{}", case.replace(' ', "-")));
        proxy.fix();
        agrees(&observer, &cluster).await;
    }

    // Missed changes are listed again, as soon as lists succeed again.
    let before = eyes.live().request_counts();
    let sent = || eyes.live().request_counts().since(&before);
    let mut reported = false;
    proxy.fault(move |_, uri| {
        let of_pods = uri.contains("/pods");
        let expires = of_pods && is_watch(uri) && !reported;
        reported |= expires;
        let fault = if expires { 410 } else { 500 };
        (expires || of_pods && !is_watch(uri)).then_some(Fault::Status(fault, None))
    });
    proxy.cut();
    wait_until_async("a list of pods", SOON, async || {
        sent().of(Verb::List, Resource::Of(Kind::Pod)) > 0
    })
    .await;
    troubled().await;
    roll(&plane, "agent:v9");
    proxy.fix();
    agrees(&observer, &cluster).await;
    assert!(sent().of(Verb::List, Resource::Of(Kind::Pod)) > 1, "{:?}", sent());
    assert_eq!(sent().of(Verb::List, Resource::Of(Kind::Node)), 0, "{:?}", sent());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_observer_waits_for_an_unavailable_server() {
    let plane = running();
    let (cluster, eyes) = (admin(&plane).await, admin(&plane).await);
    let observer = observe(&eyes).await;
    for kill in [false, true] {
        if kill {
            plane.kill_component(Component::ApiServer);
        } else {
            plane.stop_component(Component::ApiServer);
        }
        wait_until_async("a watch error to be reported", SOON, async || {
            observer.failure().is_some() && !observer.is_current()
        })
        .await;
        plane.start_component(Component::ApiServer);
        roll(&plane, if kill { "agent:v3" } else { "agent:v2" });
        plane.kubectl(&["rollout", "status", "ds/agent"]);
        agrees(&observer, &cluster).await;
    }
}
