//! One list, page by page (upstream: `limit` and `continue`).
//!
//! The first page is read without a resource version, so it is consistent; the pages after it are
//! of the same moment. When that moment is forgotten (410) the list begins anew.

use std::collections::HashSet;

use kube::api::ListParams;
use serde::Deserialize;
use serde_json::value::RawValue;

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
pub(super) trait Sink {
    /// Takes one object, which is number `index` (from 0) of the list.
    fn object(&mut self, kind: Kind, index: usize, json: &str) -> Result<(), Error>;

    /// Forgets everything taken so far: the list begins anew.
    fn begin_anew(&mut self) -> Result<(), Error>;
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

/// Reads a whole list into `sink`, `page_size` objects at a time.
pub(super) async fn read(
    requests: &Requests,
    list: &List,
    page_size: u32,
    sink: &mut impl Sink,
) -> Result<(), Error> {
    for _ in 0..=NEW_BEGINNINGS {
        match pages(requests, list, page_size, sink).await {
            Err(Stopped::Expired) => sink.begin_anew()?,
            Err(Stopped::For(error)) => return Err(error),
            Ok(()) => return Ok(()),
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

async fn pages(
    requests: &Requests,
    list: &List,
    page_size: u32,
    sink: &mut impl Sink,
) -> Result<(), Stopped> {
    let path = list.kind.path(list.namespace.as_ref());
    let mut tokens = HashSet::new();
    let mut token: Option<String> = None;
    let mut index = 0;
    loop {
        let uri = page_uri(&path, page_size, token.as_deref(), requests)?;
        let body = requests.get(Verb::List, &uri).await;
        let body = body.map_err(|failure| stopped(requests, list, failure))?;
        let page: Page<'_> = serde_json::from_slice(&body).map_err(|error| Error::NotAnAnswer {
            path: path.clone(),
            reason: error.to_string(),
        })?;
        for item in page.items.into_iter().flatten() {
            sink.object(list.kind, index, item.get())?;
            index += 1;
        }
        let Some(next) = page.metadata.next.filter(|next| !next.is_empty()) else { return Ok(()) };
        if !tokens.insert(next.clone()) {
            return Err(Error::EndlessList { kind: list.kind }.into());
        }
        token = Some(next);
    }
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
