//! One watch: a stream of changes from a version on (upstream: `watch=true`, client-go's
//! `Reflector`).
//!
//! A watch ends all the time: servers close it after a while, connections break, versions expire.
//! What to do then is a function of how it ended (`again`). Not here: what is done with the
//! changes.

mod again;
mod line;

use std::fmt::Display;
use std::time::Duration;

use kube::client::Body;

pub(super) use again::{Pauses, next};
pub(super) use line::Change;

use self::line::{Line, Lines};
use super::answer::frame;
use super::failure::{self, Failure, Refusal};
use super::list::Narrowed;
use super::request::{Call, Requests};
use super::{Resource, Verb, uri};
use crate::model::NamespaceName;

/// How often a silent watch is thought about.
const ATTENTION: Duration = Duration::from_secs(5);

/// What is watched.
#[derive(Clone, Debug)]
pub(super) struct Feed {
    pub(super) resource: Resource,
    /// `None` is the whole cluster.
    pub(super) namespace: Option<NamespaceName>,
    pub(super) narrowed: Narrowed,
}

/// How a watch ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The server closed it, or the connection broke: nothing is lost.
    Closed,
    /// Nothing was heard for so long that it must be dead.
    Silent,
    /// The version is too old for the server (410), or the server has lost its thread: nobody
    /// knows what was missed.
    Expired,
    /// It could not be begun.
    Failed(Failure),
    /// What came is no change of an object.
    Garbled(String),
}

impl Feed {
    /// The request for what changes after `version`. The server decides how long it lasts:
    /// half an hour to an hour.
    fn call(&self, version: Option<&str>) -> Call {
        let path = uri::collection(self.resource, self.namespace.as_ref());
        let version = version.as_ref().map(|version| version as &dyn Display);
        let pairs: [(&str, Option<&dyn Display>); 3] = [
            ("watch", Some(&true)),
            ("allowWatchBookmarks", Some(&true)),
            ("resourceVersion", version),
        ];
        let uri = uri::with_query(path, pairs.into_iter().chain(self.narrowed.pairs()));
        Call { verb: Verb::Watch, ..Call::get(self.resource, uri) }
    }
}

/// Who listens to a watch.
pub(super) trait Listener: Send {
    /// The server has said something, be it that nothing has changed.
    fn life(&mut self);

    /// How long ago it last did.
    fn silent(&self) -> Duration;

    /// Something has changed.
    ///
    /// # Errors
    /// The object is not what the API serves.
    fn change(&mut self, change: Change, json: &str) -> Result<(), String>;
}

/// Begins a watch after `version`; without one, what is there comes first.
///
/// # Errors
/// How it ended before it began.
pub(super) async fn open(
    requests: &Requests,
    feed: &Feed,
    version: Option<&str>,
) -> Result<Body, End> {
    let call = feed.call(version);
    let opened = tokio::time::timeout(call.limit, requests.open(&call)).await;
    match opened.unwrap_or(Err(Failure::Timeout(call.limit))) {
        Ok(answer) => Ok(answer.into_body()),
        Err(Failure::Status(Refusal { code: 410, .. })) => Err(End::Expired),
        Err(failure) => Err(End::Failed(failure)),
    }
}

/// Listens to a watch until it ends. `version` goes along: it is where the next one begins.
pub(super) async fn follow(
    mut body: Body,
    version: &mut Option<String>,
    silence: Duration,
    listener: &mut impl Listener,
) -> End {
    listener.life();
    let mut lines = Lines::default();
    loop {
        match tokio::time::timeout(ATTENTION, frame(&mut body)).await {
            Err(_) if listener.silent() >= silence => return End::Silent,
            Err(_) => {}
            Ok(None) => return End::Closed,
            Ok(Some(Err(error))) => {
                tracing::debug!(reason = failure::root(&error), "a watch broke off");
                return End::Closed;
            }
            Ok(Some(Ok(bytes))) => {
                listener.life();
                lines.push(&bytes);
                if let Some(end) = take(&mut lines, version, listener) {
                    return end;
                }
            }
        }
    }
}

/// Takes all lines that are complete; says so when one of them ends the watch.
fn take(
    lines: &mut Lines,
    version: &mut Option<String>,
    listener: &mut impl Listener,
) -> Option<End> {
    loop {
        match lines.next() {
            Ok(None) => return None,
            Ok(Some(Line::Change { change, version: now, json })) => {
                if let Err(reason) = listener.change(change, json) {
                    return Some(End::Garbled(reason));
                }
                *version = Some(now);
            }
            Ok(Some(Line::Bookmark { version: now })) => *version = Some(now),
            Ok(Some(Line::Error { code, message })) => {
                tracing::debug!(code, message, "the server ended the watch");
                return Some(End::Expired);
            }
            Err(reason) => return Some(End::Garbled(reason)),
        }
    }
}
