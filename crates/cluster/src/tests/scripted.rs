//! A scripted server for all methods, whose answers may be endless streams.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures::{FutureExt as _, Stream as _};
use http::{Request, Response};
use http_body::{Body as _, Frame};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::Instant;
use tower_test::mock;

use super::{DATE, refusal};
use crate::failure::Plugin;
use crate::request::Requests;
use crate::{LiveCluster, WritableCluster};

type Bytes = <Body as http_body::Body>::Data;

/// A request received by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// The method, path and query.
    pub(super) line: String,
    pub(super) media_type: String,
    pub(super) body: String,
}

impl Seen {
    pub(super) fn is(&self, beginning: &str) -> bool {
        self.line.starts_with(beginning)
    }
}

/// The server's answer.
pub(super) enum Reply {
    Json(Value),
    Text(&'static str),
    Status(u16, Option<&'static str>),
    /// A `Status` with this code.
    Refusal(u16, Value),
    Fails(std::io::ErrorKind),
    Silence,
    /// A stream of the text sent through the other end, until that is dropped.
    Stream(UnboundedReceiver<String>),
}

/// The two ends of a streamed answer.
pub(super) fn stream() -> (UnboundedSender<String>, Reply) {
    let (sender, receiver) = unbounded();
    (sender, Reply::Stream(receiver))
}

pub(super) type Log = Arc<Mutex<Vec<Seen>>>;

/// The number of requests that begin with `beginning`.
pub(super) fn count(log: &Log, beginning: &str) -> usize {
    log.lock().unwrap().iter().filter(|seen| seen.is(beginning)).count()
}

/// A cluster whose server answers by `answer`. The server stores leases itself, unless `answer`
/// handles them.
pub(super) fn server(
    mut answer: impl FnMut(&Seen) -> Option<Reply> + Send + 'static,
) -> (WritableCluster, Log) {
    let (service, mut handle) = mock::pair::<Request<Body>, Response<Answer>>();
    let client = Client::new(service, "default");
    let log = Log::default();
    let seen = Arc::clone(&log);
    let start = Instant::now();
    tokio::spawn(async move {
        let (mut silent, mut leases) = (Vec::new(), Leases::default());
        while let Some((request, respond)) = handle.next_request().await {
            let request = read(request);
            seen.lock().unwrap().push(request.clone());
            let reply = answer(&request).unwrap_or_else(|| leases.reply(&request));
            match reply {
                Reply::Json(json) => {
                    respond.send_response(good(start, Answer::whole(&json.to_string())));
                }
                Reply::Text(text) => respond.send_response(good(start, Answer::whole(text))),
                Reply::Status(code, retry_after) => {
                    let (head, body) = refusal(code, retry_after).into_parts();
                    respond.send_response(Response::from_parts(head, Answer::of(body)));
                }
                Reply::Refusal(code, status) => {
                    let answer = Answer::whole(&status.to_string());
                    respond.send_response(Response::builder().status(code).body(answer).unwrap());
                }
                Reply::Fails(kind) => respond.send_error(std::io::Error::new(kind, "it failed")),
                Reply::Silence => silent.push(respond),
                Reply::Stream(receiver) => {
                    let answer = Answer { ready: VecDeque::new(), later: Some(receiver) };
                    respond.send_response(good(start, answer));
                }
            }
        }
    });
    let requests = Requests::new(client, Plugin::none(), "https://test:6443".into());
    let live = LiveCluster::new(requests, Some("prod".to_owned()), "team".into());
    (live.writable(), log)
}

fn read(request: Request<Body>) -> Seen {
    let (head, body) = request.into_parts();
    // Our request bodies are available at once.
    let body = body.collect_bytes().now_or_never().unwrap().unwrap();
    let media_type = head.headers.get("content-type").map(|it| it.to_str().unwrap().to_owned());
    Seen {
        line: format!("{} {}", head.method, head.uri),
        media_type: media_type.unwrap_or_default(),
        body: String::from_utf8(body.into()).unwrap(),
    }
}

/// A 2xx answer. The server's clock follows the test's time.
fn good(start: Instant, answer: Answer) -> Response<Answer> {
    let parser = jiff::fmt::rfc2822::DateTimeParser::new();
    let now = parser.parse_timestamp(DATE).unwrap() + start.elapsed();
    let date = jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&now);
    Response::builder().header("Date", date.unwrap()).body(answer).unwrap()
}

/// The stored lease: every write creates a version, and writes to old versions are rejected.
#[derive(Default)]
struct Leases {
    lease: Option<Value>,
    version: u32,
}

impl Leases {
    fn reply(&mut self, seen: &Seen) -> Reply {
        let conflict = || Reply::Refusal(409, json!({"reason": "Conflict", "message": "changed"}));
        let (method, _) = seen.line.split_once(' ').unwrap();
        match (method, &mut self.lease) {
            ("GET", Some(lease)) => Reply::Json(lease.clone()),
            ("POST", None) => {
                let mut lease: Value = serde_json::from_str(&seen.body).unwrap();
                self.version += 1;
                lease["metadata"]["resourceVersion"] = self.version.to_string().into();
                self.lease = Some(lease.clone());
                Reply::Json(lease)
            }
            ("PATCH", Some(lease)) => {
                let patch: Value = serde_json::from_str(&seen.body).unwrap();
                let named = &patch["metadata"]["resourceVersion"];
                if !named.is_null() && *named != lease["metadata"]["resourceVersion"] {
                    return conflict();
                }
                merge(lease, &patch);
                self.version += 1;
                lease["metadata"]["resourceVersion"] = self.version.to_string().into();
                Reply::Json(lease.clone())
            }
            ("POST", Some(_)) => {
                Reply::Refusal(409, json!({"reason": "AlreadyExists", "message": ""}))
            }
            _ => Reply::Status(404, None),
        }
    }
}

/// Applies a JSON merge patch (RFC 7386).
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut target[key], value);
        }
    }
}

/// The body of an answer: the text so far, and the stream of the rest.
pub(super) struct Answer {
    ready: VecDeque<Bytes>,
    later: Option<UnboundedReceiver<String>>,
}

impl Answer {
    fn whole(text: &str) -> Self {
        Self { ready: VecDeque::from([text.as_bytes().to_vec().into()]), later: None }
    }

    fn of(body: Body) -> Self {
        let bytes = body.collect_bytes().now_or_never().unwrap().unwrap();
        Self { ready: VecDeque::from([bytes]), later: None }
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(bytes) = self.ready.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        let Some(later) = &mut self.later else { return Poll::Ready(None) };
        let next = Pin::new(later).poll_next(context);
        next.map(|text| text.map(|text| Ok(Frame::data(text.into_bytes().into()))))
    }
}

#[test]
fn an_answer_is_read_completely() {
    let text = Body::from(b"text".to_vec());
    assert!(!text.is_end_stream() && !Answer::of(text).ready.is_empty());
}
