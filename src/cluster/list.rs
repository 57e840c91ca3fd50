//! One list, page by page (upstream: `limit` and `continue`).
//!
//! The first page is read without a resource version, so it is consistent; the pages after it are
//! of the same moment. When that moment is forgotten (410) the list begins anew.

use std::collections::HashSet;
use std::panic;

use futures::channel::oneshot;
use kube::api::ListParams;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::task::JoinError;

use super::failure::{Failure, Refusal};
use super::request::{Requests, Verb};
use super::{Error, Kind, Permission};
use crate::model::NamespaceName;

/// How often a list that expired is begun anew.
const NEW_BEGINNINGS: u32 = 3;

/// What to list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct List {
    pub(super) kind: Kind,
    /// `None` is the whole cluster.
    pub(super) namespace: Option<NamespaceName>,
}

/// Who takes the objects of one list.
pub(super) trait Sink: Send + 'static {
    /// Takes one object, which is number `index` (from 0) of the list.
    fn object(&mut self, kind: Kind, index: usize, json: &str) -> Result<(), Error>;
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
        let uri = page_uri(&path, page_size, token, requests)?;
        let body = requests.get(Verb::List, &uri).await;
        body.map_err(|failure| stopped(requests, list, failure))
    };
    let mut tokens = HashSet::new();
    let mut taker = Taker { kind: list.kind, path: path.clone(), taken: 0, sink };
    let mut body = fetch(None).await?;
    loop {
        let (tell_next, next) = oneshot::channel();
        let decoding = tokio::task::spawn_blocking(move || taker.take(&body, tell_next));
        // Nothing is told of a page that cannot be read; why, the decoding says.
        let Some(next) = next.await.unwrap_or_default() else {
            return Ok(finished(decoding.await)?.sink);
        };
        if !tokens.insert(next.clone()) {
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
            path: self.path.clone(),
            reason: error.to_string(),
        })?;
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

fn page_uri(
    path: &str,
    page_size: u32,
    token: Option<&str>,
    requests: &Requests,
) -> Result<String, Error> {
    let mut params = ListParams::default().limit(page_size);
    params.continue_token = token.map(str::to_owned);
    let request = kube::core::Request::new(path).list(&params);
    let request =
        request.map_err(|error| requests.error(Failure::Unreachable(error.to_string()), path))?;
    Ok(request.uri().to_string())
}

fn stopped(requests: &Requests, list: &List, failure: Failure) -> Stopped {
    match failure {
        Failure::Status(Refusal { code: 410, .. }) => Stopped::Expired,
        Failure::Status(Refusal { code: 403, message, .. }) => Stopped::For(Error::Forbidden {
            missing: vec![Permission {
                verb: "list",
                kind: list.kind,
                namespace: list.namespace.clone(),
            }],
            message,
        }),
        other => Stopped::For(requests.error(other, &list.kind.path(list.namespace.as_ref()))),
    }
}
