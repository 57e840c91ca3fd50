//! One watch: a stream of changes after a resource version (upstream: `watch=true`, client-go's
//! `Reflector`).
//!
//! Watches end often: servers close them after a while, connections break, versions expire. The
//! next step depends on how the watch ended (`again`). Not here: the handling of the changes.

mod again;
mod event;
mod frame;
mod line;

use std::fmt::Display;
use std::time::Duration;

use kube::client::Body;

pub(super) use again::{Delays, next};
pub(super) use event::Change;

use self::event::Event;
use self::frame::Frames;
use self::line::Lines;
use super::answer::{Format, frame};
use super::decode::Encoded;
use super::failure::{self, Failure, Refusal};
use super::list::Narrowed;
use super::request::{Accept, Call, Requests};
use super::{Resource, Verb, uri};
use daemonset::model::NamespaceName;

/// How often a silent watch is checked.
const ATTENTION: Duration = Duration::from_secs(5);

/// The objects to watch.
#[derive(Clone, Debug)]
pub(super) struct Feed {
    pub(super) resource: Resource,
    /// `None` is the whole cluster.
    pub(super) namespace: Option<NamespaceName>,
    pub(super) narrowed: Narrowed,
    /// The formats that the listener reads.
    pub(super) accept: Accept,
}

/// A watch that was opened.
pub(super) struct Opened {
    format: Format,
    body: Body,
}

/// Why a watch ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The server closed it, or the connection was lost: no change is missed.
    Closed,
    /// Nothing was received for so long that the connection counts as dead.
    Silent,
    /// The version is too old for the server (410), or the server reported another error: changes
    /// may have been missed.
    Expired,
    /// It could not be opened.
    Failed(Failure),
    /// Something in it is not a valid event.
    Garbled(String),
}

impl Feed {
    /// The request for the changes after `version`. The server decides how long it lasts: half an
    /// hour to an hour.
    fn call(&self, version: Option<&str>) -> Call {
        let path = uri::collection(self.resource, self.namespace.as_ref());
        let version = version.as_ref().map(|version| version as &dyn Display);
        let pairs: [(&str, Option<&dyn Display>); 3] = [
            ("watch", Some(&true)),
            ("allowWatchBookmarks", Some(&true)),
            ("resourceVersion", version),
        ];
        let uri = uri::with_query(path, pairs.into_iter().chain(self.narrowed.pairs()));
        Call { verb: Verb::Watch, accept: self.accept, ..Call::get(self.resource, uri) }
    }
}

/// Receives the events of a watch.
pub(super) trait Listener: Send {
    /// Called when any bytes are received, including bookmarks.
    fn life(&mut self);

    /// The time since the last call of [`life`](Self::life).
    fn silent(&self) -> Duration;

    /// Called for each change of an object.
    ///
    /// # Errors
    /// The object is invalid.
    fn change(&mut self, change: Change, object: Encoded<'_>) -> Result<(), String>;
}

/// Opens a watch after `version`. Without one, all existing objects come first.
///
/// # Errors
/// The watch could not be opened.
pub(super) async fn open(
    requests: &Requests,
    feed: &Feed,
    version: Option<&str>,
) -> Result<Opened, End> {
    let call = feed.call(version);
    let opened = tokio::time::timeout(call.limit, requests.open(&call)).await;
    match opened.unwrap_or(Err(Failure::Timeout(call.limit))) {
        Ok(answer) => Ok(Opened { format: Format::of(answer.headers()), body: answer.into_body() }),
        Err(Failure::Status(Refusal { code: 410, .. })) => Err(End::Expired),
        Err(failure) => Err(End::Failed(failure)),
    }
}

/// Reads a watch until it ends. Updates `version`, where the next watch continues.
pub(super) async fn follow(
    Opened { format, mut body }: Opened,
    version: &mut Option<String>,
    silence: Duration,
    listener: &mut impl Listener,
) -> End {
    listener.life();
    let mut events = Events::of(format);
    loop {
        match tokio::time::timeout(ATTENTION, frame(&mut body)).await {
            Err(_) if listener.silent() >= silence => return End::Silent,
            Err(_) => {}
            Ok(None) => return End::Closed,
            Ok(Some(Err(error))) => {
                tracing::debug!(reason = failure::root(&error), "lost the connection of a watch");
                return End::Closed;
            }
            Ok(Some(Ok(bytes))) => {
                listener.life();
                events.push(&bytes);
                if let Some(end) = take(&mut events, version, listener) {
                    return end;
                }
            }
        }
    }
}

/// Handles all complete events. Returns the end if one of them ends the watch.
fn take(
    events: &mut Events,
    version: &mut Option<String>,
    listener: &mut impl Listener,
) -> Option<End> {
    loop {
        match events.next() {
            Ok(None) => return None,
            Ok(Some(Event::Change { change, version: now, object })) => {
                if let Err(reason) = listener.change(change, object) {
                    return Some(End::Garbled(reason));
                }
                *version = Some(now);
            }
            Ok(Some(Event::Bookmark { version: now })) => *version = Some(now),
            Ok(Some(Event::Error { code, message })) => {
                tracing::debug!(code, message, "the server ended the watch");
                return Some(End::Expired);
            }
            Err(reason) => return Some(End::Garbled(reason)),
        }
    }
}

/// Splits the received bytes into events.
#[derive(Debug)]
enum Events {
    Json(Lines),
    Protobuf(Frames),
}

impl Events {
    fn of(format: Format) -> Self {
        match format {
            Format::Json => Self::Json(Lines::default()),
            Format::Protobuf => Self::Protobuf(Frames::default()),
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        match self {
            Self::Json(Lines(unread)) | Self::Protobuf(Frames(unread)) => unread.push(bytes),
        }
    }

    /// The next complete event.
    ///
    /// # Errors
    /// It is not valid, or is too long.
    fn next(&mut self) -> Result<Option<Event<'_>>, String> {
        match self {
            Self::Json(lines) => lines.next(),
            Self::Protobuf(frames) => frames.next(),
        }
    }
}
