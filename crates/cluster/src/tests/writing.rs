//! The requests of each write, their retries, and when nothing is sent.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::scripted::{Log, Reply, Seen, count, server};
use crate::{
    Access, Apply, Clock, Holder, Kind, Lock, LockOptions, Resource, Verb, WritableCluster,
    WriteError,
};
use daemonset::model::{Cascade, DaemonSet, DaemonSetKey, Revision};

const PODS: &str = "DELETE /api/v1/namespaces/team/pods/";
const REVISIONS: &str = "DELETE /apis/apps/v1/namespaces/team/controllerrevisions/";

pub(super) fn agent() -> DaemonSetKey {
    DaemonSetKey::new("team", "agent")
}

pub(super) fn holder(id: &str) -> Holder {
    Holder { host: "h".to_owned(), pid: 1, user: String::new(), run: None, id: id.to_owned() }
}

/// A DaemonSet in the API's JSON.
pub(super) fn daemon_set() -> Value {
    json!({
        "metadata": {"namespace": "team", "name": "agent", "uid": "u", "resourceVersion": "5"},
        "spec": {"selector": {}, "template": {}},
    })
}

fn revision() -> Value {
    json!({"metadata": {"namespace": "team", "name": "agent-1", "uid": "r"}, "revision": 1})
}

/// A clock that a test sets, in seconds.
#[derive(Clone, Default)]
pub(super) struct Hand(Arc<AtomicU64>);

impl Hand {
    pub(super) fn set(&self, seconds: u64) {
        self.0.store(seconds, Ordering::Relaxed);
    }

    pub(super) fn clock(&self) -> Clock {
        let Self(seconds) = self.clone();
        Clock::new(move || Duration::from_secs(seconds.load(Ordering::Relaxed)))
    }
}

async fn locked(cluster: &WritableCluster, clock: Clock) -> Lock {
    cluster.lock(&agent(), &holder("me"), &LockOptions::new(clock)).await.unwrap()
}

fn live() -> DaemonSet {
    crate::decode::one_daemon_set(&daemon_set().to_string()).unwrap()
}

fn live_revision() -> Revision {
    crate::decode::one_revision(&revision().to_string()).unwrap()
}

fn usual(seen: &Seen) -> Option<Reply> {
    if seen.line.contains("/daemonsets/") {
        return Some(Reply::Json(daemon_set()));
    }
    if seen.line.contains("/controllerrevisions/") {
        return Some(Reply::Json(revision()));
    }
    if seen.line.contains("/selfsubjectaccessreviews") {
        return Some(Reply::Json(json!({"status": {"allowed": true}})));
    }
    seen.line.contains("/pods").then(|| Reply::Json(json!({})))
}

/// The only request except those for the lease.
fn only(log: &Log) -> (String, String, Value) {
    let mut log = log.lock().unwrap();
    log.retain(|seen| !seen.line.contains("/leases"));
    let Seen { line, media_type, body } = log.pop().unwrap();
    assert!(log.is_empty(), "one request per write");
    (line, media_type, serde_json::from_str(&body).unwrap())
}

