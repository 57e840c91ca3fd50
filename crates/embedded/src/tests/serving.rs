//! HTTP: faults, hooks, denials, and cut watches.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Request;
use kube::client::Body;
use serde_json::Value;
use tokio::time::Instant;

use super::{now, pod, server, store};
use crate::{Denial, Fault, Hook, Kind, Reason, Route, Seen, Server, Status, Store};

const PODS: &str = "/api/v1/namespaces/team/pods";

/// The status code and the message, if it is a failure.
async fn ask(server: &Server, method: &str, path: &str) -> Result<(u16, String), String> {
    let request = Request::builder().method(method).uri(path);
    let body: Body =
        if method == "POST" { pod("a").to_string().into_bytes().into() } else { Body::empty() };
    let answer = server.client().send(request.body(body).unwrap()).await;
    let answer = answer.map_err(|error| error.to_string())?;
    let code = answer.status().as_u16();
    let body = answer.into_body().collect_bytes().await.map_err(|error| error.to_string())?;
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    Ok((code, body["message"].as_str().unwrap_or_default().to_owned()))
}

/// A hook that applies one fault before or after each creation, and records the requests.
struct Script {
    before: Vec<Fault>,
    after: Vec<Fault>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Script {
    fn is_meant(request: &Seen) -> bool {
        matches!(&request.route, Route::Objects(it) if it.kind == Kind::Pod)
            && request.verb != "get"
    }
}

impl Hook for Script {
    fn before(&mut self, request: &Seen, _: &Store) -> Vec<Fault> {
        if Self::is_meant(request) { self.before.clone() } else { Vec::new() }
    }

    fn after(&mut self, request: &Seen, code: u16, store: &Store) -> Vec<Fault> {
        let Seen { number, verb, .. } = request;
        self.seen
            .lock()
            .unwrap()
            .push(format!("{number} {verb} {code} {}", store.count(Kind::Pod)));
        if Self::is_meant(request) { self.after.clone() } else { Vec::new() }
    }
}

#[tokio::test(start_paused = true)]
async fn faults_apply_before_or_after_the_request() {
    let refusal = || Fault::Answer(Status::new(Reason::TooManyRequests, "later").retry_after(3));
    let later = || Fault::Delay(Duration::from_secs(7));
    for (before, after, code, done, waited) in [
        (vec![], vec![], Some(201), 1, 0),
        (vec![refusal()], vec![], Some(429), 0, 0),
        (vec![], vec![refusal()], Some(429), 1, 0),
        (vec![Fault::Break], vec![], None, 0, 0),
        (vec![], vec![Fault::Break], None, 1, 0),
        (vec![later(), refusal()], vec![], Some(429), 0, 7),
        (vec![later()], vec![later()], Some(201), 1, 14),
    ] {
        let server = server(store());
        let seen = Arc::default();
        let what = format!("{before:?}, then {after:?}");
        server.set_hook(Some(Box::new(Script { before, after, seen: Arc::clone(&seen) })));
        let began = Instant::now();
        let answer = ask(&server, "POST", PODS).await;
        assert_eq!(answer.ok().map(|(code, _)| code), code, "{what}");
        assert_eq!(server.store().count(Kind::Pod), done, "{what}");
        assert_eq!(began.elapsed().as_secs(), waited, "{what}");
        assert_eq!(seen.lock().unwrap().len(), done, "{what}: only executed requests are seen");
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_never_answers() {
    let server = server(store());
    let hook = Script { before: vec![Fault::Silence], after: vec![], seen: Arc::default() };
    server.set_hook(Some(Box::new(hook)));
    let answer = tokio::time::timeout(Duration::from_hours(9), ask(&server, "POST", PODS)).await;
    assert!(answer.is_err());
    assert_eq!(server.store().count(Kind::Pod), 0);
}

#[tokio::test(start_paused = true)]
async fn a_watch_breaks_off_when_it_is_cut() {
    for cut in ["by a fault", "from outside"] {
        let server = server(store());
        if cut == "by a fault" {
            let before = vec![Fault::CutAfter(Duration::from_secs(5))];
            let hook = Script { before, after: vec![], seen: Arc::default() };
            server.set_hook(Some(Box::new(hook)));
        }
        let watched = server.clone();
        let path = format!("{PODS}?watch=1&resourceVersion={}", server.store().version());
        let watch = tokio::spawn(async move { ask(&watched, "GET", &path).await });
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(!watch.is_finished(), "{cut}");
        if cut == "from outside" {
            server.cut_watches();
        }
        assert!(watch.await.unwrap().is_err(), "{cut}");
    }
}

#[tokio::test(start_paused = true)]
async fn denied_requests_are_answered_as_by_rbac() {
    let server = server(store());
    let strings = |all: &[&str]| all.iter().map(ToString::to_string).collect();
    server.deny(vec![Denial {
        users: strings(&["dev"]),
        verbs: strings(&["create", "list"]),
        resources: strings(&["pods"]),
        namespaces: strings(&["team", ""]),
    }]);
    let dev = server.as_user("dev");
    for (who, method, path, want) in [
        (&server, "POST", PODS, (201, "")),
        (
            &dev,
            "POST",
            PODS,
            (
                403,
                "pods is forbidden: User \"dev\" cannot create resource \"pods\" in API group \"\" in the namespace \"team\"",
            ),
        ),
        (
            &dev,
            "GET",
            "/api/v1/pods",
            (
                403,
                "pods is forbidden: User \"dev\" cannot list resource \"pods\" in API group \"\" at the cluster scope",
            ),
        ),
        (&dev, "GET", "/api/v1/namespaces/team/pods/a", (200, "")),
        (&dev, "GET", "/api/v1/namespaces/kube-system/pods", (200, "")),
    ] {
        let (code, message) = ask(who, method, path).await.unwrap();
        assert_eq!((code, message.as_str()), want, "{method} {path}");
    }
}

#[tokio::test(start_paused = true)]
async fn unserved_paths_are_reported() {
    let server = server(store());
    for (method, path, code, word) in [
        ("GET", "/apis/batch/v1/jobs", 404, "could not find"),
        ("GET", "/api/v1/namespaces/team/pods/a/log", 404, "could not find"),
        ("GET", "/apis", 404, "could not find"),
        ("POST", "/api/v1/namespaces/team/pods/a/eviction", 404, "could not find"),
        ("DELETE", PODS, 501, "the deletion of collections"),
        ("DELETE", "/api/v1/namespaces/team", 501, "the deletion of Namespaces"),
        ("GET", "/api/v1/pods?resourceVersion=0", 200, ""),
        ("GET", "/api/v1/pods?resourceVersion=1", 501, "`resourceVersion`"),
        ("GET", "/api/v1/pods?labelSelector=a%3E1", 400, "`a>1` is not a label key"),
        ("OPTIONS", PODS, 405, "does not allow"),
        ("POST", "/api/v1/namespaces/team/pods/a", 405, "does not allow"),
        (
            "GET",
            "/api/v1/namespaces/team/pods?watch=1&sendInitialEvents=true",
            501,
            "sendInitialEvents",
        ),
    ] {
        let (got, message) = ask(&server, method, path).await.unwrap();
        assert_eq!(got, code, "{method} {path}: {message}");
        assert!(message.contains(word), "{method} {path}: {message}");
    }
}

#[test]
fn answers_are_dated_by_the_clusters_clock() {
    let server = Server::new(store(), now);
    assert_eq!(server.now(), now());
}
