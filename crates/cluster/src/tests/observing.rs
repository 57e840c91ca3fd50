//! The view of an observer when its watches end in all possible ways.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::channel::mpsc::UnboundedSender;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::scripted::{Log, Reply, Seen, count, server, stream};
use super::writing::agent;
use crate::{Clock, Error, Observer, WatchedDaemonSet, WritableCluster};
use daemonset::model::{
    LabelSelector, ManagedBy, Neighbour, NeighbourQuery, Neighbours, PodReadiness,
};

const NODE_LIST: &str = "GET /api/v1/nodes?limit=500";
const NODE_WATCH: &str = "GET /api/v1/nodes?watch=true&allowWatchBookmarks=true&resourceVersion=";

/// The server's ends of the watches by path, the newest last.
#[derive(Clone, Default)]
struct Watches(Arc<Mutex<BTreeMap<String, Vec<UnboundedSender<String>>>>>);

impl Watches {
    fn open(&self, seen: &Seen) -> Reply {
        let (sender, reply) = stream();
        let path = seen.line.split('?').next().unwrap().to_owned();
        self.0.lock().unwrap().entry(path).or_default().push(sender);
        reply
    }

    /// Sends lines through the newest watch of nodes.
    fn nodes(&self, text: &str) {
        let watches = self.0.lock().unwrap();
        watches["GET /api/v1/nodes"].last().unwrap().unbounded_send(text.to_owned()).unwrap();
    }

    /// Sends a bookmark through the newest watch of each resource.
    fn bookmark(&self) {
        let text = event("BOOKMARK", &json!({"metadata": {"resourceVersion": "11"}}));
        for watches in self.0.lock().unwrap().values() {
            watches.last().unwrap().unbounded_send(text.clone()).unwrap();
        }
    }

    fn cut(&self) {
        self.0.lock().unwrap().clear();
    }
}

fn is_watch(seen: &Seen) -> bool {
    seen.line.contains("watch=true")
}

fn node(name: &str, version: u32, disk: &str) -> Value {
    json!({
        "metadata": {
            "name": name, "uid": name, "resourceVersion": version.to_string(),
            "labels": {"disk": disk},
        },
    })
}

fn event(kind: &str, object: &Value) -> String {
    format!("{}\n", json!({"type": kind, "object": object}))
}

fn list(version: u32, items: &[Value]) -> Reply {
    Reply::Json(json!({"metadata": {"resourceVersion": version.to_string()}, "items": items}))
}

/// A cluster with the nodes `a` and `b` at version 10. `first` may override an answer.
fn observed(
    mut first: impl FnMut(&Seen) -> Option<Reply> + Send + 'static,
) -> (WritableCluster, Log, Watches) {
    let watches = Watches::default();
    let opened = watches.clone();
    let (cluster, log) = server(move |seen| {
        first(seen).or_else(|| {
            Some(match seen.is(NODE_LIST) {
                _ if is_watch(seen) => opened.open(seen),
                true => list(10, &[node("b", 4, "ssd"), node("a", 3, "hdd")]),
                false => list(10, &[]),
            })
        })
    });
    (cluster, log, watches)
}

async fn observe(cluster: &WritableCluster) -> Result<Observer, Error> {
    observe_among(cluster, Vec::new()).await
}

async fn observe_among(
    cluster: &WritableCluster,
    neighbours: Vec<NeighbourQuery>,
) -> Result<Observer, Error> {
    let selector = serde_json::from_value(json!({"matchLabels": {"app": "agent"}})).unwrap();
    let managed_by = ManagedBy::DaemonSetController;
    let target = WatchedDaemonSet {
        key: agent(),
        managed_by,
        selector,
        events: true,
        pullers: false,
        neighbours,
    };
    let start = Instant::now();
    let clock = Clock::new(move || start.elapsed());
    cluster.live().observe(&target, clock, Timestamp::UNIX_EPOCH).await
}

