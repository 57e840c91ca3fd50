//! Reads one list, page by page (upstream: `limit` and `continue`).
//!
//! The first page is read without a resource version, so the server answers with its newest state; the next
//! pages have the same resource version. When that version expires (410), the list starts again.
//!
//! A page has 500 objects. In protobuf, each object is decoded as soon as it has arrived (`portion`),
//! so that only one object of each page in flight is in memory. A page of JSON is decoded as a whole, on
//! another thread while the next ones are fetched. A snapshot reads the pages of nodes, and for each
//! selected namespace the pages of its pods, DaemonSets and revisions; in addition one list of
//! namespaces and the version. The number of requests does not depend on which DaemonSets are planned.

mod portion;
mod sink;

use std::collections::{HashSet, VecDeque};
use std::fmt::Display;
use std::panic;

use futures::channel::mpsc::{self, UnboundedSender};
use futures::future::{Fuse, FutureExt as _};
use futures::stream::{FuturesOrdered, StreamExt as _};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::task::JoinError;

use super::answer::Answer;
use super::decode::Encoded;
use super::decode::protobuf::envelope::ListMeta;
use super::failure::{Failure, Refusal};
use super::request::{Accept, Call, Requests};
use super::{Error, Kind, Permission, Resource, Verb, uri};
use daemonset::model::{NamespaceName, RECORD_LABEL};
use portion::Portion;
use sink::Next;
pub(super) use sink::Sink;

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

    /// The records: ConfigMaps with a label.
    pub(super) fn records(namespace: Option<NamespaceName>) -> Self {
        let labels = format!("{RECORD_LABEL}=true");
        let narrowed = Narrowed { labels, ..Narrowed::default() };
        Self { kind: Kind::DaemonSetRecord, namespace, narrowed }
    }

    /// The request for one page.
    fn call(&self, page_size: u32, token: Option<&str>, accept: Accept) -> Call {
        let path = self.kind.path(self.namespace.as_ref());
        let limit: Option<&dyn Display> = Some(&page_size);
        let token = token.as_ref().map(|token| token as &dyn Display);
        let pairs = [("limit", limit), ("continue", token)];
        let uri = uri::with_query(path, pairs.into_iter().chain(self.narrowed.pairs()));
        Call { accept, ..Call::list(Resource::Of(self.kind), uri) }
    }
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

impl From<PageMetadata> for ListMeta {
    fn from(PageMetadata { next, version }: PageMetadata) -> Self {
        Self { version, next: next.filter(|next| !next.is_empty()) }
    }
}