#[tokio::test]
async fn each_write_is_one_request() {
    let (cluster, log) = server(usual);
    let lock = locked(&cluster, Hand::default().clock()).await;
    let writer = lock.writer();
    let is = |line: &str, media_type: &str, body: Value| {
        assert_eq!(only(&log), (line.to_owned(), media_type.to_owned(), body));
    };
    let (object, uid) = (json!({"metadata": {"name": "agent"}, "x": 1}), "u".into());
    let apply =
        Apply { object: &object, force: false, uid: Some(&uid), resource_version: Some("5") };

    writer.apply(&agent(), &apply).await.unwrap();
    let path = "PATCH /apis/apps/v1/namespaces/team/daemonsets/agent?fieldManager=ds-apply";
    is(
        &format!("{path}&fieldValidation=Strict&force=false"),
        "application/apply-patch+yaml",
        json!({"metadata": {"name": "agent", "uid": "u", "resourceVersion": "5"}, "x": 1}),
    );
    let forced = Apply { force: true, uid: None, resource_version: None, ..apply };
    cluster.try_apply(&agent(), &forced).await.unwrap();
    is(
        &format!("{path}&fieldValidation=Strict&force=true&dryRun=All"),
        "application/apply-patch+yaml",
        object.clone(),
    );
    writer.replace_managed_fields(&live(), &json!([{"manager": "m"}])).await.unwrap();
    is(
        path,
        "application/json-patch+json",
        json!([
            {"op": "test", "path": "/metadata/uid", "value": "u"},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": "5"},
            {"op": "add", "path": "/metadata/managedFields", "value": [{"manager": "m"}]},
        ]),
    );
    let notes = BTreeMap::from([("a", Some("1")), ("b", None)]);
    writer.annotate_revision(&live_revision(), Some("7"), &notes).await.unwrap();
    is(
        "PATCH /apis/apps/v1/namespaces/team/controllerrevisions/agent-1?fieldManager=ds-apply",
        "application/merge-patch+json",
        json!({"metadata": {"uid": "r", "resourceVersion": "7", "annotations": {"a": "1", "b": null}}}),
    );
    writer.annotate_revision(&live_revision(), None, &notes).await.unwrap();
    assert!(only(&log).2["metadata"].get("resourceVersion").is_none(), "null would unset it");

    let options = |rest: Value| {
        let mut options =
            json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "u"}});
        options.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        options
    };
    writer.delete_pod(&"team".into(), &"agent-x".into(), &uid).await.unwrap();
    is(&format!("{PODS}agent-x"), "application/json", options(json!({})));
    for (cascade, word) in [(Cascade::Orphan, "Orphan"), (Cascade::Background, "Background")] {
        writer.delete_daemon_set(&live(), cascade).await.unwrap();
        is(
            "DELETE /apis/apps/v1/namespaces/team/daemonsets/agent",
            "application/json",
            options(json!({
                "propagationPolicy": word, "preconditions": {"uid": "u", "resourceVersion": "5"},
            })),
        );
    }
}

#[tokio::test]
async fn dry_runs_need_no_lock() {
    let (cluster, log) = server(usual);
    let pod = json!({"metadata": {"generateName": "agent-"}});
    cluster.try_pod(&"team".into(), &pod).await.unwrap();
    let (line, media_type, body) = only(&log);
    assert_eq!(line, "POST /api/v1/namespaces/team/pods?dryRun=All&fieldManager=ds-apply");
    assert_eq!((media_type.as_str(), body), ("application/json", pod));

    let metadata = json!({"name": "agent", "annotations": {"a": "1"}, "uid": "other"});
    let merged = json!({"metadata": metadata, "spec": {"x": 1}, "status": {}});
    cluster.try_outcome(&live(), &merged).await.unwrap();
    let (line, media_type, body) = only(&log);
    let of_agent = "PATCH /apis/apps/v1/namespaces/team/daemonsets/agent";
    assert_eq!(line, format!("{of_agent}?dryRun=All&fieldManager=ds-apply"));
    assert_eq!(media_type, "application/json-patch+json");
    let patch = json!([
        {"op": "test", "path": "/metadata/uid", "value": "u"},
        {"op": "add", "path": "/metadata/labels", "value": {}},
        {"op": "add", "path": "/metadata/annotations", "value": {"a": "1"}},
        {"op": "add", "path": "/spec", "value": {"x": 1}},
    ]);
    assert_eq!(body, patch, "only spec, labels and annotations of this uid");

    let access = Access {
        verb: Verb::Create,
        resource: Resource::Of(Kind::DaemonSet),
        namespace: Some("team".into()),
        name: None,
    };
    assert!(cluster.may(&access).await.unwrap());
    let (line, _, body) = only(&log);
    assert_eq!(line, "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews");
    assert_eq!(
        body["spec"]["resourceAttributes"],
        json!({"verb": "create", "group": "apps", "resource": "daemonsets", "namespace": "team", "name": null})
    );
}

