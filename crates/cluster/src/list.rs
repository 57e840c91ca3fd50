//! Reads one list, page by page (upstream: `limit` and `continue`).
//!
//! The first page is read without a resource version, so it is consistent; the next pages have the
//! same resource version. When that version expires (410), the list starts again.
//!
//! A page has 500 objects. It is decoded on another thread while the next one is fetched, and
//! dropped after that; so at most two pages of a list are in memory. A snapshot reads the pages of
//! nodes, and for each selected namespace the pages of its pods, DaemonSets and revisions; in
//! addition one list of namespaces and the version. The number of DaemonSets does not matter.

use std::collections::HashSet;
use std::fmt::Display;
use std::panic;

use futures::channel::oneshot;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::task::JoinError;

use super::failure::{Failure, Refusal};
use super::request::{Call, Requests};
use super::{Error, Kind, Permission, Resource, Verb, uri};
use daemonset::model::NamespaceName;

/// How often a list that expired is started again.
const NEW_BEGINNINGS: u32 = 3;

/// The limit of pages of one list: far more objects than any cluster has.
const MOST_PAGES: usize = 20_000;
/// The longest `continue` token, in bytes; real ones have some hundred.
const LONGEST_TOKEN: usize = 64 << 10;

/// A list to read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct List {
    pub(super) kind: Kind,
    /// `None` is the whole cluster.
    pub(super) namespace: Option<NamespaceName>,
    /// The selectors; empty is all objects.
    pub(super) narrowed: Narrowed,
}

/// The selectors of a list or watch, which the server evaluates; empty selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Narrowed {
    /// `labelSelector`.
    pub(super) labels: String,
    /// `fieldSelector`.
    pub(super) fields: String,
}

impl Narrowed {
    /// The query parameters.
    pub(super) fn pairs(&self) -> [(&'static str, Option<&dyn Display>); 2] {
        [("labelSelector", &self.labels), ("fieldSelector", &self.fields)]
            .map(|(key, text)| (key, (!text.is_empty()).then_some(text as &dyn Display)))
    }
}

impl List {
    /// All objects of a kind.
    pub(super) fn all(kind: Kind, namespace: Option<NamespaceName>) -> Self {
        Self { kind, namespace, narrowed: Narrowed::default() }
    }

    /// The request for one page.
    fn call(&self, page_size: u32, token: Option<&str>) -> Call {
        let path = self.kind.path(self.namespace.as_ref());
        let limit: Option<&dyn Display> = Some(&page_size);
        let token = token.as_ref().map(|token| token as &dyn Display);
        let pairs = [("limit", limit), ("continue", token)];
        let uri = uri::with_query(path, pairs.into_iter().chain(self.narrowed.pairs()));
        Call::list(Resource::Of(self.kind), uri)
    }
}

/// Receives the objects of one list.
pub(super) trait Sink: Send + 'static {
    /// Adds one object; `index` is its place in the list, from 0.
    fn object(&mut self, kind: Kind, index: usize, json: &str) -> Result<(), Error>;

    /// Whether any of the objects is owned by a record.
    fn has_seen_record(&self) -> bool;

    /// Sets the resource version of the list, where a watch can continue. Called before any object.
    fn version(&mut self, _version: &str) {}
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(default)]
    metadata: PageMetadata,
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
struct PageMetadata {
    #[serde(rename = "continue")]
    next: Option<String>,
    #[serde(rename = "resourceVersion")]
    version: Option<String>,
}

/// Reads a whole list into a sink, `page_size` objects at a time; into a new sink when the list
/// starts again.
pub(super) async fn read<S: Sink>(
    requests: &Requests,
    list: &List,
    page_size: u32,
    sink: &impl Fn() -> S,
) -> Result<S, Error> {
    for _ in 0..=NEW_BEGINNINGS {
        match pages(requests, list, page_size, sink()).await {
            Ok(sink) => return Ok(sink),
            Err(Stopped::For(error)) => return Err(error),
            Err(Stopped::Expired) => {}
        }
    }
    Err(Error::Expired { kind: list.kind, attempts: NEW_BEGINNINGS + 1 })
}

/// Why a list was not read completely.
enum Stopped {
    Expired,
    For(Error),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::For(error)
    }
}

/// Reads the pages of a list. Each page is decoded on another thread while the next one is fetched,
/// so that at most two pages of a list are in memory.
async fn pages<S: Sink>(
    requests: &Requests,
    list: &List,
    page_size: u32,
    sink: S,
) -> Result<S, Stopped> {
    let path = list.kind.path(list.namespace.as_ref());
    let fetch = async |token: Option<&str>| {
        let call = list.call(page_size, token);
        let body = requests.send(&call).await;
        body.map_err(|failure| stopped(requests, list, failure, &call))
    };
    let mut tokens = HashSet::new();
    let mut taker = Taker { kind: list.kind, path, taken: 0, sink };
    let mut body = fetch(None).await?;
    loop {
        let (report_next, next) = oneshot::channel();
        let decoding = requests.decode(move || taker.take(&body, report_next));
        // If the page cannot be read, nothing is sent; the error comes from decoding.
        let Some(next) = next.await.unwrap_or_default() else {
            return Ok(finished(decoding.await)?.sink);
        };
        let is_too_long = tokens.len() >= MOST_PAGES || next.len() > LONGEST_TOKEN;
        if is_too_long || !tokens.insert(next.clone()) {
            return Err(Error::EndlessList { kind: list.kind }.into());
        }
        let (decoded, fetched) = futures::join!(decoding, fetch(Some(&next)));
        taker = finished(decoded)?;
        body = fetched?;
    }
}

/// Decodes pages into a sink.
struct Taker<S> {
    kind: Kind,
    path: String,
    taken: usize,
    sink: S,
}

impl<S: Sink> Taker<S> {
    /// Sends the token of the next page, if there is one, then adds the objects of this page.
    fn take(
        mut self,
        body: &[u8],
        report_next: oneshot::Sender<Option<String>>,
    ) -> Result<Self, Error> {
        let page: Page<'_> = serde_json::from_slice(body).map_err(|error| Error::NotAnAnswer {
            request: format!("GET {}", self.path),
            reason: error.to_string(),
        })?;
        if let Some(version) = page.metadata.version.filter(|_| self.taken == 0) {
            self.sink.version(&version);
        }
        // The receiver is gone when reading was cancelled.
        let _ = report_next.send(page.metadata.next.filter(|next| !next.is_empty()));
        for item in page.items.into_iter().flatten() {
            self.sink.object(self.kind, self.taken, item.get())?;
            self.taken += 1;
        }
        Ok(self)
    }
}

/// The result of a decoding thread; its panic is resumed here.
fn finished<T>(decoded: Result<Result<T, Error>, JoinError>) -> Result<T, Error> {
    decoded.unwrap_or_else(|error| panic::resume_unwind(error.into_panic()))
}

fn stopped(requests: &Requests, list: &List, failure: Failure, call: &Call) -> Stopped {
    match failure {
        Failure::Status(Refusal { code: 410, .. }) => Stopped::Expired,
        Failure::Status(Refusal { code: 403, message, .. }) => Stopped::For(Error::Forbidden {
            missing: vec![Permission {
                verb: Verb::List,
                resource: Resource::Of(list.kind),
                namespace: list.namespace.clone(),
            }],
            message,
        }),
        other => Stopped::For(requests.error(other, call)),
    }
}