/// The names of the nodes with their `disk` labels.
fn nodes(observer: &Observer) -> String {
    observer.look(|view| {
        let nodes = view.snapshot.nodes.iter();
        let shown = nodes.map(|it| format!("{}={}", it.name, it.labels.get("disk").unwrap()));
        shown.collect::<Vec<_>>().join(" ")
    })
}

/// Lets the tasks run while the test's time passes.
async fn a_while(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn each_resource_is_listed_and_watched_once_and_narrowly() {
    let (cluster, log, _) = observed(|_| None);
    let observer = observe(&cluster).await.unwrap();
    let mut lines: Vec<_> = log.lock().unwrap().iter().map(|seen| seen.line.clone()).collect();
    lines.sort();
    let watched = "watch=true&allowWatchBookmarks=true";
    assert_eq!(
        lines,
        [
            "GET /api/v1/namespaces/team/events?watch=true&allowWatchBookmarks=true&fieldSelector=\
             involvedObject.kind%3DDaemonSet%2CinvolvedObject.name%3Dagent%2Ctype%3DWarning"
                .to_owned(),
            "GET /api/v1/namespaces/team/pods?limit=500&labelSelector=app%3Dagent".to_owned(),
            format!("GET /api/v1/namespaces/team/pods?{watched}&resourceVersion=10&labelSelector=app%3Dagent"),
            NODE_LIST.to_owned(),
            format!("{NODE_WATCH}10"),
            "GET /apis/apps/v1/namespaces/team/controllerrevisions?limit=500&labelSelector=app%3Dagent".to_owned(),
            format!("GET /apis/apps/v1/namespaces/team/controllerrevisions?{watched}&resourceVersion=10&labelSelector=app%3Dagent"),
            "GET /apis/apps/v1/namespaces/team/daemonsets?limit=500&fieldSelector=metadata.name%3Dagent".to_owned(),
            format!("GET /apis/apps/v1/namespaces/team/daemonsets?{watched}&resourceVersion=10&fieldSelector=metadata.name%3Dagent"),
        ]
    );
    assert_eq!(nodes(&observer), "a=hdd b=ssd");
    assert!(observer.is_current());
    observer.look(|view| {
        assert_eq!(view.snapshot.observed_at.to_string(), "2026-03-04T05:06:07Z");
        assert!(view.snapshot.coverage.covers(&"team".into()));
        assert!(!view.snapshot.coverage.covers(&"other".into()));
    });
    drop(observer);
    let (sent, moment) = (log.lock().unwrap().len(), Duration::from_mins(10));
    tokio::time::sleep(moment).await;
    assert_eq!(log.lock().unwrap().len(), sent, "a dropped observer sends no requests");
}

const OF_GPUS: &str = "GET /api/v1/pods?limit=500&fieldSelector=\
                       status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed";

fn gpu_pod(name: &str, ready: &str, version: u32) -> Value {
    json!({
        "metadata": {"namespace": "ml", "name": name, "uid": name, "resourceVersion": version.to_string()},
        "spec": {"nodeName": "a", "containers": [{"resources": {"requests": {"gpu": "1"}}}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]},
    })
}

/// The names of the other pods of each query, with `-` for those that are not Ready.
fn others(observer: &Observer) -> String {
    let one = |pod: &Neighbour| match pod.readiness {
        PodReadiness::Ready { .. } => pod.name.to_string(),
        PodReadiness::NotReady { .. } => format!("-{}", pod.name),
    };
    let of = |all: &Neighbours| all.all().iter().map(one).collect::<Vec<_>>().join(" ");
    observer.look(|view| view.neighbours.iter().map(of).collect::<Vec<_>>().join(", "))
}

#[tokio::test(start_paused = true)]
async fn other_pods_are_listed_and_watched_once_for_each_selector() {
    let (cluster, log, watches) = observed(|seen| {
        let other = json!({"metadata": {"namespace": "ml", "name": "cpu", "uid": "x"}});
        seen.is(OF_GPUS).then(|| list(20, &[gpu_pod("b", "True", 1), other]))
    });
    let gpus = NeighbourQuery {
        selector: LabelSelector::default(),
        resources: Some(["gpu".to_owned()].into()),
    };
    let selector = serde_json::from_value(json!({"matchLabels": {"app": "dns"}})).unwrap();
    let dns = NeighbourQuery { selector, resources: None };
    let mut observer = observe_among(&cluster, vec![gpus, dns]).await.unwrap();
    assert_eq!(others(&observer), "b, ");
    let of_pods = |log: &Log| -> Vec<String> {
        let log = log.lock().unwrap();
        let lines = log.iter().map(|seen| seen.line.clone());
        lines.filter(|line| line.starts_with("GET /api/v1/pods?")).collect()
    };
    let watch = |version: u32, labels: &str| {
        format!(
            "GET /api/v1/pods?watch=true&allowWatchBookmarks=true&resourceVersion={version}{labels}\
             &fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed"
        )
    };
    let labels = "&labelSelector=app%3Ddns";
    let list_of_dns = OF_GPUS.replace("&field", &format!("{labels}&field"));
    let want = [OF_GPUS.to_owned(), list_of_dns, watch(20, ""), watch(10, labels)];
    assert_eq!(of_pods(&log), want);
    let send = |text: &str| {
        let all = watches.0.lock().unwrap();
        all["GET /api/v1/pods"][0].unbounded_send(text.to_owned()).unwrap();
    };
    let ended = |mut pod: Value| {
        pod["status"]["phase"] = "Succeeded".into();
        pod
    };
    for (what, text, want, wakes) in [
        ("a new one", event("ADDED", &gpu_pod("c", "True", 21)), "b c, ", true),
        ("it becomes unready", event("MODIFIED", &gpu_pod("c", "False", 22)), "b -c, ", true),
        ("nothing", event("MODIFIED", &gpu_pod("c", "False", 23)), "b -c, ", false),
        ("it ends", event("MODIFIED", &ended(gpu_pod("c", "False", 24))), "b, ", true),
        ("it is deleted", event("DELETED", &gpu_pod("b", "True", 25)), ", ", true),
    ] {
        send(&text);
        let woken = tokio::time::timeout(Duration::from_secs(1), observer.changed()).await.is_ok();
        assert_eq!((others(&observer).as_str(), woken), (want, wakes), "{what}");
    }
    // The version is too old: all pods are listed again, and the watch begins anew.
    send(&event("ERROR", &json!({"code": 410, "message": "too old"})));
    a_while(60).await;
    assert_eq!((others(&observer).as_str(), count(&log, OF_GPUS)), ("b, ", 2));
    assert!(observer.is_current());
}

#[tokio::test(start_paused = true)]
async fn changes_notify_and_heartbeats_do_not() {
    let (cluster, _, watches) = observed(|_| None);
    let mut observer = observe(&cluster).await.unwrap();
    for (what, text, want, wakes) in [
        ("a new one", event("ADDED", &node("aa", 11, "ssd")), "a=hdd aa=ssd b=ssd", true),
        ("a change", event("MODIFIED", &node("a", 12, "ssd")), "a=ssd aa=ssd b=ssd", true),
        ("a heartbeat", event("MODIFIED", &node("a", 13, "ssd")), "a=ssd aa=ssd b=ssd", false),
        (
            "a bookmark",
            event("BOOKMARK", &json!({"metadata": {"resourceVersion": "14"}})),
            "a=ssd aa=ssd b=ssd",
            false,
        ),
        ("a delete", event("DELETED", &node("b", 15, "ssd")), "a=ssd aa=ssd", true),
        ("an unknown node", event("DELETED", &node("z", 16, "ssd")), "a=ssd aa=ssd", false),
    ] {
        watches.nodes(&text);
        let woken = tokio::time::timeout(Duration::from_secs(1), observer.changed()).await.is_ok();
        assert_eq!((nodes(&observer).as_str(), woken), (want, wakes), "{what}");
    }
    assert!(observer.is_current());
}

#[tokio::test(start_paused = true)]
async fn a_watch_resumes_at_its_version() {
    let (cluster, log, watches) = observed(|_| None);
    let observer = observe(&cluster).await.unwrap();
    a_while(5).await;
    watches.nodes(&event("ADDED", &node("c", 11, "ssd")));
    // An incomplete line is ignored.
    watches.nodes(r#"{"type":"ADDED","object":{"metadata":{"name":"d","uid":"#);
    a_while(5).await;
    watches.cut();
    a_while(5).await;
    assert_eq!(nodes(&observer), "a=hdd b=ssd c=ssd");
    assert_eq!(count(&log, &format!("{NODE_WATCH}11")), 1);
    let bookmark = json!({"metadata": {"resourceVersion": "77"}});
    watches.nodes(&event("BOOKMARK", &bookmark));
    a_while(5).await;
    watches.cut();
    a_while(5).await;
    assert_eq!(count(&log, &format!("{NODE_WATCH}77")), 1);
    assert_eq!(count(&log, NODE_LIST), 1);
    assert!(observer.is_current());
}

#[tokio::test(start_paused = true)]
async fn objects_are_listed_again_when_changes_may_be_missed() {
    let undecodable = json!({"metadata": {"resourceVersion": "12"}, "spec": 7});
    let expired = json!({"code": 410, "message": "too old"});
    for (what, text) in [
        ("the version expired", event("ERROR", &expired)),
        ("a server error", event("ERROR", &json!({"code": 500}))),
        ("garbage", "<html>\n".to_owned()),
        ("an invalid node", event("ADDED", &undecodable)),
        ("an unknown event type", event("SHOUTED", &node("c", 12, "ssd"))),
    ] {
        let mut lists = 0;
        let (cluster, log, watches) = observed(move |seen| {
            lists += u32::from(seen.is(NODE_LIST));
            (seen.is(NODE_LIST) && lists == 2).then(|| list(20, &[node("c", 12, "ssd")]))
        });
        let observer = observe(&cluster).await.unwrap();
        a_while(5).await;
        watches.nodes(&text);
        a_while(5).await;
        assert_eq!(nodes(&observer), "c=ssd", "{what}");
        assert_eq!(count(&log, &format!("{NODE_WATCH}20")), 1, "{what}");
        assert!(observer.is_current(), "{what}: {:?}", observer.health());
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_reopened() {
    let (cluster, log, watches) = observed(|_| None);
    let observer = observe(&cluster).await.unwrap();
    a_while(60).await;
    watches.nodes(&event("BOOKMARK", &json!({"metadata": {"resourceVersion": "11"}})));
    a_while(30).await;
    assert_eq!(count(&log, &format!("{NODE_WATCH}11")), 0, "not silent for long enough");
    a_while(60).await;
    assert_eq!(count(&log, &format!("{NODE_WATCH}11")), 1);
    assert!(observer.is_current());
}

/// Found by seed 415545: the request for the next watch had no answer yet, and a pod counted as
/// available by the time that passed.
#[tokio::test(start_paused = true)]
async fn while_a_watch_is_closed_the_view_is_not_current() {
    let hangs = Arc::new(Mutex::new(false));
    let is_hanging = Arc::clone(&hangs);
    let (cluster, _, watches) = observed(move |seen| {
        (*is_hanging.lock().unwrap() && is_watch(seen)).then_some(Reply::Silence)
    });
    let observer = observe(&cluster).await.unwrap();
    a_while(5).await;
    watches.bookmark();
    watches.cut();
    a_while(5).await;
    assert!(observer.is_current(), "they are open again at once");
    watches.bookmark();
    *hangs.lock().unwrap() = true;
    watches.cut();
    a_while(1).await;
    assert_eq!(observer.failure(), None, "the request has no answer yet");
    assert!(!observer.is_current());
    *hangs.lock().unwrap() = false;
    a_while(60).await;
    assert!(observer.is_current());
}

/// A server sends the head of its answer before the first event.
#[tokio::test(start_paused = true)]
async fn a_watch_that_is_open_again_is_not_current_before_it_has_shown_what_was_missed() {
    let (cluster, log, watches) = observed(|_| None);
    let observer = observe(&cluster).await.unwrap();
    a_while(5).await;
    watches.bookmark();
    watches.cut();
    let before = count(&log, NODE_WATCH);
    for _ in 0..1_000 {
        if count(&log, NODE_WATCH) > before {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!((count(&log, NODE_WATCH), observer.failure()), (before + 1, None));
    assert!(!observer.is_current(), "the watch is open, and has shown nothing");
    watches.nodes(&event("DELETED", &node("b", 15, "ssd")));
    a_while(2).await;
    assert!(observer.is_current());
    assert_eq!(nodes(&observer), "a=hdd");
}

#[tokio::test(start_paused = true)]
async fn errors_are_reported_until_they_are_resolved() {
    let down = Arc::new(Mutex::new(false));
    let is_down = Arc::clone(&down);
    let (cluster, log, watches) = observed(move |seen| {
        let refused = *is_down.lock().unwrap() && is_watch(seen);
        refused.then_some(Reply::Status(503, None))
    });
    let mut observer = observe(&cluster).await.unwrap();
    a_while(5).await;
    *down.lock().unwrap() = true;
    watches.cut();
    tokio::time::timeout(Duration::from_secs(5), observer.changed()).await.expect("reported");
    assert!(!observer.is_current());
    a_while(600).await;
    let asked = count(&log, NODE_WATCH);
    assert!((30..200).contains(&asked), "retried with delays: {asked}");
    let health = observer.health();
    assert!(health.iter().all(|it| it.failure.as_deref() == Some("503: no, 503")), "{health:?}");
    assert!(health.iter().all(|it| it.silent >= Duration::from_mins(10)), "{health:?}");
    *down.lock().unwrap() = false;
    a_while(30).await;
    assert!(observer.is_current());
    watches.nodes(&event("ADDED", &node("c", 11, "ssd")));
    a_while(1).await;
    assert_eq!(nodes(&observer), "a=hdd b=ssd c=ssd");
}

#[tokio::test(start_paused = true)]
async fn forbidden_watches_are_reported_at_once() {
    let (cluster, _, _) = observed(|seen| {
        let forbidden = is_watch(seen) && !seen.line.contains("/daemonsets");
        forbidden.then_some(Reply::Status(403, None))
    });
    let error = observe(&cluster).await.err().unwrap();
    assert_eq!(
        error.to_string(),
        "not permitted: watch nodes, watch controllerrevisions.apps in namespace team, \
         watch pods in namespace team, watch events in namespace team"
    );
    let (cluster, ..) = observed(|seen| (!is_watch(seen)).then_some(Reply::Status(403, None)));
    let error = observe(&cluster).await.err().unwrap();
    assert!(error.to_string().starts_with("not permitted: list nodes, list daemonsets"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn warnings_are_kept_by_name_and_sorted() {
    let (cluster, _, watches) = observed(|_| None);
    let observer = observe(&cluster).await.unwrap();
    let failed_create = |name: &str, count: u32, minute: u32| {
        event(
            "ADDED",
            &json!({
                "metadata": {"name": name, "resourceVersion": "9"},
                "involvedObject": {"uid": "u"}, "reason": "FailedCreate", "message": name,
                "count": count, "lastTimestamp": format!("2026-01-01T00:{minute:02}:00Z"),
            }),
        )
    };
    let all = [
        failed_create("b", 1, 5),
        failed_create("a", 1, 1),
        failed_create("b", 7, 9),
        failed_create("c", 1, 7),
    ];
    {
        let watches = watches.0.lock().unwrap();
        let events = watches["GET /api/v1/namespaces/team/events"].last().unwrap();
        events.unbounded_send(all.concat()).unwrap();
    }
    a_while(1).await;
    observer.look(|view| {
        let shown: Vec<_> =
            view.failed_creates.iter().map(|it| (it.event.as_str(), it.count)).collect();
        assert_eq!(shown, [("a", 1), ("c", 1), ("b", 7)]);
    });
}
