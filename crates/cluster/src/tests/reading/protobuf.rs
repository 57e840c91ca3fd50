//! Lists of nodes and pods as protobuf: what is asked for, and pages that are in flight together.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::channel::oneshot;
use http::header::{ACCEPT, CONTENT_TYPE};
use http_body::Frame;

use super::super::*;
use crate::decode::protobuf::tests::schema::{NODE, bytes, encode, integer};
use crate::decode::protobuf::tests::{answer, page};
use crate::{Error, Kind};

/// The body of an answer: bytes that are there, and bytes that come later.
type Bytes = <Body as http_body::Body>::Data;

struct Slow {
    ready: VecDeque<Bytes>,
    later: Option<(oneshot::Receiver<()>, Bytes)>,
}

impl From<Vec<u8>> for Slow {
    fn from(bytes: Vec<u8>) -> Self {
        Self { ready: [bytes.into()].into(), later: None }
    }
}

impl http_body::Body for Slow {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(bytes) = self.ready.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        let Some((signal, _)) = &mut self.later else { return Poll::Ready(None) };
        if Pin::new(signal).poll(context).is_pending() {
            return Poll::Pending;
        }
        let (_, bytes) = self.later.take().unwrap();
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }
}

/// An answer with the content type of protobuf, of which only the beginning comes before the
/// signal.
fn protobuf(
    code: u16,
    body: &[u8],
    later: Option<(usize, oneshot::Receiver<()>)>,
) -> Response<Slow> {
    let end = later.as_ref().map_or(body.len(), |(end, _)| *end);
    let body = Slow {
        ready: [body[..end].to_vec().into()].into(),
        later: later.map(|(_, signal)| (signal, body[end..].to_vec().into())),
    };
    Response::builder()
        .status(code)
        .header("Date", DATE)
        .header(CONTENT_TYPE, "application/vnd.kubernetes.protobuf")
        .body(body)
        .unwrap()
}

/// Requests and the values of their header `Accept`.
type Asked = Arc<Mutex<Vec<(String, String)>>>;

/// A cluster whose server answers lists of nodes by `answer`, and all others as usual.
fn cluster(
    mut answer: impl FnMut(&str) -> Response<Slow> + Send + 'static,
) -> (LiveCluster, Asked) {
    let (service, mut handle) = mock::pair::<Request<Body>, Response<Slow>>();
    let asked = Asked::default();
    let seen = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Some((request, respond)) = handle.next_request().await {
            let uri = request.uri().to_string();
            let accept = request.headers()[ACCEPT].to_str().unwrap().to_owned();
            seen.lock().unwrap().push((uri.clone(), accept));
            let json = |body: String| Response::new(body.into_bytes().into());
            respond.send_response(match usual(&uri) {
                _ if uri.starts_with("/api/v1/nodes") => answer(&uri),
                Some(Answer::Body(body)) => json(body),
                _ => json(r#"{"items":[]}"#.to_owned()),
            });
        }
    });
    let requests = Requests::new(Client::new(service, "d"), Plugin::none(), "https://t".into());
    (LiveCluster::new(requests, None, "team".into()), asked)
}

fn nodes_page(next: &str, names: &[&str]) -> Vec<u8> {
    let items = names.iter().map(|name| encode(NODE, &node(name)));
    page(Kind::Node, next, &items.collect::<Vec<_>>())
}

async fn node_names(cluster: LiveCluster) -> Result<Vec<String>, Error> {
    let snapshot = cluster.snapshot(&namespaces(&["a"]), now()).await?;
    Ok(snapshot.nodes.iter().map(|node| node.name.to_string()).collect())
}

#[tokio::test]
async fn nodes_and_pods_are_asked_for_as_protobuf() {
    let (cluster, asked) = cluster(|_| protobuf(200, &nodes_page("", &["a"]), None));
    assert_eq!(node_names(cluster).await.unwrap(), ["a"]);
    for (uri, accept) in asked.lock().unwrap().iter() {
        let is_many = uri.contains("/nodes?") || uri.contains("/pods?");
        let both = "application/vnd.kubernetes.protobuf, application/json";
        assert_eq!(accept, if is_many { both } else { "application/json" }, "{uri}");
    }
}