/// The results of a delete and an apply when the first answers are these, with the number of
/// requests and the duration of each.
async fn attempts(
    first: impl Fn() -> Reply + Send + Clone + 'static,
    times: usize,
) -> [(Result<(), WriteError>, usize, Duration); 2] {
    let reply = {
        let mut seen = BTreeMap::new();
        move |request: &Seen| {
            if request.line.contains("/leases") {
                return None;
            }
            let before = seen.entry(request.line.clone()).or_insert(0);
            *before += 1;
            if *before <= times { Some(first()) } else { usual(request) }
        }
    };
    let (cluster, log) = server(reply);
    let lock = locked(&cluster, Hand::default().clock()).await;
    let writer = lock.writer();
    // The server has answered before, so a refused connection is retried.
    let start = Instant::now();
    let deleted = writer.delete_revision(&"team".into(), "x", &"u".into()).await;
    let delete = (deleted, count(&log, REVISIONS), start.elapsed());
    let (start, object) = (Instant::now(), json!({"metadata": {}}));
    let apply = Apply { object: &object, force: false, uid: None, resource_version: None };
    let applied = writer.apply(&agent(), &apply).await.map(drop);
    [delete, (applied, count(&log, "PATCH /apis/apps"), start.elapsed())]
}

#[tokio::test(start_paused = true)]
async fn writes_that_were_not_applied_are_retried() {
    for (code, retry_after, waited) in
        [(429, None, 500), (429, Some("3"), 3_000), (503, Some("2"), 2_000)]
    {
        for (result, sent, took) in attempts(move || Reply::Status(code, retry_after), 1).await {
            assert!(result.is_ok(), "{code}: {result:?}");
            assert_eq!((sent, took.as_millis()), (2, waited), "{code} {retry_after:?}");
        }
    }
    for (result, sent, _) in attempts(|| Reply::Fails(ErrorKind::ConnectionRefused), 2).await {
        assert!(result.is_ok(), "{result:?}");
        assert_eq!(sent, 3);
    }
    for (result, sent, _) in attempts(|| Reply::Status(429, Some("1")), 9).await {
        let error = result.unwrap_err();
        assert!(
            matches!(error, WriteError::TooManyRequests { retry_after: Some(_), .. }),
            "{error:?}"
        );
        assert_eq!(sent, 5);
    }
}