/// Reads a whole list into a sink, `page_size` objects at a time; into a new sink when the list
/// starts again.
pub(super) async fn read<S: Sink>(
    requests: &Requests,
    list: &List,
    page_size: u32,
    sink: &(impl Fn() -> S + Sync),
) -> Result<S, Error> {
    for _ in 0..=NEW_BEGINNINGS {
        match pages(requests, list, page_size, sink).await {
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

/// Reads the pages of a list. Pages of JSON are decoded on another thread, one after the other,
/// while the next ones are fetched. The beginning of a page of protobuf has the token of the next
/// one: from the second page on, several are in flight.
async fn pages<S: Sink>(
    requests: &Requests,
    list: &List,
    page_size: u32,
    sink: &(impl Fn() -> S + Sync),
) -> Result<S, Stopped> {
    let (report, mut reports) = mpsc::unbounded();
    let fetch = Fetch { requests, list, page_size, sink, report };
    let mut tokens = Tokens::of(list.kind);
    let mut fetching = FuturesOrdered::new();
    let mut fetched = VecDeque::new();
    let mut idle = Some(Taker::of(list, sink()));
    let mut decoding = Fuse::terminated();
    fetching.push_back(fetch.page(0, None));
    loop {
        if !fetched.is_empty()
            && let Some(taker) = idle.take()
            && let Some(answer) = fetched.pop_front()
        {
            let report = fetch.report.clone();
            match answer {
                Answer::Json(body) => {
                    decoding = requests.decode(move || taker.take(&body, &report)).fuse();
                }
                Answer::Protobuf(portion) => idle = Some(taker.append(portion, &report)?),
            }
        }
        // Each page reports whether there is a next one, or is an error.
        let has_room = fetching.len() + fetched.len() < requests.concurrency();
        tokio::select! {
            biased;
            Some(next) = reports.next(), if has_room => {
                if let Some((page, token)) = tokens.next(next)? {
                    fetching.push_back(fetch.page(page, Some(token)));
                }
            }
            decoded = &mut decoding => idle = Some(finished(decoded)?),
            Some(answer) = fetching.next() => fetched.push_back(answer?),
        }
        if let Some(taker) = idle.take_if(|taker| tokens.is_last(taker.pages)) {
            return Ok(taker.sink);
        }
    }
}

/// Fetches the pages of a list.
struct Fetch<'r, F> {
    requests: &'r Requests,
    list: &'r List,
    page_size: u32,
    sink: &'r F,
    report: UnboundedSender<Next>,
}

impl<S: Sink, F: Fn() -> S + Sync> Fetch<'_, F> {
    /// Fetches a page, and reports the token of the next one as soon as it is known.
    async fn page(
        &self,
        page: usize,
        token: Option<String>,
    ) -> Result<Answer<Portion<S>>, Stopped> {
        let kind = self.list.kind;
        let call = self.list.call(self.page_size, token.as_deref(), S::accepts(kind));
        let portion = || Portion::new(kind, page, (self.sink)(), &self.report);
        let answer = self.requests.send_page(&call, &portion).await;
        answer.map_err(|failure| stopped(self.requests, self.list, failure, &call))
    }
}

/// The tokens that are known so far.
struct Tokens {
    kind: Kind,
    seen: HashSet<String>,
    /// The number of pages whose [`Next`] is known.
    known: usize,
    is_complete: bool,
}

impl Tokens {
    fn of(kind: Kind) -> Self {
        Self { kind, seen: HashSet::new(), known: 0, is_complete: false }
    }

    /// The next page to fetch. A page reports again when it is fetched again or decoded.
    fn next(&mut self, Next { page, token }: Next) -> Result<Option<(usize, String)>, Error> {
        if page != self.known {
            return Ok(None);
        }
        self.known += 1;
        let Some(token) = token else {
            self.is_complete = true;
            return Ok(None);
        };
        let is_too_long = self.seen.len() >= MOST_PAGES || token.len() > LONGEST_TOKEN;
        if is_too_long || !self.seen.insert(token.clone()) {
            return Err(Error::EndlessList { kind: self.kind });
        }
        Ok(Some((self.known, token)))
    }

    /// Whether a list of this many pages is complete.
    fn is_last(&self, pages: usize) -> bool {
        self.is_complete && self.known == pages
    }
}

/// Decodes pages into a sink.
struct Taker<S> {
    kind: Kind,
    path: String,
    /// The number of decoded pages.
    pages: usize,
    /// The number of decoded objects.
    taken: usize,
    sink: S,
}

impl<S: Sink> Taker<S> {
    fn of(list: &List, sink: S) -> Self {
        let path = list.kind.path(list.namespace.as_ref());
        Self { kind: list.kind, path, pages: 0, taken: 0, sink }
    }

    /// Reports the token of the next page, if there is one, then adds the objects of this page.
    fn take(mut self, body: &[u8], report: &UnboundedSender<Next>) -> Result<Self, Error> {
        let page = serde_json::from_slice(body);
        let page: Page<'_> = page.map_err(|error| self.not_a_page(error.to_string()))?;
        self.begin(page.metadata.into(), report);
        for item in page.items.into_iter().flatten() {
            self.sink.object(self.kind, self.taken, Encoded::Json(item.get()))?;
            self.taken += 1;
        }
        self.pages += 1;
        Ok(self)
    }

    /// As [`take`](Self::take), for a page whose objects are decoded already.
    fn append(
        mut self,
        portion: Portion<S>,
        report: &UnboundedSender<Next>,
    ) -> Result<Self, Error> {
        let Portion { reader, sink, taken, failure, .. } = portion;
        let metadata = reader.finish(self.kind).map_err(|reason| self.not_a_page(reason))?;
        self.begin(metadata, report);
        if let Some(error) = failure {
            return Err(error.further_by(self.taken));
        }
        self.sink.append(sink);
        self.taken += taken;
        self.pages += 1;
        Ok(self)
    }

    fn not_a_page(&self, reason: String) -> Error {
        Error::NotAnAnswer { request: format!("GET {}", self.path), reason }
    }

    fn begin(&mut self, ListMeta { version, next }: ListMeta, report: &UnboundedSender<Next>) {
        if let Some(version) = version.filter(|_| self.taken == 0) {
            self.sink.version(&version);
        }
        // The receiver is dropped when reading was cancelled.
        let _ = report.unbounded_send(Next { page: self.pages, token: next });
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