#[tokio::test]
async fn a_recording_is_read_as_json() {
    let json = r#"{"items":[{"metadata":{"name":"a","uid":"u"}}]}"#;
    let (cluster, asked) = cluster(|_| Response::new(json.as_bytes().to_vec().into()));
    let recorded = cluster.record(&namespaces(&["a"]), None, now()).await.unwrap();
    assert!(recorded.counts().contains(&(Kind::Node, 1)));
    assert!(asked.lock().unwrap().iter().all(|(_, accept)| accept == "application/json"));
}

#[tokio::test]
async fn protobuf_that_was_not_asked_for_is_an_error() {
    let (cluster, _) = cluster(|_| protobuf(200, &nodes_page("", &["a"]), None));
    let error = cluster.record(&namespaces(&["a"]), None, now()).await.unwrap_err();
    let want = "https://t: Node (item 1 of its list): is protobuf instead of JSON";
    assert_eq!(error.to_string(), want);
}

#[tokio::test]
async fn the_next_page_is_asked_for_when_the_beginning_of_a_page_has_come() {
    let (signal, third_was_asked) = oneshot::channel();
    let (mut signal, mut third_was_asked) = (Some(signal), Some(third_was_asked));
    let (cluster, asked) = cluster(move |uri| match uri {
        "/api/v1/nodes?limit=500" => protobuf(200, &nodes_page("x", &["a"]), None),
        "/api/v1/nodes?limit=500&continue=x" => {
            // The rest of it comes only when the third page was asked for.
            let later = third_was_asked.take().map(|signal| (60, signal));
            protobuf(200, &nodes_page("y", &["b", "c"]), later)
        }
        _ => {
            signal.take().unwrap().send(()).unwrap();
            protobuf(200, &nodes_page("", &["d"]), None)
        }
    });
    assert_eq!(node_names(cluster).await.unwrap(), ["a", "b", "c", "d"]);
    assert_eq!(asked.lock().unwrap().iter().filter(|(uri, _)| uri.contains("/nodes")).count(), 3);
}

/// A second attempt at the first page may get another version of the list.
#[tokio::test(start_paused = true)]
async fn the_token_of_an_incomplete_first_page_is_not_used() {
    let mut pages = [nodes_page("old", &["a"]), nodes_page("new", &["a"])].into_iter();
    let mut is_first = true;
    let (cluster, asked) = cluster(move |uri| {
        if uri != "/api/v1/nodes?limit=500" {
            return protobuf(200, &nodes_page("", &["b"]), None);
        }
        let page = pages.next().unwrap();
        let end = if std::mem::take(&mut is_first) { page.len() - 10 } else { page.len() };
        protobuf(200, &page[..end], None)
    });
    assert_eq!(node_names(cluster).await.unwrap(), ["a", "b"]);
    let asked = asked.lock().unwrap();
    let nodes: Vec<&str> =
        asked.iter().map(|(uri, _)| uri.as_str()).filter(|uri| uri.contains("/nodes")).collect();
    let first = "/api/v1/nodes?limit=500";
    assert_eq!(nodes, [first, first, "/api/v1/nodes?limit=500&continue=new"]);
}

#[tokio::test(start_paused = true)]
async fn a_page_without_its_end_is_fetched_again() {
    let whole = nodes_page("", &["a"]);
    for end in [0, 3, 4, 10, 30, whole.len() / 2, whole.len() - 5] {
        let (mut pages, whole) = ([end, whole.len()].into_iter(), whole.clone());
        let (cluster, asked) =
            cluster(move |_| protobuf(200, &whole[..pages.next().unwrap()], None));
        assert_eq!(node_names(cluster).await.unwrap(), ["a"], "{end}");
        let asked = asked.lock().unwrap();
        assert_eq!(asked.iter().filter(|(uri, _)| uri.contains("/nodes")).count(), 2, "{end}");
    }
}

