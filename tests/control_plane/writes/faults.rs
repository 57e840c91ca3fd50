//! Answers that are lost, late or refused on the way.

use std::sync::Arc;
use std::time::Duration;

use cluster::{Apply, Clock, Kind, LockOptions, Resource, Verb, WritableCluster, WriteError};
use http::Method;

use super::{admin, agent, connected, holder, image, live, locked, manifest, quiet};
use crate::harness::{Fault, Proxy, wait_until_async};

const SOON: Duration = Duration::from_secs(30);
const PATCHES: (Verb, Resource) = (Verb::Patch, Resource::Of(Kind::DaemonSet));

fn sent(cluster: &WritableCluster, (verb, resource): (Verb, Resource)) -> u64 {
    cluster.live().request_counts().of(verb, resource)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apply_is_retried_only_if_it_was_not_applied() {
    let plane = quiet();
    let proxy = Proxy::start(&plane, "admin");
    let (cluster, direct) =
        (connected(proxy.kubeconfig_path().to_owned()).await, admin(&plane).await);
    let (_lock, writer) = locked(&cluster).await;
    for (image_sent, fault, attempts, happens, known) in [
        ("agent:v1", Fault::Status(429, Some(1)), 2, true, true),
        ("agent:v2", Fault::Status(503, Some(1)), 2, true, true),
        ("agent:v3", Fault::AnswerLost, 1, true, false),
        ("agent:v4", Fault::Lost, 1, false, false),
        ("agent:v5", Fault::Status(503, None), 1, false, false),
        ("agent:v6", Fault::Status(504, None), 1, false, false),
        ("agent:v7", Fault::Status(500, None), 1, false, true),
    ] {
        let mut first = true;
        let this = fault.clone();
        proxy.fault(move |method, uri| {
            let hit = first && method == Method::PATCH && uri.contains("/daemonsets/");
            first &= !hit;
            hit.then(|| this.clone())
        });
        let before = sent(&cluster, PATCHES);
        let object = manifest(image_sent);
        let apply = Apply { object: &object, force: false, uid: None, resource_version: None };
        let result = writer.apply(&agent(), &apply).await;
        assert_eq!(sent(&cluster, PATCHES) - before, attempts, "{fault:?}");
        let unknown = result.as_ref().is_err_and(WriteError::is_outcome_unknown);
        assert_eq!(unknown, !known, "{fault:?}: {result:?}");
        assert_eq!(image(&live(&direct).await) == image_sent, happens, "{fault:?}");
    }
}

const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: agent-x, namespace: default}
spec: {containers: [{name: c, image: i}]}
";

#[tokio::test(flavor = "multi_thread")]
async fn a_delete_is_sent_once_and_its_result_is_reported() {
    let plane = quiet();
    let proxy = Proxy::start(&plane, "admin");
    let cluster = connected(proxy.kubeconfig_path().to_owned()).await;
    let (_lock, writer) = locked(&cluster).await;
    for (fault, gone) in [
        (Fault::Status(429, None), false),
        (Fault::Status(500, None), false),
        (Fault::Lost, false),
        (Fault::AnswerLost, true),
    ] {
        plane.apply_yaml(POD);
        let uid = plane.kubectl(&["get", "pod", "agent-x", "-o=jsonpath={.metadata.uid}"]);
        let mut first = true;
        let this = fault.clone();
        proxy.fault(move |method, _| {
            let hit = first && method == Method::DELETE;
            first &= !hit;
            hit.then(|| this.clone())
        });
        // The caller decides whether to send the delete again.
        let (namespace, name, uid) = ("default".into(), "agent-x".into(), uid.into());
        let delete = || writer.delete_pod(&namespace, &name, &uid);
        let error = delete().await.unwrap_err();
        assert!(!error.is_gone(), "{fault:?}: {error:?}");
        let left = plane.kubectl(&["get", "pods", "-o=name"]);
        assert_eq!(left.is_empty(), gone, "{fault:?}");
        match delete().await {
            Ok(()) => assert!(!gone, "{fault:?}"),
            Err(error) => assert!(gone && error.is_gone(), "{fault:?}: {error:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_that_cannot_renew_writes_nothing() {
    let plane = quiet();
    let proxy = Proxy::start(&plane, "admin");
    let cluster = connected(proxy.kubeconfig_path().to_owned()).await;
    let options = LockOptions {
        lease: Duration::from_secs(3),
        request: Duration::from_secs(1),
        ..LockOptions::new(Clock::of_machine())
    };
    let lock = cluster.lock(&agent(), &holder("test"), &options).await.unwrap();
    let writer = lock.writer();
    proxy.fault(|_, uri| uri.contains("/leases/").then_some(Fault::Silence));
    wait_until_async("the lock to be stale", SOON, async || !lock.is_fresh()).await;
    let object = manifest("agent:v1");
    let apply = Apply { object: &object, force: false, uid: None, resource_version: None };
    let error = writer.apply(&agent(), &apply).await.unwrap_err();
    assert!(matches!(error, WriteError::Unlocked { .. }), "{error:?}");
    assert_eq!(sent(&cluster, PATCHES), 0);
    proxy.fix();
    wait_until_async("the lock to be fresh again", SOON, async || lock.is_fresh()).await;
    writer.apply(&agent(), &apply).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_is_released_after_the_last_write() {
    let plane = quiet();
    let proxy = Proxy::start(&plane, "admin");
    let cluster = connected(proxy.kubeconfig_path().to_owned()).await;
    let (lock, writer) = locked(&cluster).await;
    let started = Arc::new(tokio::sync::Notify::new());
    let starts = Arc::clone(&started);
    proxy.fault(move |method, uri| {
        let late = method == Method::PATCH && uri.contains("/daemonsets/");
        if late {
            starts.notify_one();
        }
        late.then_some(Fault::Late(Duration::from_secs(2)))
    });
    let writing = tokio::spawn(async move {
        let object = manifest("agent:v1");
        let apply = Apply { object: &object, force: false, uid: None, resource_version: None };
        writer.apply(&agent(), &apply).await
    });
    started.notified().await;
    lock.release().await.unwrap();
    let direct = admin(&plane).await;
    assert_eq!(image(&live(&direct).await), "agent:v1", "the lock was free before");
    writing.await.unwrap().unwrap();
}