#[tokio::test(start_paused = true)]
async fn writes_that_may_have_been_applied_are_retried_only_if_harmless() {
    let [(deleted, sent, _), (applied, tries, _)] =
        attempts(|| Reply::Fails(ErrorKind::ConnectionReset), 1).await;
    assert!(deleted.is_ok() && applied.unwrap_err().is_outcome_unknown());
    assert_eq!((sent, tries), (2, 1));

    // An incomplete answer.
    let [(deleted, sent, _), (applied, tries, _)] =
        attempts(|| Reply::Text(r#"{"metadata":{"name":"x""#), 1).await;
    assert!(deleted.is_ok(), "{deleted:?}");
    assert_eq!(
        applied.unwrap_err().to_string(),
        "patch daemonsets.apps team/agent: the outcome is unknown: \
         the connection was lost: the answer is incomplete"
    );
    assert_eq!((sent, tries), (2, 1));

    let [(deleted, sent, waited), (applied, tries, took)] = attempts(|| Reply::Silence, 9).await;
    assert_eq!(
        deleted.unwrap_err().to_string(),
        "delete controllerrevisions.apps team/x: the outcome is unknown: no answer within 10 s"
    );
    assert_eq!((sent, waited.as_millis()), (2, 20_500));
    assert!(applied.unwrap_err().is_outcome_unknown());
    assert_eq!((tries, took.as_secs()), (1, 10));
}

#[tokio::test(start_paused = true)]
async fn final_answers_are_not_retried() {
    for code in [400, 403, 404, 409, 422] {
        for (result, sent, took) in attempts(move || Reply::Status(code, None), 9).await {
            assert!(result.is_err());
            assert_eq!((sent, took), (1, Duration::ZERO), "{code}");
        }
    }
    let [(deleted, sent, _), (applied, tries, _)] = attempts(|| Reply::Status(500, None), 1).await;
    assert!(deleted.is_ok());
    assert!(matches!(applied, Err(WriteError::Refused { status: 500, .. })), "{applied:?}");
    assert_eq!((sent, tries), (2, 1));
}

/// Found by the simulation: a delete without an answer was retried when its pod had become Ready.
#[tokio::test(start_paused = true)]
async fn the_delete_of_a_pod_is_not_retried() {
    let replies: [fn() -> Reply; 4] = [
        || Reply::Status(429, Some("1")),
        || Reply::Status(503, None),
        || Reply::Fails(ErrorKind::ConnectionReset),
        || Reply::Silence,
    ];
    for reply in replies {
        let (cluster, log) = server(move |seen| seen.is(PODS).then(reply));
        let lock = locked(&cluster, Hand::default().clock()).await;
        let deleted = lock.writer().delete_pod(&"team".into(), &"x".into(), &"u".into()).await;
        assert!(deleted.is_err());
        assert_eq!(count(&log, PODS), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_lock_is_checked_before_each_attempt() {
    let hand = Hand::default();
    let stops = hand.clone();
    let (cluster, log) = server(move |seen| {
        // The process is stopped for a while, right after the refusal.
        seen.is(REVISIONS).then(|| {
            stops.set(12);
            Reply::Status(429, None)
        })
    });
    let lock = locked(&cluster, hand.clock()).await;
    let deleted = lock.writer().delete_revision(&"team".into(), "x", &"u".into()).await;
    let error = deleted.unwrap_err();
    assert!(matches!(error, WriteError::Unlocked { .. }), "{error:?}");
    assert_eq!(count(&log, REVISIONS), 1);
    assert!(!lock.is_fresh());
}

#[tokio::test(start_paused = true)]
async fn requests_in_flight_end_with_the_lock() {
    for (late, lost) in [(60, false), (0, true)] {
        let hand = Hand::default();
        let (cluster, log) = server(|seen| seen.is(REVISIONS).then_some(Reply::Silence));
        let lock = locked(&cluster, hand.clock()).await;
        let (writer, start) = (lock.writer(), Instant::now());
        let namespace = "team".into();
        let uid = "u".into();
        let delete = writer.delete_revision(&namespace, "x", &uid);
        let meanwhile = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            hand.set(late);
            if lost {
                cluster.unlock(&agent()).await.unwrap();
            }
        };
        let (deleted, ()) = futures::join!(delete, meanwhile);
        assert_eq!(
            deleted.unwrap_err().to_string(),
            "delete controllerrevisions.apps team/x: the outcome is unknown: \
             the lock was lost before the server answered"
        );
        assert_eq!(count(&log, REVISIONS), 1);
        // The run that lost its lock notices it at the next renewal.
        let limit = if lost { 5 } else { 1 };
        assert!(start.elapsed() <= Duration::from_secs(limit), "{:?}", start.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_lock_ends_the_delay_before_a_retry() {
    let (cluster, _) = server(|seen| seen.is(REVISIONS).then_some(Reply::Status(429, Some("25"))));
    let lock = locked(&cluster, Hand::default().clock()).await;
    let (writer, start) = (lock.writer(), Instant::now());
    cluster.unlock(&agent()).await.unwrap();
    let deleted = writer.delete_revision(&"team".into(), "x", &"u".into()).await;
    assert!(matches!(deleted, Err(WriteError::Unlocked { .. })), "{deleted:?}");
    assert!(start.elapsed() <= Duration::from_secs(6), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn at_most_sixteen_requests_are_in_flight() {
    let (cluster, log) = server(|seen| seen.is(PODS).then_some(Reply::Silence));
    let lock = locked(&cluster, Hand::default().clock()).await;
    let mut deletes = tokio::task::JoinSet::new();
    for number in 0..40 {
        let writer = lock.writer();
        deletes.spawn(async move {
            writer.delete_pod(&"team".into(), &format!("x-{number}").into(), &"u".into()).await
        });
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(count(&log, PODS), 16);
    // Releasing the lock waits for them, and sends no others.
    lock.release().await.unwrap();
    assert_eq!(count(&log, PODS), 16);
}