/// A page with a node, and then a node without a name.
fn invalid_page() -> Vec<u8> {
    page(Kind::Node, "", &[encode(NODE, &node("b")), Vec::new()])
}

#[tokio::test]
async fn an_invalid_object_has_its_place_in_the_list() {
    let (cluster, _) = cluster(|uri| match uri {
        "/api/v1/nodes?limit=500" => protobuf(200, &nodes_page("x", &["a"]), None),
        _ => protobuf(200, &invalid_page(), None),
    });
    let error = node_names(cluster).await.unwrap_err().to_string();
    assert_eq!(error, "https://t: Node (item 3 of its list): metadata.name: is missing");
}

/// What an incomplete page has is never judged.
#[tokio::test(start_paused = true)]
async fn a_page_that_is_cut_after_an_invalid_object_is_fetched_again() {
    let mut is_first = true;
    let (cluster, _) = cluster(move |_| {
        let invalid = invalid_page();
        if std::mem::take(&mut is_first) {
            return protobuf(200, &invalid[..invalid.len() - 5], None);
        }
        protobuf(200, &nodes_page("", &["a"]), None)
    });
    assert_eq!(node_names(cluster).await.unwrap(), ["a"]);
}

/// A `Status` with this code.
fn status(code: u64) -> Vec<u8> {
    let mut status = Vec::new();
    for (number, text) in [(2, "Failure"), (3, "no way"), (4, "Because")] {
        bytes(&mut status, number, text.as_bytes());
    }
    integer(&mut status, 6, code);
    answer("v1", "Status", &status)
}

#[tokio::test]
async fn refusals_are_read_as_protobuf() {
    let (refusing, _) = cluster(|_| protobuf(422, &status(422), None));
    let error = node_names(refusing).await.unwrap_err().to_string();
    assert_eq!(error, "the API server https://t answered GET /api/v1/nodes with 422: no way");
    let (forbidding, _) = cluster(|_| protobuf(403, &status(403), None));
    match node_names(forbidding).await.unwrap_err() {
        Error::Forbidden { message, .. } => assert_eq!(message, "no way"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_list_that_expires_in_the_middle_is_started_again() {
    let mut expires = true;
    let (cluster, asked) = cluster(move |uri| match uri {
        "/api/v1/nodes?limit=500" => protobuf(200, &nodes_page("x", &["a"]), None),
        _ if std::mem::take(&mut expires) => protobuf(410, &status(410), None),
        _ => protobuf(200, &nodes_page("", &["b"]), None),
    });
    assert_eq!(node_names(cluster).await.unwrap(), ["a", "b"]);
    assert_eq!(asked.lock().unwrap().iter().filter(|(uri, _)| uri.contains("/nodes")).count(), 4);
}

#[tokio::test(start_paused = true)]
async fn only_so_many_pages_are_in_flight() {
    for limit in [1, 3] {
        let (service, mut handle) = mock::pair::<Request<Body>, Response<Slow>>();
        let most = Arc::new(Mutex::new((0, 0)));
        let counted = Arc::clone(&most);
        tokio::spawn(async move {
            while let Some((request, respond)) = handle.next_request().await {
                let is_page = request.uri().path() != "/version";
                let counted = Arc::clone(&counted);
                tokio::spawn(async move {
                    if is_page {
                        let mut counted = counted.lock().unwrap();
                        counted.0 += 1;
                        counted.1 = counted.0.max(counted.1);
                    }
                    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                    if is_page {
                        counted.lock().unwrap().0 -= 1;
                    }
                    let body = r#"{"items":[],"gitVersion":"v1.36.3"}"#;
                    respond.send_response(Response::new(body.as_bytes().to_vec().into()));
                });
            }
        });
        let requests = Requests::new(Client::new(service, "d"), Plugin::none(), "https://t".into());
        let requests = requests.with_concurrency(NonZeroUsize::new(limit).unwrap());
        let cluster = LiveCluster::new(requests, None, "team".into());
        cluster.snapshot(&namespaces(&["a", "b"]), now()).await.unwrap();
        assert_eq!(most.lock().unwrap().1, limit);
    }
}
