//! One list, page by page (upstream: `limit` and `continue`).
//!
//! The first page is read without a resource version, so it is consistent; the pages after it are
//! of the same moment. When that moment is forgotten (410) the list begins anew.

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
use crate::model::NamespaceName;

/// How often a list that expired is begun anew.
const NEW_BEGINNINGS: u32 = 3;

/// The most pages of one list: far more objects than any cluster holds.
const MOST_PAGES: usize = 20_000;
/// The longest token for a next page, in bytes; real ones have some hundred.
const LONGEST_TOKEN: usize = 64 << 10;

/// What to list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct List {
    pub(super) kind: Kind,
    /// `None` is the whole cluster.
    pub(super) namespace: Option<NamespaceName>,
    /// Which of them; empty is all.
    pub(super) narrowed: Narrowed,
}

/// Which objects of a list or watch, as the server decides it; each is empty for all.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Narrowed {
    /// `labelSelector`.
    pub(super) labels: String,
    /// `fieldSelector`.
    pub(super) fields: String,
}

impl Narrowed {
    /// What they are in a query.
    pub(super) fn pairs(&self) -> [(&'static str, Option<&dyn Display>); 2] {
        [("labelSelector", &self.labels), ("fieldSelector", &self.fields)]
            .map(|(key, text)| (key, (!text.is_empty()).then_some(text as &dyn Display)))
    }
}

impl List {
    /// All of them.
    pub(super) fn all(kind: Kind, namespace: Option<NamespaceName>) -> Self {
        Self { kind, namespace, narrowed: Narrowed::default() }
    }

    /// The request for one page of it.
    fn call(&self, page_size: u32, token: Option<&str>) -> Call {
        let path = self.kind.path(self.namespace.as_ref());
        let limit: Option<&dyn Display> = Some(&page_size);
        let token = token.as_ref().map(|token| token as &dyn Display);
        let pairs = [("limit", limit), ("continue", token)];
        let uri = uri::with_query(path, pairs.into_iter().chain(self.narrowed.pairs()));
        Call::list(Resource::Of(self.kind), uri)
    }
}

/// Who takes the objects of one list.
pub(super) trait Sink: Send + 'static {
    /// Takes one object, which is number `index` (from 0) of the list.
    fn object(&mut self, kind: Kind, index: usize, json: &str) -> Result<(), Error>;

    /// Whether anything that it took belongs to a ledger.
    fn has_seen_ledger(&self) -> bool;

    /// The moment of the list, from which a watch goes on. Told before any object.
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
/// begins anew.
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

/// Why a list was not read to its end.
enum Stopped {
    Expired,
    For(Error),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::For(error)
    }
}

/// Each page is decoded on another thread while the next one is fetched, so that two pages of a
/// list are in memory at most.
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
        let (tell_next, next) = oneshot::channel();
        let decoding = requests.decode(move || taker.take(&body, tell_next));
        // Nothing is told of a page that cannot be read; why, the decoding says.
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

/// Takes the objects of one page after the other.
struct Taker<S> {
    kind: Kind,
    path: String,
    taken: usize,
    sink: S,
}

impl<S: Sink> Taker<S> {
    /// Tells the token of the next page, if there is one, then takes the objects of this one.
    fn take(
        mut self,
        body: &[u8],
        tell_next: oneshot::Sender<Option<String>>,
    ) -> Result<Self, Error> {
        let page: Page<'_> = serde_json::from_slice(body).map_err(|error| Error::NotAnAnswer {
            request: format!("GET {}", self.path),
            reason: error.to_string(),
        })?;
        if let Some(version) = page.metadata.version.filter(|_| self.taken == 0) {
            self.sink.version(&version);
        }
        // Nobody listens when reading was given up.
        let _ = tell_next.send(page.metadata.next.filter(|next| !next.is_empty()));
        for item in page.items.into_iter().flatten() {
            self.sink.object(self.kind, self.taken, item.get())?;
            self.taken += 1;
        }
        Ok(self)
    }
}

/// What a decoding thread brought; its panic goes on here.
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
