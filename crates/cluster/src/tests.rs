//! Tests with a real client and a fake server in this process: a test scripts the answers, counts
//! the requests, and controls the time.

mod approving;
mod locking;
mod observing;
mod reading;
mod recording;
mod reporting;
mod scripted;
mod writing;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use http::{Request, Response};
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower_test::mock;

use super::failure::Plugin;
use super::request::Requests;
use super::{LiveCluster, Scope};

/// The `Date` of all answers.
const DATE: &str = "Wed, 04 Mar 2026 05:06:07 GMT";

/// The local time.
fn now() -> Timestamp {
    "2001-01-01T00:00:00Z".parse().unwrap()
}

fn namespaces(names: &[&str]) -> Scope {
    Scope::Namespaces(names.iter().map(|name| (*name).into()).collect())
}

/// The server's answer to one request.
#[derive(Clone, Debug)]
enum Answer {
    Body(String),
    Status {
        code: u16,
        retry_after: Option<&'static str>,
    },
    /// The connection fails.
    Fails(io::ErrorKind),
    /// The server never answers.
    Silence,
}

impl Answer {
    fn status(code: u16) -> Self {
        Self::Status { code, retry_after: None }
    }

    fn list(items: &[Value]) -> Self {
        Self::page(items, "")
    }

    fn page(items: &[Value], next: &str) -> Self {
        Self::Body(json!({"metadata": {"continue": next}, "items": items}).to_string())
    }
}

/// The number of requests by path and query, sorted.
type Log = Arc<Mutex<BTreeMap<String, usize>>>;

/// A cluster whose server answers by `answer`, which receives the path and query, and the number
/// of the same requests before. The default answer (`None`) is an empty list.
fn cluster(
    mut answer: impl FnMut(&str, usize) -> Option<Answer> + Send + 'static,
) -> (LiveCluster, Log) {
    let (service, mut handle) = mock::pair::<Request<Body>, Response<Body>>();
    let client = Client::new(service, "default");
    let log = Log::default();
    let seen = Arc::clone(&log);
    tokio::spawn(async move {
        let mut silent = Vec::new();
        while let Some((request, respond)) = handle.next_request().await {
            assert_eq!(request.method(), "GET");
            let uri = request.uri().to_string();
            let before = {
                let mut seen = seen.lock().unwrap();
                let count = seen.entry(uri.clone()).or_default();
                *count += 1;
                *count - 1
            };
            match answer(&uri, before).or_else(|| usual(&uri)).unwrap_or(Answer::list(&[])) {
                Answer::Body(body) => respond.send_response(
                    Response::builder()
                        .header("Date", DATE)
                        .body(body.into_bytes().into())
                        .unwrap(),
                ),
                Answer::Status { code, retry_after } => {
                    respond.send_response(refusal(code, retry_after));
                }
                Answer::Fails(kind) => respond.send_error(io::Error::new(kind, "it failed")),
                Answer::Silence => silent.push(respond),
            }
        }
    });
    let requests = Requests::new(client, Plugin::none(), "https://test:6443".into());
    (LiveCluster::new(requests, Some("prod".to_owned()), "team".into()), log)
}

fn usual(uri: &str) -> Option<Answer> {
    match uri {
        "/version" => Some(Answer::Body(r#"{"gitVersion":"v1.36.3"}"#.to_owned())),
        "/api/v1/namespaces?limit=500" => Some(Answer::list(&[
            json!({"metadata": {"name": "kube-system", "uid": "cluster-uid"}}),
        ])),
        _ => None,
    }
}

fn refusal(code: u16, retry_after: Option<&str>) -> Response<Body> {
    let status = json!({"kind": "Status", "code": code, "message": format!("no, {code}")});
    let mut response = Response::builder().status(code).header("Date", DATE);
    if let Some(retry_after) = retry_after {
        response = response.header("Retry-After", retry_after);
    }
    response.body(status.to_string().into_bytes().into()).unwrap()
}

fn node(name: &str) -> Value {
    json!({"metadata": {"name": name, "uid": format!("uid-of-{name}")}})
}

/// The number of requests whose path and query begin with `path`.
fn count(log: &Log, path: &str) -> usize {
    log.lock().unwrap().iter().filter(|(uri, _)| uri.starts_with(path)).map(|(_, n)| n).sum()
}
